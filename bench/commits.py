"""How long one batch of 100 records takes to commit, without HTTP: the whole transaction.

Beside it stands what the database alone takes for the records of such a page: one INSERT of the
same works into a table with nothing but a key, by the same driver, and its commit.
"""

import statistics
import threading
import time
from uuid import uuid4

import pymysql
from sqlalchemy import make_url

from bench.bare import bare_loop
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
                _print("MySQL", _bare_inserts(box.url, url), "bare INSERT")


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


def _bare_inserts(url, mysql_url):
    """Return the milliseconds of inserting and committing each page of the works, and no more."""
    seen = []
    parsed = make_url(mysql_url)
    db = pymysql.connect(
        host=parsed.host,
        port=parsed.port,
        user=parsed.username,
        password=parsed.password or "",
        database=parsed.database,
        charset="utf8mb4",
    )
    with db, db.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bare_page (id VARCHAR(512) COLLATE utf8mb4_bin PRIMARY KEY, payload JSON)"
        )

        def upsert(rows):
            began = time.perf_counter()
            pairs = [(name, payload) for name, _, payload in rows]
            cursor.executemany("INSERT INTO bare_page VALUES (%s, %s)", pairs)
            db.commit()
            seen.append((time.perf_counter() - began) * 1000)

        bare_loop(url, upsert)
    return seen


def _print(ledger, times, what="commit"):
    tail = statistics.quantiles(times, n=20)[-1]
    mean = statistics.mean(times)
    print(f"{ledger:<6} {what} of 100 records: mean {mean:5.1f} ms, p95 {tail:5.1f} ms")
