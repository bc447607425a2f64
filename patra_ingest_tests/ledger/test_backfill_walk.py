"""BACKFILL walks into the past, window by window, in a namespace of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.plans import get_plan
from patra_ingest.model.codes import CursorDirection, Operation, TaskStatus
from patra_ingest_tests.builders import NOON, a_pack, a_trigger, an_endpoint, day, days
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.ledger.cursors import BACKFILL, add_plan, finished
from patra_ingest_tests.ledger.cursors import finish as finish_slices
from patra_ingest_tests.ledger.planning import a_planner, finish

DOWN = CursorDirection.BACKFILL


@pytest.fixture
def walk(db):
    """HARVEST has [8, 10); the source has nothing before day 5; one window is a day."""
    works = an_endpoint(planning={"earliest": "2025-09-06"})
    planner = a_planner(db, a_pack(works=works))
    cursors = CursorManager(db, FakeClock(NOON))
    finish(db, planner.plan(a_trigger(start=day(8), end=day(10))).plan_id, 9)
    cursors.catch_up()

    def go(status=TaskStatus.SUCCEEDED, **asked):
        planned = planner.plan(a_trigger(operation=Operation.BACKFILL, **asked))
        if planned.plan_id is not None:
            finish(db, planned.plan_id, 9, status)
            cursors.catch_up()
        return planned

    return go


def cursor_of(db, plan_id):
    with db.read() as tx:
        found = find_cursor(tx, get_plan(tx, plan_id).namespace)
    return found.value if found else None


def test_repeated_it_comes_to_the_beginning_of_the_source(db, walk):
    planned = [walk() for _ in range(3)]
    over = walk()

    assert [one.window for one in planned] == [days(7, 8), days(6, 7), days(5, 6)]
    assert cursor_of(db, planned[-1].plan_id) == day(5)
    assert over.plan_id is None
    assert "the source has nothing before 2025-09-06" in over.parts[0].reason
    assert cursor_of(db, 1) == day(10), "HARVEST stands where it stood"


def test_it_waits_at_a_window_that_failed_and_asks_for_it_again(db, walk):
    walk()
    failed = walk(TaskStatus.FAILED)
    again = walk()

    assert failed.window == again.window == days(6, 7)
    assert failed.plan_id != again.plan_id
    assert walk().window == days(5, 6)


def test_what_a_person_asks_for_is_taken_as_it_is(db, walk):
    walk()
    asked = walk(start=day(5), end=day(6))

    assert asked.window == days(5, 6)
    assert cursor_of(db, asked.plan_id) == day(7), "there is a gap above it"
    assert walk().window == days(6, 7)
    assert cursor_of(db, asked.plan_id) == day(5), "closed, and both are passed at once"


def test_it_begins_below_a_harvest_that_is_planned_and_not_done(db):
    planner = a_planner(db)
    planner.plan(a_trigger(start=day(8), end=day(10)))

    assert planner.plan(a_trigger(operation=Operation.BACKFILL)).window == days(7, 8)


def test_it_walks_on_below_what_harvest_has_done(db):
    """A hole that HARVEST was forced over is filled by BACKFILL, whose cursor then stands there."""
    planner, cursors = a_planner(db), CursorManager(db, FakeClock(NOON))

    def walk(**asked):
        planned = planner.plan(a_trigger(operation=Operation.BACKFILL, **asked))
        finish(db, planned.plan_id, 9)
        cursors.catch_up()
        return planned

    harvest = planner.plan(a_trigger(start=day(8), end=day(12))).plan_id
    for count, status in ((1, "SUCCEEDED"), (1, "FAILED"), (2, "SUCCEEDED")):
        finish(db, harvest, count, TaskStatus(status))
    cursors.catch_up()
    with db.read() as tx:
        namespace = get_plan(tx, harvest).namespace
    cursors.force(namespace, day(12), "me", "the source lost it for a while")

    filled = walk(start=day(9), end=day(10))

    assert (filled.window, cursor_of(db, filled.plan_id)) == (days(9, 10), day(9))
    assert [walk().window for _ in range(3)] == [days(7, 8), days(6, 7), days(5, 6)]


def test_it_does_not_run_ahead_of_its_own_work(db):
    planner = a_planner(db)
    finish(db, planner.plan(a_trigger(start=day(8), end=day(10))).plan_id, 9)
    CursorManager(db, FakeClock(NOON)).catch_up()

    first = planner.plan(a_trigger(operation=Operation.BACKFILL))
    again = planner.plan(a_trigger(operation=Operation.BACKFILL))

    assert first.window == again.window == days(7, 8)
    assert again.plan_ids in ([], first.plan_ids)


@pytest.mark.parametrize("workers", [2, 5])
def test_workers_that_finish_at_once_end_at_the_lower_end(db, db_url, workers):
    add_plan(db, BACKFILL, 10)
    start = threading.Barrier(workers)

    def work(number):
        own = open_db(db_url)
        manager = CursorManager(own, SystemClock())
        start.wait()
        for slice_no in range(number, 10, workers):
            finish_slices(own, BACKFILL, slice_no)
            manager.advance(BACKFILL, DOWN, finished(slice_no))
        own.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))

    with db.read() as tx:
        told = replay(tx, BACKFILL)
        assert find_cursor(tx, BACKFILL).value == told.value == day(0)
    assert told.gaps == ()
