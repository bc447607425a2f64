"""Rates, retries and batches: a failing pack for every rule about how often and how fast."""

import pytest

from patra_ingest.spec.checks import limits
from patra_ingest_tests.unit.check_packs import Case, assert_refused, with_a_key

OTHER = {"key": "b", "per_second": 1}

CASES = (
    Case(
        limits.rates_stay_within_the_vendors,
        "faster than the source allows",
        {"rate.vendor": {"per_second": 3}},
        "rate.per_second",
        "1000.0 is above the source's 3.0",
        "use 3.0 or less",
    ),
    Case(
        limits.rates_stay_within_the_vendors,
        "more at once than the source allows",
        {"rate.in_flight": 4, "rate.vendor": {"in_flight": 3}},
        "rate.in_flight",
        "4 is above the source's 3",
        "use 3 or less",
    ),
    Case(
        limits.rates_stay_within_the_vendors,
        "any number at once",
        {"rate.vendor": {"in_flight": 3}},
        "rate.in_flight",
        "is missing; the source allows 3",
        "declare it",
    ),
    Case(
        limits.rates_stay_within_the_vendors,
        "faster than a key unlocks",
        {"auth.credentials.k.unlocks.rate": {"per_second": 11, "vendor": {"per_second": 10}}},
        "auth.credentials.k.unlocks.rate.per_second",
        "11.0 is above the source's 10.0",
        "use 10.0 or less",
        pack=with_a_key,
        at_hand=frozenset({"k"}),
    ),
    Case(
        limits.the_interval_and_the_rate_agree,
        "a rate above the interval",
        {"rate": {"key": "example", "per_second": 1, "min_interval": "3s"}},
        "rate.per_second",
        "1.0 is faster than one per 3 s",
        "remove it, or shorten min_interval",
    ),
    Case(
        limits.the_interval_and_the_rate_agree,
        "a burst with an interval",
        {"rate": {"key": "example", "burst": 5, "min_interval": "3s"}},
        "rate.burst",
        "a burst has no interval",
        "use 1 with min_interval",
    ),
    Case(
        limits.retries_make_sense,
        "delays that shrink",
        {"retry": {"initial_delay": "10s", "max_delay": "5s"}},
        "retry.initial_delay",
        "is longer than max_delay",
        "make it shorter",
    ),
    Case(
        limits.retries_make_sense,
        "a status that is retried and given up",
        {"retry.give_up": [429, 400, 503]},
        "retry.give_up",
        "429, 503 is also retried",
        "take it out of retry.statuses",
    ),
    Case(
        limits.a_breaker_knows_when_to_open,
        "a breaker that never opens",
        {"endpoints.works.retry.breaker": {"cooldown": "1m"}},
        "endpoints.works.retry.breaker",
        "never opens",
        "give failures or error_share",
    ),
    Case(
        limits.shared_budgets_are_others,
        "a budget that is its own other",
        {"rate.also": [{"key": "example", "per_second": 1}]},
        "rate.also",
        "example would be charged twice",
        "list it once",
    ),
    Case(
        limits.shared_budgets_are_others,
        "another budget that stands twice",
        {"endpoints.works.rate": {"key": "a", "also": [OTHER, {**OTHER, "per_second": 2}]}},
        "endpoints.works.rate.also",
        "b would be charged twice",
        "list it once",
    ),
    Case(
        limits.quotas_are_told_apart,
        "two amounts for one day",
        {"rate.quotas": [{"limit": 10, "per": "1d"}, {"limit": 20, "per": "24h"}]},
        "rate.quotas",
        "two have the same period",
        "keep the smaller one",
    ),
)


CASES += (
    Case(
        limits.quotas_are_told_apart,
        "a request that costs more than a day has",
        {"rate": {"cost": 5, "quotas": [{"limit": 4, "per": "1d"}]}},
        "rate.quotas",
        "one request costs 5, more than is allowed",
        "raise limit",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)
