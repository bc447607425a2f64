"""Selected fields: a failing pack for everything we read and do not ask for."""

import pytest

from patra_ingest.spec.checks import request
from patra_ingest_tests.unit.check_packs import (
    Case,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

RESPONSE = "endpoints.works.response"
SELECT = {"endpoints.works.request.select": {"param": "fl", "fields": ["id", "updated", "title"]}}
SENT = {f"{RESPONSE}.default_fields": ["id", "updated", "title"]}


def unselected(what, key, said, fields=SELECT, by="request.select"):
    """Return the case of a condition that looks at `state`, which is not sent."""
    path = said if isinstance(said, str) else said["path"]
    return Case(
        request.selected_fields_hold_what_is_read,
        what,
        {**fields, f"{RESPONSE}.{key}": said},
        f"{RESPONSE}.{key}",
        f"{path} is not among the fields that are sent",
        f"add state to {by}",
    )


CASES = (
    Case(
        request.selected_fields_hold_what_is_read,
        "an id that is not asked for",
        {"endpoints.works.request.select": {"param": "fl", "fields": ["updated", "title"]}},
        "endpoints.works.response.id",
        "$.id is not among the fields that are sent",
        "add id to request.select",
    ),
    Case(
        request.selected_fields_hold_what_is_read,
        "a field that is not asked for",
        {"endpoints.works.request.select": {"param": "fl", "fields": ["id", "updated"]}},
        "endpoints.works.fields.title",
        "$.title is not among the fields that are sent",
        "add title to request.select",
    ),
    Case(
        request.selected_fields_hold_what_is_read,
        "an update time that the source does not send by itself",
        {"endpoints.works.response.default_fields": ["id", "title"]},
        "endpoints.works.response.updated_at",
        "$.updated is not among the fields that are sent",
        "add updated to response.default_fields",
    ),
    unselected("a mark of deletion", "deleted", "$.state"),
    unselected("a deletion", "deleted", {"path": "$.state", "equals": "gone"}),
    unselected("a retraction", "retracted", {"path": "$.state.why", "exists": True}),
    unselected("what is skipped", "skip", {"path": "$.state", "one_of": ["draft"]}),
    unselected("what is usable", "usable", {"path": "$.state[0]", "empty": False}),
    unselected(
        "what is skipped by a field that the source does not send by itself",
        "skip",
        {"path": "$.state", "exists": True},
        SENT,
        "response.default_fields",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


@pytest.mark.parametrize("fields", [SELECT, SENT], ids=["selected", "sent anyway"])
def test_a_condition_may_look_at_a_field_that_is_sent(sqlite_template, fields):
    change = {**fields, f"{RESPONSE}.skip": {"path": "$.title", "empty": True}}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()


def test_a_field_may_have_another_name_in_the_answer(sqlite_template):
    select = {"param": "fl", "fields": ["id", "updated", "t"], "answers": {"t": "title"}}
    form = changed(a_search(), {"endpoints.works.request.select": select})
    assert problems_of(sqlite_template, form) == ()
