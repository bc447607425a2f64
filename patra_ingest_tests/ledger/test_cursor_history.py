"""Cursor events are history: added by one module, never changed, and told again in one pass."""

import re
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

import patra_ingest
from patra_ingest.clock import SystemClock
from patra_ingest.cursor.replay import check_cursors, rebuild, replay
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.cursors import append_event, find_cursor, try_create_cursor
from patra_ingest.ledger.db import instant_text
from patra_ingest_tests.builders import NOON, START, day
from patra_ingest_tests.ledger.cursors import HARVEST, an_event

MINUTE = timedelta(minutes=1)


def events(db, *columns):
    with db.read() as tx:
        query = f"SELECT {', '.join(columns)} FROM ing_cursor_event ORDER BY id"
        return [tuple(row) for row in tx.execute(text(query))]


def write(db, *steps):
    with db.write() as tx:
        for before, after in steps:
            append_event(tx, an_event(before, after), NOON)


def check(db):
    (found,) = check_cursors(db, SystemClock(), lambda _: True)
    return found


CHANGES = [
    "UPDATE ing_cursor_event SET new_value = 'x'",
    "update ing_cursor_event set deleted = 1",
    "DELETE FROM ing_cursor_event",
    "DELETE FROM ing_cursor_event WHERE id < 5",
    "REPLACE INTO ing_cursor_event (id) VALUES (1)",
    "TRUNCATE TABLE ing_cursor_event",
    "DROP TABLE ing_cursor_event",
    "INSERT INTO ing_cursor_event (id) VALUES (1) ON DUPLICATE KEY UPDATE new_value = 'x'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_no_event_is_ever_changed_or_removed(db, statement):
    with db.write() as tx:
        append_event(tx, an_event(None, day(1)), NOON)

    with pytest.raises(RuntimeError, match="only ever added"), db.write() as tx:
        tx.execute(text(statement))
    with pytest.raises(RuntimeError, match="only ever added"), db.write() as tx:
        tx.exec_driver_sql(statement)
    assert len(events(db, "id")) == 1


def test_only_who_archives_may_remove_events(db):
    with db.write() as tx:
        append_event(tx, an_event(None, day(1)), NOON)
        tx.execute(text("DELETE FROM ing_cursor_event").execution_options(archiving=True))

    assert events(db, "id") == []


def test_nobody_but_its_module_writes_events():
    root = Path(patra_ingest.__file__).parent
    writing = re.compile(
        r"(INSERT|UPDATE|DELETE|REPLACE)[^\"']*ing_cursor_event|insert\w*\(.*ing_cursor_event"
    )
    found = {str(p.relative_to(root)) for p in root.rglob("*.py") if writing.search(p.read_text())}

    assert found == {"ledger/cursors.py"}


def test_a_cursor_beside_its_events_agrees(db):
    write(db, (None, day(1)))
    with db.write() as tx:
        try_create_cursor(tx, an_event(None, day(1)), NOON)

    found = check(db)

    assert found.is_fine
    assert rebuild(db, found) is None


def test_a_cursor_behind_its_events_is_rebuilt_without_a_new_event(db):
    write(db, (None, day(1)), (day(1), day(2)))
    with db.write() as tx:
        try_create_cursor(tx, an_event(None, day(1)), NOON)

    found = check(db)
    assert not found.is_equal
    assert rebuild(db, found) == day(2)

    assert check(db).is_fine
    assert len(events(db, "id")) == 2


def test_a_cursor_that_is_lost_is_rebuilt(db):
    write(db, (None, day(1)), (day(1), day(2)))

    assert rebuild(db, check(db)) == day(2)
    with db.read() as tx:
        assert find_cursor(tx, HARVEST).value == day(2)


@pytest.mark.parametrize(
    ("steps", "stands", "said"),
    [
        ([(None, day(1)), (day(2), day(3))], day(1), "there are gaps before its events"),
        ([(None, day(1))], day(2), "a cursor is never moved back"),
        ([], day(2), "no event tells how the cursor came to 2025-09-03"),
        ([(day(1), day(2))], day(2), "there are gaps before its events"),
    ],
    ids=["a gap", "ahead of its events", "without events", "a chain without its beginning"],
)
def test_what_cannot_be_known_is_never_guessed(db, steps, stands, said):
    write(db, *steps)
    with db.write() as tx:
        try_create_cursor(tx, an_event(None, stands), NOON)

    found = check(db)

    assert not found.is_fine
    with pytest.raises(PersonMustAct, match=said):
        rebuild(db, found)
    with db.read() as tx:
        assert find_cursor(tx, HARVEST).value == stands


def test_a_long_chain_is_told_again_in_the_order_of_its_ids(db):
    rows = [_minute(number) for number in range(20_000)]
    names, values = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
    with db.write() as tx:
        tx.execute(text(f"INSERT INTO ing_cursor_event ({names}) VALUES ({values})"), rows)

    tracemalloc.start()
    with db.read() as tx:
        told = replay(tx, HARVEST)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (told.value, told.events, told.advances) == (START + 20_000 * MINUTE, 20_000, 20_000)
    assert told.gaps == ()
    assert most < 3_000_000  # all of them would be nine: they come as a stream


def _minute(number):
    before, after = START + number * MINUTE, START + (number + 1) * MINUTE
    return {
        **HARVEST.columns(),
        "cursor_type_code": "TIME",
        "new_value": "x",
        "prev_instant": instant_text(before) if number else None,
        "new_instant": instant_text(after),
        "window_from": instant_text(before),
        "window_to": instant_text(after),
        "direction_code": "FORWARD",
        "reason": "ADVANCE",
        "idempotent_key": f"{number:064d}",
    }
