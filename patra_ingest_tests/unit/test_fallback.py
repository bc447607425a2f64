"""A process that cannot reach the ledger; its clock is ours, so nobody really sleeps."""

import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from patra_ingest.errors import Throttled
from patra_ingest.ledger import rates
from patra_ingest.ledger.db import open_db
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.fallback import Alone, safe_rate
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.patience import Patience
from patra_ingest.rate.permit import Budget, Decision
from patra_ingest.rate.signals import Silence
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.fakes import FakeClock

FAST = Limits(100, burst=10)
SECOND = timedelta(seconds=1)
ONE = Decimal(1)


@pytest.mark.parametrize(
    ("configured", "cost", "held", "seen", "expected"),
    [
        pytest.param("100", 1, None, None, "1", id="the platform's default"),
        pytest.param("100", 1, "100", "40", "1", id="never above it, however fast we were"),
        pytest.param("0.3", 1, None, None, "0.3", id="what the key allows, if that is slower"),
        pytest.param("100", 1, "0.5", None, "0.5", id="what held when the ledger was last seen"),
        pytest.param("0.3", 1, "100", None, "0.3", id="limits that were lowered since"),
        pytest.param("100", 1, "100", "0.2", "0.2", id="what we had of it, if that is less"),
        pytest.param("1", 5, None, None, "0.2", id="a dear request takes longer"),
        pytest.param("100", "0.5", None, None, "1", id="a cheap one is no faster"),
    ],
)
def test_the_lowest_of_default_allowed_and_seen(configured, cost, held, seen, expected):
    budget = Budget("k", Limits(Decimal(configured)), Decimal(cost))
    known = [None if one is None else Decimal(one) for one in (held, seen)]

    assert safe_rate(budget, *known) == Decimal(expected)


@pytest.fixture
def clock():
    return FakeClock()


def patience(clock, seconds=None, stop=None):
    deadline = None if seconds is None else clock.now() + seconds * SECOND
    return Patience(clock, deadline, stop)


def spent(clock, alone, rates_of, times):
    """Send one request after another and return the seconds between the first and the last."""
    began = None
    for _ in range(times):
        alone.take(rates_of, patience(clock))
        began = began or clock.now()
        alone.give_back(rates_of)
    return (clock.now() - began).total_seconds()


@pytest.mark.parametrize(("rate", "seconds"), [("1", 9), ("0.5", 18), ("0.3", 30)])
def test_ten_requests_leave_at_the_safe_rate(clock, rate, seconds):
    took = spent(clock, Alone(clock), {"k": Decimal(rate)}, 10)

    assert took == pytest.approx(seconds, abs=0.1)


def test_the_slowest_of_several_keys_holds(clock):
    took = spent(clock, Alone(clock), {"a": ONE, "b": Decimal("0.25"), "c": ONE}, 10)

    assert took == pytest.approx(36, abs=0.1)


def test_a_rate_that_changes_is_no_second_chance(clock):
    alone = Alone(clock)
    for number in range(10):
        spent(clock, alone, {"k": ONE if number % 2 else Decimal("0.5")}, 1)

    assert clock.now() >= NOON + 9 * SECOND


def test_every_key_has_its_own_pace(clock):
    alone = Alone(clock)
    for key in ("a", "b", "c"):
        alone.take({key: ONE}, patience(clock))

    assert clock.now() == NOON


def test_one_request_at_a_time_under_every_key(clock):
    alone = Alone(clock)
    alone.take({"a": ONE, "b": ONE}, patience(clock))

    for key in ("a", "b"):
        with pytest.raises(Throttled):
            alone.take({key: ONE}, patience(clock, seconds=60))

    alone.give_back(["a", "b"])
    for key in ("a", "b"):
        alone.take({key: ONE}, patience(clock, seconds=60))


def test_who_cannot_have_all_keys_keeps_none(clock):
    alone = Alone(clock)
    alone.take({"b": ONE}, patience(clock))
    with pytest.raises(Throttled):
        alone.take({"a": ONE, "b": ONE}, patience(clock, seconds=5))

    alone.take({"a": ONE}, patience(clock, seconds=5))


def test_a_deadline_that_cannot_be_met_is_said_at_once_and_costs_nobody_the_place(clock):
    alone, slow = Alone(clock), {"k": Decimal("0.1")}
    spent(clock, alone, slow, 1)

    with pytest.raises(Throttled) as caught:
        alone.take(slow, patience(clock, seconds=5))

    assert clock.now() == NOON
    assert (caught.value.retry_at - NOON).total_seconds() == pytest.approx(10, abs=0.1)
    alone.take(slow, patience(clock, seconds=20))


def test_a_stop_ends_the_wait(clock):
    alone, stop = Alone(clock), threading.Event()
    spent(clock, alone, {"k": ONE}, 1)
    stop.set()

    with pytest.raises(Throttled):
        alone.take({"k": ONE}, patience(clock, stop=stop))


@pytest.fixture
def db(sqlite_url, clock):
    opened = open_db(sqlite_url, clock=clock)
    yield opened
    opened.close()


def take_away(db, sqlite_url):
    """Put something into the ledger's place that is no ledger; return how to bring it back."""
    db.close()
    file = Path(make_url(sqlite_url).database)
    away = file.rename(file.with_suffix(".away"))
    file.mkdir()

    def bring_back():
        db.close()
        file.rmdir()
        away.rename(file)

    return bring_back


def acquired(gate, *budgets, deadline=None):
    permit = gate.acquire_all(budgets, deadline)
    gate.release(permit)
    return permit


def test_without_its_ledger_the_gate_goes_on_slowly_and_pays_afterwards(db, sqlite_url, clock):
    gate, budget = RateGate(db, clock, "a"), Budget("k", Limits(100, burst=50))
    acquired(gate, budget)
    bring_back = take_away(db, sqlite_url)
    began = clock.now()
    permits = [acquired(gate, budget) for _ in range(5)]
    assert (clock.now() - began).total_seconds() == pytest.approx(4, abs=0.1)
    assert {one.facts.decision for one in permits} == {Decision.FALLBACK}

    bring_back()
    clock.sleep(1)
    assert acquired(gate, budget).facts.decision is Decision.ALLOW
    with db.read() as tx:
        row = rates.find_bucket(tx, "k")
    full = 50 - 5  # less than the burst: some arrive closer together than they left
    assert row.tokens == full - len(permits) - 1


def test_a_silence_of_before_is_kept_without_the_ledger(db, sqlite_url, clock):
    gate, budget = RateGate(db, clock, "a"), Budget("k", FAST)
    acquired(gate, budget)
    gate.feedback("k", Silence(NOON + 60 * SECOND))
    take_away(db, sqlite_url)

    acquired(gate, budget)

    assert clock.now() >= NOON + 60 * SECOND


def test_a_silence_that_the_ledger_could_not_be_told_is_kept_and_told_later(db, sqlite_url, clock):
    gate, budget = RateGate(db, clock, "a"), Budget("k", FAST)
    acquired(gate, budget)
    bring_back = take_away(db, sqlite_url)
    gate.feedback("k", Silence(NOON + 60 * SECOND))
    acquired(gate, budget)
    assert clock.now() >= NOON + 60 * SECOND

    bring_back()
    clock.sleep(2)
    acquired(gate, budget)
    with db.read() as tx:
        assert rates.silent_until(tx, "k") == NOON + 60 * SECOND


def test_every_key_of_a_request_is_kept_to_without_the_ledger(db, sqlite_url, clock):
    gate = RateGate(db, clock, "a")
    fast, slow = Budget("fast", FAST), Budget("slow", Limits(Decimal("0.2")))
    take_away(db, sqlite_url)

    for _ in range(4):
        acquired(gate, fast, slow)

    assert (clock.now() - NOON).total_seconds() >= 15


def test_a_dear_request_takes_its_time_without_the_ledger(db, sqlite_url, clock):
    gate, dear = RateGate(db, clock, "a"), Budget("k", Limits(1, burst=5), cost=5)
    take_away(db, sqlite_url)

    for _ in range(4):
        acquired(gate, dear)

    assert (clock.now() - NOON).total_seconds() >= 15
