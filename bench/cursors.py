"""Cursors: how long one advance takes, and how long a million events take to be told again.

`python -m bench cursors`; PATRA_BENCH_EVENTS sets how many events are folded.
"""

import os
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.figures import milliseconds, verdict
from bench.ledgers import mysql_ledger, sqlite_ledger
from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import CursorManager, Evidence
from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.db import Db, insert, instant_text
from patra_ingest.model.codes import CursorDirection, NamespaceScope, Operation
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window

SLICES, GROUP = 1_000, 10_000
P95_MS, FOLD_SECONDS = 20.0, 30.0
START = datetime(2020, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAMESPACE = Namespace("bench", "works", Operation.HARVEST, "k", NamespaceScope.EXPR, "n" * 64)

OpenLedger = Callable[[], AbstractContextManager[Db]]


def measure_cursors(mysql_server: str) -> None:
    """Print the figures on SQLite, and on MySQL when a server is given."""
    events = int(os.environ.get("PATRA_BENCH_EVENTS", "1000000"))
    with tempfile.TemporaryDirectory() as folder:
        _measure("SQLite", lambda: sqlite_ledger(Path(folder)), events)
    if mysql_server:
        _measure("MySQL", lambda: mysql_ledger(mysql_server), events)
    else:
        print("\nCursors on MySQL: not measured, PATRA_TEST_MYSQL_URL is not set")


def _measure(engine: str, open_ledger: OpenLedger, events: int) -> None:
    print(f"\nCursors on {engine}")
    with open_ledger() as db:
        _say_advances(_advance(db))
    with open_ledger() as db:
        _add_events(db, events)
        _say_fold(db, events)


def _advance(db: Db) -> list[float]:
    """Return the milliseconds of each advance, when slices finish in no order."""
    ids = _plan(db)
    random.Random(1).shuffle(ids)
    manager, taken = CursorManager(db, SystemClock()), []
    for slice_id in ids:
        with db.write() as tx:
            query = "UPDATE ing_plan_slice SET status_code = 'SUCCEEDED' WHERE id = :id"
            tx.execute(text(query), {"id": slice_id})
        at = START + (slice_id - 1) * HOUR
        evidence = Evidence(Lineage(1, 1, slice_id), None, Window(at, at + HOUR))
        taken.append(
            milliseconds(
                lambda found=evidence: manager.advance(NAMESPACE, CursorDirection.FORWARD, found)
            )
        )
    print(f"  {manager.tally.advances} advances, {manager.tally.no_forwards} without a step")
    return taken


def _plan(db: Db) -> list[int]:
    row = {
        **NAMESPACE.columns(),
        "schedule_instance_id": 1,
        "plan_key": "bench",
        "direction_code": "FORWARD",
        "expr_proto_hash": "0" * 64,
        "spec_fingerprint": "0" * 64,
        "spec_snapshot": "{}",
        "window_from": instant_text(START),
        "window_to": instant_text(START + SLICES * HOUR),
        "slice_strategy_code": "TIME",
        "status_code": "READY",
    }
    with db.write() as tx:
        plan = insert(tx, "ing_plan", row)
        return [insert(tx, "ing_plan_slice", _slice(plan, number)) for number in range(SLICES)]


def _slice(plan: int, number: int) -> dict[str, Any]:
    return {
        "plan_id": plan,
        "provenance_code": "bench",
        "endpoint_name": "works",
        "operation_code": "HARVEST",
        "slice_no": number,
        "slice_signature_hash": f"{number:064d}",
        "slice_spec": "{}",
        "window_from": instant_text(START + number * HOUR),
        "window_to": instant_text(START + (number + 1) * HOUR),
        "expr_hash": "0" * 64,
    }


def _say_advances(taken: list[float]) -> None:
    mean, p95 = statistics.mean(taken), statistics.quantiles(taken, n=20)[-1]
    judged = verdict(f"p95 < {P95_MS:.0f} ms", p95 < P95_MS)
    worst = max(taken)
    print(f"  advance: mean {mean:6.2f} ms  p95 {p95:6.2f} ms  worst {worst:7.2f}   {judged}")


def _add_events(db: Db, count: int) -> None:
    began = time.perf_counter()
    for first in range(0, count, GROUP):
        rows = list(_events(first, min(first + GROUP, count)))
        names = ", ".join(rows[0])
        values = ", ".join(f":{name}" for name in rows[0])
        with db.write() as tx:
            tx.execute(text(f"INSERT INTO ing_cursor_event ({names}) VALUES ({values})"), rows)
    print(f"  {count:,} events written in {time.perf_counter() - began:.0f} s")


def _events(first: int, past: int) -> Iterator[dict[str, Any]]:
    for number in range(first, past):
        before, after = START + number * HOUR / 60, START + (number + 1) * HOUR / 60
        yield {
            **NAMESPACE.columns(),
            "cursor_type_code": "TIME",
            "prev_value": before.isoformat() if number else None,
            "new_value": after.isoformat(),
            "prev_instant": instant_text(before) if number else None,
            "new_instant": instant_text(after),
            "window_from": instant_text(before),
            "window_to": instant_text(after),
            "direction_code": "FORWARD",
            "reason": "ADVANCE",
            "idempotent_key": sha256(str(number).encode()).hexdigest(),
        }


def _say_fold(db: Db, count: int) -> None:
    began = time.perf_counter()
    with db.read() as tx:
        told = replay(tx, NAMESPACE)
    taken = time.perf_counter() - began
    assert (told.events, told.advances, told.gaps) == (count, count, ())
    judged = verdict(f"seconds (< {FOLD_SECONDS:.0f})", taken < FOLD_SECONDS)
    print(f"  fold of {count:,} events: {taken:.1f} s, {count / taken:,.0f} a second   {judged}")
    tracemalloc.start()
    with db.read() as tx:
        replay(tx, NAMESPACE)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"  memory at its peak while folding: {peak:.0f} MB")
