"""Processes on one rate key, as the source sees them: as fast as allowed, and never faster."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.gate_workers import KEY, LATENCY_MS, WORLD, Errand, crew, look, strict
from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import open_db
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.sandbox.process import start_sandbox

LIMITS = Limits(40, burst=4, in_flight=3)
PROCESSES = 3
PLACES = 10
PLENTY = Limits(1000, burst=1000, in_flight=PLACES)
PERMIT_SECONDS = 2.0
RETRY_AFTER = 3
# A request that passed the gate before the silence was told may still be on its way.
TELLING_SECONDS = LATENCY_MS / 1000 + 0.3
# What a busy machine may add before the last place is seen to be free.
LATE_SECONDS = 2.0
# `python -m bench gate` measures how much is used; on a busy machine no more than this is certain.
BUSY_SHARE = 0.5


@pytest.fixture
def sandbox():
    with start_sandbox(WORLD, strict(LIMITS)) as running:
        yield running


def test_processes_use_up_one_budget_and_the_source_never_complains(db_url, sandbox):
    errand = Errand(db_url, sandbox.url, LIMITS, seconds=4.0)

    with crew(errand, PROCESSES):
        pass

    seen = look(sandbox, errand, PROCESSES)
    assert seen.refused == 0
    assert seen.most_in_a_second <= LIMITS.rate_per_second + LIMITS.burst
    assert seen.most_in_flight <= LIMITS.in_flight
    assert seen.share >= BUSY_SHARE
    assert min(seen.by_worker) > 0


def test_after_a_retry_after_no_process_sends_before_it_is_over(db_url, sandbox):
    with crew(Errand(db_url, sandbox.url, LIMITS, seconds=RETRY_AFTER + 3), PROCESSES):
        time.sleep(1.5)
        sandbox.refuse_next(retry_after=RETRY_AFTER)

    arrivals = sandbox.arrivals()
    (refused,) = (one for one in arrivals if one.status == 429)
    after = [one.at - refused.at for one in arrivals if one.at > refused.at]
    early = [seconds for seconds in after if TELLING_SECONDS < seconds < RETRY_AFTER]
    assert early == []
    assert {one.worker for one in arrivals if one.at >= refused.at + RETRY_AFTER} == {
        one.worker for one in arrivals
    }, "afterwards everyone goes on"


def hold_every_place(url, held):
    """Take all places, say so, and keep them."""
    gate = RateGate(open_db(url), SystemClock(), "victim", permit_seconds=PERMIT_SECONDS)
    for _ in range(PLACES):
        gate.acquire(KEY, PLENTY)
    held.set()
    time.sleep(60)


def kill_a_holder(url):
    """Let a process take all places and kill it; return when it had them all."""
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    victim = spawn.Process(target=hold_every_place, args=(url, held), daemon=True)
    victim.start()
    assert held.wait(30)
    had_them_at = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    return had_them_at


def test_the_places_of_a_killed_process_are_free_again_after_their_time(db, db_url):
    had_them_at = kill_a_holder(db_url)
    gate = RateGate(db, SystemClock(), "heir", permit_seconds=PERMIT_SECONDS)

    def take(_):
        permit = gate.acquire(KEY, PLENTY)
        return permit, time.monotonic() - had_them_at

    with ThreadPoolExecutor(PLACES) as pool:
        taken = list(pool.map(take, range(PLACES)))
    for permit, _ in taken:
        gate.release(permit)
    gate.close()

    waited = sorted(seconds for _, seconds in taken)
    assert waited[0] >= PERMIT_SECONDS - 1.0, "nobody is robbed of a place that is still its own"
    assert waited[-1] <= PERMIT_SECONDS + LATE_SECONDS
