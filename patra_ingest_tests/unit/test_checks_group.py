"""A list that is one record: a failing pack for every way to ask for it wrongly."""

import pytest

from patra_ingest.spec.checks import response
from patra_ingest_tests.unit.check_packs import (
    UPDATE,
    Case,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

RESPONSE = "endpoints.works.response"
BY_ID = {
    "endpoints.works.operations": ["UPDATE"],
    "endpoints.works.request.query": {"id": "${ids|join(',')}"},
    "endpoints.works.batching": {"ids_per_request": 1},
    f"{RESPONSE}.id": "$.asked",
    f"{RESPONSE}.grouped": True,
}

CASES = (
    Case(
        response.a_group_belongs_to_one_id,
        "a group without ids",
        {f"{RESPONSE}.grouped": True, "endpoints.works.batching": {"ids_per_request": 1}},
        "endpoints.works.response.grouped",
        "a window is not the id of anything",
        "operations: [UPDATE]",
    ),
    Case(
        response.a_group_belongs_to_one_id,
        "a group of several ids",
        {**BY_ID, "endpoints.works.batching": {"ids_per_request": 2}},
        "endpoints.works.response.grouped",
        "needs one id per request",
        "batching.ids_per_request: 1",
        operation=UPDATE,
    ),
    Case(
        response.a_group_belongs_to_one_id,
        "a group of elements",
        {**BY_ID, f"{RESPONSE}.format": "XML"},
        "endpoints.works.response.grouped",
        "is not possible with XML",
        "remove it",
        operation=UPDATE,
    ),
    Case(
        response.a_group_belongs_to_one_id,
        "a group that is no list",
        {**BY_ID, f"{RESPONSE}.single": True},
        "endpoints.works.response.grouped",
        "contradicts single",
        "keep one of them",
        operation=UPDATE,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_the_items_of_one_id_may_be_one_group(sqlite_template):
    assert problems_of(sqlite_template, changed(a_search(), BY_ID), UPDATE) == ()
