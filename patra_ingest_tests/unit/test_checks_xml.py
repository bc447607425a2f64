"""Paths: each begins with `$`, works on the format it is read from, and knows its namespaces."""

import pytest

from patra_ingest.spec.checks import response
from patra_ingest_tests.unit.check_packs import (
    Case,
    a_pair,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

WORKS = "endpoints.works"
FETCH = "endpoints.fetch.response"
SLICED = "$.x:set.x:work[0:2]"
ON_XML = "works on JSON only; on XML use names"


def without_root(what, place, said, found=""):
    path = said["path"] if isinstance(said, dict) else said
    reason, remedy = f"{path!r} does not begin with $", f"write $.{path}"
    return Case(response.paths_parse, what, {place: said}, place + found, reason, remedy)


def not_on_xml(what, place, said, found=""):
    return Case(
        response.paths_parse,
        what,
        {place: said},
        place + found,
        ON_XML,
        "correct the path",
        pack=a_pair,
    )


CASES = (
    without_root("items", f"{WORKS}.response.items", "items", ".0"),
    without_root("a total", f"{WORKS}.paging.total", "meta.total"),
    without_root("tombstones", f"{WORKS}.response.tombstones", "deleted"),
    without_root("a condition", f"{WORKS}.response.skip", {"path": "draft", "exists": True}),
    not_on_xml("a part of a list", f"{FETCH}.items", SLICED, ".0"),
    not_on_xml("a length", f"{FETCH}.require", ["$.x:set", "$.x:set.`len`"], ".1"),
    not_on_xml("a condition", f"{FETCH}.skip", {"path": SLICED, "exists": True}),
    Case(
        response.paths_parse,
        "the id that was asked for",
        {f"{WORKS}.response.asked": "$.a["},
        f"{WORKS}.response.asked",
        "$.a[",
        "correct the path or its functions",
    ),
    Case(
        response.paths_parse,
        "a function where only a path may stand",
        {f"{WORKS}.response.items": "$.items|first"},
        f"{WORKS}.response.items.0",
        "functions belong to values, not to paths",
        "correct the path",
    ),
    Case(
        response.prefixes_are_declared,
        "two prefixes for one namespace",
        {f"{FETCH}.namespaces": {"x": "urn:example", "y": "urn:example"}},
        f"{FETCH}.namespaces",
        "urn:example has two prefixes",
        "keep one of them",
        pack=a_pair,
    ),
    Case(
        response.prefixes_are_declared,
        "a prefix of the id that was asked for",
        {f"{FETCH}.asked": "$.y:asked"},
        f"{FETCH}.asked",
        "y: is no declared namespace",
        "add it to response.namespaces",
        pack=a_pair,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_json_may_be_read_in_parts(sqlite_template):
    form = changed(a_search(), {f"{WORKS}.response.items": "$.items[0:2]"})
    assert problems_of(sqlite_template, form) == ()


@pytest.mark.parametrize(
    "items",
    [
        "$..x:work",
        "$.x:set.*",
        "$.x:set.x:work[0]",
        "$.x:set.x:work[?(@.@type == 'article')]",
    ],
)
def test_what_works_on_xml_may_be_said_of_it(sqlite_template, items):
    assert problems_of(sqlite_template, changed(a_pair(), {f"{FETCH}.items": items})) == ()


def test_two_namespaces_may_have_a_prefix_each(sqlite_template):
    both = {f"{FETCH}.namespaces": {"x": "urn:example", "y": "urn:other"}}
    assert problems_of(sqlite_template, changed(a_pair(), both)) == ()


@pytest.mark.parametrize("said", [{"single": True}, {"asked": "$.doi"}, {"asked": ["$.a", "$.b"]}])
def test_an_answer_may_be_one_item_and_name_the_id_that_was_asked_for(sqlite_template, said):
    change = {f"{WORKS}.response.{key}": value for key, value in said.items()}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()
