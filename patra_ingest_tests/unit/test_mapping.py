"""An item becomes a record, or a bad item; one that fails does not stop the others."""

import json
from datetime import UTC, datetime

import pytest

from patra_ingest.executor.mapping import map_items
from patra_ingest_tests.builders import a_spec, an_item, days

SPEC = a_spec()
WINDOW = days(0, 3)


def mapped(*items, spec=SPEC, window=WINDOW):
    return map_items(items, spec, spec.window.zone, window)


def with_field(path, **more):
    return a_spec(endpoint={"fields": [{"name": "field", "path": path, **more}]})


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


@pytest.mark.parametrize(
    ("item", "spec", "path", "value"),
    [
        pytest.param(an_item({"v": 1}), SPEC, "$.id", '{"v":1}', id="an id that is an object"),
        pytest.param(an_item("x" * 600), SPEC, "$.id", "x" * 255 + "…", id="a long id, cut"),
        pytest.param(an_item(None), SPEC, "$.id", None, id="no id"),
        pytest.param(an_item(updated="soon"), SPEC, "$.updated", "soon", id="no time"),
        pytest.param(
            an_item(pages="xii"), with_field("$.pages|int"), "$.pages|int", "xii", id="converted"
        ),
        pytest.param(
            an_item(updated="api_key=CANARY-1"), SPEC, "$.updated", "api_key=***", id="a secret"
        ),
    ],
)
def test_a_bad_item_says_where_what_was_found_instead(item, spec, path, value):
    bad = only_bad(item, spec)

    assert (bad.path, bad.value) == (path, value)
    assert "CANARY" not in bad.reason


def test_an_item_that_cannot_be_written_as_json_is_bad_and_the_others_are_not():
    deep = an_item("deep")
    inner = deep
    for _ in range(400):
        inner["more"] = {}
        inner = inner["more"]
    large = an_item("large", pages="9" * 25)

    result = mapped(deep, large, an_item("fine", pages=1), spec=with_field("$.pages|int"))

    assert [record.provider_id for record in result.records] == ["fine"]
    assert [(bad.provider_id, bad.path) for bad in result.bad] == [("deep", "$"), ("large", "$")]
    assert all("cannot be written as JSON" in bad.reason for bad in result.bad)


@pytest.mark.parametrize(
    ("expression", "item", "expected"),
    [
        ("$.doi|lower", {"doi": "10.1/ABC"}, "10.1/abc"),
        ("${$.source}:${$.id}", {"source": "MED"}, "MED:a"),
        ("$.url|after('https://x.org/')", {"url": "https://x.org/W1"}, "W1"),
    ],
)
def test_ids_are_composed_and_normalised(expression, item, expected):
    spec = a_spec(response={"id": expression})

    assert mapped(an_item("a", **item), spec=spec).ids == [expected]


def test_two_items_of_one_id_are_both_handed_on_so_that_both_are_counted():
    result = mapped(an_item("a"), an_item("a", updated="2025-09-03"))

    assert [record.provider_id for record in result.records] == ["a", "a"]


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


def test_the_newest_time_seen_is_evidence():
    times = ["2025-09-02T10:00:00Z", "2025-09-03T10:00:00Z", "2025-09-01T10:00:00Z"]

    result = mapped(*(an_item(time, updated=time) for time in times))

    assert result.observed_max == datetime(2025, 9, 3, 10, tzinfo=UTC)
    assert mapped().observed_max is None
