"""Responses: a failing pack for every rule about what is read and recognised."""

import pytest

from patra_ingest.spec.checks import response
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.unit.check_packs import (
    GONE,
    UPDATE,
    Case,
    a_pair,
    a_search,
    a_token_walk,
    assert_refused,
    changed,
    problems_of,
)

RESPONSE = "endpoints.works.response"
ERRORS = "endpoints.works.errors"
NOT_A_PATH = "$.a["
TWICE = [{"name": "a", "path": "$.a"}, {"name": "a", "path": "$.b"}]

CASES = (
    Case(
        response.paths_parse,
        "items",
        {f"{RESPONSE}.items": NOT_A_PATH},
        "endpoints.works.response.items.0",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "the second of two places of items",
        {f"{RESPONSE}.items": ["$.a", NOT_A_PATH]},
        "endpoints.works.response.items.1",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "an id",
        {f"{RESPONSE}.id": NOT_A_PATH},
        "endpoints.works.response.id",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a version",
        {f"{RESPONSE}.version": NOT_A_PATH},
        "endpoints.works.response.version",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "an update time",
        {f"{RESPONSE}.updated_at": NOT_A_PATH},
        "endpoints.works.response.updated_at",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a field",
        {"endpoints.works.fields": {"title": NOT_A_PATH}},
        "endpoints.works.fields.title",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a total",
        {"endpoints.works.paging.total": NOT_A_PATH},
        "endpoints.works.paging.total",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a token",
        {"endpoints.works.paging.next_token": NOT_A_PATH},
        "endpoints.works.paging.next_token",
        "$.a[",
        "correct the path",
        pack=a_token_walk,
    ),
    Case(
        response.paths_parse,
        "a token from the last item",
        {"endpoints.works.paging.next_token": {"last_item": NOT_A_PATH}},
        "endpoints.works.paging.next_token.last_item",
        "$.a[",
        "correct the path",
        pack=a_token_walk,
    ),
    Case(
        response.paths_parse,
        "a required place",
        {f"{RESPONSE}.require": ["$.ok", NOT_A_PATH]},
        "endpoints.works.response.require.1",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "an expected value",
        {f"{RESPONSE}.expect": [{"path": NOT_A_PATH, "equals": "ok"}]},
        "endpoints.works.response.expect.0.path",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "tombstones",
        {f"{RESPONSE}.tombstones": NOT_A_PATH},
        "endpoints.works.response.tombstones",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a mark of deletion",
        {f"{RESPONSE}.deleted": NOT_A_PATH},
        "endpoints.works.response.deleted",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "an error in the body",
        {ERRORS: [{"when": {"path": NOT_A_PATH, "exists": True}, "do": "FATAL"}]},
        "endpoints.works.errors.0.when",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a release",
        {"endpoints.works.window.release": NOT_A_PATH},
        "endpoints.works.window.release",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a cost",
        {"endpoints.works.rate": {"key": "example", "cost_path": NOT_A_PATH}},
        "endpoints.works.rate.cost_path",
        "$.a[",
        "correct the path",
    ),
    Case(
        response.paths_parse,
        "a function that is not on the list",
        {f"{RESPONSE}.id": "$.id|eval"},
        "endpoints.works.response.id",
        "eval",
        "correct the path or its functions",
    ),
    Case(
        response.conditions_parse,
        "an expectation that is no pattern",
        {f"{RESPONSE}.expect": [{"path": "$.v", "matches": "("}]},
        "endpoints.works.response.expect.0.matches",
        "'(' is not a regular expression",
        "correct the pattern",
    ),
    Case(
        response.conditions_parse,
        "a condition that is no pattern",
        {ERRORS: [{"when": {"path": "$.e", "matches": "("}, "do": "FATAL"}]},
        "endpoints.works.errors.0.when.matches",
        "'(' is not a regular expression",
        "correct the pattern",
    ),
    Case(
        response.conditions_parse,
        "a pattern that can run without end",
        {f"{RESPONSE}.expect": [{"path": "$.v", "matches": "(a+)+$"}]},
        "endpoints.works.response.expect.0.matches",
        "can run without end",
        "correct the pattern",
    ),
    Case(
        response.items_are_judged_by_what_they_hold,
        "a status of an item",
        {f"{RESPONSE}.skip": {"status": 404}},
        "endpoints.works.response.skip",
        "looks at more than the item",
        "use a path of the item",
    ),
    Case(
        response.items_are_judged_by_what_they_hold,
        "a header of an item",
        {f"{RESPONSE}.usable": {"header": "x-ok", "exists": True}},
        "endpoints.works.response.usable",
        "looks at more than the item",
        "use a path of the item",
    ),
    Case(
        response.prefixes_are_declared,
        "a prefix that stands for nothing",
        {"endpoints.fetch.response.id": "$.y:id"},
        "endpoints.fetch.response.id",
        "y: is no declared namespace",
        "add it to response.namespaces",
        pack=a_pair,
    ),
    Case(
        response.prefixes_are_declared,
        "namespaces of JSON",
        {f"{RESPONSE}.namespaces": {"x": "urn:example"}},
        "endpoints.works.response.namespaces",
        "are for XML",
        "remove them",
    ),
    Case(
        response.a_change_can_be_seen,
        "newer wins, and no time tells",
        {f"{RESPONSE}.updated_at": GONE},
        "endpoints.works.response.updated_at",
        "is missing",
        "declare it, or say changed: HASH",
    ),
    Case(
        response.a_change_can_be_seen,
        "a window of ours, and no time tells",
        {
            f"{RESPONSE}.updated_at": GONE,
            "endpoints.works.changed": "HASH",
            f"{RESPONSE}.client_window": True,
        },
        "endpoints.works.response.client_window",
        "needs updated_at to compare",
        "declare it",
    ),
    Case(
        response.fields_are_told_apart,
        "a field that a trigger says twice",
        {},
        "--set endpoint.fields.a",
        "is there twice",
        "choose another name",
        asked=Overrides({"endpoint": {"fields": TWICE}}),
    ),
    Case(
        response.error_rules_make_sense,
        "an end that waits",
        {ERRORS: [{"when": {"status": 403}, "do": "FATAL", "wait": "1s"}]},
        "endpoints.works.errors.0.wait",
        "FATAL does not wait",
        "remove it",
    ),
    Case(
        response.error_rules_make_sense,
        "ids that are gone from a window",
        {ERRORS: [{"when": {"status": 404}, "do": "GONE"}]},
        "endpoints.works.errors.0.do",
        "GONE is about ids",
        "use EMPTY",
    ),
    Case(
        response.error_rules_make_sense,
        "a smaller page where no size is sent",
        {
            ERRORS: [{"when": {"status": 504}, "do": "SHRINK_PAGE"}],
            "endpoints.works.paging.size_param": GONE,
            "endpoints.works.paging.step": "ITEMS",
            "endpoints.works.paging.stop": ["EMPTY_PAGE"],
        },
        "endpoints.works.errors.0.do",
        "no page size is sent",
        "name it in paging.size_param",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_a_prefix_inside_a_text_is_no_namespace(sqlite_template):
    change = {"endpoints.fetch.fields": {"doi": "$.x:id[?(@.@type == 'doi:full')]"}}
    assert problems_of(sqlite_template, changed(a_pair(), change)) == ()


def test_ids_may_be_gone_where_ids_are_asked_for(sqlite_template):
    change = {
        "endpoints.works.operations": ["UPDATE"],
        "endpoints.works.request.query": {"id": "${ids|join(',')}"},
        ERRORS: [{"when": {"status": 404}, "do": "GONE"}],
    }
    assert problems_of(sqlite_template, changed(a_search(), change), UPDATE) == ()
