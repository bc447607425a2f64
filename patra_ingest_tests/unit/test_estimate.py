"""What a key can still send within a time."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.rate.bucket import Limits, Wait
from patra_ingest.rate.estimate import estimate
from patra_ingest.rate.sharing import Ask, new_bucket, refresh, visit
from patra_ingest_tests.builders import NOON

TEN = Limits(10, burst=5)
SECOND = timedelta(seconds=1)


def a_key(**fields):
    return replace(new_bucket("k", TEN, NOON), **{"tokens": Decimal(0), **fields})


def requests(row, seconds, now=NOON):
    return estimate(row, seconds * SECOND, now).requests


@pytest.mark.parametrize(
    ("row", "seconds", "expected"),
    [
        pytest.param(a_key(), 100, 980, id="the pace we keep, two hundredths below the rate"),
        pytest.param(a_key(tokens=Decimal(4)), 100, 984, id="what was saved comes on top"),
        pytest.param(a_key(tokens=Decimal(-7)), 100, 973, id="a debt is paid first"),
        pytest.param(a_key(rate_per_second=Decimal(5)), 100, 490, id="a rate that was cut"),
        pytest.param(a_key(cool_down_until=NOON + 60 * SECOND), 100, 392, id="silence is off"),
        pytest.param(
            a_key(tokens=Decimal(4), cool_down_until=NOON + 600 * SECOND), 100, 0, id="all silent"
        ),
        pytest.param(a_key(cool_down_until=NOON - SECOND), 100, 980, id="a silence that is over"),
        pytest.param(a_key(refilled_at=NOON + 5 * SECOND), 100, 931, id="booked ahead is gone"),
        pytest.param(a_key(tokens=Decimal(-99)), 1, 0, id="a debt beyond the horizon"),
        pytest.param(a_key(tokens=Decimal(4)), 0, 0, id="no time, no request"),
    ],
)
def test_how_many_requests_a_horizon_holds(row, seconds, expected):
    assert requests(row, seconds) == expected


def test_a_silence_in_the_future_is_named_and_a_past_one_is_not():
    until = NOON + SECOND

    assert estimate(a_key(cool_down_until=until), SECOND, NOON).silent_until == until
    assert estimate(a_key(cool_down_until=until), SECOND, until).silent_until is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, 10, id="as many as leave in a second"),
        pytest.param({"rate_per_second": Decimal("0.3")}, 1, id="a slow key: one"),
        pytest.param({"in_flight_limit": 3}, 3, id="no more than may be open"),
        pytest.param({"in_flight_limit": 3, "told": {"inFlight": 2}}, 2, id="told fewer"),
        pytest.param({"told": {"inFlight": 2}}, 2, id="told where nothing is configured"),
    ],
)
def test_how_many_requests_at_once_make_sense(fields, expected):
    assert estimate(a_key(**fields), SECOND, NOON).concurrency == expected


def test_an_estimate_is_what_a_greedy_worker_then_gets():
    row, now, sent = refresh(new_bucket("k", TEN, NOON), TEN, NOON), NOON, 0
    promised = estimate(row, 20 * SECOND, NOON).requests
    while True:
        ask = Ask("a", Decimal(1), NOON + 20 * SECOND, 60 * SECOND)
        row, answer = visit(refresh(row, TEN, now), ask, TEN.manners, now)
        if isinstance(answer, Wait):
            break
        now, sent = max(now, answer.at), sent + 1

    assert sent == promised
