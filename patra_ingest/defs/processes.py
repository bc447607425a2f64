"""Which process a Dagster run is, and whether that process is still there.

Dagster's launcher starts runs as children of the code location. When that dies, its runs die with
it and nobody says so: they would be shown as started, and counted as active, for ever. So a run
says in a tag which process it is. Whoever is on the same machine can look.
"""

import os
import socket
from pathlib import Path

import dagster as dg

PROCESS = "patra/process"
_PROC = Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"


def own_process() -> str:
    """Return machine, number and birth of this process."""
    return f"{socket.gethostname()}/{os.getpid()}/{_birth(os.getpid())}"


def introduce(instance: dg.DagsterInstance, run_id: str) -> None:
    """Tag a run with this process; a run that executes again has another one."""
    run, process = instance.get_run_by_id(run_id), own_process()
    if run is not None and run.tags.get(PROCESS) != process:
        instance.add_run_tags(run_id, {PROCESS: process})


def is_gone(process: str) -> bool:
    """Return whether a process is known to be over; of another machine's nothing is known."""
    host, number, birth = process.rsplit("/", 2)
    return host == socket.gethostname() and _birth(int(number)) != birth


def _birth(number: int) -> str | None:
    """Return what tells a process from others of the same number; None if there is none.

    Numbers are given again, after a restart of the machine or of a container very soon.
    """
    if not _BOOT.exists():
        return _birth_unknown(number)
    try:
        # After the name, which may hold anything: state, …, and as the 20th the time of its start.
        fields = (_PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else f"{_BOOT.read_text()[:8]}-{fields[19]}"


def _birth_unknown(number: int) -> str | None:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "unknown"  # it is there, and another user's
    return "unknown"


def end_lost_runs(instance: dg.DagsterInstance) -> int:
    """End the runs that are shown as started and whose process is gone; return how many."""
    started = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    gone = [run for run in started if PROCESS in run.tags and is_gone(run.tags[PROCESS])]
    # A run says how it ended before its process ends: what was true a moment ago is asked again.
    lost = [run for run in gone if _is_still_started(instance, run.run_id)]
    for run in lost:
        instance.report_run_failed(
            run,
            f"Its process is gone ({run.tags[PROCESS]}): killed, or ended with the code location."
            " What it had committed stays; its tasks are executed by another run.",
        )
    return len(lost)


def _is_still_started(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is not None and run.status is dg.DagsterRunStatus.STARTED
