"""When to stop: somebody asks, or the time that was given is over."""

import threading
import time
from datetime import timedelta

from patra_ingest.clock import Stop, SystemClock, is_late
from patra_ingest_tests.fakes import FakeClock

HALF_AN_HOUR = timedelta(minutes=30)


def given(time=HALF_AN_HOUR):
    clock, stop = FakeClock(), Stop()
    stop.give(clock, time)
    return clock, stop


def test_the_time_that_was_given_ends_by_itself():
    clock, stop = given()
    clock.sleep(1799)
    assert not stop.is_set()
    assert not is_late(stop)

    clock.sleep(1)
    assert stop.is_set()
    assert is_late(stop)
    assert clock.wait(stop, 1)


def test_who_asks_first_is_the_reason():
    clock, stop = given()
    stop.set()
    clock.sleep(9999)

    assert stop.is_set()
    assert not is_late(stop), "it was asked for"


def test_without_a_deadline_only_asking_stops():
    clock, stop = given(time=None)
    clock.sleep(1e9)

    assert not stop.is_set()
    assert not stop.wait(0.001)
    assert not is_late(threading.Event())
    stop.set()
    assert stop.wait()


def test_whoever_waits_is_woken_by_the_deadline():
    stop, began = Stop(), time.monotonic()
    stop.give(SystemClock(), timedelta(seconds=0.1))

    assert SystemClock().wait(stop, 30)
    assert time.monotonic() - began < 10
