"""The rate gate and its two tables, on the real engines."""

import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import event, text

from patra_ingest.clock import SystemClock
from patra_ingest.errors import Throttled
from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.permit import Permit
from patra_ingest.rate.signals import Silence

KEY = "crossref/works"
NEVER_AGAIN = Limits(Decimal("0.001"), burst=1)  # the second token comes after a quarter of an hour
PLENTY = Limits(1000, burst=1000)


@pytest.fixture
def gate(db):
    return RateGate(db, SystemClock(), "worker-a")


def row(db, table="ing_rate_bucket"):
    with db.read() as tx:
        return tx.execute(text(f"SELECT * FROM {table}")).mappings().one()


def held(db):
    """Return the places in flight that the ledger knows of."""
    return sum(one["places"] for one in (read_json(row(db)["holders"]) or {}).values())


def deadline(seconds=0.0):
    return SystemClock().now() + timedelta(seconds=seconds)


def test_the_first_permit_makes_a_full_bucket_and_takes_from_it(db, gate):
    permit = gate.acquire(KEY, Limits(Decimal("0.001"), burst=4), cost=Decimal("1.5"))

    kept = row(db)
    assert (kept["rate_key"], round(Decimal(str(kept["tokens"])), 3)) == (KEY, Decimal("2.5"))
    assert read_instant(kept["refilled_at"]) == permit.granted_at
    assert (permit.rate_key, permit.budgets[0].cost) == (KEY, Decimal("1.5"))


def test_without_an_in_flight_limit_one_transaction_is_enough(db, gate):
    gate.acquire(KEY, PLENTY)
    begun = []
    event.listen(db.engine, "begin", begun.append)

    permit = gate.acquire(KEY, PLENTY)
    gate.release(permit)

    assert len(begun) == 1


def test_a_deadline_that_cannot_be_met_is_said_at_once(db, gate):
    gate.acquire(KEY, NEVER_AGAIN)
    asked = deadline(60)

    with pytest.raises(Throttled) as caught:
        gate.acquire(KEY, NEVER_AGAIN, deadline=asked)

    assert caught.value.retry_at > asked + timedelta(minutes=10)


def test_a_stop_ends_the_wait(gate):
    gate.acquire(KEY, NEVER_AGAIN)
    stop = threading.Event()
    stop.set()

    with pytest.raises(Throttled):
        gate.acquire(KEY, NEVER_AGAIN, stop=stop)


def test_a_stop_during_a_booked_wait_gives_the_place_back(db, gate):
    limits = Limits(0.25, burst=1, in_flight=5)  # the next token is four seconds away
    gate.release(gate.acquire(KEY, limits))
    stop = threading.Event()
    stop.set()

    with pytest.raises(Throttled):
        gate.acquire(KEY, limits, stop=stop)

    assert held(db) == 0


def test_other_keys_do_not_wait(gate):
    gate.acquire(KEY, NEVER_AGAIN)

    assert gate.acquire("arxiv", NEVER_AGAIN, deadline=deadline())


def test_new_limits_reach_the_bucket(db, gate):
    gate.acquire(KEY, NEVER_AGAIN)

    gate.acquire(KEY, Limits(50, burst=7, in_flight=3))

    kept = row(db)
    assert (kept["configured_rate"], kept["rate_per_second"]) == (50, 50)
    assert (kept["burst"], kept["in_flight_limit"]) == (7, 3)


def test_new_limits_reach_the_bucket_even_if_nothing_is_granted(db, gate):
    gate.acquire(KEY, NEVER_AGAIN)

    with pytest.raises(Throttled):
        gate.acquire(KEY, Limits(0.002), deadline=deadline())

    assert float(row(db)["configured_rate"]) == 0.002


def test_smaller_limits_take_saved_tokens_away(gate):
    gate.acquire(KEY, PLENTY)

    gate.acquire(KEY, NEVER_AGAIN)

    with pytest.raises(Throttled):
        gate.acquire(KEY, NEVER_AGAIN, deadline=deadline())


def test_a_lowered_rate_in_the_ledger_holds_for_everyone(db, gate):
    gate.acquire(KEY, Limits(1000, burst=1))
    with db.write() as tx:
        tx.execute(text("UPDATE ing_rate_bucket SET rate_per_second = 0.001, tokens = 0"))

    with pytest.raises(Throttled):
        gate.acquire(KEY, Limits(1000, burst=1), deadline=deadline(30))


def test_places_in_flight_are_counted_until_released(db, gate):
    two = replace(PLENTY, in_flight=2)
    first, second = gate.acquire(KEY, two), gate.acquire(KEY, two)
    with pytest.raises(Throttled):
        gate.acquire(KEY, two, deadline=deadline())

    gate.release(first)
    gate.release(first)

    third = gate.acquire(KEY, two, deadline=deadline(1))
    assert held(db) == 2
    gate.release(second)
    gate.release(third)
    assert held(db) == 0


def test_a_block_releases_its_permit_even_if_it_fails(db, gate):
    def send():
        with gate.permit(KEY, replace(PLENTY, in_flight=1)) as permit:
            assert (held(db), permit.rate_key) == (1, KEY)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        send()

    assert held(db) == 0


def test_nothing_is_locked_while_a_worker_sleeps(db):
    class Witness(SystemClock):
        naps = 0

        def sleep(self, seconds):
            with db.write() as tx:  # would time out behind an open transaction
                tx.execute(text("UPDATE ing_rate_bucket SET version = version + 1"))
            self.naps += 1
            super().sleep(seconds)

    clock = Witness()
    gate = RateGate(db, clock, "worker-a")
    while not clock.naps:
        gate.acquire(KEY, Limits(20, burst=1))


def test_a_permit_is_good_once_and_only_if_the_gate_made_it(gate):
    used, released = gate.acquire(KEY, PLENTY), gate.acquire(KEY, PLENTY)
    used.use()
    gate.release(released)

    for spent in (used, replace(used, waited_seconds=0.0), released):
        with pytest.raises(RuntimeError, match="used or released before"):
            spent.use()
    with pytest.raises(TypeError, match="not handed out by a rate gate"):
        replace(used, seal=object()).use()
    with pytest.raises(TypeError):
        Permit()  # type: ignore[call-arg]


def test_retry_after_silences_the_key_and_the_longer_silence_wins(db, gate):
    gate.acquire(KEY, PLENTY)
    gate.feedback(KEY, Silence(deadline(600)))
    long = read_instant(row(db)["cool_down_until"])
    gate.feedback(KEY, Silence(deadline(300)))

    assert read_instant(row(db)["cool_down_until"]) == long
    assert read_json(row(db)["last_signal"])["holder"] == gate.holder
    with pytest.raises(Throttled) as caught:
        gate.acquire(KEY, PLENTY, deadline=deadline(60))
    late = (caught.value.retry_at - deadline(600)).total_seconds()
    assert 0 < late < 61  # not everybody at the same moment


def test_a_worker_whose_clock_is_wrong_lives_by_the_ledgers(db, gate):
    class Fast(SystemClock):
        def now(self):
            return super().now() + timedelta(hours=1)

    fast = RateGate(db, Fast(), "worker-b")
    permit = fast.acquire(KEY, PLENTY)
    fast.feedback(KEY, Silence(fast.clock.now() + timedelta(minutes=10)))

    silence = read_instant(row(db)["cool_down_until"]) - permit.granted_at
    assert timedelta(minutes=10) <= silence < timedelta(minutes=20)
    with pytest.raises(Throttled) as caught:
        fast.acquire(KEY, PLENTY, deadline=fast.clock.now() + timedelta(minutes=5))
    assert caught.value.retry_at > fast.clock.now()
    assert permit.granted_at < deadline(60)


def test_feedback_about_a_key_nobody_uses_is_a_mistake(gate):
    with pytest.raises(ValueError, match="no permit was ever acquired"):
        gate.feedback("unheard-of", Silence(deadline(1)))


def test_retry_after_also_stops_those_who_had_booked(db):
    class Interrupted(SystemClock):
        until = None

        def sleep(self, seconds):
            if self.until is None:
                other = RateGate(db, SystemClock(), "worker-b")
                other.feedback(KEY, Silence(deadline(0.5)))
                self.until = read_instant(row(db)["cool_down_until"])
            super().sleep(seconds)

    clock = Interrupted()
    gate = RateGate(db, clock, "worker-a")
    while clock.until is None:
        permit = gate.acquire(KEY, Limits(20, burst=1))

    assert permit.granted_at >= clock.until
