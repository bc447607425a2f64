"""Planning: a failing pack for every rule about how windows are cut and quotas are shared."""

import pytest

from patra_ingest.model.codes import SliceStrategy
from patra_ingest.spec.checks import planning
from patra_ingest_tests.unit.check_packs import (
    BACKFILL,
    HARVEST,
    UPDATE,
    Case,
    a_pair,
    a_search,
    a_token_walk,
    assert_refused,
    changed,
    problems_of,
)

PLANNING = "endpoints.works.planning"
STRATEGY = f"{PLANNING}.strategy"
SIZE = f"{PLANNING}.records_per_slice"
SPAN = "endpoints.works.window.max_span"
BUILT = "use TIME, DATE, VOLUME_BUDGET, PAGE_RANGE, ID_RANGE, SINGLE or none"
MEANING, DROP = "endpoints.works.window.meaning", "endpoints.works.response.client_window"


def by_ids():
    """Return a valid pack whose `works` is asked for ids, for UPDATE alone."""
    fetch = a_pair()["endpoints"]["fetch"]
    return {**a_search(), "endpoints": {"works": fetch}}


CASES = (
    *(
        Case(
            planning.the_strategy_is_built,
            f"{strategy} is for later",
            {STRATEGY: strategy},
            STRATEGY,
            f"{strategy} is not built yet",
            BUILT,
        )
        for strategy in ("CURSOR_LANDMARK", "HYBRID")
    ),
    *(
        Case(
            planning.the_strategy_fits_the_operation,
            f"{strategy} of ids",
            {STRATEGY: strategy, SIZE: 10},
            STRATEGY,
            f"{strategy} cuts a window, and UPDATE asks for ids",
            "use ID_RANGE, or say it under operations for HARVEST or BACKFILL",
            pack=by_ids,
            operation=UPDATE,
        )
        for strategy in ("TIME", "DATE", "VOLUME_BUDGET")
    ),
    *(
        Case(
            planning.the_strategy_fits_the_operation,
            f"ID_RANGE of a window for {operation}",
            {STRATEGY: "ID_RANGE"},
            STRATEGY,
            f"ID_RANGE cuts ids, and {operation} asks for a window",
            "say it under operations for UPDATE",
            operation=operation,
        )
        for operation in (HARVEST, BACKFILL)
    ),
    Case(
        planning.the_strategy_fits_the_operation,
        "a page number for a cursor",
        {"planning.strategy": "PAGE_RANGE"},
        "planning.strategy",
        "a page number is no watermark for HARVEST",
        "use TIME, or say it under operations for BACKFILL",
    ),
    Case(
        planning.page_ranges_need_numbers,
        "the middle of a walk by tokens",
        {"endpoints.works.operations.BACKFILL.planning": {"strategy": "PAGE_RANGE"}},
        "endpoints.works.operations.BACKFILL.planning.strategy",
        "PAGE_RANGE needs pages with numbers, and paging.type is TOKEN",
        "use paging.type OFFSET or PAGE, or the strategy TIME",
        pack=a_token_walk,
        operation=BACKFILL,
    ),
    *(
        Case(
            planning.time_can_be_asked_for,
            f"{strategy} without a date to filter by",
            {STRATEGY: strategy, SIZE: 10, MEANING: "NONE", DROP: True},
            STRATEGY,
            f"{strategy} needs a filter by time, and window.meaning is NONE",
            "use SINGLE or PAGE_RANGE",
            operation=BACKFILL,
        )
        for strategy in ("TIME", "DATE", "VOLUME_BUDGET")
    ),
    *(
        Case(
            planning.dates_are_whole_days,
            f"days of {span}",
            {STRATEGY: "DATE", SPAN: span},
            SPAN,
            f"DATE cuts whole days, and {span} is none",
            "use 1d, 2d, …, or the strategy TIME",
        )
        for span in ("12h", "1d12h", "23h59m59s")
    ),
    Case(
        planning.a_volume_has_a_size,
        "slices of equal size without a size",
        {STRATEGY: "VOLUME_BUDGET"},
        SIZE,
        "VOLUME_BUDGET needs it",
        "say how many a slice may hold",
    ),
    Case(
        planning.slices_stay_below_the_cap,
        "more than the source serves",
        {SIZE: 101, "endpoints.works.cap.max": 100},
        SIZE,
        "101 is above cap.max: every slice would be cut again",
        "use 100 or less",
    ),
    Case(
        planning.quotas_keep_the_priorities,
        "a past that goes before what we have",
        {PLANNING: {"backfill_share": 0.9, "update_share": 0.7}},
        f"{PLANNING}.backfill_share",
        "0.9 is above the 0.7 of update_share: BACKFILL would go first",
        "use 0.7 or less, or raise update_share",
    ),
    Case(
        planning.quotas_keep_the_priorities,
        "less for what we have than the platform leaves the past",
        {"planning.update_share": 0.5},
        "planning.backfill_share",
        "0.6 is above the 0.5 of update_share",
        "use 0.5 or less",
    ),
    Case(
        planning.quotas_keep_the_priorities,
        "a margin that is all of it",
        {f"{PLANNING}.quota_margin": 1},
        f"{PLANNING}.quota_margin",
        "nothing would be left to plan",
        "use less than 1",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


FITTING = [
    (HARVEST, a_search, {"strategy": "TIME"}),
    (HARVEST, a_search, {"strategy": "DATE"}),
    (HARVEST, a_search, {"strategy": "SINGLE"}),
    (HARVEST, a_search, {"strategy": "VOLUME_BUDGET", "records_per_slice": 10}),
    (HARVEST, a_token_walk, {"strategy": "DATE"}),
    (BACKFILL, a_search, {"strategy": "PAGE_RANGE", "total_records": 1000}),
    (BACKFILL, a_token_walk, {"strategy": "TIME"}),
    (UPDATE, by_ids, {"strategy": "ID_RANGE", "ids_per_slice": 50}),
    (UPDATE, by_ids, {"strategy": "SINGLE", "buckets": 8}),
    (HARVEST, a_search, {"backfill_share": 0.5, "update_share": 0.5, "quota_margin": 0.99}),
    (HARVEST, a_search, {"backfill_share": 0, "update_share": 0}),
]


@pytest.mark.parametrize(("operation", "pack", "said"), FITTING)
def test_what_can_be_planned_is_not_complained_of(sqlite_template, operation, pack, said):
    form = changed(pack(), {PLANNING: said})

    assert problems_of(sqlite_template, form, operation) == ()


def test_every_strategy_is_either_built_or_refused():
    refused = {case.change.get(STRATEGY) for case in CASES if case.remedy == BUILT}
    fitting = {said.get("strategy") for _, _, said in FITTING} - {None}

    assert refused | fitting == set(SliceStrategy)
    assert not refused & fitting


def test_a_slice_may_hold_as_much_as_the_cap(sqlite_template):
    form = changed(a_search(), {SIZE: 100, "endpoints.works.cap.max": 100})

    assert problems_of(sqlite_template, form) == ()


@pytest.mark.parametrize("strategy", ["TIME", "DATE"])
def test_a_detail_endpoint_is_not_planned_so_the_sources_strategy_does_not_concern_it(
    sqlite_template, strategy
):
    form = changed(a_pair(), {"planning.strategy": strategy})

    assert problems_of(sqlite_template, form) == ()
