"""Cursors and their events, for any order of finishing, any race and any death."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from patra_ingest.cursor.advance import CursorManager, Evidence
from patra_ingest.cursor.fold import Fold, fold
from patra_ingest.cursor.frontier import first_gap, frontier
from patra_ingest.cursor.position import is_forward
from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.db import insert, instant_text, open_db
from patra_ingest.model.codes import (
    CursorDirection,
    CursorType,
    NamespaceScope,
    Operation,
    SliceStatus,
)
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window
from patra_ingest_tests.builders import day, days, set_slice
from patra_ingest_tests.fakes import Died, FakeClock, dying

FORWARD, DOWN = CursorDirection
SLICES = 6
HARVEST = Namespace("example", "works", Operation.HARVEST, "k", NamespaceScope.EXPR, "h" * 64)
BACKFILL = Namespace("example", "works", Operation.BACKFILL, "k", NamespaceScope.CUSTOM, "b" * 64)
UPDATE = Namespace("example", "works", Operation.UPDATE, "r", NamespaceScope.CUSTOM, "u" * 64)
WAYS = {HARVEST: FORWARD, BACKFILL: DOWN, UPDATE: FORWARD}
DEATHS = ("INSERT INTO ing_cursor_event", "INSERT INTO ing_cursor (", "UPDATE ing_cursor SET")

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=8)


def mirrored(window: Window) -> Window:
    return Window(day(0) - (window.end - day(0)), day(0) - (window.start - day(0)))


@given(spans, st.integers(0, 40))
def test_down_is_the_mirror_image_of_up(found, origin):
    done = [days(first, first + length) for first, length in found]

    up = frontier(day(origin), done)
    down = frontier(day(-origin), [mirrored(window) for window in done], DOWN)

    assert down - day(0) == day(0) - up


@given(spans, st.integers(0, 40), st.data())
def test_the_gap_that_a_cursor_waits_for_is_a_mirror_image_too(found, origin, data):
    windows = [days(first, first + length) for first, length in found]
    status = st.sampled_from([SliceStatus.SUCCEEDED, SliceStatus.FAILED])
    known = [CoveredWindow(None, window, data.draw(status)) for window in windows]
    done = [one.window for one in known if one.status is SliceStatus.SUCCEEDED]
    turned = [CoveredWindow(None, mirrored(one.window), one.status) for one in known]
    reached = frontier(day(origin), done)

    up = first_gap(reached, known)
    down = first_gap(day(0) - (reached - day(0)), turned, DOWN)

    assert (up and mirrored(up)) == down
    assert up is None or not any(window.start <= up.start < window.end for window in done)


@given(st.sampled_from([CursorType.TIME, CursorType.ID]), st.integers(), st.integers())
def test_forward_for_one_direction_is_backward_for_the_other(kind, old, new):
    up, down = is_forward(kind, FORWARD, old, new), is_forward(kind, DOWN, old, new)

    assert (up, down) == (new > old, new < old)
    assert is_forward(kind, FORWARD, None, new)


steps = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=12)


@given(steps, st.sampled_from([FORWARD, DOWN]))
def test_a_fold_is_the_furthest_step_and_reports_each_that_begins_beyond_it(found, way):
    sign = 1 if way is FORWARD else -1
    chain = [
        (number, "ADVANCE", way.value, sign * start, sign * (start + length))
        for number, (start, length) in enumerate(found, start=1)
    ]

    told = fold(CursorType.ID, chain)

    reached, gaps = None, []
    for number, (start, length) in enumerate(found, start=1):
        if reached is None or start > reached:
            gaps.append(number)
        reached = max(start + length, reached or 0)
    assert told.value == (None if reached is None else sign * reached)
    assert told.gaps == tuple(gaps)
    assert told.events == len(chain) == told.advances + told.ignored


@given(steps)
def test_what_did_not_move_is_ignored(found):
    chain = [(number, "NO_FORWARD", "FORWARD", at, at) for number, (at, _) in enumerate(found)]

    assert fold(CursorType.ID, chain) == Fold(None, len(chain), 0, len(chain))


@pytest.fixture(scope="module")
def shelf(sqlite_template, tmp_path_factory):
    """Return a ledger in which each namespace has a plan of six days; all examples share it."""
    file = tmp_path_factory.mktemp("shelf") / "ledger.db"
    file.write_bytes(sqlite_template.read_bytes())
    db = open_db(f"sqlite:///{file}")
    with db.write() as tx:
        for number, namespace in enumerate(WAYS, start=1):
            insert(tx, "ing_plan", _plan(number, namespace))
            for slice_no in range(SLICES):
                insert(tx, "ing_plan_slice", _slice(number, namespace, slice_no))
    yield db
    db.close()


def clear(db):
    """Put the ledger back to where nothing was done."""
    with db.write() as tx:
        for table in TABLES:
            tx.execute(text(f"DELETE FROM {table}").execution_options(archiving=True))
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'READY'"))


def _plan(number, namespace):
    return {
        **namespace.columns(),
        "id": number,
        "schedule_instance_id": 1,
        "plan_key": f"{number}",
        "direction_code": WAYS[namespace].value,
        "expr_proto_hash": "0" * 64,
        "spec_fingerprint": "0" * 64,
        "spec_snapshot": "{}",
        "window_from": instant_text(day(0)),
        "window_to": instant_text(day(SLICES)),
        "slice_strategy_code": "TIME",
        "status_code": "READY",
    }


def _slice(plan, namespace, number):
    return {
        "id": plan * 100 + number,
        "plan_id": plan,
        **{k: v for k, v in namespace.columns().items() if k[:3] in ("pro", "end", "ope")},
        "slice_no": number,
        "slice_signature_hash": f"{number:064d}",
        "slice_spec": "{}",
        "window_from": instant_text(day(number)),
        "window_to": instant_text(day(number + 1)),
        "expr_hash": "0" * 64,
    }


TABLES = ("ing_cursor", "ing_cursor_event")


ended = st.sampled_from([None, None, *DEATHS])
works = st.permutations([(namespace, no) for namespace in WAYS for no in range(SLICES)])


def work(db, namespace, number, death):
    """Finish a slice and advance, as a worker does, or die at some statement of that."""
    plan = list(WAYS).index(namespace) + 1
    with db.write() as tx:
        set_slice(tx, plan * 100 + number, SliceStatus.SUCCEEDED)
    lineage = Lineage(1, plan, plan * 100 + number)
    manager = CursorManager(db, FakeClock())
    evidence = Evidence(lineage, None, days(number, number + 1))
    with suppress(Died), dying(db, lambda said: death is not None and said.startswith(death)):
        manager.advance(namespace, WAYS[namespace], evidence)


def expected(namespace, done):
    """Return where the cursor must be when these slices are done; None when it has not moved."""
    way = WAYS[namespace]
    origin = day(0) if way is FORWARD else day(SLICES)
    reached = frontier(origin, [days(no, no + 1) for no in done], way)
    return None if reached == origin else reached


def standing(db, namespace):
    with db.read() as tx:
        cursor, told = find_cursor(tx, namespace), replay(tx, namespace)
    assert told.gaps == ()
    return cursor.value if cursor else None, told.value


SLOW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@SLOW
@given(works, st.data())
def test_whatever_finishes_and_whoever_dies_events_cursor_and_frontier_agree(shelf, order, data):
    clear(shelf)
    done = {namespace: set() for namespace in WAYS}
    stop = data.draw(st.integers(0, len(order)))
    for namespace, number in order[:stop]:
        work(shelf, namespace, number, data.draw(ended))
        done[namespace].add(number)
    CursorManager(shelf, FakeClock()).catch_up()

    for namespace, numbers in done.items():
        reached = expected(namespace, numbers)
        assert standing(shelf, namespace) == (reached, reached)


@SLOW
@given(works, st.data())
def test_no_step_is_written_twice_whoever_dies(shelf, order, data):
    clear(shelf)
    for namespace, number in order:
        work(shelf, namespace, number, data.draw(ended))
    CursorManager(shelf, FakeClock()).catch_up()

    with shelf.read() as tx:
        query = (
            "SELECT namespace_key, reason, prev_value, new_value, window_from FROM ing_cursor_event"
        )
        found = [tuple(row) for row in tx.execute(text(query))]
    assert len(found) == len(set(found))


@SLOW
@given(works)
def test_no_operation_changes_a_row_of_another(shelf, order):
    clear(shelf)
    for namespace, number in order:
        before = rows_of_others(shelf, namespace)
        work(shelf, namespace, number, None)
        assert rows_of_others(shelf, namespace) == before


def rows_of_others(db, namespace):
    with db.read() as tx:
        return [
            tuple(row)
            for table in TABLES
            for row in tx.execute(
                text(f"SELECT * FROM {table} WHERE namespace_key <> :own ORDER BY id"),
                {"own": namespace.key},
            )
        ]
