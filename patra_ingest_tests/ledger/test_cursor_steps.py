"""What is written when a cursor moves, does not move, is forced, holds a token, counts signals."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import CursorManager, Evidence
from patra_ingest.cursor.replay import replay
from patra_ingest.cursor.settle import signals_of
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.cursors import append_event, find_any_cursor
from patra_ingest.ledger.db import insert, open_db, read_instant, read_json
from patra_ingest.ledger.signals import add_signals, consume_signals
from patra_ingest.model.codes import CursorDirection, CursorType, Signal
from patra_ingest.model.lineage import Lineage
from patra_ingest_tests.builders import NOON, day, days
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.ledger.cursors import (
    BACKFILL,
    HARVEST,
    TOKENS,
    add_plan,
    an_event,
    finish,
    finished,
    plan_columns,
)

FORWARD, DOWN = CursorDirection


@pytest.fixture
def manager(db):
    return CursorManager(db, FakeClock())


def events(db, *columns):
    with db.read() as tx:
        query = f"SELECT {', '.join(columns)} FROM ing_cursor_event ORDER BY id"
        return [tuple(row) for row in tx.execute(text(query))]


def at(db, namespace):
    with db.read() as tx:
        found = find_any_cursor(tx, namespace)
    return found.value if found else None


def test_a_slice_that_moves_nothing_says_what_the_cursor_waits_for(db, manager):
    add_plan(db, HARVEST, 6)
    finish(db, HARVEST, 0, 3)
    manager.advance(HARVEST, FORWARD, finished(0))
    manager.advance(HARVEST, FORWARD, finished(3))
    manager.advance(HARVEST, FORWARD, finished(3))

    ((_, first), (reason, remarks)) = events(db, "reason", "record_remarks")
    (remark,) = read_json(remarks)
    assert (first, reason) == (None, "NO_FORWARD")
    assert remark["note"] == f"waits for the gap {days(1, 2)}"
    assert remark["data"] == {"from": "2025-09-02T00:00:00.000000Z"} | {
        "to": "2025-09-02T00:00:00.000000Z"
    }
    ((_, _), (start, end)) = events(db, "window_from", "window_to")
    assert (read_instant(start), read_instant(end)) == (day(3), day(4))
    assert at(db, HARVEST) == day(1)
    assert (manager.tally.advances, manager.tally.no_forwards) == (1, 2)


def test_before_the_first_step_it_waits_at_the_first_window(db, manager):
    add_plan(db, HARVEST, 3)
    finish(db, HARVEST, 2)

    manager.advance(HARVEST, FORWARD, finished(2))

    ((before, after, reason),) = events(db, "prev_instant", "new_instant", "reason")
    assert (read_instant(before), read_instant(after)) == (day(0), day(0))
    assert reason == "NO_FORWARD"
    assert at(db, HARVEST) is None


def test_a_slice_that_was_passed_already_says_so(db, manager):
    add_plan(db, HARVEST, 2)
    finish(db, HARVEST, 0, 1)
    manager.advance(HARVEST, FORWARD, finished(1))
    manager.advance(HARVEST, FORWARD, finished(0))

    remarks = events(db, "record_remarks")[-1][0]
    assert read_json(remarks)[0]["note"] == f"the cursor is past {days(0, 1)} already"


def test_one_step_is_one_event_whoever_takes_it(db, manager):
    add_plan(db, HARVEST, 2)
    finish(db, HARVEST, 0)
    with db.write() as tx:
        append_event(tx, an_event(None, day(1), run=7), NOON)

    manager.advance(HARVEST, FORWARD, Evidence(Lineage(1, 1, 1, 1, 8), None, days(0, 1)))

    assert events(db, "run_id", "reason") == [(7, "ADVANCE")]
    assert at(db, HARVEST) == day(1)


def test_a_backfill_goes_down_from_the_top(db, manager):
    add_plan(db, BACKFILL, 6)
    finish(db, BACKFILL, 5, 4, 0)
    manager.advance(BACKFILL, DOWN, finished(4))
    assert at(db, BACKFILL) == day(4)

    finish(db, BACKFILL, 2, 3)
    manager.advance(BACKFILL, DOWN, finished(3))
    assert at(db, BACKFILL) == day(2)

    finish(db, BACKFILL, 1)
    manager.catch_up()
    assert at(db, BACKFILL) == day(0)
    with db.read() as tx:
        told = replay(tx, BACKFILL)
    assert (told.value, told.advances, told.gaps) == (day(0), 3, ())


def test_a_backfill_of_an_older_version_goes_up_to_its_top_and_turns_round(db, manager):
    """Such a cursor is the upper end of its run: read the other way it would skip a hole."""
    add_plan(db, BACKFILL, 4)
    finish(db, BACKFILL, 0, 1, 3)
    manager.advance(BACKFILL, FORWARD, finished(1))  # as it was then
    with db.write() as tx:
        old = "UPDATE ing_cursor_event SET direction_code = 'BACKFILL'"
        tx.execute(text(old).execution_options(archiving=True))
    assert at(db, BACKFILL) == day(2)

    manager.advance(BACKFILL, DOWN, finished(3))
    assert at(db, BACKFILL) == day(2), "it does not take [2, 3) for done"

    finish(db, BACKFILL, 2)
    manager.advance(BACKFILL, DOWN, finished(2))
    assert at(db, BACKFILL) == day(4), "the top"

    manager.advance(BACKFILL, DOWN, finished(2))
    assert at(db, BACKFILL) == day(0), "and down again, to the end of what is done"
    with db.read() as tx:
        told = replay(tx, BACKFILL)
    assert (told.value, told.gaps) == (day(0), ())


def test_a_person_forces_a_cursor_and_is_remembered(db, manager):
    add_plan(db, HARVEST, 4)
    finish(db, HARVEST, 0, 2)
    manager.advance(HARVEST, FORWARD, finished(0))

    manager.force(HARVEST, day(2), "ada", "the source has  lost this day\n")
    assert at(db, HARVEST) == day(2)
    manager.catch_up()

    assert at(db, HARVEST) == day(3), "and it goes on from there"
    reasons = events(db, "reason", "created_by_name", "record_remarks")
    assert [row[:2] for row in reasons] == [
        ("ADVANCE", "cursor"),
        ("FORCE_FORWARD", "ada"),
        ("ADVANCE", "cursor"),
    ]
    assert read_json(reasons[1][2])[0]["note"] == "the source has lost this day"
    with db.read() as tx:
        told = replay(tx, HARVEST)
    assert (told.value, told.advances, told.gaps) == (day(3), 3, ())


@pytest.mark.parametrize(
    ("to", "reason", "said"),
    [
        (day(1), "why not", "is not ahead of it. A cursor is never moved back: give a later"),
        (day(0), "why not", "is not ahead of it"),
        (day(3), " \n", "not forced without a reason"),
        (day(3) + timedelta(days=90_000), "why not", "is in the future"),
    ],
)
def test_a_cursor_is_not_forced_back_into_the_future_or_for_no_reason(
    db, manager, to, reason, said
):
    add_plan(db, HARVEST, 4)
    finish(db, HARVEST, 0)
    manager.advance(HARVEST, FORWARD, finished(0))

    with pytest.raises(PersonMustAct, match=said):
        manager.force(HARVEST, to, "ada", reason)
    assert at(db, HARVEST) == day(1)
    assert len(events(db, "id")) == 1


def token(number):
    return Evidence(Lineage(1, 1, 1, 1, 1, number))


def test_the_last_token_wins_and_a_dead_one_gives_way_to_the_last_good_one(db, manager):
    for number, name in enumerate(["a", "b", "c"]):
        manager.keep_token(TOKENS, name, token(number))
    manager.keep_token(TOKENS, "c", token(2))
    assert at(db, TOKENS) == "c"

    assert manager.compensate(TOKENS, "c", token(3)) == "b"
    assert manager.compensate(TOKENS, "c", token(4)) == "b", "it is gone already"
    assert manager.compensate(TOKENS, "b", token(5)) == "a"
    assert manager.compensate(TOKENS, "a", token(6)) == "", "begin anew"

    reasons = [reason for (reason,) in events(db, "reason")]
    assert reasons == ["ADVANCE"] * 3 + ["COMPENSATE"] * 3
    manager.keep_token(TOKENS, "d", token(7))
    with db.read() as tx:
        told = replay(tx, TOKENS, CursorType.TOKEN)
    assert (at(db, TOKENS), told.value, told.gaps) == ("d", "d", ())
    assert manager.tally.compensations == 3


def test_of_many_writers_of_a_token_the_one_of_the_newest_event_wins(db, db_url):
    start = threading.Barrier(4)

    def write(number):
        own = open_db(db_url)
        start.wait()
        for turn in range(5):
            name = f"{number}-{turn}"
            CursorManager(own, SystemClock()).keep_token(TOKENS, name, token(number * 100 + turn))
        own.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))

    assert at(db, TOKENS) == events(db, "new_value")[-1][0]
    assert len(events(db, "id")) == 20


def test_the_cursor_over_signals_stops_at_the_first_that_is_not_settled(db, manager):
    own = signals_of("example", "works")
    with db.write() as tx:
        plan = insert(tx, "ing_plan", plan_columns(HARVEST, 1))
        for name in "abcd":
            add_signals(tx, "example", "works", [name], Signal.CORRECTION, "me", None, NOON)
        ids = tx.execute(text("SELECT id FROM ing_signal ORDER BY id")).scalars().all()
    manager.catch_up()
    assert at(db, own) is None, "all of them wait"

    with db.write() as tx:
        consume_signals(tx, ids[:2], plan, NOON)
    manager.catch_up()
    assert at(db, own) is None, "the plan that asks for them has not ended"

    with db.write() as tx:
        tx.execute(text("UPDATE ing_plan SET status_code = 'COMPLETED'"))
        tx.execute(
            text("UPDATE ing_signal SET status_code='DISCARDED' WHERE id = :i"), {"i": ids[3]}
        )
    manager.catch_up()
    manager.catch_up()

    assert at(db, own) == ids[1], "the third still waits, so the fourth does not count"
    assert events(db, "cursor_type_code", "prev_numeric", "new_numeric") == [("ID", None, ids[1])]
    with db.read() as tx:
        assert replay(tx, own, CursorType.ID).value == ids[1]
