"""Remarks: who did what to a row, in the order it happened, on both engines alike."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from patra_ingest.ledger.db import instant_text, json_text, read_instant, read_json
from patra_ingest.ledger.remarks import append_remark, read_remarks, remark_text
from patra_ingest.ledger.tasks import ensure_tasks
from patra_ingest_tests.builders import NOON, a_task
from patra_ingest_tests.fakes import dying

HOUR = timedelta(hours=1)


def tasks(db, count=1, **columns):
    with db.write() as tx:
        ensure_tasks(tx, [a_task(number, **columns) for number in range(1, count + 1)])
        return list(tx.execute(text("SELECT id FROM ing_task ORDER BY id")).scalars())


def remark(db, ids, note="why", **more):
    with db.write() as tx:
        append_remark(tx, "ing_task", ids, "me", note, NOON, **more)


def remarks(db):
    with db.read() as tx:
        found = tx.execute(text("SELECT record_remarks FROM ing_task ORDER BY id")).scalars()
        return [read_remarks(value) for value in found]


def test_a_remark_says_when_who_and_why_and_leaves_out_what_nobody_said(db):
    remark(db, tasks(db))

    assert remarks(db) == [[{"time": "2025-09-20T12:00:00+00:00", "by": "me", "note": "why"}]]


def test_a_remark_may_have_a_type_and_data(db):
    remark(db, tasks(db), kind="cancel", data={"asked": "plan 7", "deep": [1, None, {"é": True}]})

    ((said,),) = remarks(db)
    assert said["type"] == "cancel"
    assert said["data"] == {"asked": "plan 7", "deep": [1, None, {"é": True}]}


def test_remarks_stand_in_the_order_they_were_made_after_those_that_were_there(db):
    old = {"time": NOON, "by": "planner", "note": "window decided", "data": {"cursor": None}}
    ids = tasks(db, record_remarks=json_text([old]))
    for note in ("first", "second"):
        remark(db, ids, note)

    assert [said["note"] for said in remarks(db)[0]] == ["window decided", "first", "second"]
    assert remarks(db)[0][0]["data"] == {"cursor": None}


def test_only_the_named_rows_get_the_remark_and_their_change_is_dated(db):
    first, _, third = tasks(db, 3)
    remark(db, [first, third])

    assert [len(found) for found in remarks(db)] == [1, 0, 1]
    with db.read() as tx:
        dated = tx.execute(
            text("SELECT id FROM ing_task WHERE updated_at = :now").bindparams(
                now=instant_text(NOON)
            )
        )
        assert sorted(dated.scalars()) == [first, third]


def test_many_rows_are_remarked_a_thousand_at_a_time(db):
    ids = tasks(db, 2001)
    with dying(db, lambda _: False) as statements:
        remark(db, ids)

    assert sum(statement.startswith("UPDATE") for statement in statements) == 3
    assert {len(found) for found in remarks(db)} == {1}


def test_no_row_at_all_is_no_statement_at_all(db):
    with dying(db, lambda _: False) as statements:
        remark(db, [])

    assert not any("UPDATE" in statement for statement in statements)


@pytest.mark.parametrize("table", ["reg_provenance", "ing_task; --", "ing_nothing", ""])
def test_only_the_ledgers_own_tables_take_remarks(sqlite_db, table):
    with sqlite_db.write() as tx, pytest.raises(ValueError, match="take remarks"):
        append_remark(tx, table, [1], "me", "why", NOON)


@pytest.mark.parametrize("value", [None, "[]", b"[]"])
def test_a_row_without_remarks_has_an_empty_list(value):
    assert read_remarks(value) == []


@pytest.mark.parametrize(
    "note",
    [
        'it\'s "quoted" \\ and :bound, $[0] and %s',
        "line\nbreak\ttab\x00nul",
        "图书馆 🦆 é",
        "",
        "x" * 100_000,
        '{"time": 1}',
    ],
    ids=["quotes", "control", "unicode", "empty", "long", "json"],
)
def test_whatever_a_person_writes_comes_back_as_it_was(db, note):
    remark(db, tasks(db), note)

    assert remarks(db)[0][0]["note"] == note


@settings(max_examples=50, deadline=None)
@given(note=st.text(st.characters(exclude_categories=["Cs"])), hours=st.integers(-9, 9))
def test_a_written_remark_is_one_json_object_that_says_the_same(note, hours):
    said = read_json(remark_text("me", note, NOON + hours * HOUR, kind="k"))

    assert (said["by"], said["note"], said["type"]) == ("me", note, "k")
    assert read_instant(said["time"]) == NOON + hours * HOUR
    assert "data" not in said
