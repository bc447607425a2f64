"""Paging: a failing pack for every rule about pages and their end."""

import pytest

from patra_ingest.spec.checks import paging
from patra_ingest_tests.unit.check_packs import (
    GONE,
    Case,
    a_search,
    a_token_walk,
    assert_refused,
    changed,
    problems_of,
)

PAGING = "endpoints.works.paging"

CASES = (
    Case(
        paging.kinds_do_not_mix,
        "a token walk with offsets",
        {f"{PAGING}.offset_param": "start"},
        "endpoints.works.paging.offset_param",
        "means nothing with TOKEN paging",
        "remove it",
        pack=a_token_walk,
    ),
    Case(
        paging.kinds_do_not_mix,
        "an offset walk with a token",
        {f"{PAGING}.next_token": "$.next"},
        "endpoints.works.paging.next_token",
        "means nothing with OFFSET paging",
        "remove it",
    ),
    Case(
        paging.kinds_do_not_mix,
        "one page that hands out a next one",
        {PAGING: {"type": "NONE", "next_url": "$.next"}},
        "endpoints.works.paging.next_url",
        "means nothing with NONE paging",
        "remove it",
    ),
    Case(
        paging.kinds_do_not_mix,
        "a token walk with a next address",
        {f"{PAGING}.next_url": "$.next_url"},
        "endpoints.works.paging.next_url",
        "means nothing with TOKEN paging",
        "remove it",
        pack=a_token_walk,
    ),
    Case(
        paging.kinds_have_their_paths,
        "a token that is nowhere",
        {f"{PAGING}.next_token": GONE},
        "endpoints.works.paging.next_token",
        "TOKEN paging needs it",
        "say where the token is",
        pack=a_token_walk,
    ),
    Case(
        paging.kinds_have_their_paths,
        "a next address that is nowhere",
        {PAGING: {"type": "URL"}},
        "endpoints.works.paging.next_url",
        "URL paging needs it",
        "say where the next address is",
    ),
    Case(
        paging.kinds_have_their_paths,
        "a reported step that is nowhere",
        {f"{PAGING}.step": "REPORTED"},
        "endpoints.works.paging.step_path",
        "step REPORTED needs it",
        "say where the count is",
    ),
    Case(
        paging.kinds_have_their_paths,
        "a walk by time without order",
        {PAGING: {"type": "TIME", "size_param": "rows"}},
        "endpoints.works.paging.order",
        "the last item's update time",
        "declare order: ASC",
    ),
    Case(
        paging.the_walk_can_end,
        "no rule",
        {f"{PAGING}.stop": []},
        "endpoints.works.paging.stop",
        "lists no rule",
        "declare what ends the pages",
    ),
    Case(
        paging.the_walk_can_end,
        "a rule about tokens where there are none",
        {f"{PAGING}.stop": ["EMPTY_PAGE", "NO_TOKEN"]},
        "endpoints.works.paging.stop",
        "NO_TOKEN cannot happen with OFFSET paging",
        "remove it",
    ),
    Case(
        paging.the_walk_can_end,
        "a rule about pages where there is one",
        {PAGING: {"type": "NONE", "stop": ["EMPTY_PAGE"]}},
        "endpoints.works.paging.stop",
        "EMPTY_PAGE cannot happen with NONE paging",
        "remove it",
    ),
    Case(
        paging.the_walk_can_end,
        "an echoed token in a next address",
        {PAGING: {"type": "URL", "next_url": "$.next", "stop": ["NO_TOKEN", "SAME_TOKEN"]}},
        "endpoints.works.paging.stop",
        "SAME_TOKEN cannot happen with URL paging",
        "remove it",
    ),
    Case(
        paging.stop_rules_have_their_paths,
        "a total that is nowhere",
        {f"{PAGING}.total": GONE, f"{PAGING}.stop": ["TOTAL_REACHED"]},
        "endpoints.works.paging.total",
        "TOTAL_REACHED needs it",
        "say where the total is",
    ),
    Case(
        paging.stop_rules_have_their_paths,
        "a flag that is nowhere",
        {f"{PAGING}.stop": ["NO_MORE"]},
        "endpoints.works.paging.has_more",
        "NO_MORE needs it",
        "say where the flag is",
    ),
    Case(
        paging.a_short_page_is_the_end,
        "short pages of a source that clamps",
        {f"{PAGING}.size_policy": "CLAMPED", f"{PAGING}.step": "ITEMS"},
        "endpoints.works.paging.stop",
        "SHORT_PAGE would end the walk early: the page size is CLAMPED",
        "use EMPTY_PAGE",
    ),
    Case(
        paging.a_short_page_is_the_end,
        "steps of a size that the source chooses",
        {f"{PAGING}.size_policy": "SERVER", f"{PAGING}.stop": ["EMPTY_PAGE"]},
        "endpoints.works.paging.step",
        "PAGE_SIZE would skip records",
        "use ITEMS or REPORTED",
    ),
    Case(
        paging.the_page_size_is_known,
        "steps of a size that is not sent",
        {f"{PAGING}.size_param": GONE, f"{PAGING}.stop": ["EMPTY_PAGE"]},
        "endpoints.works.paging.size_param",
        "the source is not told the page size",
        "say size_policy: FIXED or SERVER",
    ),
    Case(
        paging.the_page_size_is_known,
        "a page that is short of a size that is not sent",
        {f"{PAGING}.size_param": GONE, f"{PAGING}.stop": ["NO_TOKEN", "SHORT_PAGE"]},
        "endpoints.works.paging.size_param",
        "but the walk counts on it",
        "name the parameter",
        pack=a_token_walk,
    ),
    Case(
        paging.the_page_size_is_known,
        "page numbers of a size that is not sent",
        {PAGING: {"type": "PAGE", "page_param": "p"}},
        "endpoints.works.paging.size_param",
        "the source is not told the page size",
        "name the parameter",
    ),
    Case(
        paging.the_page_size_is_allowed,
        "more than the source serves",
        {f"{PAGING}.page_size": 200, f"{PAGING}.max_page_size": 100},
        "endpoints.works.paging.page_size",
        "200 is out of bounds",
        "stay within 1–100",
    ),
    Case(
        paging.the_page_size_is_allowed,
        "more than a batch holds",
        {f"{PAGING}.page_size": 20000},
        "endpoints.works.paging.page_size",
        "20000 is out of bounds",
        "stay within 1–10000",
    ),
    Case(
        paging.the_position_stays_inside_the_cap,
        "pages beyond what is served",
        {f"{PAGING}.max_pages": 11, "endpoints.works.cap": {"max": 100}},
        "endpoints.works.paging.max_pages",
        "10 × 11 pages go beyond the 100 results",
        "stay within 100",
    ),
    Case(
        paging.the_position_stays_inside_the_cap,
        "one page beyond what is served",
        {
            PAGING: {"type": "NONE", "page_size": 500, "total": "$.n"},
            "endpoints.works.cap": {"max": 100},
        },
        "endpoints.works.paging.page_size",
        "beyond the 100 results",
        "stay within 100",
    ),
)


MORE = (
    Case(
        paging.stop_rules_have_their_paths,
        "an estimate that ends the walk",
        {
            "endpoints.works.paging.total": {"path": "$.n", "is_estimate": True},
            "endpoints.works.paging.stop": ["TOTAL_REACHED", "EMPTY_PAGE"],
        },
        "endpoints.works.paging.stop",
        "TOTAL_REACHED would end at an estimate",
        "use EMPTY_PAGE",
    ),
    Case(
        paging.the_position_stays_inside_the_cap,
        "pages that end before the cap",
        {"endpoints.works.paging.max_pages": 3, "endpoints.works.cap": {"max": 100}},
        "endpoints.works.cap.max",
        "10 × 3 pages end before the 100 results",
        "use 30",
    ),
)
CASES += MORE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


@pytest.mark.parametrize(
    "paging",
    [
        pytest.param({"type": "NONE"}, id="one page"),
        pytest.param({"type": "PAGE", "page_param": "p", "size_param": "n"}, id="pages"),
        pytest.param(
            {"type": "PAGE", "page_param": "p", "size_policy": "SERVER"}, id="pages of any size"
        ),
        pytest.param(
            {
                "type": "OFFSET",
                "offset_param": "o",
                "size_policy": "FIXED",
                "stop": ["SHORT_PAGE"],
            },
            id="pages of one size that is not asked for",
        ),
        pytest.param({"type": "URL", "next_url": {"link": "next"}}, id="a Link header"),
        pytest.param({"type": "TIME", "order": "ASC", "size_param": "n"}, id="time"),
        pytest.param(
            {"type": "CURSOR", "next_token": {"header": "x-next"}, "token_param": "c"}, id="alias"
        ),
    ],
)
def test_every_kind_of_paging_can_be_said_without_a_problem(sqlite_template, paging):
    form = changed(a_search(), {PAGING: paging, "endpoints.works.request.query.offset": GONE})
    assert problems_of(sqlite_template, form) == ()
