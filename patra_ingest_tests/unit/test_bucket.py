from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from patra_ingest.rate.bucket import (
    PLACE_POLL,
    BucketState,
    Grant,
    Limits,
    Manners,
    Wait,
    WaitReason,
    decide,
    decide_ahead,
    full,
    refill,
)

NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)
TEN = Limits(10, burst=5)
ONE_IN_THREE_SECONDS = Limits(Decimal(1) / 3, burst=1)
TWO_AT_ONCE = Limits(10, burst=5, in_flight=2)


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def holding(tokens, silence=None):
    return BucketState(Decimal(tokens), NOON, silence)


@pytest.mark.parametrize(
    ("state", "limits", "cost", "in_flight", "now", "expected"),
    [
        pytest.param(holding(5), TEN, 1, 0, NOON, Grant(NOON), id="a full bucket grants"),
        pytest.param(holding(1), TEN, 1, 0, NOON, Grant(NOON), id="the last token is a token"),
        pytest.param(
            holding(0), TEN, 1, 0, NOON, Wait(after(0.1), WaitReason.RATE), id="empty: wait for one"
        ),
        pytest.param(
            holding(0), TEN, 1, 0, after(0.1), Grant(after(0.1)), id="after the wait it is there"
        ),
        pytest.param(
            holding("0.5"), TEN, 1, 0, NOON, Wait(after(0.05), WaitReason.RATE), id="half is there"
        ),
        pytest.param(
            holding(0),
            ONE_IN_THREE_SECONDS,
            1,
            0,
            NOON,
            # 1/3 is kept as 0.333333333: rounded against us, by three nanoseconds a request
            Wait(after(3) + timedelta(microseconds=1), WaitReason.RATE),
            id="one in three seconds",
        ),
        pytest.param(
            holding(0), Limits(1e-5), 1, 0, NOON, Wait(after(100_000), WaitReason.RATE), id="a day"
        ),
        pytest.param(
            holding(3), TEN, 7, 0, NOON, Wait(after(0.2), WaitReason.RATE), id="dear: until full"
        ),
        pytest.param(holding(5), TEN, 7, 0, NOON, Grant(NOON), id="dear: a full bucket grants"),
        pytest.param(
            holding(-2), TEN, 1, 0, NOON, Wait(after(0.3), WaitReason.RATE), id="debt is paid first"
        ),
        pytest.param(
            holding(5), TWO_AT_ONCE, 1, 2, NOON, Wait(NOON + PLACE_POLL, WaitReason.IN_FLIGHT),
            id="no place left",
        ),
        pytest.param(holding(5), TWO_AT_ONCE, 1, 1, NOON, Grant(NOON), id="the second place"),
        pytest.param(holding(5), TEN, 1, 99, NOON, Grant(NOON), id="no limit of places"),
        pytest.param(
            holding(5, after(9)), TEN, 1, 0, NOON, Wait(after(9), WaitReason.COOL_DOWN),
            id="silence wins over tokens",
        ),
        pytest.param(
            holding(0, after(9)), Limits(0.1), 1, 0, NOON, Wait(after(10), WaitReason.COOL_DOWN),
            id="a token that comes after the silence",
        ),
        pytest.param(
            holding(5, after(9)), TEN, 1, 0, after(9), Grant(after(9)), id="the silence is over"
        ),
        pytest.param(
            holding(0), TEN, 0, 0, NOON, Grant(NOON), id="what costs nothing needs no token"
        ),
    ],
)  # fmt: skip
def test_decide(state, limits, cost, in_flight, now, expected):
    assert decide(state, limits, cost, in_flight, now)[1] == expected


def test_a_grant_takes_its_cost_and_a_wait_takes_nothing():
    granted, _ = decide(holding(5), TEN, 2, 0, NOON)
    waiting, _ = decide(holding(1), TEN, 2, 0, NOON)

    assert (granted.tokens, waiting.tokens) == (3, 1)


def test_a_cost_above_the_burst_leaves_a_debt():
    state, _ = decide(holding(5), TEN, 7, 0, NOON)

    assert state.tokens == -2


def test_an_idle_bucket_never_holds_more_than_its_burst():
    assert refill(holding(5), TEN, NOON + timedelta(days=3650)).tokens == 5


def test_a_clock_that_goes_back_and_forth_pays_no_second_twice():
    state = holding(0)
    for seconds in (0.2, 0.0, 0.2, -5, 0.2):
        state = refill(state, TEN, after(seconds))

    assert state.tokens == 2


def test_a_clock_that_goes_back_takes_nothing_away():
    assert refill(holding(5), TEN, after(-5)) == holding(5)


def test_a_smaller_burst_takes_tokens_away():
    assert refill(holding(5), Limits(10, burst=2), NOON).tokens == 2


def test_whoever_waits_a_short_time_books_the_token_and_the_next_comes_after():
    state, first = decide_ahead(holding(0), TEN, 1, 0, NOON, latest=after(1))
    state, second = decide_ahead(state, TEN, 1, 0, NOON, latest=after(1))

    assert (first, second) == (Grant(after(0.1)), Grant(after(0.2)))
    assert (state.tokens, state.refilled_at) == (0, after(0.2))


@pytest.mark.parametrize(
    ("state", "limits", "in_flight", "latest", "expected"),
    [
        pytest.param(
            holding(0), TEN, 0, after(0.09), Wait(after(0.1), WaitReason.RATE), id="too far ahead"
        ),
        pytest.param(
            holding(0), TWO_AT_ONCE, 2, after(1), Wait(after(0.1), WaitReason.RATE), id="no place"
        ),
        pytest.param(
            holding(0, after(0.5)), TEN, 0, after(1), Wait(after(0.5), WaitReason.COOL_DOWN),
            id="silence",
        ),
    ],
)  # fmt: skip
def test_nothing_is_booked(state, limits, in_flight, latest, expected):
    assert decide_ahead(state, limits, 1, in_flight, NOON, latest) == (state, expected)


@pytest.mark.parametrize(
    "numbers", [(0, 1, None), (-1, 1, None), (1e-10, 1, None), (1, 0, None), (1, 1, 0)]
)
def test_limits_that_let_nothing_through_are_refused(numbers):
    with pytest.raises(ValueError, match="never let a request through"):
        Limits(*numbers)


def test_a_float_means_what_it_says():
    assert Limits(0.1, burst=0.3) == Limits(Decimal("0.1"), burst=Decimal("0.3"))


def test_manners_are_part_of_the_limits_and_polite_unless_they_are_given():
    rude = Manners(demote=Decimal(1))

    assert Limits(1).manners == Manners(Decimal(2), timedelta(seconds=10), timedelta(0))
    assert Limits(1, manners=rude) != Limits(1)


def test_a_new_bucket_is_full():
    assert full(TEN, NOON) == BucketState(Decimal(5), NOON)


def test_a_negative_cost_is_refused():
    with pytest.raises(ValueError, match="cannot cost -1"):
        decide(holding(5), TEN, -1, 0, NOON)
