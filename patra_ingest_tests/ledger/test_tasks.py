"""The queue: who gets which task, and who loses it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.errors import LeaseLost
from patra_ingest.ledger.db import instant_text, open_db, read_instant
from patra_ingest.ledger.holds import place_hold
from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.silent import Freed, free_silent
from patra_ingest.ledger.tasks import (
    TaskFilter,
    count_open,
    count_startable,
    ensure_tasks,
    finish_task,
    mark_executing,
    release_task,
    require_lease,
    try_renew,
)
from patra_ingest.model.codes import Operation, TaskStatus
from patra_ingest_tests.builders import NOON, a_task

MINUTE = timedelta(minutes=1)
LATER = NOON + MINUTE


def queue(db, *tasks):
    with db.write() as tx:
        ensure_tasks(tx, tasks)
        tx.execute(text(_SLICES))


_SLICES = """
    INSERT INTO ing_plan_slice (id, plan_id, slice_no, provenance_code, endpoint_name,
                                operation_code, slice_signature_hash, slice_spec, expr_hash,
                                status_code)
    SELECT slice_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code,
           idempotent_key, '{}', expr_hash, 'READY' FROM ing_task t
     WHERE NOT EXISTS (SELECT 1 FROM ing_plan_slice s WHERE s.id = t.slice_id)
"""


def lease(db, owner="worker-a#1", limit=1, now=NOON, **wanted):
    with db.write() as tx:
        return lease_tasks(tx, owner, limit, now, MINUTE, TaskFilter(**wanted))


def leased(db, limit=9, **more):
    return [one.slice_id for one in lease(db, limit=limit, **more)]


def row(db, slice_id=1):
    with db.read() as tx:
        query = text("SELECT * FROM ing_task WHERE slice_id = :id")
        return tx.execute(query, {"id": slice_id}).mappings().one()


def test_the_smallest_priority_number_is_leased_first_then_the_longest_due_then_the_oldest(db):
    early, late = instant_text(NOON - 2 * MINUTE), instant_text(NOON - MINUTE)
    queue(
        db,
        a_task(1, priority=5),
        a_task(2, priority=5, scheduled_at=late),
        a_task(3, priority=5, scheduled_at=early),
        a_task(4, priority=1, scheduled_at=late),
        a_task(5, priority=1, scheduled_at=late),
        a_task(6, priority=9),
    )

    assert [leased(db, limit=1) for _ in range(6)] == [[4], [5], [1], [3], [2], [6]]
    assert leased(db) == []


def test_only_what_is_due_is_leased(db):
    queue(
        db,
        a_task(1, scheduled_at=instant_text(NOON)),
        a_task(2, scheduled_at=instant_text(NOON + timedelta(microseconds=1))),
    )

    assert leased(db) == [1]
    assert leased(db, now=LATER) == [2]


@pytest.mark.parametrize("status", [s for s in TaskStatus if s != TaskStatus.QUEUED])
def test_only_queued_tasks_are_leased(db, status):
    queue(db, a_task(1))
    with db.write() as tx:
        tx.execute(
            text("UPDATE ing_task SET status_code = :s, finished_at = :now"),
            {"s": status.value, "now": instant_text(NOON)},
        )

    assert leased(db) == []


@pytest.mark.parametrize(
    ("provenance", "endpoint", "expected"),
    [
        ("example", "works", [2, 3]),
        ("example", None, [3]),
        ("other", None, [1, 2]),
        ("example", "nothing", [1, 2, 3]),
    ],
)
def test_what_is_held_is_not_leased(db, provenance, endpoint, expected):
    queue(db, a_task(1), a_task(2, endpoint_name="authors"), a_task(3, provenance_code="other"))
    with db.write() as tx:
        place_hold(tx, provenance, endpoint, "OPERATOR", "lunch", "me", NOON)
        assert count_open(tx, LATER) == len(expected)
        assert count_startable(tx, NOON) == len(expected)

    assert sorted(leased(db)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"plan_id": 7}, [2]),
        ({"provenance": "other"}, [3]),
        ({"endpoint": "works"}, [1, 2]),
        ({"operation": Operation.UPDATE}, [2]),
        ({"operation": Operation.HARVEST, "provenance": "example"}, [1]),
    ],
)
def test_a_worker_takes_what_it_was_asked_to(db, wanted, expected):
    queue(
        db,
        a_task(1),
        a_task(2, plan_id=7, operation_code="UPDATE"),
        a_task(3, provenance_code="other", endpoint_name="authors"),
    )

    assert leased(db, **wanted) == expected


def test_a_worker_may_take_a_range_of_tasks(db):
    queue(db, *(a_task(number) for number in range(1, 6)))
    first = row(db, 2)["id"]

    assert leased(db, first_task=first, last_task=first + 2) == [2, 3, 4]


def test_a_lease_is_written_down(db):
    queue(db, a_task(1))

    (given,) = lease(db, "worker-a#1")

    found = row(db)
    assert (found["status_code"], found["lease_owner"]) == ("DISPATCHED", "worker-a#1")
    assert read_instant(found["leased_until"]) == given.until == LATER
    assert (found["lease_count"], given.task_id, given.plan_id) == (1, found["id"], 1)


def test_the_same_task_is_queued_once(db):
    queue(db, a_task(1))
    queue(db, a_task(1), a_task(2))

    assert leased(db) == [1, 2]


def test_one_task_is_leased_once_however_many_ask(db, db_url):
    tasks, workers = 40, 8
    queue(db, *(a_task(number) for number in range(1, tasks + 1)))
    start = threading.Barrier(workers)

    def work(number):
        own = open_db(db_url)
        start.wait()
        taken = []
        while got := lease(own, f"worker-{number}#1", limit=3):
            taken += [one.slice_id for one in got]
        own.close()
        return taken

    with ThreadPoolExecutor(workers) as pool:
        taken = [one for batch in pool.map(work, range(workers)) for one in batch]

    assert sorted(taken) == list(range(1, tasks + 1))
    with db.read() as tx:
        counts = tx.execute(text("SELECT DISTINCT lease_count FROM ing_task")).scalars().all()
    assert counts == [1]


def test_the_task_of_a_silent_worker_returns_to_the_queue(db):
    queue(db, a_task(1), a_task(2), a_task(3))
    (dispatched,) = lease(db)
    (executing,) = lease(db)
    with db.write() as tx:
        mark_executing(tx, executing, NOON)
    (fresh,) = lease(db, now=LATER)

    with db.write() as tx:
        at_the_end = free_silent(tx, LATER)
        freed = free_silent(tx, LATER + timedelta(microseconds=1))

    assert at_the_end == Freed()
    assert freed == Freed((dispatched.task_id, executing.task_id))
    assert [row(db, n)["status_code"] for n in (1, 2, 3)] == ["QUEUED", "QUEUED", "DISPATCHED"]
    assert (row(db)["lease_owner"], row(db)["last_error_code"]) == (None, "LEASE_LOST")
    assert row(db, fresh.slice_id)["lease_owner"] == "worker-a#1"


def test_a_lease_can_be_renewed_by_its_owner_only(db):
    queue(db, a_task(1))
    (given,) = lease(db)

    with db.write() as tx:
        assert try_renew(tx, given, LATER, MINUTE)
        assert free_silent(tx, LATER + timedelta(seconds=59)) == Freed()
        assert free_silent(tx, LATER + 2 * MINUTE) != Freed()
        assert not try_renew(tx, given, LATER, MINUTE)
    assert row(db)["lease_count"] == 2


def test_whoever_lost_the_lease_may_not_write(db):
    queue(db, a_task(1))
    (old,) = lease(db, "worker-a#1")
    with db.write() as tx:
        require_lease(tx, old, NOON)
        free_silent(tx, NOON + 2 * MINUTE)

    with db.write() as tx, pytest.raises(LeaseLost, match="no longer leased by worker-a#1"):
        require_lease(tx, old, NOON)

    (new,) = lease(db, "worker-a#2", now=NOON + 2 * MINUTE)
    with db.write() as tx, pytest.raises(LeaseLost):
        require_lease(tx, old, NOON)
    with db.write() as tx:
        require_lease(tx, new, NOON)
        mark_executing(tx, new, NOON)
        finish_task(tx, old, TaskStatus.SUCCEEDED, NOON, None)
        release_task(tx, old, NOON)
    assert (row(db)["status_code"], row(db)["lease_owner"]) == ("EXECUTING", "worker-a#2")


def test_a_finished_task_is_nobodys_and_stays(db):
    queue(db, a_task(1))
    (given,) = lease(db)
    with db.write() as tx:
        mark_executing(tx, given, NOON)
        finish_task(tx, given, TaskStatus.FAILED, LATER, ("L2", "x" * 2000))

    found = row(db)
    assert (found["status_code"], found["lease_owner"]) == ("FAILED", None)
    assert (found["last_error_code"], len(found["last_error_msg"])) == ("L2", 512)
    with db.write() as tx, pytest.raises(LeaseLost):
        require_lease(tx, given, NOON)
    assert leased(db, now=LATER) == []


def test_a_task_given_back_is_due_when_it_was_said(db):
    queue(db, a_task(1), a_task(2))
    first, second = lease(db, limit=2)
    with db.write() as tx:
        release_task(tx, first, NOON)
        release_task(tx, second, NOON, LATER, ("L1", "busy"))

    assert [row(db, n)["retry_count"] for n in (1, 2)] == [0, 1]
    assert leased(db) == [1]
    assert leased(db, now=LATER) == [2]


def test_open_are_the_tasks_in_work_and_those_that_may_start_soon(db):
    queue(db, *(a_task(n) for n in (1, 2)), a_task(3, scheduled_at=instant_text(LATER)))
    lease(db)

    with db.read() as tx:
        assert count_open(tx, NOON) == 2
        assert count_open(tx, LATER + MINUTE) == 3
        assert count_startable(tx, NOON) == 1
        assert count_startable(tx, NOON + 2 * MINUTE) == 3
