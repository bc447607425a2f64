"""Where a wrong value stands in the pack: the problem names that place, and no other."""

import pytest

from patra_ingest.spec.checks import auth, limits, paging, request, response, templates, window
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.unit.check_packs import (
    BACKFILL,
    GONE,
    Case,
    a_pair,
    a_search,
    assert_refused,
    changed,
    problems_of,
    with_a_key,
)

OUT = "is out of bounds"
UP_TO = "up to 120s"
NO_LAG = {"safety_lag": "0s"}
PLAIN = "http://api.example.org"
UNKNOWN = {"path": "/w", "query": {"a": "${window.from}${window.last}${page.offset}${b}"}}
IN_BODY = {"type": "API_KEY", "location": "BODY", "field": "k", "secret": "env:EXAMPLE_KEY"}


def short_lag(what, change, path, **more):
    said = "0s is shorter than the source's 1s"
    return Case(window.the_lag_covers_the_grain, what, change, path, said, "use 1s", **more)


def not_https(what, change, path, **more):
    return Case(
        request.addresses_are_https, what, change, path, "is not HTTPS", "use https", **more
    )


CASES = (
    Case(
        request.timeouts_are_bounded,
        "at the source",
        {"http.read_timeout": "5m"},
        "http.read_timeout",
        OUT,
        UP_TO,
    ),
    Case(
        request.timeouts_are_bounded,
        "at the source, for both endpoints of a pair, said once",
        {"http.read_timeout": "5m"},
        "http.read_timeout",
        OUT,
        UP_TO,
        pack=a_pair,
    ),
    Case(
        request.timeouts_are_bounded,
        "at the endpoint",
        {"endpoints.works.http.read_timeout": "5m"},
        "endpoints.works.http.read_timeout",
        OUT,
        UP_TO,
    ),
    short_lag(
        "in an operation of the source",
        {"endpoints.works.window": GONE, "operations": {"BACKFILL": {"window": NO_LAG}}},
        "operations.BACKFILL.window.safety_lag",
        operation=BACKFILL,
    ),
    short_lag(
        "in an operation of the endpoint",
        {"endpoints.works.operations": {"HARVEST": {}, "BACKFILL": {"window": NO_LAG}}},
        "endpoints.works.operations.BACKFILL.window.safety_lag",
        operation=BACKFILL,
    ),
    Case(
        templates.templates_parse,
        "in the request of an operation",
        {"endpoints.works.operations": {"HARVEST": {}, "BACKFILL": {"request": UNKNOWN}}},
        "endpoints.works.operations.BACKFILL.request.query.a",
        "${b} is not known here",
        "known names",
        operation=BACKFILL,
    ),
    not_https("in the provenance", {"provenance.base_url": PLAIN}, "provenance.base_url"),
    not_https("in the address of the source", {"http.base_url": PLAIN}, "http.base_url"),
    not_https(
        "in the address of the endpoint",
        {"endpoints.works.http.base_url": PLAIN},
        "endpoints.works.http.base_url",
    ),
    not_https(
        "in the address of the endpoint's request",
        {"endpoints.works.request.base_url": PLAIN},
        "endpoints.works.request.base_url",
    ),
    not_https(
        "in the address of a trigger",
        {},
        "--set http.base_url",
        asked=Overrides({"http": {"base_url": PLAIN}}),
    ),
    Case(
        paging.the_page_size_is_allowed,
        "in a trigger",
        {},
        "--set paging.page_size",
        "20000 is out of bounds",
        "stay within 1–10000",
        asked=Overrides({"paging": {"page_size": 20000}}),
    ),
    Case(
        templates.templates_parse,
        "in the endpoint, where a trigger adds to the same map",
        {"endpoints.works.request.query.y": "${b}"},
        "endpoints.works.request.query.y",
        "${b} is not known here",
        "known names",
        asked=Overrides({"request": {"query": {"x": "1"}}}),
    ),
    Case(
        paging.kinds_do_not_mix,
        "in the endpoint's own names",
        {"endpoints.works.names": {"token": "cursor"}},
        "endpoints.works.names.token",
        "means nothing with OFFSET paging",
        "remove it",
    ),
    Case(
        limits.rates_stay_within_the_vendors,
        "in what a credential unlocks",
        {"auth.credentials.k.unlocks": {"rate": {"per_second": 9, "vendor": {"per_second": 3}}}},
        "auth.credentials.k.unlocks.rate.per_second",
        "9.0 is above the source's 3.0",
        "use 3.0 or less",
        pack=with_a_key,
        at_hand=frozenset({"k"}),
    ),
    Case(
        auth.a_key_travels_where_it_can,
        "in a credential of the source",
        {"auth.credentials.k": IN_BODY},
        "auth.credentials.k.location",
        "GET carries no body",
        "use HEADER",
    ),
    Case(
        auth.a_key_travels_where_it_can,
        "in a credential of the endpoint",
        {"endpoints.works.auth.credentials": {"k": IN_BODY}},
        "endpoints.works.auth.credentials.k.location",
        "GET carries no body",
        "use HEADER",
    ),
    Case(
        response.paths_parse,
        "in the detail endpoint of a pair",
        {"endpoints.fetch.response.items": "$.a["},
        "endpoints.fetch.response.items.0",
        "$.a[",
        "correct the path",
        pack=a_pair,
    ),
    Case(
        limits.rates_stay_within_the_vendors,
        "in a policy of the detail endpoint",
        {"endpoints.fetch.rate": {"per_second": 9, "vendor": {"per_second": 3}}},
        "endpoints.fetch.rate.per_second",
        "9.0 is above the source's 3.0",
        "use 3.0 or less",
        pack=a_pair,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_names_the_place_where_the_value_was_said(sqlite_template, case):
    assert_refused(sqlite_template, case)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        pytest.param(
            {"paging": {"page_size": "many"}},
            "--set paging.page_size: 'many' does not fit (Input should be a valid integer",
            id="a value of another kind",
        ),
        pytest.param(
            {"paging": {"token_life": "0s"}},
            "--set paging.token_life: '0s' does not fit (is no length of time)",
            id="a time that is none",
        ),
        pytest.param(
            {"paging": {"page_sise": 3}},
            "--set paging.page_sise: is not a known key (did you mean page_size?)",
            id="a key that is not there",
        ),
    ],
)
def test_what_a_trigger_says_wrong_is_named_as_it_was_typed(sqlite_template, values, problem):
    [found] = problems_of(sqlite_template, a_search(), asked=Overrides(values))
    assert found.startswith(problem)


def test_a_part_of_the_endpoint_hides_the_wrong_one_of_the_source(sqlite_template):
    change = {"http.read_timeout": "5m", "endpoints.works.http.read_timeout": "5s"}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()


def test_what_a_credential_unlocks_counts_only_when_its_secret_is_at_hand(sqlite_template):
    unlocks = {"rate": {"per_second": 9, "vendor": {"per_second": 3}}}
    form = changed(with_a_key(), {"auth.credentials.k.unlocks": unlocks})
    assert problems_of(sqlite_template, form) == ()
    assert problems_of(sqlite_template, form, at_hand=frozenset({"k"})) != ()
