"""Two phases: a failing pack for every rule about a pair of endpoints."""

import pytest

from patra_ingest.spec.checks import detail
from patra_ingest_tests.unit.check_packs import (
    UPDATE,
    Case,
    a_pair,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

CASES = (
    Case(
        detail.the_detail_endpoint_is_there,
        "ids that go nowhere",
        {"endpoints.works.detail": {"batch": 10}},
        "endpoints.works.detail.endpoint",
        "is missing",
        "name the endpoint that takes the ids",
    ),
    Case(
        detail.the_detail_endpoint_is_there,
        "what missing ids mean, where a window is asked for",
        {"endpoints.works.detail": {"missing": "GONE"}},
        "endpoints.works.detail.endpoint",
        "is missing",
        "name the endpoint that takes the ids",
    ),
    Case(
        detail.the_detail_endpoint_is_there,
        "an endpoint that is not there",
        {"endpoints.works.detail": {"endpoint": "fetsch"}},
        "endpoints.works.detail.endpoint",
        "there is no endpoint fetsch",
        "endpoints: works",
    ),
    Case(
        detail.the_detail_endpoint_is_there,
        "an endpoint that is no detail",
        {"endpoints.fetch.usage": "SEARCH"},
        "endpoints.works.detail.endpoint",
        "fetch is a SEARCH endpoint",
        "set usage: DETAIL",
        pack=a_pair,
    ),
    Case(
        detail.a_detail_is_the_end,
        "a detail of a detail",
        {"endpoints.fetch.detail": {"endpoint": "works"}},
        "endpoints.fetch.detail.endpoint",
        "a detail has no detail of its own",
        "remove it",
        pack=a_pair,
    ),
    Case(
        detail.a_detail_is_the_end,
        "an answer that has no room for all its ids",
        {
            "endpoints.fetch.paging.page_size": 10,
            "endpoints.fetch.request.form.rows": "${page.size}",
        },
        "endpoints.fetch.paging.page_size",
        "10 is less than the 50 ids asked for at once",
        "use 50 or more",
        pack=a_pair,
    ),
    Case(
        detail.a_detail_is_the_end,
        "an update that has no room for all its ids",
        {
            "endpoints.works.operations": ["UPDATE"],
            "endpoints.works.request.query": {"id": "${ids}", "rows": "${page.size}"},
            "endpoints.works.paging": {"type": "NONE", "page_size": 10},
        },
        "endpoints.works.paging.page_size",
        "10 is less than the 100 ids asked for at once",
        "use 100 or more",
        operation=UPDATE,
    ),
    Case(
        detail.a_detail_batch_fits,
        "more ids than are taken",
        {"endpoints.works.detail.batch": 51},
        "endpoints.works.detail.batch",
        "51 is more than the 50 ids",
        "use 50 or less",
        pack=a_pair,
    ),
    Case(
        detail.fields_come_from_the_detail,
        "fields of an id",
        {"endpoints.works.fields": {"title": "$.title"}},
        "endpoints.works.fields",
        "the detail endpoint makes the records",
        "move them there",
        pack=a_pair,
    ),
    Case(
        detail.what_is_refreshed_is_there,
        "records of a search that is not there",
        {"endpoints.fetch.refreshes": ["works", "wroks"]},
        "endpoints.fetch.refreshes",
        "there is no endpoint wroks",
        "endpoints: fetch, works",
        pack=a_pair,
    ),
    Case(
        detail.what_is_refreshed_is_there,
        "a search that refreshes another",
        {"endpoints.works.refreshes": ["works"]},
        "endpoints.works.refreshes",
        "a SEARCH endpoint refreshes its own",
        "remove it",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_an_endpoint_that_is_asked_for_ids_may_say_what_missing_ones_mean(sqlite_template):
    change = {
        "endpoints.works.operations": ["UPDATE"],
        "endpoints.works.request.query": {"id": "${ids|join(',')}"},
        "endpoints.works.detail": {"missing": "GONE"},
    }
    assert problems_of(sqlite_template, changed(a_search(), change), UPDATE) == ()
