from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256

import pytest

from patra_ingest.model import keys
from patra_ingest.model.codes import NamespaceScope, Operation
from patra_ingest.model.lineage import RunId
from patra_ingest.model.window import Window

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Window(JANUARY, JANUARY + timedelta(days=1))
PROTO = "ab" * 32
SLICE = {
    "provenance": "crossref",
    "endpoint": "works",
    "operation": Operation.HARVEST,
    "expr_hash": PROTO,
    "slice_spec": {"dimension": "TIME", "bounds": {"time": {"from": JANUARY, "to": DAY.end}}},
}
TASK = {
    "slice_signature": "cd" * 32,
    "expr_hash": PROTO,
    "operation": Operation.HARVEST,
    "trigger_type": "SCHEDULE",
    "scheduler": "DAGSTER",
    "params": {"pageSize": 100},
}
PLAN = {
    "provenance": "crossref",
    "operation": Operation.HARVEST,
    "endpoint": "works",
    "window": DAY,
    "expr_proto_hash": PROTO,
}
EVENT = {
    "namespace": {"provenance_code": "crossref", "namespace_key": PROTO},
    "reason": "ADVANCE",
    "prev": "2026-01-01T00:00:00.000000Z",
    "new": "2026-01-02T00:00:00.000000Z",
    "window": DAY,
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": 2}, '{"a":2,"b":1}', id="keys are sorted"),
        pytest.param({"a": None, "b": {"c": None}}, '{"b":{}}', id="nulls are left out"),
        pytest.param([{"a": None}, None], "[{},null]", id="but kept in arrays"),
        pytest.param([3, 1, 2], "[3,1,2]", id="array order is kept"),
        pytest.param(("a",), '["a"]', id="a tuple is an array"),
        pytest.param("1", '"1"', id="text stays text"),
        pytest.param(" A ", '" A "', id="text is not trimmed or folded"),
        pytest.param("é\n\u2028", '"é\\n\u2028"', id="only what JSON must escape is escaped"),
        pytest.param(True, "true", id="true is no number"),
        pytest.param(1, "1", id="one"),
        pytest.param(1.0, "1", id="one as a float"),
        pytest.param(Decimal("1.00"), "1", id="one as a decimal"),
        pytest.param(Decimal("0.10"), "0.1", id="a decimal is exact"),
        pytest.param(0.1, "0.1", id="a float is its shortest text"),
        pytest.param(1e21, "1000000000000000000000", id="no exponent"),
        pytest.param(-0.0, "0", id="no negative zero"),
        pytest.param(10**30, "1" + "0" * 30, id="no limit to integers"),
        pytest.param(Decimal(10) ** 30, "1" + "0" * 30, id="nor to decimals"),
        pytest.param(
            datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            '"2026-01-01T00:00:00.000000Z"',
            id="times are UTC with microseconds",
        ),
        pytest.param(date(2026, 1, 1), '"2026-01-01"', id="a date as YAML reads it"),
        pytest.param(timedelta(minutes=10), '"PT10M"', id="a duration"),
        pytest.param(Operation.HARVEST, '"HARVEST"', id="an enum is its value"),
        pytest.param({Operation.HARVEST: 1}, '{"HARVEST":1}', id="also as a name"),
    ],
)
def test_every_value_has_one_text(value, text):
    assert keys.canonical_json(value) == text.encode()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(float("nan"), "not a JSON number", id="not a number"),
        pytest.param(float("inf"), "not a JSON number", id="infinity"),
        pytest.param(Decimal("Infinity"), "not a JSON number", id="decimal infinity"),
        pytest.param(
            Decimal("1e999999999"), "outside the range", id="a number of a billion digits"
        ),
        pytest.param({1: "a"}, "not text", id="a name that is a number"),
        pytest.param({"a": {1, 2}}, "set", id="a set has no order"),
        pytest.param(b"a", "bytes", id="bytes"),
        pytest.param(JANUARY.replace(tzinfo=None), "no time zone", id="a time without a zone"),
        pytest.param(object(), "object", id="anything else"),
        pytest.param("\ud800", "surrogate", id="half a character"),
    ],
)
def test_what_json_cannot_say_is_refused(value, reason):
    with pytest.raises(ValueError, match=reason):
        keys.canonical_json(value)


def test_a_digest_is_the_sha_256_of_the_canonical_text():
    assert keys.digest({"b": [1], "a": None}) == sha256(b'{"b":[1]}').hexdigest()


def test_equal_content_under_different_kinds_gives_different_keys():
    same = {"path": "/works"}

    hashes = {
        keys.digest(same),
        keys.expr_proto_hash(same),
        keys.expr_hash(same),
        keys.spec_fingerprint(same),
    }

    assert len(hashes) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"provenance": "europepmc"},
        {"endpoint": "members"},
        {"operation": Operation.BACKFILL},
        {"expr_hash": "00" * 32},
        {"slice_spec": {"dimension": "TIME", "bounds": {"time": {"from": JANUARY}}}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_slice_is_another_when_any_part_of_its_meaning_changes(change):
    assert keys.slice_signature(**SLICE) != keys.slice_signature(**SLICE | change)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"provenance": "Crossref"}, id="the case of the provenance"),
        pytest.param(
            {"slice_spec": SLICE["slice_spec"] | {"budget": {"priority": 3}}}, id="budget"
        ),
        pytest.param({"slice_spec": SLICE["slice_spec"] | {"telemetry": {"n": 1}}}, id="telemetry"),
        pytest.param({"slice_spec": SLICE["slice_spec"] | {"phase": None}}, id="a null"),
    ],
)
def test_a_slice_stays_itself_whatever_is_estimated_or_may_be_spent(change):
    assert keys.slice_signature(**SLICE) == keys.slice_signature(**SLICE | change)


@pytest.mark.parametrize(
    "change",
    [
        {"slice_signature": "ee" * 32},
        {"expr_hash": "ee" * 32},
        {"operation": Operation.UPDATE},
        {"trigger_type": "MANUAL"},
        {"scheduler": "XXL"},
        {"params": {"pageSize": 100, "replay": "again"}},
        {"params": {"pageSize": "100"}},
    ],
    ids=str,
)
def test_a_task_is_another_when_any_part_of_its_meaning_changes(change):
    assert keys.task_key(**TASK) == keys.task_key(**TASK)
    assert keys.task_key(**TASK) != keys.task_key(**TASK | change)


def test_fields_that_run_together_do_not_collide():
    one = keys.task_key(**TASK | {"trigger_type": "AB", "scheduler": "C"})
    other = keys.task_key(**TASK | {"trigger_type": "A", "scheduler": "BC"})

    assert one != other


def test_a_batch_is_its_run_and_its_position():
    assert keys.batch_key(RunId(1), "*") == keys.batch_key(RunId(1), "*")
    assert len({keys.batch_key(RunId(run), at) for run in (1, 11) for at in ("1", 1, "11")}) == 6


def test_a_position_of_any_length_has_a_hash_of_one_length():
    assert {len(keys.position_hash(text)) for text in ("", "*", "x" * 10_000)} == {64}


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": {"provenance_code": "crossref", "namespace_key": "0" * 64}},
        {"prev": None},
        {"new": "2026-01-03T00:00:00.000000Z"},
        {"window": None},
        {"reason": "NO_FORWARD"},
        {"of": [7, 9]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_cursor_event_is_one_step_of_one_namespace_whoever_takes_it(change):
    assert keys.cursor_event_key(**EVENT) == keys.cursor_event_key(**EVENT)
    assert keys.cursor_event_key(**EVENT) != keys.cursor_event_key(**EVENT | change)


def test_a_plan_key_can_be_read():
    key = "crossref:HARVEST:works:20260101T000000Z-20260102T000000Z:abababababababab"

    assert keys.plan_key(**PLAN) == key
    assert keys.plan_key(**PLAN, campaign="spring") == f"{key}:spring"
    assert keys.plan_key(**PLAN | {"window": None}) == "crossref:HARVEST:works:-:abababababababab"


def test_a_plan_key_keeps_microseconds():
    later = Window(DAY.start + timedelta(microseconds=1), DAY.end)

    assert "20260101T000000.000001Z-" in keys.plan_key(**PLAN | {"window": later})


def test_a_colon_in_a_name_does_not_make_two_plans_one():
    between = f"-:{PROTO[:16]}"
    one = keys.plan_key(**PLAN | {"window": None, "endpoint": f"a:{between}"}, campaign="b")
    other = keys.plan_key(**PLAN | {"window": None, "endpoint": "a"}, campaign=f"{between}:b")

    assert one != other
    assert keys.plan_key(**PLAN, campaign="a:b") != keys.plan_key(**PLAN, campaign="a%3Ab")


def test_a_long_plan_key_is_cut_but_stays_its_own():
    long = [keys.plan_key(**PLAN, campaign="x" * 300 + end) for end in ("a", "b")]

    assert {len(key) for key in long} == {256}
    assert long[0] != long[1]
    assert long[0].startswith("crossref:HARVEST:works:")


def test_a_namespace_is_everyones_one_questions_or_one_campaigns():
    assert keys.namespace_key(NamespaceScope.GLOBAL, PROTO, "spring") == "0" * 64
    assert keys.namespace_key(NamespaceScope.EXPR, PROTO, "spring") == PROTO
    spring = keys.namespace_key(NamespaceScope.CUSTOM, PROTO, "spring")
    assert len(spring) == 64
    assert spring == keys.namespace_key(NamespaceScope.CUSTOM, None, "spring")
    assert spring != keys.namespace_key(NamespaceScope.CUSTOM, PROTO, "autumn")


@pytest.mark.parametrize(
    ("scope", "missing"),
    [(NamespaceScope.EXPR, "expr_proto_hash"), (NamespaceScope.CUSTOM, "campaign")],
)
def test_a_namespace_without_its_name_is_refused(scope, missing):
    with pytest.raises(ValueError, match=missing):
        keys.namespace_key(scope)


def test_the_content_of_an_item_is_its_values_whatever_their_order():
    assert keys.content_hash({"a": 1, "b": None}) == keys.content_hash({"b": None, "a": 1})
    assert keys.content_hash({"a": 1, "b": None}) != keys.content_hash({"a": 1})
    assert keys.content_hash({"a": [1, 2]}) != keys.content_hash({"a": [2, 1]})


def test_a_body_is_kept_under_the_sha_256_of_its_bytes():
    assert keys.body_hash(b"{}") == sha256(b"{}").hexdigest()


def test_an_item_key_is_eight_bytes():
    assert keys.item_key("10.1000/xyz") == sha256(b"10.1000/xyz").digest()[:8]
