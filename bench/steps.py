"""Where the time of a page goes: processor time of the lane, step by step, beside the bare loop."""

import time
from collections import Counter
from contextlib import ExitStack, contextmanager

from bench.bare import run_bare
from bench.harvest import DAYS, START, engine
from patra_ingest.executor import exchange, run_batch, store_batch, turning
from patra_ingest.executor.work import TaskExecutor
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.transport.client import Transport

RECORDS = 10_000
STEPS = (
    ("request and response", Transport, "send"),
    ("parsing", exchange, "read_tree"),
    ("mapping", turning, "map_items"),
    ("records", store_batch, "upsert_newer"),
    ("outbox", store_batch, "add_changes"),
    ("raw store", RawStore, "put"),
    ("rate gate, take", RateGate, "acquire_all"),
    ("rate gate, give back", RateGate, "release"),
    ("the next batch written down", run_batch, "start_batch"),
    ("commit, with records and outbox", run_batch.BatchRunner, "commit"),
    ("everything", TaskExecutor, "execute"),
)


@contextmanager
def _timed(owner, name, label, spent):
    """Add the processor time of every call to `spent`, for the length of the block."""
    function = getattr(owner, name)

    def watched(*arguments, **named):
        began = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            spent[label] += time.thread_time() - began

    setattr(owner, name, watched)
    try:
        yield
    finally:
        setattr(owner, name, function)


def measure_steps(folder):
    """Print milliseconds per page of 100 records, one lane, SQLite; steps may hold others."""
    pages, spent = RECORDS / 100, Counter()
    with start_sandbox(World(RECORDS, START, DAYS, 1)) as box, ExitStack() as stack:
        engine(box.url, folder, "", 1, RECORDS)
        spent["the bare loop"] = run_bare(box.url, folder)[1]
        for label, owner, name in STEPS:
            stack.enter_context(_timed(owner, name, label, spent))
        engine(box.url, folder, "", 1, RECORDS)
    print("Milliseconds of processor time per page of 100 records, one lane, SQLite")
    for label, seconds in spent.items():
        print(f"  {label:<32} {seconds * 1000 / pages:5.1f}")
