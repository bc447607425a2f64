"""What a pack says of items: deleted, retracted, to skip, hollow, and which values they have."""

import json
from dataclasses import replace

import pytest

from patra_ingest.executor.mapping import map_items, set_apart, tombstones
from patra_ingest.expr.xml_tree import read_xml
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import a_spec, an_endpoint, an_item, days, pack_text


def mapped(*items, fields=None, **response):
    endpoint = {} if fields is None else {"endpoint": {"fields": fields}}
    spec = a_spec(response=response, **endpoint)
    return map_items(items, spec, "UTC", days(0, 3))


def fields_of(record):
    return json.loads(record.fields_json)


@pytest.mark.parametrize(
    ("flag", "deleted"),
    [
        (True, True),
        ("yes", True),
        ("deleted", True),
        ("2025-01-01", True),
        (1, True),
        (False, False),
        (None, False),
        ("false", False),
        ("N", False),
        ("0", False),
        (" ", False),
        (0, False),
    ],
)
def test_a_flag_tells_what_the_source_has_withdrawn(flag, deleted):
    (record,) = mapped(an_item("a", withdrawn=flag), deleted="$.withdrawn").records

    assert record.is_deleted is deleted


def test_a_condition_tells_what_the_source_has_withdrawn():
    gone = {"path": "$.status", "equals": "deleted"}

    result = mapped(an_item("a", status="deleted"), an_item("b", status="ok"), deleted=gone)

    assert [record.is_deleted for record in result.records] == [True, False]


def test_a_deleted_item_needs_no_more_than_its_id():
    fields = [
        {"name": "title", "path": "$.title", "required": True},
        {"name": "pages", "path": "$.pages|int"},
        {"name": "type", "path": "$.type", "one_of": ["a"]},
    ]
    item = {"id": "a", "gone": True, "pages": "xii", "type": "b"}
    usable = {"path": "$.body", "exists": True}

    result = mapped(item, fields=fields, deleted="$.gone", usable=usable)

    (record,) = result.records
    assert (record.is_deleted, record.source_updated_at) == (True, None)
    assert fields_of(record) == {"title": None, "pages": None, "type": None}


def test_the_time_of_a_deleted_item_must_be_one_where_it_has_it():
    (bad,) = mapped(an_item("a", updated="soon", gone=True), deleted="$.gone").bad

    assert bad.path == "$.updated"


def test_a_flag_that_cannot_be_read_deletes_nothing():
    paths = "$.parts[?(@.no > 0)].gone"

    result = mapped(an_item("a", parts=[{"no": "x", "gone": True}]), deleted=paths)

    assert [record.is_deleted for record in result.records] == [False]


def test_a_retraction_is_a_field_of_the_record():
    rule = {"path": "$.types", "equals": "Retracted"}

    result = mapped(an_item("a", types=["Review", "Retracted"]), an_item("b"), retracted=rule)

    assert [fields_of(record)["retracted"] for record in result.records] == [True, False]
    assert not any(record.is_deleted for record in result.records)


def test_a_declared_field_keeps_its_name():
    fields = [
        {"name": "retracted", "path": "$.notice"},
        {"name": "version", "path": "$.edition"},
    ]
    item = an_item("a", notice="see b", edition=3, v=1)
    rule = {"path": "$.notice", "exists": True}

    (record,) = mapped(item, fields=fields, retracted=rule, version="$.v").records

    assert fields_of(record) == {"retracted": "see b", "version": 3}


def test_the_version_is_a_field_of_the_record():
    result = mapped(an_item("a", v="2"), an_item("b"), version="$.v")

    assert [fields_of(record)["version"] for record in result.records] == ["2", None]


def test_an_item_to_skip_is_no_record_and_not_bad():
    rule = {"path": "$.kind", "equals": "advertisement"}
    skipped = [an_item("ad", kind="advertisement"), {"kind": "advertisement"}]

    result = mapped(an_item("a"), *skipped, skip=rule)

    assert [record.provider_id for record in result.records] == ["a"]
    assert (result.bad, result.skipped, result.ids) == ([], 2, ["a", "ad"])


def test_a_hollow_item_is_kept_for_later_and_does_not_break_its_page():
    rule = {"path": "$.body", "empty": False}

    result = mapped(an_item("a", body=""), an_item("b"), usable=rule)

    assert [(bad.provider_id, bad.path, bad.reason) for bad in result.bad] == [
        ("a", "$.body", "the item is hollow, asked for later"),
        ("b", "$.body", "the item is hollow, asked for later"),
    ]
    assert (result.hollow, result.broken) == (2, 0)


def test_a_page_is_broken_when_all_of_it_is_bad():
    coarse = {"client_window": True}

    assert mapped(an_item(None), an_item("b", title=None)).broken == 2
    assert not mapped().broken
    assert not mapped(an_item(None), an_item("b")).broken
    assert not mapped(an_item(None), an_item("b", updated="2030-01-01"), **coarse).broken


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ("article", None),
        (7, None),
        ("7", None),
        (["book", "article"], None),
        ([], None),
        (None, None),
        ("Article", "'Article' is none of 7, article, book"),
        (8, "8 is none of 7, article, book"),
        (True, "True is none of 7, article, book"),
        (["book", "thesis"], "'thesis' is none of 7, article, book"),
        ({"a": 1}, "{'a': 1} is none of 7, article, book"),
    ],
)
def test_a_field_may_have_only_the_values_it_is_said_to_have(value, flaw):
    fields = [{"name": "type", "path": "$.type", "one_of": ["article", "book", 7]}]

    result = mapped(an_item("a", type=value), fields=fields)

    assert [bad.reason for bad in result.bad] == ([] if flaw is None else [flaw])
    assert [fields_of(record)["type"] for record in result.records] == ([value] if not flaw else [])


def test_the_allowed_values_of_a_field_are_read_from_a_pack():
    field = {"path": "$.type", "one_of": ["article", 7]}
    endpoint = an_endpoint(fields={"type": field})

    pack = parse_pack(PackText("the test's pack", pack_text(works=endpoint), {}))

    found = {field.name: field.one_of for field in pack.endpoints["works"].fields}
    assert found == {"title": None, "type": ("article", 7)}


def test_an_element_is_mapped_like_an_object():
    body = (
        b"<set><rec v='2'><id> 10 </id><t>On <i>mice</i> now</t><at>2025-09-02</at></rec>"
        b"<rec status='deleted'><id>11</id></rec><rec><id/></rec></set>"
    )
    (root,) = read_xml(body, {}).children

    result = mapped(
        *root.children,
        fields=[{"name": "title", "path": "$.t"}],
        updated_at="$.at",
        version="$.@v",
        deleted={"path": "$.@status", "equals": "deleted"},
    )

    first, second = result.records
    assert (first.provider_id, fields_of(first)) == ("10", {"title": "On mice now", "version": "2"})
    assert (second.provider_id, second.is_deleted) == ("11", True)
    assert first.content_hash != second.content_hash
    assert b"mice" in first.payload
    assert [(bad.item_no, bad.path) for bad in result.bad] == [(3, "$.id")]


def test_an_element_is_the_same_whatever_stands_around_it():
    bodies = (b"<set><r><id>1</id></r></set>", b"<set>\n <r ><id>1</id></r>\n</set>")
    items = [read_xml(body, {}).children[0].children[0] for body in bodies]

    spec = a_spec(response={"updated_at": None}, endpoint={"changed": "HASH", "fields": []})

    one, other = map_items(items, spec, "UTC", None).records

    assert one == other


def test_ids_alone_are_deletions():
    one, other = tombstones([" 1 ", "2"])

    assert (one.provider_id, other.provider_id) == ("1", "2")
    assert (one.is_deleted, one.is_tombstone, one.source_updated_at) == (True, True, None)
    assert one.content_hash != other.content_hash


@pytest.mark.parametrize("unusable", ["", "  ", "x" * 513])
def test_what_cannot_be_an_id_deletes_nothing_in_silence(unusable):
    page = mapped(an_item("a"), {"id": None})
    whole = replace(page, records=[*page.records, *tombstones(["1", unusable])])

    fit = set_apart(whole, 2)

    assert [one.provider_id for one in fit.records] == ["a", "1"]
    assert [(one.item_no, one.path) for one in fit.bad[1:]] == [(3, "response.tombstones")]
    assert "an id has 1 to 512 characters" in fit.bad[1].reason
