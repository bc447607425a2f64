"""Whether a condition of a pack holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.errors import EndpointHalted, TransientError
from patra_ingest.executor.conditions import column, holds, holds_for
from patra_ingest.expr.xml_tree import read_xml
from patra_ingest.spec.places import When
from patra_ingest_tests.builders import a_response

EXISTS, MISSING = {"exists": True}, {"exists": False}
EMPTY, FULL = {"empty": True}, {"empty": False}


def fits(item, path="$.a", **said):
    return holds_for(When(path=path, **said), item)


@pytest.mark.parametrize(
    ("item", "exists", "empty"),
    [
        ({}, False, True),
        ({"a": None}, False, True),
        ([], False, True),
        ("text", False, True),
        ({"a": ""}, True, True),
        ({"a": " \n"}, True, True),
        ({"a": []}, True, True),
        ({"a": {}}, True, True),
        ({"a": 0}, True, False),
        ({"a": False}, True, False),
        ({"a": "x"}, True, False),
        ({"a": [None]}, True, False),
        ({"a": {"b": None}}, True, False),
    ],
)
def test_null_is_absent_and_absent_is_empty(item, exists, empty):
    assert fits(item, exists=True) is exists
    assert fits(item, exists=False) is not exists
    assert fits(item, empty=True) is empty
    assert fits(item, empty=False) is not empty


@pytest.mark.parametrize(
    ("value", "equals", "expected"),
    [
        ("deleted", "deleted", True),
        (" deleted\n", "deleted", True),
        ("Deleted", "deleted", False),
        ("deleted!", "deleted", False),
        (404, 404, True),
        ("404", 404, True),
        (404, "404", True),
        (404.0, 404, True),
        (404.5, 404, False),
        (True, True, True),
        ("true", True, True),
        (True, "true", True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (False, False, True),
        (None, False, False),
        ("", "", True),
        (None, "", False),
        (["a", "b"], "b", True),
        (["a", 404], 404, True),
        (["a", None, {"b": 1}], "b", False),
        ({"b": 1}, "b", False),
        ([], "b", False),
    ],
)
def test_values_are_equal_when_they_are_written_the_same(value, equals, expected):
    assert fits({"a": value}, equals=equals) is expected
    if not isinstance(equals, bool):
        assert fits({"a": value}, one_of=("zzz", equals)) is expected


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ("Too many results.", "(?i)too many", True),
        ("fine", "(?i)too many", False),
        (10500, "^10", True),
        (["ok", "RETRACTED: x"], "^RETRACTED", True),
        ({"too many": 1}, "too many", False),
        (None, ".*", False),
    ],
)
def test_a_pattern_is_looked_for_in_the_value(value, pattern, expected):
    assert fits({"a": value}, matches=pattern) is expected


def test_a_pattern_that_could_be_slow_is_tried_on_the_beginning_of_a_long_text():
    slow = ".*error.*code.*"

    assert fits({"a": "error code" + "x" * 1_000_000}, matches=slow)
    assert not fits({"a": "x" * 1_000_000 + "error code"}, matches=slow)


def test_one_of_several_values_is_enough_and_one_that_is_full_is_not_empty():
    item = {"a": [{"code": None}, {"code": ""}, {"code": "E7"}]}

    assert fits(item, "$.a[*].code", equals="E7")
    assert fits(item, "$.a[*].code", empty=False)
    assert not fits({"a": item["a"][:2]}, "$.a[*].code", empty=False)
    assert not fits({"a": item["a"][:1]}, "$.a[*].code", exists=True)


def test_everything_that_is_said_must_hold_of_the_same_value():
    item = {"a": ["error 5", "warning 7"]}

    assert fits(item, matches="^error", one_of=("error 5",))
    assert not fits(item, matches="^error", one_of=("warning 7",))
    assert not fits(item, equals="error 5", one_of=("warning 7",))
    assert not fits(item, exists=False, equals="error 5")
    assert not fits(item, empty=True, equals="error 5")


def test_xml_is_asked_for_its_texts_and_attributes():
    article = read_xml(
        b"<a><t>Journal Article</t><t> Retracted Publication </t><s n='1'/><e>\n</e></a>", {}
    )

    assert fits(article, "$.a.t", equals="Retracted Publication")
    assert fits(article, "$.a.s.@n", equals=1)
    assert fits(article, "$.a.e", exists=True, empty=True)
    assert not fits(article, "$.a.u", exists=True)
    assert column(When(path="$.a.t", equals="Retracted Publication"), [article]) == [True]


def test_a_path_that_fails_on_a_value_leads_nowhere():
    path = "$.a[0:1].b"

    assert not fits({"a": object()}, path, exists=True)
    assert fits({"a": object()}, path, empty=True)
    assert column(When(path=path, exists=True), [{"a": object()}, {"a": [{"b": 1}]}]) == [
        False,
        True,
    ]


def test_a_condition_without_a_path_says_nothing_about_items():
    with pytest.raises(ValueError, match="looks at a path"):
        holds_for(When(status=404), {})
    with pytest.raises(ValueError, match="looks at a path"):
        column(When(text="x"), [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", " ", "1", "true", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
SAID = st.fixed_dictionaries(
    {"path": st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[*]", "$.a[*].b", "$..b", "$"])},
    optional={
        "exists": st.booleans(),
        "empty": st.booleans(),
        "equals": st.sampled_from(["", "b", 1, True, "true"]),
        "one_of": st.sampled_from([("b", 1), ("true",), ()]),
        "matches": st.sampled_from(["^b", "1", "."]),
    },
).filter(lambda said: len(said) > 1)


@given(SAID, st.lists(VALUES | st.fixed_dictionaries({"a": VALUES}), max_size=4))
def test_a_column_says_of_every_item_what_one_by_one_says(said, items):
    when = When(**said)

    assert column(when, items) == [holds_for(when, item) for item in items]


def asked(response, tree=None, **said):
    return holds(When(**said), response, lambda: {} if tree is None else tree)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"status": 404}, True),
        ({"status": 400}, False),
        ({"status": (400, 404)}, True),
        ({"status": (400, 422)}, False),
        ({"text": "Größe"}, True),
        ({"text": "größe"}, False),
        ({"header": "X-Reason", **EXISTS}, True),
        ({"header": "x-reason", "equals": "quota"}, True),
        ({"header": "X-Reason", "matches": "^q"}, True),
        ({"header": "X-Reason", **EMPTY}, False),
        ({"header": "X-Other", **EXISTS}, False),
        ({"header": "X-Other", **MISSING}, True),
        ({"header": "X-Other", **EMPTY}, True),
        ({"header": "X-Left", "equals": 0}, True),
        ({"path": "$.error", **EXISTS}, True),
        ({"path": "$.error.code", "one_of": (7, 8)}, True),
        ({"status": 404, "text": "Größe", "path": "$.error.code", "equals": 7}, True),
        ({"status": 400, "text": "Größe", "path": "$.error.code", "equals": 7}, False),
        ({"status": 404, "text": "Masse", "path": "$.error.code", "equals": 7}, False),
        ({"status": 404, "text": "Größe", "path": "$.error.code", "equals": 8}, False),
        ({"status": 404, "text": "Größe", "header": "x-reason", "equals": "x"}, False),
    ],
)
def test_everything_that_is_said_must_hold_of_the_response(said, expected):
    response = a_response("falsche Größe".encode(), 404)
    response = replace(response, headers={"x-reason": "quota", "x-left": "0"})

    assert asked(response, {"error": {"code": 7}}, **said) is expected


@pytest.mark.parametrize("error", [TransientError("HTML"), EndpointHalted("HTML"), ValueError("x")])
@pytest.mark.parametrize("test", [EXISTS, MISSING, EMPTY, FULL])
def test_a_path_into_a_body_that_cannot_be_read_does_not_hold(error, test):
    def read_tree():
        raise error

    assert not holds(When(path="$.a", **test), a_response(b"<html>"), read_tree)


def test_the_body_is_not_read_when_the_rest_does_not_hold():
    def read_tree():
        raise AssertionError("nobody needs the tree")

    for said in ({"status": 404}, {"text": "error"}):
        assert not holds(When(path="$.a", exists=True, **said), a_response(), read_tree)
    assert holds(When(status=200), a_response(), read_tree)
