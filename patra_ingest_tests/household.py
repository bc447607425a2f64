"""Dagster as it is deployed: a code location and a daemon as processes, to be killed and started.

The packs of the household's folder take the place of the built-in ones. Everything a process starts
is in its group and dies with it.
"""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._grpc.client import DagsterGrpcClient

from patra_ingest.defs.runs import ACTIVE

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LOCATION = """
from pathlib import Path
from patra_ingest import packs
packs.FOLDER = Path(__file__).parent / "packs"
from patra_ingest.definitions import defs
"""
START_SECONDS = 120.0
PACK = ROOT / "patra_ingest_tests/sources/unattended.yaml"


class Household:
    """One folder with a ledger's home, Dagster's home, packs, logs and two processes."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self.packs, self.patra, self.dagster = (
            folder / name for name in ("packs", "patra", "dagster")
        )
        for made in (self.packs, self.patra, self.dagster):
            made.mkdir()
        homes = {"PATRA_HOME": str(self.patra), "DAGSTER_HOME": str(self.dagster)}
        own = {**homes, "PATRA_DB_URL": "", "NO_PROXY": "*", "PYTHONWARNINGS": "ignore", **settings}
        self.environment = {**os.environ, **own}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        shutil.copy(ROOT / "dagster.yaml", self.dagster)
        (folder / "location.py").write_text(LOCATION)
        server = {"host": "127.0.0.1", "port": self.port, "location_name": "patra_ingest"}
        (folder / "workspace.yaml").write_text(
            yaml.safe_dump({"load_from": [{"grpc_server": server}]})
        )

    def write_pack(self, url: str, earliest: datetime) -> None:
        """Let the sandbox at `url` be the only source: `sources/unattended.yaml`."""
        written = PACK.read_text().replace("@BASE_URL@", url)
        written = written.replace("@EARLIEST@", earliest.isoformat())
        (self.packs / "sandbox.yaml").write_text(written)

    def configure(self, part: str, **values: object) -> None:
        """Change a part of dagster.yaml."""
        path = self.dagster / "dagster.yaml"
        config = yaml.safe_load(path.read_text())
        config.setdefault(part, {}).update(values)
        path.write_text(yaml.safe_dump(config))

    def start_code(self) -> None:
        """Start the code location; return when it answers."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "--location-name", "patra_ingest"]
        self._start("code", "dagster", "code-server", "start", "-f", "location.py", *where)
        client = DagsterGrpcClient(host="127.0.0.1", port=self.port)
        self.wait_until(lambda: _answers(client), START_SECONDS)

    def start_daemon(self) -> None:
        """Start the daemon."""
        self._start("daemon", "dagster-daemon", "run", "-w", "workspace.yaml")

    def switch_on(self, *wanted: str) -> set[str]:
        """Turn schedules and sensors on, all of them if none is named; return their names."""
        files = WorkspaceFileTarget([str(self.folder / "workspace.yaml")])
        names = set()
        with (
            self.instance() as stored,
            WorkspaceProcessContext(stored, files) as workspace,
        ):
            (location,) = workspace.create_request_context().code_locations
            (repository,) = location.get_repositories().values()
            for schedule in repository.get_schedules():
                if not wanted or schedule.name in wanted:
                    names.add(stored.start_schedule(schedule).instigator_name)
            for sensor in repository.get_sensors():
                if not wanted or sensor.name in wanted:
                    names.add(stored.start_sensor(sensor).instigator_name)
        return names

    def reload_code(self) -> None:
        """Load the code location anew, as the button in the UI does."""
        DagsterGrpcClient(host="127.0.0.1", port=self.port).reload_code(timeout=120)

    def kill(self, name: str) -> None:
        """End a process and all that it started with SIGKILL."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End everything."""
        for name in list(self._processes):
            self.kill(name)

    def run(self, *command: str) -> str:
        """Run a command of ours or of Dagster to its end."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"[-6000:]
        return done.stdout

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's storage."""
        before = os.environ.get("DAGSTER_HOME")
        os.environ["DAGSTER_HOME"] = str(self.dagster)
        try:
            with dg.DagsterInstance.get() as instance:
                yield instance
        finally:
            os.environ.pop("DAGSTER_HOME")
            if before is not None:
                os.environ["DAGSTER_HOME"] = before

    def active_runs(self) -> list[dg.DagsterRun]:
        """Return the runs that wait or run."""
        with self.instance() as stored:
            return list(stored.get_runs(dg.RunsFilter(statuses=ACTIVE)))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the ledger."""
        with closing(sqlite3.connect(self.patra / "ledger.db", timeout=30)) as ledger:
            return ledger.execute(query).fetchall()

    def wait_until(self, is_so: Callable[[], object], seconds: float) -> None:
        """Return when it is so; fail, and show the logs, when it takes longer."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.2)

    def told(self) -> str:
        """Return the runs there are, and the end of what the processes have written."""
        with self.instance() as stored:
            runs = [f"{run.job_name} {run.run_id} {run.status.value}" for run in stored.get_runs()]
        logs = [path.read_text()[-3000:] for path in sorted(self.folder.glob("*.log"))]
        return "\n".join([*runs, *logs])

    def _start(self, name: str, program: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(BIN / program), *words],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def _answers(client: DagsterGrpcClient) -> bool:
    try:
        client.ping("")
    except Exception:  # noqa: BLE001 - whatever it is: not yet
        return False
    return True


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
