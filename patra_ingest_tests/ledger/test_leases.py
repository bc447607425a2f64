"""Fair leasing: partitions take turns, limits hold, and the size of the queue does not matter."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from patra_ingest.ledger.db import insert, instant_text, open_db
from patra_ingest.ledger.holds import place_hold
from patra_ingest.ledger.leases import NO_LIMITS, Limits, lease_tasks, try_lease_one
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.tasks import (
    EVERY_TASK,
    Partition,
    TaskFilter,
    ensure_tasks,
    finish_task,
    mark_executing,
)
from patra_ingest.model.codes import Operation, TaskStatus
from patra_ingest_tests.builders import NOON, a_task

MINUTE = timedelta(minutes=1)
TOMORROW = instant_text(NOON + timedelta(days=1))


def queue(db, *tasks):
    with db.write() as tx:
        ensure_tasks(tx, tasks)


def tasks_of(source, first, count, **columns):
    numbers = range(first, first + count)
    return [a_task(number, provenance_code=source, **columns) for number in numbers]


def leased(db, limit=1, limits=NO_LIMITS, wanted=EVERY_TASK, now=NOON):
    with db.write() as tx:
        return lease_tasks(tx, "worker#1", limit, now, MINUTE, wanted, limits)


def sources(leases):
    return [lease.partition.provenance for lease in leases]


def finish(db, lease):
    with db.write() as tx:
        mark_executing(tx, lease, NOON)
        finish_task(tx, lease, TaskStatus.SUCCEEDED, NOON, None)


def test_a_hundred_tasks_do_not_starve_one_even_with_a_single_lane(db):
    queue(db, *tasks_of("many", 1, 100), *tasks_of("single", 101, 1))
    served = []
    for _ in range(3):
        (lease,) = leased(db)
        served += sources([lease])
        finish(db, lease)

    assert served == ["many", "single", "many"]


def test_the_partition_with_the_fewest_tasks_in_work_is_next(db):
    queue(db, *tasks_of("a", 1, 9))
    leased(db, 3)
    queue(db, *tasks_of("b", 10, 9), *tasks_of("c", 19, 9))

    assert sources(leased(db, 6)) == ["b", "c", "b", "c", "b", "c"]
    assert sources(leased(db, 3)) == ["a", "b", "c"]


def test_partitions_are_endpoints_and_operations_too(db):
    queue(
        db,
        *tasks_of("a", 1, 5),
        *tasks_of("a", 6, 5, endpoint_name="authors"),
        *tasks_of("a", 11, 5, operation_code="UPDATE"),
    )

    assert Counter(lease.partition for lease in leased(db, 6)) == {
        Partition("a", "works", "HARVEST"): 2,
        Partition("a", "authors", "HARVEST"): 2,
        Partition("a", "works", "UPDATE"): 2,
    }


def test_priority_comes_before_turns(db):
    queue(db, *tasks_of("urgent", 1, 3, priority=1), *tasks_of("other", 4, 3))

    assert sources(leased(db, 4)) == ["urgent"] * 3 + ["other"]


def test_what_is_urgent_but_not_due_holds_nobody_up(db):
    queue(
        db,
        *tasks_of("a", 1, 3, priority=1, scheduled_at=TOMORROW),
        *tasks_of("a", 4, 1, priority=9),
        *tasks_of("b", 5, 1, priority=5, scheduled_at=TOMORROW),
    )

    assert [lease.slice_id for lease in leased(db, 9)] == [4]
    assert leased(db, 9) == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(2, 9), {"a": 2, "b": 2, "c": 1}),
        (Limits(9, 4), {"a": 2, "b": 1, "c": 1}),
        (Limits(1, 2), {"a": 1, "b": 1}),
        (Limits(9, 9, frozenset({Partition("a", "works", "HARVEST")})), {"b": 5, "c": 1}),
    ],
)
def test_no_more_than_the_limits_allow_are_in_work(db, limits, expected):
    queue(db, *tasks_of("a", 1, 5), *tasks_of("b", 6, 5), *tasks_of("c", 11, 1))

    got = [lease for _ in range(12) for lease in leased(db, 1, limits)]

    assert Counter(sources(got)) == expected
    assert leased(db, 9, limits) == []


def test_a_full_partition_lets_a_less_urgent_one_pass(db):
    queue(db, *tasks_of("a", 1, 5, priority=1), *tasks_of("b", 6, 5, priority=9))

    assert sources(leased(db, 4, Limits(2, 9))) == ["a", "a", "b", "b"]


def test_room_is_made_by_ends_and_by_lost_leases(db):
    queue(db, *tasks_of("a", 1, 5))
    for number in range(1, 6):
        put_slice(db, number)
    one = Limits(1, 9)
    (first,) = leased(db, 1, one)
    assert leased(db, 1, one) == []
    finish(db, first)
    (second,) = leased(db, 1, one)

    with db.write() as tx:
        assert try_lease_one(tx, "w#2", NOON + MINUTE, MINUTE, EVERY_TASK, one) is None
    with db.write() as tx:
        free_silent(tx, NOON + 2 * MINUTE)
        late = try_lease_one(tx, "w#3", NOON + 2 * MINUTE, MINUTE, EVERY_TASK, one)

    assert late is not None
    assert late.task_id == second.task_id, "it was requeued and is the oldest"


def put_slice(db, number):
    with db.write() as tx:
        insert(
            tx,
            "ing_plan_slice",
            {
                "id": number,
                "plan_id": 1,
                "slice_no": number,
                "provenance_code": "a",
                "endpoint_name": "works",
                "operation_code": "HARVEST",
                "slice_signature_hash": f"{number:064d}",
                "slice_spec": "{}",
                "expr_hash": "e" * 64,
                "status_code": "DISPATCHED" if number < 3 else "READY",
            },
        )


def test_workers_who_lease_at_once_keep_the_limits_together(db, db_url):
    workers, limits = 6, Limits(3, 7)
    queue(db, *(task for n in range(4) for task in tasks_of(f"s{n}", 1 + 20 * n, 20)))
    start = threading.Barrier(workers)

    def work(number):
        own = open_db(db_url)
        start.wait()
        got = []
        for _ in range(6):
            with own.write() as tx:
                got += lease_tasks(tx, f"w{number}#1", 1, NOON, MINUTE, EVERY_TASK, limits)
        own.close()
        return got

    with ThreadPoolExecutor(workers) as pool:
        got = [lease for taken in pool.map(work, range(workers)) for lease in taken]

    assert len(got) == len({lease.task_id for lease in got}) == 7
    assert max(Counter(sources(got)).values()) <= 3


def test_a_plan_is_drained_by_its_own_index_and_in_order(db):
    queue(db, *tasks_of("a", 1, 30), *tasks_of("a", 31, 3, plan_id=7))

    assert [one.slice_id for one in leased(db, 9, wanted=TaskFilter(plan_id=7))] == [31, 32, 33]
    assert leased(db, 9, wanted=TaskFilter(plan_id=7)) == []


def test_a_task_that_somebody_is_changing_is_passed_over(mysql_url):
    db = open_db(mysql_url)
    queue(db, *tasks_of("a", 1, 1), *tasks_of("b", 2, 1))
    with db.write() as tx:
        tx.execute(text("UPDATE ing_task SET priority = 1 WHERE slice_id = 1"))
        assert sources(leased(db, 9)) == ["b"]
    assert sources(leased(db, 9)) == ["a"]
    db.close()


a_queued_task = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from(["works", "authors"]),
    st.sampled_from(["HARVEST", "UPDATE"]),
    st.integers(1, 3),
    st.sampled_from([None, instant_text(NOON), TOMORROW]),
    st.integers(1, 2),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(a_queued_task, max_size=25),
    held=st.none() | st.tuples(st.sampled_from("ab"), st.sampled_from([None, "works"])),
    wanted=st.builds(
        TaskFilter,
        plan_id=st.sampled_from([None, None, 1]),
        provenance=st.sampled_from([None, None, "a"]),
        endpoint=st.sampled_from([None, None, "works"]),
        operation=st.sampled_from([None, None, Operation.UPDATE]),
    ),
)
def test_exactly_what_is_due_wanted_and_not_held_is_leased(sqlite_db, rows, held, wanted):
    names = ("provenance_code", "endpoint_name", "operation_code", "priority", "scheduled_at")
    tasks = [
        a_task(number, **dict(zip((*names, "plan_id"), row, strict=True)))
        for number, row in enumerate(rows, start=1)
    ]
    with sqlite_db.write() as tx:
        for table in ("ing_task", "ing_hold", "ing_lease_turn"):
            tx.execute(text(f"DELETE FROM {table}"))
        ensure_tasks(tx, tasks)
        if held:
            place_hold(tx, *held, "OPERATOR", "lunch", "me", NOON)

    got = leased(sqlite_db, 99, wanted=wanted)

    def is_right(row):
        source, endpoint, operation, _, due, plan = row
        on_hold = held is not None and held[0] == source and held[1] in (None, endpoint)
        is_wanted = wanted.has(Partition(source, endpoint, operation))
        return due != TOMORROW and not on_hold and is_wanted and wanted.plan_id in (None, plan)

    right = {number for number, row in enumerate(rows, start=1) if is_right(row)}
    assert {lease.slice_id for lease in got} == right
    order = [rows[lease.slice_id - 1][3] for lease in got]
    assert order == sorted(order), "most urgent first"
