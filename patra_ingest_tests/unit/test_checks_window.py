"""Windows and watermarks: a failing pack for every rule about time."""

import pytest

from patra_ingest.spec.checks import window
from patra_ingest_tests.unit.check_packs import (
    BACKFILL,
    GONE,
    Case,
    a_pair,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

WINDOW = "endpoints.works.window"
QUERY = "endpoints.works.request.query"

CASES = (
    Case(
        window.operations_fit_the_endpoint,
        "a detail endpoint that shall go forward",
        {"endpoints.works.usage": "DETAIL", "endpoints.works.operations": ["HARVEST"]},
        "endpoints.works.operations",
        "a DETAIL endpoint has no window, so it cannot HARVEST",
        "declare operations: [UPDATE]",
    ),
    Case(
        window.operations_fit_the_endpoint,
        "a health check that shall go back",
        {"endpoints.works.usage": "HEALTH", "endpoints.works.operations": ["BACKFILL"]},
        "endpoints.works.operations",
        "a HEALTH endpoint has no window, so it cannot BACKFILL",
        "declare operations: [UPDATE]",
        operation=BACKFILL,
    ),
    Case(
        window.a_harvest_sees_what_is_new,
        "a harvest by publication date",
        {f"{WINDOW}.meaning": "PUBLISHED"},
        "endpoints.works.window.meaning",
        "PUBLISHED: late and changed records would never be seen",
        "declare operations: [BACKFILL]",
    ),
    Case(
        window.a_harvest_sees_what_is_new,
        "a harvest without a date",
        {f"{WINDOW}.meaning": "NONE"},
        "endpoints.works.window.meaning",
        "NONE: late and changed records would never be seen",
        "or [UPDATE], not HARVEST",
    ),
    Case(
        window.a_window_narrows_something,
        "a past that no date narrows",
        {f"{WINDOW}.meaning": "NONE"},
        "endpoints.works.window.meaning",
        "NONE: no window can be asked for",
        "or response.client_window with updated_at",
        operation=BACKFILL,
    ),
    Case(
        window.spans_fit_the_calendar,
        "slices longer than the calendar",
        {f"{WINDOW}.max_span": "1000000d"},
        "endpoints.works.window.max_span",
        "1000000d is longer than a century",
        "use less",
    ),
    Case(
        window.the_lag_covers_the_grain,
        "a day that is not over",
        {f"{WINDOW}.granularity": "DAY", f"{WINDOW}.safety_lag": "10m"},
        "endpoints.works.window.safety_lag",
        "10m is shorter than the source's 1d",
        "use 1d or more",
    ),
    Case(
        window.the_lag_covers_the_grain,
        "a month that the source still fills",
        {f"{WINDOW}.publication_delay": "31d"},
        "endpoints.works.window.safety_lag",
        "1d is shorter than the source's 31d",
        "use 31d or more",
    ),
    Case(
        window.spans_make_sense,
        "slices that are shorter than a grain",
        {f"{WINDOW}.granularity": "DAY", f"{WINDOW}.max_span": "6h", f"{WINDOW}.min_span": "1h"},
        "endpoints.works.window.max_span",
        "6h is shorter than a grain of the filter",
        "use 1d or more",
    ),
    Case(
        window.spans_make_sense,
        "a floor above the ceiling",
        {f"{WINDOW}.min_span": "2d"},
        "endpoints.works.window.min_span",
        "is longer than max_span",
        "make it shorter",
    ),
    Case(
        window.calendars_are_aligned,
        "a calendar that is aligned to nothing",
        {f"{WINDOW}.mode": "CALENDAR"},
        "endpoints.works.window.align",
        "CALENDAR and align belong together",
        "say both, or neither",
    ),
    Case(
        window.calendars_are_aligned,
        "an alignment without a calendar",
        {f"{WINDOW}.align": "DAY"},
        "endpoints.works.window.align",
        "CALENDAR and align belong together",
        "say both, or neither",
    ),
    Case(
        window.calendars_are_aligned,
        "weeks of a day",
        {f"{WINDOW}.mode": "CALENDAR", f"{WINDOW}.align": "WEEK"},
        "endpoints.works.window.max_span",
        "is shorter than a WEEK",
        "align finer",
    ),
    Case(
        window.the_watermark_can_be_read,
        "the largest record of an unordered answer",
        {f"{WINDOW}.watermark_source": "RECORD_MAX"},
        "endpoints.works.window.watermark_source",
        "RECORD_MAX skips records unless items come in ascending, stable order",
        "or use WINDOW_END",
    ),
    Case(
        window.the_watermark_can_be_read,
        "the largest record of a descending answer",
        {
            f"{WINDOW}.watermark_source": "RECORD_MAX",
            "endpoints.works.paging.order": "DESC",
            "endpoints.works.paging.consistency": "STABLE_SORT",
        },
        "endpoints.works.window.watermark_source",
        "RECORD_MAX skips records",
        "declare paging.order: ASC",
    ),
    Case(
        window.the_watermark_can_be_read,
        "the largest record of records without a time",
        {
            f"{WINDOW}.watermark_source": "RECORD_MAX",
            "endpoints.works.paging.order": "ASC",
            "endpoints.works.paging.consistency": "STABLE_SORT",
        },
        "endpoints.works.window.watermark_source",
        "RECORD_MAX skips records",
        "response.updated_at",
        pack=a_pair,
    ),
    Case(
        window.the_watermark_can_be_read,
        "a server's date that is nowhere",
        {f"{WINDOW}.watermark_source": "SERVER_DATE"},
        "endpoints.works.window.server_date",
        "SERVER_DATE needs it",
        "say where the date is",
    ),
    Case(
        window.the_watermark_can_be_read,
        "a release that is nowhere",
        {f"{WINDOW}.watermark_source": "RELEASE"},
        "endpoints.works.window.release",
        "RELEASE needs it",
        "say where the release is",
    ),
    Case(
        window.the_format_shows_the_grain,
        "seconds that are written in days",
        {f"{WINDOW}.format": "yyyy-MM-dd", f"{WINDOW}.granularity": "SECOND"},
        "endpoints.works.window.format",
        "yyyy-MM-dd does not show the SECOND it filters by",
        "add ss",
    ),
    Case(
        window.the_format_shows_the_grain,
        "seconds by default that are written in days",
        {f"{WINDOW}.format": "yyyy-MM-dd"},
        "endpoints.works.window.format",
        "does not show the SECOND",
        "or say a coarser granularity",
    ),
    Case(
        window.the_format_shows_the_grain,
        "letters that are no part of a time",
        {f"{WINDOW}.format": "yyyy-QQ"},
        "endpoints.works.window.format",
        "Q",
        "write for example yyyy-MM-dd",
    ),
    Case(
        window.freshness_is_an_endpoint,
        "freshness from nowhere",
        {f"{WINDOW}.freshness": {"endpoint": "version", "path": "$.at"}},
        "endpoints.works.window.freshness.endpoint",
        "there is no endpoint version",
        "endpoints: works",
    ),
)


CASES += (
    Case(
        window.freshness_is_an_endpoint,
        "an endpoint that asks itself how fresh it is",
        {"endpoints.works.window.freshness": {"endpoint": "works", "path": "$.at"}},
        "endpoints.works.window.freshness.endpoint",
        "is this endpoint itself",
        "name another one",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_a_backfill_may_go_by_publication_date(sqlite_template):
    form = changed(a_search(), {f"{WINDOW}.meaning": "PUBLISHED"})
    assert problems_of(sqlite_template, form, BACKFILL) == ()


def test_a_backfill_may_go_without_a_date_where_we_drop_the_rest_ourselves(sqlite_template):
    change = {f"{WINDOW}.meaning": "NONE", "endpoints.works.response.client_window": True}
    assert problems_of(sqlite_template, changed(a_search(), change), BACKFILL) == ()


@pytest.mark.parametrize("strategy", ["SINGLE", "PAGE_RANGE"])
def test_a_backfill_may_walk_the_whole_source_where_the_pack_says_so(sqlite_template, strategy):
    paging = {"type": "OFFSET", "page_size": 10, "size_param": "rows", "offset_param": "offset"}
    change = {
        f"{WINDOW}.meaning": "NONE",
        "endpoints.works.planning": {"strategy": strategy},
        "endpoints.works.paging": {**paging, "consistency": "STABLE_SORT"},
    }
    assert problems_of(sqlite_template, changed(a_search(), change), BACKFILL) == ()


def test_a_start_alone_is_fine_where_the_source_knows_no_end(sqlite_template):
    form = changed(a_search(), {f"{QUERY}.to": GONE, f"{WINDOW}.upper_bound": "OPEN"})
    assert problems_of(sqlite_template, form) == ()


def test_the_lag_is_a_grain_where_the_pack_says_none(sqlite_template):
    form = changed(a_search(), {f"{WINDOW}.granularity": "DAY", f"{WINDOW}.safety_lag": GONE})
    assert problems_of(sqlite_template, form) == ()
