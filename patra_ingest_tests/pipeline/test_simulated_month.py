"""HARVEST every 15 minutes, a BACKFILL and UPDATEs together, with failures, re-slices and holds.

Time is simulated, the planner and the ledger are real. PATRA_SIMULATED_DAYS=30 makes it a month
with a BACKFILL of a year; without it the same is done for a few days.
"""

import os
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from random import Random

import pytest
from sqlalchemy import text

from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.db import open_db, read_instant
from patra_ingest.ledger.plans import get_plan
from patra_ingest.model.codes import Operation
from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import STANDING, Cover, cover
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.pipeline.simulation import BEGIN, DAY, LAG, MAX_QUEUED, STEP, Month

DAYS = int(os.environ.get("PATRA_SIMULATED_DAYS", "4"))
BACKFILLED = round(DAYS * 365 / 30)
STEPS_A_DAY = DAY // STEP
CALM_STEPS = 24  # the last six hours: nothing fails any more


def rows(db, query, **values):
    with db.read() as tx:
        return tx.execute(text(query), values).mappings().all()


def look_at_quotas(db):
    """Return what is taken of each window, and its limit; more than that is never spent."""
    taken = {}
    for one in rows(db, "SELECT * FROM ing_quota_window WHERE limit_amount > 0"):
        names = ("limit_amount", "spent_amount", "reserved_amount")
        limit, spent, reserved = (Decimal(str(one[name])) for name in names)
        assert spent <= limit, dict(one)
        taken[one["id"]] = (spent + reserved, limit)
    return taken


def assert_none_oversold(before, after):
    """Insist that a planner spoke for nothing that is not there.

    A slice may spend more than it spoke for, so executors can bring a window above its limit on
    paper; the planner then adds nothing to it.
    """
    for window, (taken, limit) in after.items():
        earlier, _ = before.get(window, (Decimal(0), limit))
        assert taken <= max(limit, earlier), f"quota window {window}: {taken} of {limit}"


def inventory(db):
    """Count the queued tasks of each partition, and the children that re-slicing has made."""
    query = "SELECT operation_code, COUNT(*) AS n FROM ing_task WHERE status_code = 'QUEUED'"
    queued = Counter({r["operation_code"]: r["n"] for r in rows(db, query + " GROUP BY 1")})
    (children,) = rows(db, "SELECT COUNT(parent_slice_id) AS n FROM ing_plan_slice")
    return queued, children["n"]


def trigger(month, plan, *arguments):
    """Trigger, and insist that no more was queued than may wait, and no quota was oversold."""
    queued, children = inventory(month.db)
    quotas = look_at_quotas(month.db)
    planned = plan(*arguments)
    after, more = inventory(month.db)
    planned_quotas = look_at_quotas(month.db)
    assert_none_oversold(quotas, planned_quotas)
    shares = [taken / limit for taken, limit in planned_quotas.values()]
    month.fullest = max([month.fullest, *shares])
    for operation, count in after.items():
        # What executors gave back may be above it; the planner adds nothing to that.
        assert count <= max(MAX_QUEUED, queued[operation]) + more - children
    return planned


def live_through(month):
    """Let the days pass; holds come and go, until the last hours are calm."""
    steps = DAYS * STEPS_A_DAY
    for step in range(steps):
        month.is_calm = step >= steps - CALM_STEPS
        if month.is_calm:
            month.resume()
        elif month.luck.random() < 0.01:
            month.hold(month.luck.choice([None, "works", "fetch"]))
        elif month.luck.random() < 0.1:
            month.resume()
        trigger(month, month.harvest)
        if step % STEPS_A_DAY == STEPS_A_DAY // 2:
            trigger(month, month.backfill, BACKFILLED)
            trigger(month, month.update)
        month.work()
        look_at_quotas(month.db)
        month.clock.at += STEP


def drain(month):
    """Go on, without failures, until nothing waits in a plan or in the queue."""
    for _ in range(60 * STEPS_A_DAY):
        before = look_at_quotas(month.db)
        month.planner.reslice()
        month.planner.go_on_all()
        assert_none_oversold(before, look_at_quotas(month.db))
        month.work(100)
        waiting = rows(month.db, "SELECT 1 FROM ing_task WHERE finished_at IS NULL LIMIT 1")
        unfinished = "SELECT 1 FROM ing_plan WHERE status_code IN ('DRAFT', 'SLICING', 'PARTIAL')"
        if not waiting and not rows(month.db, unfinished):
            return
        month.clock.at += STEP
    pytest.fail("the queue never ran empty")


@pytest.fixture(scope="module")
def month(sqlite_template, tmp_path_factory):
    """The month after it has passed; `frontier` is how far HARVEST must have come by then."""
    file = tmp_path_factory.mktemp("month") / "ledger.db"
    file.write_bytes(sqlite_template.read_bytes())
    clock = FakeClock(BEGIN + LAG + STEP)
    db = open_db(f"sqlite:///{file}", clock=clock)
    passed = Month(db, clock, Random(20250901))
    passed.fullest = Decimal(0)
    live_through(passed)
    # The calm hours have ended: one more trigger, and its tasks.
    passed.harvest()
    passed.frontier = clock.at - LAG
    while passed.work(100):
        pass
    passed.seen_at_the_end = harvested(passed)
    drain(passed)
    yield passed
    db.close()


def namespaces(db, operation):
    query = "SELECT MAX(id) AS id FROM ing_plan WHERE operation_code = :name GROUP BY namespace_key"
    ids = [row["id"] for row in rows(db, query, name=operation.value)]
    with db.read() as tx:
        return [get_plan(tx, plan_id).namespace for plan_id in ids]


def harvested(month):
    """Return HARVEST's coverage, its cursor and its folded events."""
    (namespace,) = namespaces(month.db, Operation.HARVEST)
    with month.db.read() as tx:
        windows = list_windows(tx, namespace, BEGIN)
        intervals = cover(Window(BEGIN, month.frontier), windows)
        return intervals, find_cursor(tx, namespace).value, replay(tx, namespace).value


def test_everything_that_can_happen_has_happened(month):
    assert set(month.ends) >= {"succeeded", "failed", "retried", "silent", "re-sliced"}
    found = rows(month.db, "SELECT operation_code, COUNT(*) AS n FROM ing_task GROUP BY 1")
    assert {row["operation_code"] for row in found} == {"HARVEST", "BACKFILL", "UPDATE"}
    assert rows(month.db, "SELECT 1 FROM ing_hold"), "nobody held anything"
    assert month.fullest >= Decimal("0.85"), "no quota was ever short"
    assert rows(month.db, "SELECT 1 FROM ing_plan_slice WHERE done_to IS NOT NULL")
    (triggers,) = rows(
        month.db,
        "SELECT COUNT(*) AS n FROM ing_schedule_instance WHERE operation_code = 'HARVEST'",
    )
    assert triggers["n"] == DAYS * STEPS_A_DAY + 1


def test_harvest_has_no_hole_and_its_cursor_stands_at_the_frontier(month):
    intervals, cursor, folded = month.seen_at_the_end

    assert [(one.window, one.cover) for one in intervals] == [
        (Window(BEGIN, month.frontier), Cover.SUCCEEDED)
    ]
    assert cursor == folded == month.frontier


def test_no_operation_moves_the_cursor_of_another(month):
    events = rows(
        month.db,
        "SELECT e.*, p.operation_code AS by_operation, p.namespace_key AS by_key,"
        " p.namespace_scope_code AS by_scope, p.endpoint_name AS by_endpoint"
        " FROM ing_cursor_event e JOIN ing_plan p ON p.id = e.plan_id",
    )
    (counted,) = rows(month.db, "SELECT COUNT(*) AS n FROM ing_cursor_event")
    assert len(events) == counted["n"], "an event without its plan"
    for one in events:
        assert one["operation_code"] == one["by_operation"]
        assert one["endpoint_name"] == one["by_endpoint"]
        assert one["namespace_key"] == one["by_key"]
        assert one["namespace_scope_code"] == one["by_scope"]
    keys = {(one["operation_code"], one["namespace_key"]) for one in events}
    assert len({key for _, key in keys}) == len(keys), "two operations share a namespace"


def test_every_task_is_the_only_one_of_its_slice_and_key(month):
    tasks = rows(month.db, "SELECT slice_id, idempotent_key FROM ing_task")
    slices = rows(month.db, "SELECT id FROM ing_plan_slice")

    assert len({task["idempotent_key"] for task in tasks}) == len(tasks)
    assert sorted(task["slice_id"] for task in tasks) == sorted(one["id"] for one in slices)


@pytest.mark.parametrize("operation", [Operation.HARVEST, Operation.BACKFILL])
def test_slices_that_stand_never_overlap(month, operation):
    for namespace in namespaces(month.db, operation):
        with month.db.read() as tx:
            windows = list_windows(tx, namespace, BEGIN - 400 * DAY)
        standing = sorted(one.window for one in windows if one.status in STANDING)
        assert standing
        for earlier, later in pairwise(standing):
            assert earlier.end <= later.start, f"{earlier} and {later}"


def test_backfill_is_queued_newest_first(month):
    queued = rows(
        month.db,
        "SELECT t.plan_id, s.window_from FROM ing_task t JOIN ing_plan_slice s ON s.id = t.slice_id"
        " WHERE t.operation_code = 'BACKFILL' AND s.parent_slice_id IS NULL ORDER BY t.id",
    )
    by_plan = {}
    for row in queued:
        by_plan.setdefault(row["plan_id"], []).append(read_instant(row["window_from"]))
    assert max(map(len, by_plan.values())) > MAX_QUEUED
    assert all(starts == sorted(starts, reverse=True) for starts in by_plan.values())


def test_every_plan_ends_and_every_request_is_answered(month):
    plans = Counter(row["status_code"] for row in rows(month.db, "SELECT * FROM ing_plan"))
    answers = rows(month.db, "SELECT status_code FROM ing_reslice_request")

    assert set(plans) == {"COMPLETED"}
    assert {row["status_code"] for row in answers} == {"CONSUMED"}


def test_nothing_is_spoken_for_when_nothing_is_left_to_do(month):
    left = "SELECT * FROM ing_quota_reservation WHERE left_amount > 0"
    assert rows(month.db, left) == []
    assert rows(month.db, "SELECT * FROM ing_quota_window WHERE reserved_amount > 0") == []
