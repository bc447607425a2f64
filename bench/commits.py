"""How long one batch of 100 records takes to commit, without HTTP: the whole transaction."""

import statistics
import threading
from uuid import uuid4

from bench.harvest import DAYS, START, engine
from bench.ledgers import fresh_mysql
from patra_ingest.executor.run_batch import BatchRunner
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World

RECORDS = 10_000


def measure_commits(folder, mysql_url):
    """Print mean and 95th percentile over a hundred pages, inserted by one lane."""
    with start_sandbox(World(RECORDS, START, DAYS, 1)) as box:
        _print("SQLite", _commits(box.url, folder, ""))
        if mysql_url:
            with fresh_mysql(mysql_url) as url:
                _print("MySQL", _commits(box.url, folder, url))


def _commits(url, folder, db_url):
    """Return the milliseconds of every commit of a harvest, as the engine measures them."""
    seen, lock = [], threading.Lock()
    commit = BatchRunner.commit

    def watched(*arguments):
        done = commit(*arguments)
        with lock:
            seen.append(done.stats["commitMs"])
        return done

    BatchRunner.commit = watched
    try:
        engine(url, folder / uuid4().hex, db_url, 1, RECORDS)
    finally:
        BatchRunner.commit = commit
    return seen


def _print(ledger, times):
    tail = statistics.quantiles(times, n=20)[-1]
    mean = statistics.mean(times)
    print(f"{ledger:<6} commit of 100 records: mean {mean:5.1f} ms, p95 {tail:5.1f} ms")
