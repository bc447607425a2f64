"""How a key gives way, comes back and warms up."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra_ingest.model.rates import SharedBucket
from patra_ingest.rate.bucket import Limits, Manners
from patra_ingest.rate.manners import cut, recovery_time, rise, speed, start_cold
from patra_ingest.rate.sharing import new_bucket, refresh
from patra_ingest_tests.builders import NOON

POLITE = Manners(demote=Decimal(2), cool_down=timedelta(seconds=10))
WARM = Manners(warm_up=timedelta(seconds=30))
STEP = Decimal("0.000000001")


def later(seconds):
    return NOON + timedelta(seconds=seconds)


def a_row(configured=10, rate=None, **fields):
    configured = Decimal(str(configured))
    row = SharedBucket(
        rate_key="crossref",
        tokens=Decimal(5),
        refilled_at=NOON,
        rate_per_second=configured if rate is None else Decimal(str(rate)),
        burst=Decimal(5),
        in_flight_limit=None,
        configured_rate=configured,
    )
    return replace(row, **fields)


@pytest.mark.parametrize(
    ("configured", "rate", "demote", "expected"),
    [
        pytest.param(10, 10, "2", "5", id="half"),
        pytest.param(10, 10, "3", "3.333333333", id="a third, rounded against us"),
        pytest.param(10, 10, "4", "3", id="never below three tenths of what is configured"),
        pytest.param(10, 5, "2", "3", id="a second cut ends at the floor"),
        pytest.param(10, 3, "2", "3", id="at the floor it stays"),
        pytest.param(10, 1, "2", "1", id="a cut never raises: below the floor it stays"),
        pytest.param("0.2", "0.2", "4", "0.1", id="never below one in ten seconds"),
        pytest.param("0.05", "0.05", "2", "0.05", id="slower than the floor: it stays"),
        pytest.param(10, 10, "1", "10", id="a key that does not give way"),
    ],
)
def test_a_complaint_divides_the_rate(configured, rate, demote, expected):
    manners = replace(POLITE, demote=Decimal(demote))

    assert cut(a_row(configured, rate), manners, NOON).rate_per_second == Decimal(expected)


def test_a_hundred_complaints_within_a_cool_down_are_one_cut():
    row = a_row(10)
    for tenth in range(100):
        row = cut(row, POLITE, later(tenth / 10))

    assert (row.rate_per_second, row.cut_at) == (5, NOON)


def test_a_complaint_after_the_cool_down_cuts_again():
    row = cut(cut(a_row(10), POLITE, NOON), POLITE, later(10))

    assert (row.rate_per_second, row.cut_at) == (3, later(10))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        *[(0, 5), (10, 5), ("19.999999", 5), (20, "5.5"), ("29.999999", "5.5"), (30, 6)],
        *[("109.9", "9.5"), (110, 10), (120, 10), (100_000, 10)],
    ],
)
def test_after_two_quiet_cool_downs_the_rate_rises_a_twentieth_per_cool_down(seconds, expected):
    row = cut(a_row(10), POLITE, NOON)

    assert rise(row, POLITE, later(float(seconds))).rate_per_second == Decimal(expected)


def test_a_complaint_that_cuts_nothing_still_puts_off_the_rise():
    row = cut(cut(a_row(10), POLITE, NOON), POLITE, later(9))

    assert rise(row, POLITE, later(28.9)).rate_per_second == 5
    assert rise(row, POLITE, later(29)).rate_per_second == Decimal("5.5")


def test_looking_often_raises_no_faster_than_looking_once():
    often = once = cut(a_row(10), POLITE, NOON)
    for tenth in range(551):
        often = rise(often, POLITE, later(tenth / 10))

    assert often == rise(once, POLITE, later(55))


def test_a_slow_key_rises_by_a_tenth_of_a_request():
    row = cut(a_row(1), POLITE, NOON)

    assert rise(row, POLITE, later(20)).rate_per_second == Decimal("0.6")


def test_the_rate_rises_to_what_the_source_told_and_no_further():
    row = replace(cut(a_row(10), POLITE, NOON), told={"ratePerSecond": "7.3"})

    assert rise(row, POLITE, later(10_000)).rate_per_second == Decimal("7.3")


def test_a_source_that_tells_more_than_is_configured_changes_nothing():
    row = replace(cut(a_row(10), POLITE, NOON), told={"ratePerSecond": "50"})

    assert rise(row, POLITE, later(10_000)).rate_per_second == 10


def test_a_key_that_goes_faster_than_the_source_tells_is_slowed_at_once():
    assert rise(a_row(10, told={"ratePerSecond": "4"}), POLITE, NOON).rate_per_second == 4


def test_a_clock_that_goes_back_raises_nothing():
    row = cut(a_row(10), POLITE, NOON)

    assert rise(row, POLITE, later(-3600)).rate_per_second == 5


manners_ = st.builds(
    Manners,
    st.decimals(1, 10, places=2),
    st.integers(1, 60).map(lambda seconds: timedelta(seconds=seconds)),
)
rates = st.decimals("0.01", 200, places=2)


@settings(max_examples=60)
@given(rates, manners_, st.lists(st.integers(0, 90), min_size=1, max_size=12))
def test_a_simulation_is_back_within_the_time_that_is_promised(configured, manners, complaints):
    limits = Limits(configured, 5, None, manners)
    row, at = new_bucket("k", limits, NOON), 0
    for gap in complaints:
        at += gap
        row = cut(refresh(row, limits, later(at)), manners, later(at))
    promised = recovery_time(configured, row.rate_per_second, Decimal("0.95"), manners)
    waited = 0
    while row.rate_per_second < configured * Decimal("0.95"):
        waited += 1
        row = refresh(row, limits, later(at + waited))
        assert waited <= promised

    assert waited == 0 or waited > promised - 2 * manners.cool_down.total_seconds()


@given(rates, manners_, st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=30))
def test_the_rate_stays_between_the_floor_and_what_is_configured(configured, manners, story):
    limits = Limits(configured, 5, None, manners)
    row, now = new_bucket("k", limits, NOON), NOON
    lowest = min(limits.rate_per_second, max(Decimal("0.1"), configured * Decimal("0.3")))
    for gap, complains in story:
        now += timedelta(seconds=gap)
        row = refresh(row, limits, now)
        row = cut(row, manners, now) if complains else row
        assert lowest <= row.rate_per_second <= limits.rate_per_second


@pytest.mark.parametrize(
    ("seconds", "share"), [(0, "0.333333333"), (15, "0.666666666"), (30, "1"), (3600, "1")]
)
def test_a_key_warms_up_from_a_third_to_its_full_rate(seconds, share):
    row = a_row(1, warm_from=NOON, refilled_at=later(seconds))

    assert abs(speed(row, WARM) - Decimal(share)) <= STEP


@given(st.lists(st.integers(0, 40_000), min_size=2, max_size=10), rates)
def test_a_key_that_warms_up_never_slows_down(milliseconds, configured):
    ages = [timedelta(milliseconds=age) for age in sorted(milliseconds)]
    row = a_row(configured, warm_from=NOON)
    speeds = [speed(replace(row, refilled_at=NOON + age), WARM) for age in ages]

    assert speeds == sorted(speeds)
    assert all(0 < one <= row.rate_per_second for one in speeds)


def test_a_key_without_a_warm_up_has_its_full_rate_at_once():
    row, rest = a_row(10, warm_from=NOON), timedelta(days=1)

    assert (speed(row, POLITE), start_cold(row, POLITE, rest, NOON + rest)) == (10, row)


def test_a_new_key_that_warms_up_starts_with_one_token():
    limits = Limits(10, 5, None, WARM)
    row = refresh(new_bucket("k", limits, NOON), limits, NOON)

    assert (row.tokens, row.warm_from) == (1, NOON)


@pytest.mark.parametrize("left", ["5", "0.25", "0", "-100"])
def test_a_key_that_rested_starts_with_one_token_whatever_was_left(left):
    limits = Limits(10, 5, None, WARM)
    row = replace(a_row(10), warm_from=later(-600), tokens=Decimal(left))

    rested = refresh(row, limits, later(60))

    assert (rested.tokens, rested.warm_from) == (1, later(60))


@pytest.mark.parametrize(
    ("warm_up", "rest", "is_cold"),
    [(30, 59, False), (30, 60, True), (300, 299, False), (300, 300, True)],
)
def test_only_a_rest_makes_a_key_cold_again(warm_up, rest, is_cold):
    limits = Limits(10, 5, None, Manners(warm_up=timedelta(seconds=warm_up)))
    row = a_row(10, warm_from=later(-3600))

    rested = refresh(row, limits, later(rest))

    assert rested.warm_from == (later(rest) if is_cold else later(-3600))
