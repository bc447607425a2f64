"""Result caps: a failing pack for every rule about more results than are served."""

import pytest
from pydantic import ValidationError

from patra_ingest.model.codes import Operation
from patra_ingest.spec.checks import cap
from patra_ingest.spec.parts import CapPart
from patra_ingest_tests.unit.check_packs import (
    GONE,
    Case,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

CAP = "endpoints.works.cap"
SPLIT = "endpoints.works.request.query.q"
BY_NUMBER = {"by": "NUMBER", "clause": "${from}:${to}[UID]", "lowest": 1, "highest": 99}
BY_VALUE = {"by": "VALUE", "clause": "set:${value}", "values": ["a", "b"]}

CASES = (
    Case(
        cap.a_cap_can_be_seen,
        "no total tells of it",
        {CAP: {"max": 100}, "endpoints.works.paging.total": GONE},
        "endpoints.works.cap.max",
        "no total tells when it is reached",
        "declare paging.total",
    ),
    Case(
        cap.a_cap_can_be_seen,
        "a probe without a cap",
        {CAP: {"probe": {"query": {"rows": "0"}}}},
        "endpoints.works.cap.max",
        "is missing",
        "say how many results the source serves at most",
    ),
    Case(
        cap.a_cap_can_be_seen,
        "a second dimension without a cap",
        {CAP: {"then": [BY_NUMBER]}, SPLIT: "${split}"},
        "endpoints.works.cap.max",
        "is missing",
        "say how many results",
    ),
    Case(
        cap.a_probe_asks_something_else,
        "a probe that is the first page",
        {CAP: {"max": 100, "probe": {"query": {}}}},
        "endpoints.works.cap.probe",
        "changes nothing",
        "say what makes it cheap",
    ),
    Case(
        cap.splits_reach_the_request,
        "a second dimension that is not sent",
        {CAP: {"max": 100, "then": [BY_NUMBER]}},
        "endpoints.works.cap.then",
        "no template uses ${split}",
        "add it as a clause",
    ),
    Case(
        cap.splits_reach_the_request,
        "a clause that nothing fills",
        {CAP: {"max": 100}, SPLIT: "${split}"},
        "endpoints.works.cap.then",
        "is missing, but ${split} is used",
        "declare it",
    ),
    Case(
        cap.splits_parse,
        "a clause that cannot be read",
        {CAP: {"max": 100, "then": [{**BY_VALUE, "clause": "set:${value"}]}, SPLIT: "${split}"},
        "endpoints.works.cap.then.0.clause",
        "${value",
        "correct it",
    ),
    Case(
        cap.splits_parse,
        "half a range",
        {
            CAP: {"max": 100, "then": [BY_VALUE, {**BY_NUMBER, "clause": "${from}:"}]},
            SPLIT: "${split}",
        },
        "endpoints.works.cap.then.1.clause",
        "a NUMBER split says ${from} and ${to}",
        "use these and no others",
    ),
    Case(
        cap.splits_parse,
        "a value that is not sent",
        {CAP: {"max": 100, "then": [{**BY_VALUE, "clause": "set:*"}]}, SPLIT: "${split}"},
        "endpoints.works.cap.then.0.clause",
        "a VALUE split says ${value}",
        "use these and no others",
    ),
    Case(
        cap.splits_parse,
        "more than there is",
        {
            CAP: {"max": 100, "then": [{**BY_VALUE, "clause": "${value}${page.size}"}]},
            SPLIT: "${split}",
        },
        "endpoints.works.cap.then.0.clause",
        "a VALUE split says ${value}",
        "use these and no others",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_a_cap_with_a_probe_and_two_more_dimensions_is_fine(sqlite_template):
    cap = {"max": 100, "probe": {"query": {"rows": "0"}}, "then": [BY_VALUE, BY_NUMBER]}
    form = changed(a_search(), {CAP: cap, SPLIT: "${split}"})
    assert problems_of(sqlite_template, form) == ()


def test_the_total_of_a_probe_is_enough(sqlite_template):
    cap = {"max": 100, "probe": {"query": {"rows": "0"}, "total": "$.n"}}
    form = changed(a_search(), {CAP: cap, "endpoints.works.paging.total": GONE})
    assert problems_of(sqlite_template, form) == ()


def test_who_asks_for_ids_meets_no_cap(sqlite_template):
    update = {
        "request": {"path": "/works", "query": {"ids": "${ids|join(',')}"}},
        "paging": {"type": "NONE", "page_size": 50},
    }
    change = {
        CAP: {"max": 1000, "then": [BY_VALUE]},
        SPLIT: "${split}",
        "endpoints.works.operations": {"HARVEST": {}, "UPDATE": update},
    }
    form = changed(a_search(), change)
    assert problems_of(sqlite_template, form, operation=Operation.UPDATE) == ()


@pytest.mark.parametrize(
    "split",
    [
        {"by": "VALUE", "clause": "${value}", "values": ["a", "b", "a"]},
        {"by": "PREFIX", "clause": "${value}", "alphabet": "aba"},
    ],
    ids=["values", "letters"],
)
def test_a_part_that_would_be_asked_for_twice_is_refused(split):
    with pytest.raises(ValidationError, match="is there twice"):
        CapPart.model_validate({"max": 10, "then": [split]})
