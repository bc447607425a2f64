"""The health checks that look at what stands in the ledger, each failing and passing by rows."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.cursors import append_event
from patra_ingest.ledger.db import insert, instant_text
from patra_ingest.ledger.holds import place_hold, resume
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.window import instant_iso
from patra_ingest.views.health import CHECKS, Severity, Thresholds, judge_health
from patra_ingest_tests.builders import NOON, a_change, day
from patra_ingest_tests.ledger.cursors import HARVEST, an_event
from patra_ingest_tests.ledger.health import add_batches, add_run, harvested, judged
from patra_ingest_tests.ledger.planning import tasks_of

MINUTE = timedelta(minutes=1)
WARN, ERROR = Severity.WARN, Severity.ERROR


def change(db, statement, **values):
    with db.write() as tx:
        assert tx.execute(text(statement), values).rowcount


def verdict(finding):
    """Return PASSED, or how bad it is."""
    return "PASSED" if finding.passed else finding.severity


def test_an_endpoint_that_was_never_planned_is_not_called_ill(db):
    with db.read() as tx:
        found = judge_health(tx, NOON, Thresholds(), "example", "works")

    assert [one.check for one in found] == list(CHECKS)
    assert all(one.passed and one.why.endswith(".") for one in found)


def test_an_endpoint_that_is_up_to_date_passes_everything(db):
    harvested(db)

    with db.read() as tx:
        found = judge_health(tx, NOON, Thresholds(), "example", "works")

    assert {one.check: one.why for one in found if not one.passed} == {}


def test_completeness_wants_a_certificate_for_every_slice_that_succeeded(db):
    plan = harvested(db)
    assert "19 slices succeeded" in judged(db, "completeness").why

    task = tasks_of(db, plan)[3]
    change(db, "UPDATE ing_task_run SET certificate = NULL WHERE task_id = :id", id=task["id"])
    bare = judged(db, "completeness")

    assert (verdict(bare), bare.value) == (ERROR, 1)
    assert bare.metadata["slices"] == [task["slice_id"]]
    assert f"slices {task['slice_id']}." in bare.why


@pytest.mark.parametrize(
    ("proof", "expected"),
    [("COMPLETE", "PASSED"), ("DRIFTED", "PASSED"), ("INCOMPLETE", ERROR), (None, ERROR)],
)
def test_completeness_takes_what_is_within_the_tolerance_and_nothing_else(db, proof, expected):
    task = tasks_of(db, harvested(db))[0]
    change(db, "DELETE FROM ing_task_run WHERE task_id = :id", id=task["id"])
    add_run(db, task["id"], proof)

    assert verdict(judged(db, "completeness")) == expected


def test_completeness_looks_at_plans_of_the_last_days_only(sqlite_db):
    harvested(sqlite_db)
    change(sqlite_db, "UPDATE ing_task_run SET certificate = NULL")
    change(sqlite_db, "UPDATE ing_plan SET created_at = '2025-09-12 00:00:00.000000'")

    assert judged(sqlite_db, "completeness").passed
    lines = Thresholds(completeness_days=9)
    assert judged(sqlite_db, "completeness", lines=lines).value == 19


def test_a_cursor_beside_events_that_lead_elsewhere_is_an_error(db):
    harvested(db)
    assert judged(db, "cursor_fold").passed
    late = NOON + timedelta(days=1000)  # the events were written by the real clock

    change(db, "UPDATE ing_cursor SET normalized_instant = :at", at="2025-09-10 00:00:00.000000")
    moved = judged(db, "cursor_fold", late)
    change(db, "DELETE FROM ing_cursor")
    gone = judged(db, "cursor_fold", late)

    assert verdict(moved) == verdict(gone) == ERROR
    there, here = instant_iso(NOON - timedelta(days=1)), instant_iso(day(9))
    assert f"lead to {there}, the cursor is at {here}" in moved.why
    assert "the cursor is at None" in gone.why


def test_a_cursor_that_is_about_to_follow_its_event_is_no_error(db):
    harvested(db)
    change(db, "DELETE FROM ing_cursor")
    with db.read() as tx:
        moment = db.now(tx)  # the event was written by this clock just now

    assert judged(db, "cursor_fold", moment).passed
    assert not judged(db, "cursor_fold", moment + 2 * MINUTE).passed


def test_a_gap_between_events_is_an_error(db):
    with db.write() as tx:
        append_event(tx, an_event(None, day(1)), NOON)
        append_event(tx, an_event(day(2), day(3)), NOON)
        row = {"cursor_type_code": "TIME", "cursor_value": "2025-09-04T00:00:00Z"}
        at = {"normalized_instant": instant_text(day(3))}
        insert(tx, "ing_cursor", {**HARVEST.columns(), **row, **at, "version": 1})

    gap = judged(db, "cursor_fold")

    assert verdict(gap) == ERROR
    assert "something is missing before event" in gap.why


def test_a_long_chain_is_settled_by_its_newest_event_and_folded_only_when_that_differs(sqlite_db):
    harvested(sqlite_db)
    short = Thresholds(fold_events=0)

    assert judged(sqlite_db, "cursor_fold", lines=short).passed
    change(
        sqlite_db, "UPDATE ing_cursor SET normalized_instant = :at", at="2025-09-10 00:00:00.000000"
    )
    assert not judged(sqlite_db, "cursor_fold", NOON + timedelta(days=1000), short).passed


SHARES = [
    ("error_rate", "retryCount"),
    ("throttled_share", "throttled"),
]


@pytest.mark.parametrize(("check", "number"), SHARES)
@pytest.mark.parametrize(
    ("minutes_ago", "batches", "errors", "expected"),
    [
        (5, 100, 5, "PASSED"),
        (5, 20, 6, ERROR),
        (5, 3, 2, "PASSED"),  # two of three are no trend
        (90, 20, 20, "PASSED"),  # an hour and a half ago
    ],
)
def test_a_share_of_the_last_hour_is_held_against_its_line(
    db, check, number, minutes_ago, batches, errors, expected
):
    add_batches(db, batches, NOON - minutes_ago * MINUTE, **{number: errors})

    assert verdict(judged(db, check)) == expected


@pytest.mark.parametrize(("check", "number"), SHARES)
def test_ten_bad_minutes_in_a_good_hour_are_a_warning(db, check, number):
    add_batches(db, 200, NOON - 40 * MINUTE)
    add_batches(db, 20, NOON - 5 * MINUTE, **{number: 4})

    bad = judged(db, check)

    assert (verdict(bad), bad.value, bad.threshold) == (WARN, 0.2, 0.05)
    assert bad.metadata["worst_ten_minutes"] == "2025-09-20 11:50"


def test_being_turned_away_is_no_error_as_well(db):
    add_batches(db, 20, NOON - MINUTE, retryCount=5, throttled=5)

    assert judged(db, "error_rate").passed
    assert not judged(db, "throttled_share").passed


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("L1: no answer", ERROR),
        ("L2: 400", ERROR),
        ("LEASE_LOST: the worker fell silent", "PASSED"),
        ("STOPPED: the worker was asked to stop", "PASSED"),
    ],
)
def test_batches_that_were_given_up_count_by_their_level(db, error, expected):
    add_batches(db, 10, NOON - MINUTE)
    add_batches(db, 3, NOON - MINUTE, error)

    assert verdict(judged(db, "error_rate")) == expected


@pytest.mark.parametrize(
    ("quarantined", "expected"), [(0, "PASSED"), (10, "PASSED"), (11, WARN), (51, ERROR)]
)
def test_the_quarantined_share_of_a_day_has_two_lines(db, quarantined, expected):
    add_batches(db, 100, NOON - timedelta(hours=20), quarantined=quarantined)

    found = judged(db, "quarantine_share")

    assert (verdict(found), found.value) == (expected, quarantined / 1000)


def told(db, at, name="a", endpoint="works"):
    with db.write() as tx:
        add_changes(tx, [a_change(name, endpoint=endpoint)], Lineage(1), at)


def test_a_message_may_wait_for_an_hour_and_none_may_be_given_up(db):
    told(db, NOON - 59 * MINUTE)
    told(db, NOON - 300 * MINUTE, "b", "authors")
    assert judged(db, "outbox_backlog").passed

    told(db, NOON - 61 * MINUTE, "c")
    late = judged(db, "outbox_backlog")
    change(db, "UPDATE ing_outbox_message SET status_code = 'DEAD' WHERE partition_key = 'works/c'")
    dead = judged(db, "outbox_backlog")

    assert (verdict(late), late.value) == (WARN, 61 * 60)
    assert (verdict(dead), dead.metadata["dead"]) == (ERROR, 1)


@pytest.mark.parametrize(
    ("endpoint", "reason", "expected"),
    [("works", "L4", ERROR), (None, "L4", ERROR), ("works", "OPERATOR", WARN)],
)
def test_a_hold_fails_its_check_until_it_is_lifted(db, endpoint, reason, expected):
    with db.write() as tx:
        place_hold(tx, "example", endpoint, reason, "enough", "ada", NOON)
    held = judged(db, "no_hold")
    with db.write() as tx:
        resume(tx, "example", None, "ada", NOON)

    assert verdict(held) == expected
    assert "by ada" in held.why
    assert judged(db, "no_hold").passed


@pytest.mark.parametrize(
    "text", ["[1]", "no", '{"cursor_lag": "soon"}', '{"lag": 1}', '{"cursor_lag": -1}']
)
def test_thresholds_that_make_no_sense_cost_one_sentence_that_lists_what_there_is(text):
    with pytest.raises(PersonMustAct, match=r"there are .*cursor_lag"):
        Thresholds.read(text)


def test_thresholds_that_are_named_replace_the_usual_ones():
    assert Thresholds.read("") == Thresholds()
    assert Thresholds.read('{"outbox_age": 7}') == Thresholds(outbox_age=7)
