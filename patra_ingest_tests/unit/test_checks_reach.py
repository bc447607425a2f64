"""What must reach the source: a failing pack for every rule about pages, windows, ids, parts."""

import pytest

from patra_ingest.spec.checks import templates
from patra_ingest_tests.unit.check_packs import (
    BACKFILL,
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

QUERY = "endpoints.works.request.query"
PARTITIONS = "endpoints.works.partitions"

CASES = (
    Case(
        templates.the_page_reaches_the_request,
        "an offset that is not sent",
        {f"{QUERY}.offset": GONE},
        "endpoints.works.request.query",
        "never uses ${page.offset}",
        "paging.offset_param",
    ),
    Case(
        templates.the_page_reaches_the_request,
        "a page number that is not sent",
        {f"{QUERY}.offset": GONE, "endpoints.works.paging.type": "PAGE"},
        "endpoints.works.request.query",
        "never uses ${page.number}",
        "paging.page_param",
    ),
    Case(
        templates.the_page_reaches_the_request,
        "a token that is not sent",
        {f"{QUERY}.token": GONE},
        "endpoints.works.request.query",
        "never uses ${page.token}",
        "paging.token_param",
        pack=a_token_walk,
    ),
    Case(
        templates.the_page_reaches_the_request,
        "an offset that only the first page sends",
        {f"{QUERY}.offset": GONE, "endpoints.works.request.first": {"offset": "${page.offset}"}},
        "endpoints.works.request.query",
        "never uses ${page.offset}",
        "every page would be page 1",
    ),
    Case(
        templates.the_page_reaches_the_request,
        "a token that only the first page sends",
        {f"{QUERY}.token": GONE, "endpoints.works.request.first": {"token": "${page.token}"}},
        "endpoints.works.request.query",
        "never uses ${page.token}",
        "every page would be page 1",
        pack=a_token_walk,
    ),
    Case(
        templates.the_window_reaches_the_request,
        "a start that is not sent",
        {f"{QUERY}.from": GONE},
        "endpoints.works.request.query",
        "never uses ${window.from}",
        "filter by the window's start",
    ),
    Case(
        templates.the_window_reaches_the_request,
        "a start that only later pages send",
        {f"{QUERY}.from": GONE, "endpoints.works.request.next": {"from": "${window.from|iso}"}},
        "endpoints.works.request.query",
        "never uses ${window.from}",
        "filter by the window's start",
    ),
    Case(
        templates.the_window_reaches_the_request,
        "an end that is not sent",
        {f"{QUERY}.to": GONE},
        "endpoints.works.window.upper_bound",
        "the request sends no end",
        "use ${window.last}",
    ),
    Case(
        templates.the_window_reaches_the_request,
        "an end that is sent, and said not to be",
        {"endpoints.works.window.upper_bound": "OPEN"},
        "endpoints.works.window.upper_bound",
        "is OPEN but an end is sent",
        "say how it is counted",
    ),
    Case(
        templates.the_end_is_the_right_one,
        "an inclusive end that belongs to the next slice",
        {f"{QUERY}.to": "${window.to|iso}"},
        "endpoints.works.window.upper_bound",
        "its first grain belongs to the next slice",
        "send ${window.last}",
    ),
    Case(
        templates.the_end_is_the_right_one,
        "an exclusive end that loses the last grain",
        {"endpoints.works.window.upper_bound": "EXCLUSIVE"},
        "endpoints.works.window.upper_bound",
        "the last grain would be lost",
        "send ${window.to}",
    ),
    Case(
        templates.ids_reach_the_request,
        "an update that asks for no ids",
        {"endpoints.works.operations": ["UPDATE"], QUERY: {"all": "yes"}},
        "endpoints.works.request.query",
        "never uses ${ids}",
        "batching.ids_param",
        operation=UPDATE,
    ),
    Case(
        templates.ids_reach_the_request,
        "a detail endpoint that asks for no ids",
        {"endpoints.fetch.request.form": {"all": "yes"}},
        "endpoints.fetch.request.query",
        "never uses ${ids}",
        "batching.ids_param",
        pack=a_pair,
    ),
    Case(
        templates.ids_reach_the_request,
        "an update that asks for a window",
        {"endpoints.works.operations": ["UPDATE"], f"{QUERY}.id": "${ids|join(',')}"},
        "endpoints.works.request.query",
        "uses ${window}, which ids do not have",
        "remove it",
        operation=UPDATE,
    ),
    Case(
        templates.ids_reach_the_request,
        "a detail endpoint that asks for a window",
        {"endpoints.fetch.request.form.since": "${window.from|iso}"},
        "endpoints.fetch.request.query",
        "uses ${window}, which ids do not have",
        "remove it",
        pack=a_pair,
    ),
    Case(
        templates.ids_reach_the_request,
        "ids where a window is asked for",
        {f"{QUERY}.id": "${ids}"},
        "endpoints.works.request.query",
        "which a window does not have",
        "remove it",
        operation=BACKFILL,
    ),
    Case(
        templates.partitions_are_used,
        "partitions that no request tells apart",
        {"endpoints.works.partitions": {"a": {"set": "1"}, "b": {"set": "2"}}},
        "endpoints.works.partitions",
        "no template uses ${partition.…}",
        "use it, or remove them",
    ),
    Case(
        templates.partitions_are_used,
        "partitions of different names",
        {
            "endpoints.works.partitions": {"a": {"set": "1"}, "b": {"kind": "2"}},
            f"{QUERY}.set": "${partition.set}",
        },
        "endpoints.works.partitions",
        "differ in their names",
        "give all the same names",
    ),
    Case(
        templates.templates_parse,
        "a name that no partition of the search has, in its detail",
        {
            PARTITIONS: {"a": {"set": "1"}},
            f"{QUERY}.set": "${partition.set}",
            "endpoints.fetch.request.form.kind": "${partition.kind}",
        },
        "endpoints.fetch.request.form.kind",
        "${partition.kind} is not known here",
        "partition.set",
        pack=a_pair,
    ),
    Case(
        templates.templates_parse,
        "a partition in the detail of a search that has none",
        {"endpoints.fetch.request.form.set": "${partition.set}"},
        "endpoints.fetch.request.form.set",
        "${partition.set} is not known here",
        "known names",
        pack=a_pair,
    ),
)


CASES += (
    Case(
        templates.ids_reach_the_request,
        "ids that are a list inside a text",
        {
            "endpoints.works.operations": ["UPDATE"],
            "endpoints.works.request.query": {"q": "doi:${ids}"},
        },
        "endpoints.works.request.query.q",
        "${ids} is a list inside a text",
        "add |join(',') to it",
        operation=UPDATE,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_a_page_may_be_sent_with_later_pages_only(sqlite_template):
    change = {f"{QUERY}.offset": GONE, "endpoints.works.request.next": {"offset": "${page.offset}"}}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()


def test_the_detail_of_a_partitioned_search_knows_its_partitions(sqlite_template):
    sent = {f"{QUERY}.set": "${partition.set}"}
    sent |= {"endpoints.fetch.request.form.set": "${partition.set}"}
    form = changed(a_pair(), {PARTITIONS: {"a": {"set": "1"}}, **sent})
    assert problems_of(sqlite_template, form) == ()


def test_a_partition_may_leave_a_value_out(sqlite_template):
    partitions = {"all": {"set": None}, "new": {"set": "1"}}
    form = changed(a_search(), {PARTITIONS: partitions, f"{QUERY}.set": "${partition.set}"})
    assert problems_of(sqlite_template, form) == ()
