"""Leasing one task while 100,000 are queued: a whole round as a worker makes it, with its commit.

The tasks are of 20 partitions and 3 priorities, some of them due later. As in a working ledger, 40
are in work at any time; what finishes them is not measured.
"""

import statistics
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.figures import milliseconds, verdict
from bench.ledgers import mysql_ledger, sqlite_ledger
from patra_ingest.ledger.db import Db, instant_text
from patra_ingest.ledger.leases import Limits, try_lease_one
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.tasks import EVERY_TASK, Lease, ensure_tasks

QUEUED, PARTITIONS, PRIORITIES = 100_000, 20, 3
GROUP = 5_000
IN_WORK = 40
ROUNDS, LANES = 400, 4
MEAN_MS, P95_MS = 10.0, 30.0
TERM = timedelta(minutes=5)
LIMITS = Limits(per_partition=16, total=64)

OpenLedger = Callable[[], AbstractContextManager[Db]]

_SLICES = text("""
    INSERT INTO ing_plan_slice (id, plan_id, slice_no, provenance_code, endpoint_name,
           operation_code, slice_signature_hash, slice_spec, expr_hash, expr_snapshot, status_code)
    SELECT slice_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code,
           idempotent_key, '{}', expr_hash, '{}', 'READY' FROM ing_task
""")
_FINISH = text("""
    UPDATE ing_task SET status_code = 'SUCCEEDED', lease_owner = NULL, leased_until = NULL,
           finished_at = :now WHERE id = :id
""")


def measure_leasing(folder: Path, mysql_server: str) -> None:
    """Print how long a lease takes on SQLite, and on MySQL when a server is given."""
    _measure("SQLite", lambda: sqlite_ledger(folder))
    if mysql_server:
        _measure("MySQL", lambda: mysql_ledger(mysql_server))
    else:
        print("\nLeasing on MySQL: not measured, PATRA_TEST_MYSQL_URL is not set")


def _measure(engine: str, open_ledger: OpenLedger) -> None:
    with open_ledger() as db:
        queue_tasks(db)
        print(f"\nLeasing on {engine}: {QUEUED:,} queued, {PARTITIONS} partitions")
        _Lane(db, "warm", IN_WORK).work(50)
        if db.dialect == "mysql":  # it does not know yet how few partitions there are
            print("  before MySQL has counted the new rows:")
            _say(_Lane(db, "first", IN_WORK).work(ROUNDS // 4))
            with db.write() as tx:  # as it does by itself, some seconds after many were added
                tx.execute(text("ANALYZE TABLE ing_task")).all()
        _say(_Lane(db, "one", IN_WORK).work(ROUNDS))
        with ThreadPoolExecutor(LANES) as pool:
            lanes = [_Lane(db, f"lane{n}", IN_WORK // LANES) for n in range(LANES)]
            taken = [
                ms for times in pool.map(lambda lane: lane.work(ROUNDS), lanes) for ms in times
            ]
        mean, p95 = statistics.mean(taken), statistics.quantiles(taken, n=20)[-1]
        rate = LANES / mean * 1000
        print(f"  {LANES} lanes at once: mean {mean:.2f} ms  p95 {p95:.2f} ms, {rate:.0f} leases/s")


def _say(taken: list[float]) -> None:
    mean, p95 = statistics.mean(taken), statistics.quantiles(taken, n=20)[-1]
    judged = verdict(
        f"mean < {MEAN_MS:.0f} ms, p95 < {P95_MS:.0f} ms", mean < MEAN_MS and p95 < P95_MS
    )
    print(f"  one lane: mean {mean:6.2f} ms  p95 {p95:6.2f} ms  worst {max(taken):7.2f}   {judged}")


class _Lane:
    """Leases task after task, and ends the oldest of them when it has enough."""

    def __init__(self, db: Db, name: str, most: int) -> None:
        self._db, self._name, self._most = db, name, most
        self._held: deque[Lease] = deque()

    def work(self, rounds: int) -> list[float]:
        """Return the milliseconds of each round."""
        taken = [
            milliseconds(lambda number=number: self._lease(number))
            for number in self._turns(rounds)
        ]
        self._finish(0)
        return taken

    def _turns(self, rounds: int) -> Iterator[int]:
        for number in range(rounds):
            self._finish(self._most - 1)
            yield number

    def _lease(self, number: int) -> None:
        with self._db.write() as tx:
            owner = f"bench/{self._name}#{number}"
            now = self._db.now(tx)
            free_silent(tx, now)
            lease = try_lease_one(tx, owner, now, TERM, EVERY_TASK, LIMITS)
        assert lease is not None, "nothing was leased"
        self._held.append(lease)

    def _finish(self, most: int) -> None:
        while len(self._held) > most:
            with self._db.write() as tx:
                now = instant_text(self._db.now(tx))
                tx.execute(_FINISH, {"id": self._held.popleft().task_id, "now": now})


def queue_tasks(db: Db) -> None:
    """Queue the tasks, with their slices."""
    with db.read() as tx:
        now = db.now(tx)
    for first in range(1, QUEUED + 1, GROUP):
        with db.write() as tx:
            ensure_tasks(tx, [_task(number, now) for number in range(first, first + GROUP)])
    with db.write() as tx:
        tx.execute(_SLICES)


def _task(number: int, now: datetime) -> dict[str, Any]:
    partition = number % PARTITIONS
    later = now + timedelta(days=1) if number % 7 == 0 else None
    return {
        "schedule_instance_id": 1,
        "plan_id": partition + 1,
        "slice_id": number,
        "provenance_code": f"source{partition // 2:02d}",
        "endpoint_name": "works" if partition % 2 else "authors",
        "operation_code": "HARVEST",
        "params": {},
        "idempotent_key": sha256(str(number).encode()).hexdigest(),
        "expr_hash": "0" * 64,
        "priority": 4 + number % PRIORITIES,
        "status_code": "QUEUED",
        "scheduled_at": later and instant_text(later),
    }
