"""Cursors: event first, forward only, to the frontier and no further; also when workers race."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import Advanced, CursorManager, Evidence
from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.cursors import (
    CursorEvent,
    append_event,
    find_cursor,
    try_create_cursor,
    try_move_cursor,
)
from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.plans import get_plan
from patra_ingest.model.codes import CursorDirection, NamespaceScope, Operation, SliceStatus
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.planner.plan import Planner
from patra_ingest.registry.apply import apply_pack
from patra_ingest_tests.builders import NOON, START, a_pack, a_trigger, day, days, set_slice
from patra_ingest_tests.fakes import FakeClock

FORWARD = CursorDirection.FORWARD
EVIDENCE = Evidence(Lineage(1))
NAMESPACE = Namespace("example", "works", Operation.HARVEST, "k", NamespaceScope.EXPR, "n" * 64)


@pytest.fixture
def manager(db):
    return CursorManager(db, FakeClock())


@pytest.fixture
def namespace(db):
    """Six days planned, none of them done."""
    with db.write() as tx:
        apply_pack(tx, a_pack(), START)
    planned = Planner(db, FakeClock(NOON)).plan(a_trigger(start=day(0), end=day(6)))
    with db.read() as tx:
        return get_plan(tx, planned.plan_id).namespace


def finish(db, *numbers, status=SliceStatus.SUCCEEDED):
    with db.write() as tx:
        found = tx.execute(text("SELECT id FROM ing_plan_slice ORDER BY slice_no")).scalars().all()
        for number in numbers:
            set_slice(tx, found[number], status)


def cursor(db, namespace):
    with db.read() as tx:
        found = find_cursor(tx, namespace)
        assert replay(tx, namespace).value == (found.value if found else None)
    return found.value if found else None


def events(db):
    with db.read() as tx:
        query = text("SELECT prev_value, new_value, reason FROM ing_cursor_event ORDER BY id")
        return [tuple(row) for row in tx.execute(query)]


def test_nothing_done_nothing_moves(db, manager, namespace):
    assert manager.advance(namespace, FORWARD, EVIDENCE) == Advanced(None, None)
    assert cursor(db, namespace) is None
    assert events(db) == []


def test_the_cursor_moves_to_the_end_of_the_unbroken_run(db, manager, namespace):
    finish(db, 0, 1, 3)

    assert manager.advance(namespace, FORWARD, EVIDENCE) == Advanced(None, day(2))
    assert cursor(db, namespace) == day(2)

    finish(db, 2)

    assert manager.advance(namespace, FORWARD, EVIDENCE) == Advanced(day(2), day(4))
    assert [new[:10] for _, new, _ in events(db)] == ["2025-09-03", "2025-09-05"]


def test_a_later_slice_alone_moves_nothing(db, manager, namespace):
    finish(db, 3, 5)

    assert not manager.advance(namespace, FORWARD, EVIDENCE).moved
    assert cursor(db, namespace) is None
    assert events(db) == []


@pytest.mark.parametrize("status", [s for s in SliceStatus if s != SliceStatus.SUCCEEDED])
def test_only_a_succeeded_slice_counts(db, manager, namespace, status):
    finish(db, 0)
    finish(db, 1, status=status)
    finish(db, 2)
    manager.advance(namespace, FORWARD, EVIDENCE)

    assert cursor(db, namespace) == day(1)


def test_advancing_twice_is_no_event(db, manager, namespace):
    finish(db, 0)

    assert manager.advance(namespace, FORWARD, EVIDENCE).moved
    assert not manager.advance(namespace, FORWARD, EVIDENCE).moved
    assert len(events(db)) == 1


def test_whoever_died_between_event_and_cursor_is_caught_up_with(db, manager, namespace):
    finish(db, 0)
    with db.write() as tx:
        append_event(tx, an_event(namespace, None, day(1)), NOON)

    manager.catch_up()

    assert cursor(db, namespace) == day(1)


def test_whoever_died_before_the_event_is_caught_up_with(db, manager, namespace):
    finish(db, 0, 1, 4)

    manager.catch_up()
    manager.catch_up()

    assert cursor(db, namespace) == day(2)
    assert len(events(db)) == 1


def test_other_namespaces_are_walls(db, manager, namespace):
    finish(db, 0)
    manager.advance(namespace, FORWARD, EVIDENCE)

    others = [
        replace(namespace, operation=Operation.BACKFILL),
        replace(namespace, endpoint="authors"),
        replace(namespace, key="x" * 64),
        replace(namespace, cursor_key="other"),
        replace(namespace, provenance="other"),
    ]
    for other in others:
        assert manager.advance(other, FORWARD, EVIDENCE) == Advanced(None, None)
        assert cursor(db, other) is None


def an_event(namespace, previous, reached):
    return CursorEvent(namespace, FORWARD, previous, reached, None, days(0, 1), Lineage(1))


def test_a_cursor_is_created_once_and_moved_from_the_version_that_was_seen(db):
    with db.write() as tx:
        assert try_create_cursor(tx, an_event(NAMESPACE, None, day(1)), NOON)
        assert not try_create_cursor(tx, an_event(NAMESPACE, None, day(2)), NOON)
        seen = find_cursor(tx, NAMESPACE)
        assert try_move_cursor(tx, an_event(NAMESPACE, day(1), day(3)), seen, NOON)
        assert not try_move_cursor(tx, an_event(NAMESPACE, day(1), day(4)), seen, NOON)
        assert find_cursor(tx, NAMESPACE).value == day(3)


@pytest.mark.parametrize("to", [day(0), day(1)], ids=["back", "nowhere"])
def test_a_cursor_never_moves_back_nor_nowhere(db, to):
    with db.write() as tx:
        try_create_cursor(tx, an_event(NAMESPACE, None, day(1)), NOON)
        seen = find_cursor(tx, NAMESPACE)
        assert not try_move_cursor(tx, an_event(NAMESPACE, day(1), to), seen, NOON)
        assert find_cursor(tx, NAMESPACE) == seen


def test_the_same_event_is_written_once(db):
    for _ in range(3):
        with db.write() as tx:
            append_event(tx, an_event(NAMESPACE, None, day(1)), NOON)

    assert len(events(db)) == 1


@pytest.mark.parametrize("workers", [2, 6])
def test_workers_that_finish_at_once_end_at_the_frontier(db, db_url, namespace, workers):
    start = threading.Barrier(workers)

    def work(number):
        own = open_db(db_url)
        manager = CursorManager(own, SystemClock())
        start.wait()
        for slice_no in range(number, 6, workers):
            finish(own, slice_no)
            manager.advance(namespace, FORWARD, Evidence(Lineage(1, 2, 3, 4, 5 + number)))
        own.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))

    assert cursor(db, namespace) == day(6)
    steps = [new for _, new, _ in events(db)]
    assert max(steps)[:10] == "2025-09-07"
