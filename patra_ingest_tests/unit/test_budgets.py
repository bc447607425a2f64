"""From what a pack declares to what the gate is asked with."""

from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.rate.bucket import Limits, Manners
from patra_ingest.rate.budgets import budgets_of
from patra_ingest.rate.permit import Budget
from patra_ingest.spec.policies import SharedLimit
from patra_ingest.spec.snapshot import RateSpec

SECOND = timedelta(seconds=1)


def a_rate(**fields):
    plain = {"key": "own", "per_second": 3.0, "burst": 2, "cost": 1.0, "park_after": 60 * SECOND}
    return RateSpec(**{**plain, **fields})


def own(**fields):
    return budgets_of(a_rate(**fields))[0]


def test_an_endpoint_with_one_key_has_one_budget():
    assert budgets_of(a_rate(in_flight=4)) == (Budget("own", Limits(3, 2, 4), 1.0),)


def test_a_request_spends_from_every_key_its_own_first():
    shared = SharedLimit(key="all", per_second=0.1, burst=1, in_flight=2)
    other = SharedLimit(key="day", per_second=0.001, burst=100)

    budgets = budgets_of(a_rate(cost=2.5, also=(shared, other)))

    assert [(one.rate_key, one.cost) for one in budgets] == [
        *[("own", 2.5), ("all", 2.5), ("day", 2.5)]
    ]
    assert budgets[1].limits == Limits(Decimal("0.1"), 1, 2)
    assert budgets[2].limits == Limits(Decimal("0.001"), 100)


@pytest.mark.parametrize(
    ("per_second", "interval", "expected"),
    [
        pytest.param(3.0, None, "3", id="no interval"),
        pytest.param(3.0, 3 * SECOND, "0.333333333", id="the interval is slower"),
        pytest.param(0.1, 3 * SECOND, "0.1", id="the rate is slower"),
        pytest.param(10.0, SECOND / 5, "5", id="a fraction of a second"),
    ],
)
def test_the_slower_of_rate_and_interval_holds(per_second, interval, expected):
    found = own(per_second=per_second, min_interval=interval, burst=1)

    assert found.limits.rate_per_second == Decimal(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, Manners(), id="the platform's"),
        pytest.param({"demote": 1.5}, Manners(demote=Decimal("1.5")), id="demote"),
        pytest.param({"cool_down": 3 * SECOND}, Manners(cool_down=3 * SECOND), id="cool-down"),
        pytest.param({"warm_up": 30 * SECOND}, Manners(warm_up=30 * SECOND), id="warm-up"),
    ],
)
def test_the_manners_of_a_key_are_declared_or_polite(fields, expected):
    assert own(**fields).limits.manners == expected


def test_every_key_of_a_request_has_the_manners_of_the_endpoint():
    shared = SharedLimit(key="all", per_second=1.0)

    budgets = budgets_of(a_rate(also=(shared,), demote=4.0))

    assert {one.limits.manners.demote for one in budgets} == {Decimal(4)}
