"""One rate key, many threads and processes: never faster, never more at once than allowed."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import accumulate, chain

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import open_db, read_instant, read_json
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.signals import Silence

KEY = "crossref/works"
PLENTY = Limits(1000, burst=1000)


@pytest.fixture
def gate(db):
    return RateGate(db, SystemClock(), "worker-a")


def row(db, table):
    with db.read() as tx:
        return tx.execute(text(f"SELECT * FROM {table}")).mappings().one()


def in_processes(work, *arguments, processes=4):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        jobs = [pool.submit(work, *arguments) for _ in range(processes)]
        return list(chain.from_iterable(job.result() for job in jobs))


def now(db):
    with db.read() as tx:
        return db.now(tx)


def hold(url, limits, threads, times, seconds=0.0):
    """Hold `times` permits in each of `threads` threads for `seconds`; answer when it was."""
    db, clock = open_db(url), SystemClock()
    gate = RateGate(db, clock, f"worker-{os.getpid()}")

    def lane(_):
        spans = []
        for _ in range(times):
            with gate.permit(KEY, limits) as permit:
                held_from = now(db)
                clock.sleep(seconds)
                spans.append((permit.granted_at, held_from, now(db)))
        return spans

    with ThreadPoolExecutor(threads) as pool:
        spans = list(chain.from_iterable(pool.map(lane, range(threads))))
    db.close()
    return spans


def assert_rate_was_kept(limits, spans):
    instants = sorted(granted_at for granted_at, *_ in spans)
    for first, start in enumerate(instants):
        for granted, at in enumerate(instants[first:], start=1):
            span = Decimal((at - start) // timedelta(microseconds=1)) / 1_000_000
            assert granted <= limits.burst + limits.rate_per_second * span


@pytest.mark.parametrize("limits", [Limits(60, burst=1), Limits(60, burst=5)], ids=["1", "5"])
def test_threads_share_one_bucket(db_url, limits):
    spans = hold(db_url, limits, 8, 6)

    assert len(spans) == 48
    assert_rate_was_kept(limits, spans)


def test_processes_share_one_bucket(db_url):
    limits = Limits(60, burst=3)

    spans = in_processes(hold, db_url, limits, 2, 10)

    assert len(spans) == 80
    assert_rate_was_kept(limits, spans)


def test_processes_share_the_places_in_flight(db_url):
    limits = Limits(200, burst=10, in_flight=2)

    spans = in_processes(hold, db_url, limits, 2, 5, 0.03)

    # Granted is decided a moment before the place was seen to be free: look at when it was held.
    steps = sorted([(held, 1) for _, held, _ in spans] + [(end, -1) for *_, end in spans])
    assert max(accumulate(step for _, step in steps)) <= 2
    assert len(spans) == 40
    assert_rate_was_kept(limits, spans)


def throttled_elsewhere(url):
    """Report a Retry-After from another process."""
    db = open_db(url)
    gate = RateGate(db, SystemClock(), "worker-b")
    gate.acquire(KEY, PLENTY)
    gate.feedback(KEY, Silence(gate.clock.now() + timedelta(seconds=1)))
    db.close()
    return []


def test_retry_after_seen_by_one_process_delays_the_others(db, db_url, gate):
    gate.acquire(KEY, PLENTY)

    in_processes(throttled_elsewhere, db_url, processes=1)

    assert gate.acquire(KEY, PLENTY).granted_at >= read_instant(
        row(db, "ing_rate_bucket")["cool_down_until"]
    )


def die_holding(url, limits):
    """Take the only place and be killed."""
    RateGate(open_db(url), SystemClock(), "worker-b", permit_seconds=2).acquire(KEY, limits)
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_place_of_a_killed_process_comes_back_when_its_permit_expires(db, db_url, gate):
    one = replace(PLENTY, in_flight=1)
    victim = multiprocessing.get_context("spawn").Process(target=die_holding, args=(db_url, one))
    victim.start()
    victim.join()
    (dead,) = read_json(row(db, "ing_rate_bucket")["holders"]).values()

    permit = gate.acquire(KEY, one)

    assert permit.granted_at >= read_instant(dead["until"])
    assert list(read_json(row(db, "ing_rate_bucket")["holders"])) == [gate.holder]
