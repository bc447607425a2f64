"""What a replay calls the same, changed since, lost or added; and how that reads."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patra_ingest.executor.asking import Asking
from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.digests import request_digest
from patra_ingest.executor.likeness import aside_of, find_unlike
from patra_ingest.executor.paging import Page
from patra_ingest.executor.replay_report import Replay
from patra_ingest.executor.replaying import (
    BatchReplay,
    Check,
    Match,
    Outcome,
    RecordMatch,
    Stored,
    Told,
    check_batch,
    count_matches,
    match_contents,
    match_records,
    worst,
)
from patra_ingest.executor.request import render
from patra_ingest.model.evidence import KeptBadItem, KeptBatch, KeptRecord
from patra_ingest.model.records import ChangeRule, NewRecord
from patra_ingest_tests.builders import NOON, a_record, a_spec, days

HOUR = timedelta(hours=1)
STATS = {"itemsCount": 1, "idKeys": "", "total": 1, "inserted": 1, "outOfWindow": 0}
BATCH = KeptBatch(
    *(7, 1, 2, "SUCCEEDED", 1, 50, "token#1:", "token#2:t", "e" * 64, None),
    *(STATS, {}, {}, NOON, None),
)
DELETED = NewRecord("a", None, "d" * 64, True, b"", b"")


def a_row(record=None, **more):
    """Return the ledger's row of a record, brought by the batch unless said otherwise."""
    one = record or a_record()
    row = KeptRecord(
        one.provider_id, one.source_updated_at, one.content_hash, one.is_deleted, 7, "1/2", NOON
    )
    return replace(row, **more)


def told(*records, **more):
    numbers = {"itemsCount": 1, "idKeys": "", "total": 1}
    plain = Told(records, (), (), (), (), numbers, 0, "token#2:t")
    return replace(plain, **more)


def stored(*rows, brought=None, quarantined=()):
    own = [row.provider_id for row in rows if row.batch_id == 7]
    by_id = {row.provider_id: row for row in rows}
    return Stored(BATCH, by_id, own if brought is None else brought, quarantined)


def words(found):
    return {one.provider_id: one.match for one in found}


LATER = {"batch_id": 9, "brought_by": "2/1", "brought_at": NOON + HOUR}
EARLIER = {"batch_id": 3, "brought_by": "1/1", "brought_at": NOON - HOUR}


@pytest.mark.parametrize(
    ("row", "match"),
    [
        pytest.param(None, Match.LOST, id="not there"),
        pytest.param(a_row(), Match.SAME, id="as it was"),
        pytest.param(a_row(content_hash="2" * 64), Match.DIFFERS, id="other content"),
        pytest.param(a_row(source_updated_at=NOON - HOUR), Match.DIFFERS, id="other version"),
        pytest.param(a_row(is_deleted=True), Match.DIFFERS, id="deleted by nobody"),
        pytest.param(a_row(**LATER), Match.SAME, id="brought again later"),
        pytest.param(a_row(content_hash="2" * 64, **LATER), Match.CHANGED_SINCE, id="changed"),
        pytest.param(a_row(is_deleted=True, **LATER), Match.CHANGED_SINCE, id="deleted later"),
        pytest.param(a_row(**EARLIER), Match.SAME, id="known before"),
        pytest.param(
            a_row(a_record("a", NOON + HOUR, "2"), **EARLIER), Match.KEPT, id="a newer one known"
        ),
        pytest.param(
            a_row(a_record("a", NOON - HOUR, "2"), **EARLIER), Match.DIFFERS, id="it should be ours"
        ),
    ],
)
def test_a_record_is_held_against_its_row(row, match):
    rows = [row] if row else []

    found = match_records(told(a_record()), stored(*rows), ChangeRule.NEWER_OR_HASH)

    assert words(found) == {"a": match}
    assert bool(found[0].why) == (match is not Match.SAME)


def test_a_later_batch_is_named():
    row = a_row(content_hash="2" * 64, **LATER)

    (found,) = match_records(told(a_record()), stored(row), ChangeRule.NEWER)

    assert found.why == "by batch 2/1"


def test_of_a_record_that_comes_twice_the_newer_version_counts():
    old, new = a_record("a", NOON - HOUR, "1"), a_record("a", NOON, "2")

    for order in ((old, new), (new, old)):
        found = match_records(told(*order), stored(a_row(new)), ChangeRule.NEWER_OR_HASH)
        assert words(found) == {"a": Match.SAME}


def test_what_only_the_ledger_knows_of_is_added():
    rows = stored(a_row(), a_row(a_record("b")))

    assert words(match_records(told(a_record()), rows, ChangeRule.NEWER))["b"] is Match.ADDED


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (a_row(is_deleted=True), Match.SAME),
        (a_row(), Match.DIFFERS),
        (a_row(**LATER), Match.CHANGED_SINCE),
        (None, Match.LOST),
    ],
)
def test_an_id_that_is_gone_is_deleted_in_the_ledger(row, match):
    rows = stored(*([row] if row else []), brought=[])

    assert words(match_records(told(gone=("a",)), rows, ChangeRule.NEWER)) == {"a": match}
    if row is not None:
        assert words(match_records(told(DELETED), rows, ChangeRule.NEWER)) == {"a": match}


def test_an_id_that_nobody_ever_had_is_in_quarantine():
    bad = KeptBadItem("BAD_ID", "a", None, None, "unknown", "OPEN", None)
    rows = stored(quarantined=[bad])
    again = told(gone=("a",))

    assert words(match_records(again, rows, ChangeRule.NEWER)) == {"a": Match.SAME}
    assert all(one.is_equal for one in check_batch(again, rows, [], 0) if "ids" in one.name)


@pytest.mark.parametrize(
    ("again", "unlike", "left", "named"),
    [
        (told(a_record()), [], 0, []),
        (told(a_record()), ["query"], 0, ["request"]),
        (told(a_record()), [], 1, ["answers left over"]),
        (told(), [], 0, ["records"]),
        (told(a_record(), following=None), [], 0, ["next position"]),
        (told(a_record(), out_of_window=1), [], 0, ["out of window"]),
        (told(a_record(), bad_ids={"z"}), [], 0, ["quarantined ids"]),
    ],
)
def test_every_number_that_differs_is_named(again, unlike, left, named):
    checks = check_batch(again, stored(a_row()), unlike, left)

    assert [check.name for check in checks if not check.is_equal] == named


def test_ids_are_the_same_in_any_order():
    rows = stored(a_row())
    rows = replace(rows, batch=replace(BATCH, stats={**STATS, "idKeys": pack_ids("ab")}))
    numbers = {"itemsCount": 1, "total": 1}

    for packed, is_equal in ((pack_ids("ba"), True), (pack_ids("ac"), False)):
        again = told(a_record(), numbers={**numbers, "idKeys": packed})
        (check,) = (one for one in check_batch(again, rows, [], 0) if one.name == "ids")
        assert check.is_equal == is_equal


def test_of_many_batches_people_read_those_that_differ():
    many = [a_batch() for _ in range(60)]

    page = a_replay(*many, a_batch(problem="it ends otherwise")).as_markdown()

    assert page.count("| 1/2 | token#1: |") == 1
    assert "… and 60 batches more" in page


def test_live_contents_are_compared_by_id():
    found = match_contents({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"})

    expected = {"a": Match.SAME, "b": Match.DIFFERS, "c": Match.LOST, "d": Match.ADDED}
    assert words(found) == expected


@given(some.dictionaries(some.text(max_size=3), some.sampled_from("12")), some.data())
def test_every_record_of_both_sides_has_exactly_one_word(then, data):
    now = data.draw(some.dictionaries(some.text(max_size=3), some.sampled_from("12")))

    found = match_contents(then, now)

    assert sorted(one.provider_id for one in found) == sorted(then.keys() | now.keys())
    assert sum(count_matches(found).values()) == len(found)
    assert (set(words(found).values()) <= {Match.SAME}) == (then == now)


def a_replay(*batches):
    return Replay(1, "example", "works", "HARVEST", None, {"run_id": 1}, False, NOON, batches)


def a_batch(**more):
    return replace(BatchReplay(1, 2, 7, "token#1:"), **more)


@pytest.mark.parametrize(
    ("batch", "outcome", "is_fine"),
    [
        (a_batch(), Outcome.EQUAL, True),
        (a_batch(counts={Match.SAME: 1, Match.KEPT: 1}), Outcome.EQUAL, True),
        (a_batch(counts={Match.CHANGED_SINCE: 1}), Outcome.CHANGED_SINCE, True),
        (a_batch(counts={Match.CHANGED_SINCE: 1, Match.LOST: 1}), Outcome.DIFFERS, False),
        (a_batch(checks=(Check("items", 1, 2),)), Outcome.DIFFERS, False),
        (a_batch(problem="it ends otherwise"), Outcome.DIFFERS, False),
        (a_batch(problem="gone", is_readable=False), Outcome.UNREADABLE, False),
    ],
)
def test_a_replay_is_as_good_as_its_worst_batch(batch, outcome, is_fine):
    found = a_replay(a_batch(), batch)

    assert (batch.outcome, found.outcome, found.is_fine) == (outcome, outcome, is_fine)
    assert found.as_json()["outcome"] == outcome.value
    assert f"**{outcome.value}: 2 batches of run 1" in found.as_markdown()


def test_nothing_at_all_is_equal():
    assert worst([]) is Outcome.EQUAL


def test_what_a_source_said_cannot_draw_in_the_report():
    odd = RecordMatch("a|b\n# c\x1b[2J", Match.LOST, "x")
    batch = a_batch(counts={Match.LOST: 60}, matches=(odd,) * 60)

    page = a_replay(batch).as_markdown()

    assert "| 1/2 | a\\|b # c [2J | lost | x |" in page
    assert "… and 10 more" in page
    assert "\x1b" not in page


def test_one_question_is_itself_but_for_who_asks_and_when():
    query = dict(a_spec().request.query) | {"mail": "${identity.contact}", "at": "${now|iso}"}
    spec = a_spec(request={"query": query})
    asking = Asking(days(0, 1), Page(), 1, 1, "ann@example.org", NOON)
    other = replace(asking, contact="", now=NOON + HOUR)
    aside = aside_of(spec, spec, asking)
    kept = request_digest(render(spec, asking))

    assert find_unlike(kept, request_digest(render(spec, other)), aside) == []
    moved = request_digest(render(spec, replace(asking, window=days(1, 2))))
    assert find_unlike(kept, moved, aside) == ["query"]
