"""When a source is left alone, and when it is asked again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    RequestRejected,
    Throttled,
    TransientError,
    Unreachable,
)
from patra_ingest.executor.breaker import Breakers, is_failure
from patra_ingest.spec.policies import Breaker
from patra_ingest_tests.builders import NOON

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
THREE = Breaker(failures=3, cooldown=MINUTE)


def noted(outcomes, rule, breakers=None, start=NOON):
    """Return what each outcome (F failed, . did not) led to, one second after the other."""
    kept = breakers or Breakers()
    return [
        kept.note("key", rule, outcome == "F", start + number * SECOND)
        for number, outcome in enumerate(outcomes)
    ]


def test_failures_in_a_row_open_and_a_success_starts_the_count_anew():
    assert noted("FF.FF.FF", THREE) == [None] * 8
    assert noted("FF.FFF", THREE) == [None] * 5 + [NOON + 5 * SECOND + MINUTE]


def test_without_a_rule_three_failures_open_for_a_minute():
    assert noted("FFF", None) == [None, None, NOON + 2 * SECOND + MINUTE]


def test_what_comes_in_while_open_changes_nothing():
    until = NOON + 2 * SECOND + MINUTE

    assert noted("FFF.F.FFF", THREE) == [None, None, *[until] * 7]


def test_after_the_cooldown_one_failure_opens_again():
    breakers = Breakers()
    until = noted("FFF", THREE, breakers)[-1]
    later = until + SECOND

    assert noted("F", THREE, breakers, until) == [until + MINUTE]
    assert noted("F", THREE, breakers, later) == [until + MINUTE]


def test_after_the_cooldown_one_success_closes_and_forgets():
    breakers = Breakers()
    until = noted("FFF", THREE, breakers)[-1]

    assert noted(".FF", THREE, breakers, until) == [None, None, None]


@pytest.mark.parametrize(
    ("outcomes", "opens_at"),
    [
        ("." * 90 + "F" * 9, None),
        ("." * 90 + "F" * 10, 99),
        ("F" * 10, 9),
        ("F." * 10, 18),
        ("F" * 9 + "." * 91 + "F" * 9, None),
        ("F" * 9 + "." * 90 + "F", 99),
        ("F" * 9 + "." * 91 + "F", None),
    ],
)
def test_a_share_is_one_of_the_last_hundred_requests(outcomes, opens_at):
    told = noted(outcomes, Breaker(error_share=0.1, cooldown=MINUTE))

    first = next((number for number, until in enumerate(told) if until), None)
    assert first == opens_at


@pytest.mark.parametrize("percent", range(1, 101))
def test_a_share_opens_at_exactly_its_percent(percent):
    rule = Breaker(error_share=percent / 100, cooldown=MINUTE)

    told = noted("F" * percent, rule)

    assert told[:-1] == [None] * (percent - 1)
    assert told[-1] is not None


def test_after_a_share_has_opened_and_closed_it_is_counted_anew():
    breakers, rule = Breakers(), Breaker(error_share=0.05, cooldown=MINUTE)
    until = noted("FFFFF", rule, breakers)[-1]

    assert noted(".FFFF", rule, breakers, until) == [None] * 5


def test_a_rule_without_failures_in_a_row_does_not_count_them():
    assert noted("F" * 40, Breaker(error_share=0.5, cooldown=MINUTE)) == [None] * 40


def test_a_success_never_opens():
    assert noted("." * 120, Breaker(error_share=0.0, cooldown=MINUTE)) == [None] * 120


def test_keys_have_nothing_to_do_with_each_other():
    breakers = Breakers()
    for key in ("a", "b", "a", "b"):
        assert breakers.note(key, THREE, True, NOON) is None

    assert breakers.note("a", THREE, True, NOON) == NOON + MINUTE
    assert breakers.note("c", THREE, True, NOON) is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (TransientError("502"), True),
        (Unreachable("reset by peer"), True),
        (Throttled(NOON), False),
        (CredentialRefused("401"), False),
        (RequestRejected("400"), False),
        (EndpointHalted("403"), False),
    ],
)
def test_only_what_speaks_against_the_sources_health_is_a_failure(error, expected):
    assert is_failure(error) is expected


def test_no_note_of_many_threads_is_lost():
    breakers, rule = Breakers(), Breaker(failures=4001, cooldown=MINUTE)

    with ThreadPoolExecutor(8) as lanes:
        list(lanes.map(lambda _: breakers.note("key", rule, True, NOON), range(4000)))

    assert breakers.note("key", rule, True, NOON) == NOON + MINUTE


@given(st.text("F.", max_size=300), st.integers(1, 5))
def test_it_opens_after_exactly_n_failures_in_a_row_while_it_was_closed(outcomes, failures):
    rule = Breaker(failures=failures, cooldown=timedelta(days=1))

    told = noted(outcomes, rule)

    at = outcomes.find("F" * failures)
    opened = len(outcomes) if at < 0 else at + failures - 1
    assert all(until is None for until in told[:opened])
    assert all(until is not None for until in told[opened:])
