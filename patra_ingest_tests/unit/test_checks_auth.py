"""Credentials: a failing pack for every rule about keys and tokens."""

import pytest

from patra_ingest.spec.checks import auth
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.unit.check_packs import (
    Case,
    PackForm,
    assert_refused,
    changed,
    problems_of,
    with_a_key,
)

K = "auth.credentials.k"
OAUTH = {
    "type": "OAUTH2",
    "token_url": "https://login.example.org/token",
    "client_id": "env:EXAMPLE_ID",
    "client_secret": "env:EXAMPLE_SECRET",
}

CASES = (
    Case(
        auth.a_required_credential_is_declared,
        "a closed endpoint without a key",
        {"endpoints.works.auth.required": True},
        "endpoints.works.auth.required",
        "there is no credential",
        "declare auth.credentials",
    ),
    Case(
        auth.a_required_credential_is_declared,
        "a closed source without a key",
        {"auth.required": True},
        "auth.required",
        "there is no credential",
        "declare auth.credentials",
    ),
    Case(
        auth.a_required_credential_is_declared,
        "a key that is not there",
        {"endpoints.works.auth": {"use": "other"}},
        "endpoints.works.auth.use",
        "there is no credential other",
        "credentials: k",
        pack=with_a_key,
    ),
    Case(
        auth.a_required_credential_is_declared,
        "a key of a source that has none",
        {"auth": {"use": "k"}},
        "auth.use",
        "there is no credential k",
        "credentials: none",
    ),
    Case(
        auth.a_required_credential_is_declared,
        "a trigger that asks for a key where there is none",
        {},
        "--set auth.required",
        "there is no credential",
        "declare auth.credentials",
        asked=Overrides({"auth": {"required": True}}),
    ),
    Case(
        auth.a_key_travels_where_it_can,
        "a key in the body of a GET",
        {f"{K}.location": "BODY"},
        "auth.credentials.k.location",
        "GET carries no body",
        "use HEADER",
        pack=with_a_key,
    ),
    Case(
        auth.tokens_are_fetched_safely,
        "a client secret in plain HTTP",
        {K: {**OAUTH, "token_url": "http://login.example.org"}},
        "auth.credentials.k.token_url",
        "is no HTTPS address",
        "use https://host/path",
    ),
    Case(
        auth.tokens_are_fetched_safely,
        "a token from nowhere",
        {K: {**OAUTH, "token_url": "https://"}},
        "auth.credentials.k.token_url",
        "is no HTTPS address",
        "use https://host/path",
    ),
    Case(
        auth.tokens_are_fetched_safely,
        "a refresh without its token",
        {K: {**OAUTH, "grant": "REFRESH_TOKEN"}},
        "auth.credentials.k.refresh_token",
        "is missing",
        "refer to it, as env:NAME",
    ),
    Case(
        auth.tokens_are_fetched_safely,
        "a grant that needs a person",
        {K: {**OAUTH, "grant": "AUTHORIZATION_CODE"}},
        "auth.credentials.k.grant",
        "AUTHORIZATION_CODE is not supported",
        "use CLIENT_CREDENTIALS or REFRESH_TOKEN",
    ),
    Case(
        auth.what_a_credential_unlocks_is_known,
        "a group that is not there",
        {f"{K}.unlocks": {"rates": {"per_second": 9}}},
        "auth.credentials.k.unlocks.rates",
        "is not a known group",
        "groups: endpoint, request",
        pack=with_a_key,
    ),
    Case(
        auth.what_a_credential_unlocks_is_known,
        "a key that is not there",
        {f"{K}.unlocks": {"rate": {"per_secnd": 9}}},
        "auth.credentials.k.unlocks.rate.per_secnd",
        "is not a known key",
        "did you mean per_second?",
        pack=with_a_key,
    ),
    Case(
        auth.what_a_credential_unlocks_is_known,
        "a value that does not fit",
        {f"{K}.unlocks": {"paging": {"page_size": 0}}},
        "auth.credentials.k.unlocks.paging.page_size",
        "0 does not fit",
        "greater than or equal to 1",
        pack=with_a_key,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def with_two_keys() -> PackForm:
    """Return a pack with the keys `k` and `fast`; what `fast` unlocks is more than is allowed."""
    key = {"type": "API_KEY", "location": "HEADER", "field": "X-Fast", "secret": "env:FAST_KEY"}
    unlocks = {"rate": {"per_second": 9, "vendor": {"per_second": 3}}}
    return changed(with_a_key(), {"auth.credentials.fast": {**key, "unlocks": unlocks}})


@pytest.mark.parametrize("said_at", ["auth.use", "endpoints.works.auth.use"])
def test_the_key_that_is_asked_for_is_the_one_whose_unlocks_count(sqlite_template, said_at):
    at_hand = frozenset({"k", "fast"})
    with_k = changed(with_two_keys(), {said_at: "k"})
    with_fast = changed(with_two_keys(), {said_at: "fast"})
    assert problems_of(sqlite_template, with_k, at_hand=at_hand) == ()
    [problem] = problems_of(sqlite_template, with_fast, at_hand=at_hand)
    assert problem.startswith("auth.credentials.fast.unlocks.rate.per_second: ")


def test_the_key_an_endpoint_asks_for_wins_over_the_one_of_its_source(sqlite_template):
    form = changed(with_two_keys(), {"auth.use": "fast", "endpoints.works.auth.use": "k"})
    assert problems_of(sqlite_template, form, at_hand=frozenset({"k", "fast"})) == ()


def test_what_is_unlocked_by_a_key_that_is_not_asked_for_is_left_locked(sqlite_template):
    form = changed(with_two_keys(), {"auth.use": "k"})
    assert problems_of(sqlite_template, form, at_hand=frozenset({"fast"})) == ()
