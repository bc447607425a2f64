"""An item becomes a record, or a bad item; one that fails does not stop the others."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from patra_ingest.executor.mapping import map_items
from patra_ingest_tests.builders import a_spec, an_item, days

SPEC = a_spec()
WINDOW = days(0, 3)
NO_TIMES = a_spec(response={"updated_at": None}, endpoint={"changed": "HASH"})


def mapped(*items, spec=SPEC, window=WINDOW):
    return map_items(items, spec, window)


def only_bad(item, spec=SPEC):
    (bad,) = mapped(item, spec=spec).bad
    return bad


def test_a_record_has_its_id_its_time_its_fields_and_the_item_as_received():
    (record,) = mapped(an_item("10.1/a", more={"z": 1, "a": 2})).records

    assert record.provider_id == "10.1/a"
    assert record.source_updated_at == datetime(2025, 9, 2, 10, tzinfo=UTC)
    assert json.loads(record.fields_json) == {"title": "On 10.1/a"}
    assert json.loads(record.payload) == an_item("10.1/a", more={"z": 1, "a": 2})
    assert not record.is_deleted


def test_the_content_hash_ignores_the_order_of_names_and_nothing_else():
    first, second, third = mapped(
        {"id": 1, "updated": "2025-09-02", "title": "t", "x": None},
        {"x": None, "title": "t", "updated": "2025-09-02", "id": 1},
        {"id": 1, "updated": "2025-09-02", "title": "t"},
    ).records

    assert first.content_hash == second.content_hash != third.content_hash


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a", "a"), ("  a b ", "a b"), (7, "7"), (0, "0"), ("x" * 512, "x" * 512)],
)
def test_an_id_is_text_or_a_whole_number(given, expected):
    assert mapped(an_item(given)).ids == [expected]


@pytest.mark.parametrize("given", [None, "", "   ", True, 1.5, [], {"v": 1}, "x" * 513])
def test_an_item_without_a_usable_id_is_bad(given):
    result = mapped(an_item(given))

    assert (result.records, result.ids) == ([], [])
    assert (result.bad[0].path, result.bad[0].provider_id) == ("$.id", None)


@pytest.mark.parametrize("item", [None, "text", 3, []])
def test_an_item_that_is_no_object_is_bad(item):
    assert only_bad(item).path == "$.id"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("2025-09-02T10:00:00Z", datetime(2025, 9, 2, 10, tzinfo=UTC), id="UTC"),
        pytest.param(
            "2025-09-02T10:00:00.123456+02:00",
            datetime(2025, 9, 2, 8, 0, 0, 123456, tzinfo=UTC),
            id="an offset and microseconds",
        ),
        pytest.param("2025-09-02", datetime(2025, 9, 2, tzinfo=UTC), id="a day"),
        pytest.param("2025-09-02T10:00:00", datetime(2025, 9, 2, 10, tzinfo=UTC), id="no zone"),
    ],
)
def test_update_times_become_utc(written, expected):
    (record,) = mapped(an_item(updated=written)).records

    assert record.source_updated_at == expected
    assert record.source_updated_at.tzinfo == timezone(timedelta(0))


def test_a_time_without_zone_is_in_the_zone_of_the_source():
    spec = a_spec(window={"zone": "America/New_York"})

    (record,) = mapped(an_item(updated="2025-09-02T10:00:00"), spec=spec).records

    assert record.source_updated_at == datetime(2025, 9, 2, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [None, 1756800000, "yesterday", "2025-13-01", "", "0001-01-01T00:00:00+01:00"],
)
def test_an_item_without_a_usable_update_time_is_bad(written):
    bad = only_bad(an_item("a", updated=written))

    assert (bad.path, bad.provider_id, bad.item_no) == ("$.updated", "a", 1)


def test_a_required_field_must_be_there_and_others_may_be_missing():
    spec = a_spec(
        endpoint={
            "fields": [
                {"name": "title", "path": "$.title", "required": True},
                {"name": "issn", "path": "$.issn"},
            ]
        }
    )

    (record,) = mapped(an_item("a"), spec=spec).records
    bad = only_bad(an_item("b", title=None), spec)

    assert json.loads(record.fields_json) == {"title": "On a", "issn": None}
    assert (bad.path, bad.reason) == ("$.title", "the required field title is missing")


def test_a_bad_item_does_not_stop_the_others_and_keeps_its_number():
    result = mapped(an_item("a"), an_item("b", updated=None), an_item(None), an_item("d"))

    assert [record.provider_id for record in result.records] == ["a", "d"]
    assert [(bad.item_no, bad.provider_id) for bad in result.bad] == [(2, "b"), (3, None)]
    assert result.ids == ["a", "b", "d"]


def test_a_path_that_fails_on_one_item_makes_only_that_item_bad():
    field = {"name": "first", "path": "$.authors[?(@.no > 0)].name"}
    spec = a_spec(endpoint={"fields": [field]})

    result = mapped(
        an_item("a", authors=[{"no": 1, "name": "Ada"}]),
        an_item("b", authors=[{"no": "x", "name": "Bob"}]),
        spec=spec,
    )

    assert result.records[0].provider_id == "a"
    assert len(result.records) + len(result.bad) == 2


def test_the_fragment_of_a_bad_item_is_short_and_without_secrets():
    bad = only_bad(an_item(None, api_key="CANARY-1", text="x" * 5000))

    assert "CANARY" not in bad.fragment
    assert len(bad.fragment) <= 1024


def test_what_lies_outside_the_window_is_dropped_only_where_the_source_filters_coarsely():
    late = an_item("b", updated="2025-09-09T00:00:00Z")
    coarse = a_spec(response={"client_window": True})

    kept = mapped(an_item("a"), late)
    dropped = mapped(an_item("a"), late, spec=coarse)

    assert (len(kept.records), kept.out_of_window) == (2, 0)
    assert (len(dropped.records), dropped.out_of_window, dropped.ids) == (1, 1, ["a", "b"])


def test_the_window_is_half_open():
    coarse = a_spec(response={"client_window": True})
    at_start, at_end = (an_item(t, updated=t) for t in ("2025-09-01", "2025-09-04"))

    result = mapped(at_start, at_end, spec=coarse)

    assert [record.provider_id for record in result.records] == ["2025-09-01"]


def test_a_source_may_have_no_update_times():
    (record,) = mapped({"id": "a", "title": "t"}, spec=NO_TIMES).records

    assert record.source_updated_at is None


@pytest.mark.parametrize(
    ("flag", "deleted"), [(True, True), ("yes", True), (False, False), (None, False)]
)
def test_a_source_may_tell_what_it_has_withdrawn(flag, deleted):
    spec = a_spec(response={"deleted": "$.withdrawn"})

    (record,) = mapped(an_item("a", withdrawn=flag), spec=spec).records

    assert record.is_deleted is deleted


def test_the_newest_time_seen_is_evidence():
    times = ["2025-09-02T10:00:00Z", "2025-09-03T10:00:00Z", "2025-09-01T10:00:00Z"]

    result = mapped(*(an_item(time, updated=time) for time in times))

    assert result.observed_max == datetime(2025, 9, 3, 10, tzinfo=UTC)
    assert mapped().observed_max is None
