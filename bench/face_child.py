"""`python -m bench.face_child load FOLDER | drain loop | drain dagster`: one thing, one process.

`load` takes the packs of FOLDER for the built-in ones and prints the seconds of importing Dagster,
and of everything else until the definitions can be used. `drain` empties the HARVEST queue of the
ledger that the environment names, by a worker's own loop or by `execute_job`; it prints seconds, of
the clock and of the processor, without those of importing.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

LANES = 4


def load(folder: Path) -> None:
    """Print the seconds of Dagster, and of our definitions."""
    began = time.perf_counter()
    import dagster  # noqa: F401

    imported = time.perf_counter()
    from patra_ingest import packs

    packs.FOLDER = folder
    from patra_ingest.definitions import defs

    defs.get_repository_def().load_all_definitions()
    print(imported - began, time.perf_counter() - imported)


def drain(face: str) -> None:
    """Print what a drain takes."""
    from patra_ingest.wiring import open_ingest

    with open_ingest() as live:
        live.worker()  # imports what executing needs
    act = {"loop": _loop, "dagster": _dagster}[face]()
    began, worked = time.perf_counter(), time.process_time()
    act()
    print(time.perf_counter() - began, time.process_time() - worked)


def _loop() -> Callable[[], None]:
    """Return what `patra work --until-empty --op HARVEST` does."""
    from patra_ingest.executor.work import Order
    from patra_ingest.ledger.tasks import TaskFilter
    from patra_ingest.model.codes import Operation
    from patra_ingest.wiring import open_ingest

    def act() -> None:
        order = Order(LANES, until_empty=True, wanted=TaskFilter(operation=Operation.HARVEST))
        with open_ingest() as live:
            live.worker().work(order, threading.Event(), lambda _stats: None)

    return act


def _dagster() -> Callable[[], None]:
    """Return what a run worker does with the run that the daemon hands over to it."""
    import dagster as dg
    from dagster._core.definitions.reconstruct import ReconstructableRepository  # as defs.launch
    from dagster._core.execution.api import execute_run

    repository = ReconstructableRepository.for_module("patra_ingest.definitions", "defs")
    job = repository.get_reconstructable_job("execute_job")
    instance = dg.DagsterInstance.get()
    lanes = {"ops": {"execute_slice": {"config": {"threads": LANES}}}}
    run = instance.create_run_for_job(
        job.get_definition(), run_config=lanes, job_code_origin=job.get_python_origin()
    )
    instance.report_engine_event("handed over", run)  # its log exists by then

    def act() -> None:
        assert execute_run(job, run, instance).success

    return act


if __name__ == "__main__":
    match sys.argv[1:]:
        case "load", folder:
            load(Path(folder))
        case "drain", face:
            drain(face)
        case _:
            sys.exit("usage: python -m bench.face_child load FOLDER | drain loop | drain dagster")
