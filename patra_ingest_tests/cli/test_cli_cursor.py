"""`patra cursor`: a person sees how far we are, how we came there, and whether both agree."""

import json

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.ledger.cursors import append_event
from patra_ingest.ledger.db import open_db
from patra_ingest.model.codes import CursorDirection
from patra_ingest_tests.builders import NOON, a_spec, day
from patra_ingest_tests.ledger.cursors import (
    BACKFILL,
    HARVEST,
    add_plan,
    an_event,
    finish,
    finished,
)

FORWARD, DOWN = CursorDirection


@pytest.fixture
def ledger(home):
    """A source whose HARVEST waits at a hole and whose BACKFILL has gone down."""
    db = open_db(f"sqlite:///{home / 'ledger.db'}")
    manager = CursorManager(db, SystemClock())
    for namespace, way, done in ((HARVEST, FORWARD, (0, 1, 3)), (BACKFILL, DOWN, (5, 4))):
        add_plan(db, namespace, 6)
        for number in done:
            finish(db, namespace, number)
            manager.advance(namespace, way, finished(number))
    with db.write() as tx:
        spec = a_spec(window={"safety_lag": "1d"}).model_dump_json()
        tx.execute(text("UPDATE ing_plan SET spec_snapshot = :spec"), {"spec": spec})
    yield db
    db.close()


def lose_the_last_step(db):
    """Put the HARVEST cursor back behind everybody's back."""
    with db.write() as tx:
        query = (
            "UPDATE ing_cursor SET cursor_value = '2025-09-02T00:00:00.000000Z',"
            " normalized_instant = '2025-09-02 00:00:00.000000' WHERE operation_code = 'HARVEST'"
        )
        tx.execute(text(query))


def test_every_cursor_is_listed_with_its_lag(ledger, patra):
    told = patra("cursor", "list")

    assert told.returncode == 0, told.stderr
    for seen in ("HARVEST", "EXPR hhhhhhhhhhhh", "2025-09-03T00:00:00Z", "CRITICAL"):
        assert seen in told.stdout
    for seen in ("CUSTOM bbbbbbbbbbbb", "2025-09-05T00:00:00Z", "reaches down"):
        assert seen in told.stdout
    assert "plan 1 › slice 2" in told.stdout


def test_a_script_reads_the_same(ledger, patra):
    back, harvest = json.loads(patra("cursor", "list", "EXAMPLE", "--json").stdout)

    assert (back["operation_code"], back["level"], back["now_lag_seconds"]) == (
        "BACKFILL",
        None,
        None,
    )
    assert harvest["value"] == "2025-09-03T00:00:00.000000Z"
    assert (harvest["level"], harvest["safety_lag_seconds"]) == ("CRITICAL", 86_400)


def test_the_timeline_says_what_moved_and_why_something_did_not(ledger, patra):
    told = patra("cursor", "timeline", "example", "--op", "harvest")
    (*_, last) = json.loads(
        patra("cursor", "timeline", "example", "--op", "harvest", "--json").stdout
    )
    only = json.loads(patra("cursor", "timeline", "example", "--limit", "1", "--json").stdout)

    assert told.returncode == 0, told.stderr
    for seen in ("2 ADVANCE", "→ 2025-09-03T00:00:00Z", "stays at", "waits for the gap"):
        assert seen in told.stdout
    assert (last["reason"], last["slice_id"]) == ("NO_FORWARD", 4)
    assert last["previous"] == last["new"] == "2025-09-03T00:00:00.000000Z"
    assert [one["operation_code"] for one in only] == ["BACKFILL"]


def test_cursors_that_agree_with_their_events_are_fine(ledger, patra):
    told = patra("cursor", "verify")

    assert told.returncode == 0, told.stdout + told.stderr
    assert "3 events, 2 steps, 1 without a step" in told.stdout
    assert "2 cursors: 2 agree with their events, 0 do not." in told.stdout


def test_a_difference_asks_for_a_rebuild_which_needs_a_yes(ledger, patra):
    lose_the_last_step(ledger)

    told = patra("cursor", "verify", "example")
    assert told.returncode == 1
    assert "cursor.rebuild.required: its events lead to 2025-09-03T00:00:00Z" in told.stdout

    shown = patra("cursor", "rebuild", "example")
    assert (shown.returncode, "Nothing was changed; add --yes" in shown.stdout) == (0, True)
    assert patra("cursor", "verify", "example").returncode == 1

    done = patra("cursor", "rebuild", "example", "--yes")
    assert done.returncode == 0, done.stderr
    assert "was moved: 2025-09-02" in done.stdout
    assert patra("cursor", "verify", "example").returncode == 0
    assert "nothing to rebuild" in patra("cursor", "rebuild", "example", "--yes").stdout


def test_a_gap_is_reported_and_never_mended(ledger, patra):
    with ledger.write() as tx:
        append_event(tx, an_event(day(4), day(5)), NOON)

    told = patra("cursor", "verify", "example", "--op", "HARVEST")
    (form,) = json.loads(patra("cursor", "verify", "example", "--op", "HARVEST", "--json").stdout)
    mended = patra("cursor", "rebuild", "example", "--yes")

    assert (told.returncode, "1 gaps, before the events" in told.stdout) == (1, True)
    assert (len(form["gaps"]), form["alert"]) == (1, "cursor.rebuild.required")
    assert mended.returncode == 1
    assert "is not rebuilt: there are gaps" in mended.stdout


def test_a_lost_cursor_and_one_without_events_are_differences(ledger, patra):
    with ledger.write() as tx:
        tx.execute(text("DELETE FROM ing_cursor WHERE operation_code = 'HARVEST'"))
        gone = "DELETE FROM ing_cursor_event WHERE operation_code = 'BACKFILL'"
        tx.execute(text(gone).execution_options(archiving=True))

    told = patra("cursor", "verify")

    assert told.returncode == 1
    assert "2 cursors: 0 agree" in told.stdout
    assert "its events lead to nowhere" in told.stdout


def test_a_person_forces_a_cursor_with_a_reason_and_a_yes(ledger, patra):
    asked = ("cursor", "force", "example", "--to", "2025-09-04", "--reason", "the day is lost")

    shown = patra(*asked)
    assert (shown.returncode, "add --yes" in shown.stdout) == (0, True)
    done = patra(*asked, "--yes")
    assert done.returncode == 0, done.stderr
    assert "2025-09-03T00:00:00.000000Z → 2025-09-04T00:00:00.000000Z" in done.stdout

    (*_, last) = json.loads(
        patra("cursor", "timeline", "example", "--op", "HARVEST", "--json").stdout
    )
    assert (last["reason"], last["why"]) == ("FORCE_FORWARD", "the day is lost")
    assert last["by"]
    assert patra("cursor", "verify").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("list", "nosuch"), 1, "There is no source 'nosuch'. Known sources:"),
        (("timeline", "nosuch"), 1, "There is no source 'nosuch'"),
        (("verify", "nosuch"), 1, "There is no source 'nosuch'"),
        (("rebuild", "nosuch"), 1, "There is no source 'nosuch'"),
        (("timeline", "example", "--namespace", "zz"), 1, "No cursor of example fits"),
        (("timeline", "example", "--op", "DANCE"), 1, "There is no operation 'DANCE'"),
        (("rebuild", "example", "--endpoint", "zz"), 1, "No cursor of example fits"),
        (("force", "example", "--to", "2025-09-01", "--reason", "x"), 1, "is never moved back"),
        (("force", "example", "--to", "2999-01-01", "--reason", "x"), 1, "is in the future"),
        (("force", "example", "--to", "2025-09-09", "--reason", " "), 1, "without a reason"),
        (("force", "example", "--to", "monday", "--reason", "x"), 1, "Use 2026-01-31"),
        (("force", "example", "--reason", "x"), 2, "--to"),
        (("timeline",), 2, "source"),
        (("timeline", "example", "--limit", "0"), 2, "--limit"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_what_makes_no_sense_costs_one_sentence(ledger, patra, words, code, said):
    told = patra("cursor", *words)

    assert told.returncode == code
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_before_anything_moved_there_is_nothing_to_show(home, patra):
    assert "No cursor has moved yet" in patra("cursor", "list").stdout
    assert "No cursor of sandbox has moved yet" in patra("cursor", "timeline", "sandbox").stdout
    assert patra("cursor", "verify").returncode == 0
