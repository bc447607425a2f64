"""Where a long question is posted: a failing pack for every rule about it."""

import pytest

from patra_ingest.spec.checks import request
from patra_ingest_tests.unit.check_packs import Case, assert_refused

POSTED = "endpoints.works.request.post_path"

CASES = (
    Case(
        request.bodies_fit_the_method,
        "an address for a form that is never sent",
        {POSTED: "/searchPOST"},
        POSTED,
        "nothing is posted there",
        "say post_when_longer, too",
    ),
    Case(
        request.bodies_fit_the_method,
        "a form for another host",
        {
            "endpoints.works.request.post_when_longer": 9,
            POSTED: "https://elsewhere.example/search",
        },
        POSTED,
        "is no plain path",
        "write it as /search",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)
