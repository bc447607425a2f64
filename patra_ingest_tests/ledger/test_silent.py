"""Tasks whose worker falls silent: a few kills cost nothing, one that always kills has an end."""

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.plans import get_plan
from patra_ingest.ledger.quotas import reserve
from patra_ingest.ledger.runs import save_checkpoint, start_run
from patra_ingest.ledger.silent import MAX_SILENT, Freed, free_silent
from patra_ingest.ledger.slices import follow_task
from patra_ingest.ledger.tasks import mark_executing, release_task
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.quotas import QuotaRule, Reservation, window_at
from patra_ingest_tests.builders import DAY, NOON, a_trigger, day
from patra_ingest_tests.ledger.planning import a_planner, rows

MINUTE = timedelta(minutes=1)


@pytest.fixture
def planned(db):
    a_planner(db).plan(a_trigger("works", day(0), day(1)))
    return db


def leased(db, now, begins=True):
    """Lease the only task, and open its run unless the worker dies before."""
    with db.write() as tx:
        (lease,) = lease_tasks(tx, "w#1", 1, now, MINUTE)
        follow_task(tx, lease.slice_id, SliceStatus.DISPATCHED, now)
        if not begins:
            return lease, None
        run = start_run(tx, lease, get_plan(tx, lease.plan_id), None, now)
        mark_executing(tx, lease, now)
        follow_task(tx, lease.slice_id, SliceStatus.EXECUTING, now)
    return lease, run


def fall_silent(db, times, begins=True, moves=False):
    """Let so many workers take the task and never be heard of again; return the last freeing."""
    freed = Freed()
    for number in range(times):
        now = NOON + 3 * number * MINUTE
        _, run = leased(db, now, begins)
        with db.write() as tx:
            if moves:
                save_checkpoint(tx, run.id, {"next": "offset:10"}, now)
            freed = free_silent(tx, now + 2 * MINUTE)
    return freed


def only(db, table):
    (row,) = rows(db, f"SELECT * FROM {table}")
    return row


def test_a_few_kills_never_fail_a_task(planned):
    freed = fall_silent(planned, MAX_SILENT - 1)

    task = only(planned, "ing_task")
    assert freed == Freed((task["id"],))
    assert (task["status_code"], task["last_error_code"]) == ("QUEUED", "LEASE_LOST")
    assert only(planned, "ing_plan_slice")["status_code"] == "READY"
    assert only(planned, "ing_plan")["status_code"] == "READY"


@pytest.mark.parametrize("begins", [True, False], ids=["amid its run", "before it has a run"])
def test_a_task_that_kills_every_worker_has_failed(planned, begins):
    slice_id = only(planned, "ing_plan_slice")["id"]
    rule = QuotaRule("a", Decimal(100), DAY)
    window = window_at(rule, NOON)
    with planned.write() as tx:
        spoken_for = [Reservation("a", window, Decimal(7))]
        reserve(tx, slice_id, spoken_for, {("a", window): rule.limit}, NOON)

    freed = fall_silent(planned, MAX_SILENT, begins)

    task = only(planned, "ing_task")
    assert freed == Freed((), (task["id"],))
    assert (task["status_code"], task["last_error_code"]) == ("FAILED", "LEASE_LOST")
    assert "fell silent 5 times in a row" in task["last_error_msg"]
    assert "plan the window again" in task["last_error_msg"]
    assert (task["lease_owner"], task["leased_until"]) == (None, None)
    assert only(planned, "ing_plan_slice")["status_code"] == "FAILED"
    assert only(planned, "ing_plan")["status_code"] == "COMPLETED"
    assert only(planned, "ing_quota_window")["reserved_amount"] == 0
    ends = rows(planned, "SELECT status_code FROM ing_task_run")
    assert [row["status_code"] for row in ends] == ["FAILED"] * (MAX_SILENT if begins else 0)
    with planned.write() as tx:
        assert free_silent(tx, NOON + DAY) == Freed()


def test_a_new_batch_begins_the_count_anew(planned):
    fall_silent(planned, MAX_SILENT - 1)
    with planned.write() as tx:
        tx.execute(text("UPDATE ing_task SET retry_count = 2"))
    fall_silent(planned, 1, moves=True)

    assert only(planned, "ing_task")["retry_count"] == 0, "the retries as well"
    assert fall_silent(planned, MAX_SILENT - 1).failed == ()
    assert len(fall_silent(planned, 1).failed) == 1


def test_a_worker_that_gives_its_task_back_was_not_killed_by_it(planned):
    fall_silent(planned, MAX_SILENT - 1)
    lease, _ = leased(planned, NOON)
    with planned.write() as tx:
        release_task(tx, lease, NOON)
        follow_task(tx, lease.slice_id, SliceStatus.READY, NOON)

    assert fall_silent(planned, MAX_SILENT - 1).failed == ()


def test_one_that_has_failed_leaves_the_others_in_the_queue(db):
    a_planner(db).plan(a_trigger("works", day(0), day(2)))
    first, second = (row["id"] for row in rows(db, "SELECT id FROM ing_task ORDER BY id"))
    with db.write() as tx:
        lease_tasks(tx, "w#1", 2, NOON, MINUTE)
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'DISPATCHED'"))
        tx.execute(text("UPDATE ing_task SET silent_count = 4 WHERE id = :id"), {"id": first})

        assert free_silent(tx, NOON + 2 * MINUTE) == Freed((second,), (first,))
    assert only(db, "ing_plan")["status_code"] == "READY", "a task of it is open"


def test_a_signed_address_is_let_go_with_the_task_that_kills_its_workers(planned):
    fall_silent(planned, 1, moves=True)
    run = only(planned, "ing_task_run")["id"]
    with planned.write() as tx:
        save_checkpoint(tx, run, {"next": "url#2:…", "address": "https://a.example/?sig=1"}, NOON)
    fall_silent(planned, MAX_SILENT)

    assert only(planned, "ing_task")["status_code"] == "FAILED"
    kept = str([row["checkpoint"] for row in rows(planned, "SELECT checkpoint FROM ing_task_run")])
    assert "url#2" in kept
    assert "sig=1" not in kept
