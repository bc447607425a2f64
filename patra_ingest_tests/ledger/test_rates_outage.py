"""The gate while the ledger is out of reach, and afterwards; several keys at once; estimates."""

import threading
import time
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from sqlalchemy import make_url, text

from patra_ingest.clock import SystemClock
from patra_ingest.errors import LedgerUnreachable, Throttled
from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.permit import Budget, Decision
from patra_ingest.rate.signals import Complaint, Silence
from patra_ingest_tests.cut import wire

KEY = "crossref/works"
FAST = Limits(20, burst=5, in_flight=3)


@pytest.fixture
def line(mysql_url):
    """A wire to MySQL, and a ledger at its other end."""
    there = make_url(mysql_url)
    with wire(there.host, there.port) as one:
        here = there.set(host="127.0.0.1", port=one.port)
        db = open_db(here.render_as_string(hide_password=False))
        yield one, db
        db.close()


def bucket(url):
    db = open_db(url)
    with db.read() as tx:
        found = tx.execute(text("SELECT * FROM ing_rate_bucket")).mappings().one()
    db.close()
    return found


def test_a_cut_wire_is_not_the_same_as_a_wrong_password(line):
    cable, db = line
    cable.cut()

    with pytest.raises(LedgerUnreachable), db.read() as tx:
        db.now(tx)

    cable.mend()
    with db.read() as tx:
        assert db.now(tx)


def test_the_server_gives_a_silent_host_up_after_a_minute(line):
    _, db = line
    with db.read() as tx:
        assert tx.execute(text("SELECT @@session.wait_timeout")).scalar_one() == 60


def test_without_the_ledger_one_request_a_second_leaves_one_at_a_time(line, mysql_url):
    cable, db = line
    gate = RateGate(db, SystemClock(), "worker-a", 15, tended=True)
    gate.release(gate.acquire(KEY, FAST))
    cable.cut()

    began, leaving, at_once, most = time.monotonic(), [], threading.Semaphore(0), []

    def lane():
        while time.monotonic() - began < 3:
            with gate.permit(KEY, FAST) as permit:
                assert permit.facts.decision is Decision.FALLBACK
                leaving.append(time.monotonic())
                at_once.release()
                most.append(at_once._value)
                time.sleep(0.05)
                at_once.acquire()

    lanes = [threading.Thread(target=lane) for _ in range(3)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()

    gaps = [after - before for before, after in pairwise(leaving)]
    assert len(leaving) >= 3
    assert min(gaps) >= 0.98
    assert max(most) == 1

    before = Decimal(bucket(mysql_url)["tokens"])
    cable.mend()
    time.sleep(1.1)  # it is tried again once a second
    permit = gate.acquire(KEY, FAST)
    gate.release(permit)
    gate.close()

    assert permit.facts.decision is not Decision.FALLBACK
    # What was spent without leave is paid: the bucket was full again, and is short of all of them.
    assert Decimal(bucket(mysql_url)["tokens"]) <= before + 5 - len(leaving)
    assert bucket(mysql_url)["holders"] is None


def test_a_silence_is_kept_without_the_ledger_and_told_when_it_is_back(line, mysql_url):
    cable, db = line
    gate = RateGate(db, SystemClock(), "worker-a", 15, tended=True)
    permit = gate.acquire(KEY, FAST)
    cable.cut()

    until = gate.clock.now() + timedelta(seconds=120)
    gate.feedback(KEY, Complaint(), Silence(until))
    gate.release(permit)
    with pytest.raises(Throttled) as caught:
        gate.acquire(KEY, FAST, deadline=gate.clock.now() + timedelta(seconds=60))
    assert caught.value.retry_at >= until

    cable.mend()
    time.sleep(1.1)
    with pytest.raises(Throttled):
        gate.acquire(KEY, FAST, deadline=gate.clock.now() + timedelta(seconds=60))
    kept = bucket(mysql_url)
    assert read_json(kept["last_signal"])["signal"] == "RETRY_AFTER"
    assert float(kept["rate_per_second"]) == 10


def test_a_request_under_two_keys_waits_for_the_slower_one_and_takes_from_both(db):
    gate = RateGate(db, SystemClock(), "worker-a")
    own = Budget("own", Limits(1000, burst=100))
    slow = Budget("all", Limits(10, burst=1, in_flight=1), cost=Decimal(1))

    permits = []
    for _ in range(4):
        with gate.permit_all((own, slow)) as permit:
            permits.append(permit)

    starts = [permit.granted_at for permit in permits]
    spent = (starts[-1] - starts[0]).total_seconds()
    assert spent >= 0.3  # four at ten a second
    with db.read() as tx:
        rows = tx.execute(text("SELECT rate_key, holders FROM ing_rate_bucket")).all()
    assert {row.rate_key: row.holders for row in rows} == {"own": None, "all": None}


def test_one_key_that_refuses_costs_the_other_nothing(db):
    gate = RateGate(db, SystemClock(), "worker-a")
    own = Budget("own", Limits(Decimal("0.001"), burst=2))
    full = Budget("all", Limits(1000, burst=10, in_flight=1))
    other = RateGate(db, SystemClock(), "worker-b").acquire("all", full.limits)

    with pytest.raises(Throttled, match="as many requests as allowed are open"):
        gate.acquire_all((own, full), deadline=gate.clock.now())

    assert other.rate_key == "all"
    soon = timedelta(seconds=1)
    for _ in range(2):
        assert gate.acquire("own", own.limits, deadline=gate.clock.now() + soon)
    with pytest.raises(Throttled, match="the rate of the key allows none earlier"):
        gate.acquire("own", own.limits, deadline=gate.clock.now())


def test_an_estimate_says_what_can_still_be_sent(db):
    gate = RateGate(db, SystemClock(), "worker-a")
    assert gate.estimate(KEY, timedelta(minutes=1)) is None
    gate.release(gate.acquire(KEY, Limits(10, burst=10, in_flight=4)))

    seen = gate.estimate(KEY, timedelta(seconds=60))
    assert seen is not None
    assert 590 <= seen.requests <= 610
    assert (seen.concurrency, seen.silent_until) == (4, None)

    gate.feedback(KEY, Silence(gate.clock.now() + timedelta(seconds=30)))
    hushed = gate.estimate(KEY, timedelta(seconds=60))
    assert hushed is not None
    assert 280 <= hushed.requests <= 310
