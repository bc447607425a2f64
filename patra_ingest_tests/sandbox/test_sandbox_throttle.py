"""The sandbox as a source with limits: whom it turns away, what it says, and what it notes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from urllib.error import HTTPError

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.sandbox.behaviour import Behaviour, changed
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.tally import KEPT_VISITS, Tally, Visit
from patra_ingest.sandbox.throttle import Throttle
from patra_ingest.sandbox.world import World
from patra_ingest_tests.fakes import FakeClock

WORLD = World(records=10, start=datetime(2025, 3, 1, tzinfo=UTC), days=1, seed=3)
AGAIN = Behaviour()


@pytest.fixture(scope="module")
def running():
    with start_sandbox(WORLD) as started:
        yield started


@pytest.fixture
def sandbox(running):
    yield running
    running.change(**{name: value for name, value in AGAIN.describe().items() if name != "habits"})
    running.behave()
    running.reset()


def ask(sandbox, worker=None):
    headers = {"X-Worker": worker} if worker else {}
    return httpx.get(
        f"{sandbox.url}/works", params={"rows": 1}, headers=headers, trust_env=False, verify=False
    )


class Door:
    """A throttle and the clock it looks at."""

    def __init__(self):
        self.clock = FakeClock()
        self.throttle = Throttle(self.clock)
        self.number = 0

    def enter(self, **limits):
        """Return the visit that is let in; None for one that is refused."""
        self.number += 1
        visit = Visit(self.number, self.clock.monotonic(), 1, None)
        return None if self.throttle.refuse(visit, Behaviour(**limits)) else visit

    def count(self, times, **limits):
        return sum(self.enter(**limits) is not None for _ in range(times))


def test_a_full_bucket_lets_a_burst_in_and_then_the_rate():
    door, limits = Door(), {"throttle_per_second": 10, "throttle_burst": 4}

    at_once = door.count(9, **limits)
    door.clock.sleep(0.25)
    later = door.count(9, **limits)
    door.clock.sleep(100)
    much_later = door.count(9, **limits)

    assert (at_once, later, much_later) == (4, 3, 4)  # half a token is forgiven, see below


@given(st.lists(st.floats(0, 0.5), max_size=60), st.integers(1, 30), st.integers(1, 9))
def test_a_bucket_never_lets_more_in_than_the_burst_and_the_rate(pauses, rate, burst):
    door = Door()
    for pause in pauses:
        door.clock.sleep(pause)
        door.enter(throttle_per_second=rate, throttle_burst=burst)
    let_in = door.count(100, throttle_per_second=rate, throttle_burst=burst)

    assert let_in <= burst + rate * 0.05  # 50 ms are forgiven to those squeezed on their way


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=60), st.integers(1, 30), st.integers(1, 9))
def test_a_client_that_keeps_the_limits_is_never_refused(pauses, rate, burst):
    door, own, last = Door(), float(burst), 0.0
    for pause in pauses:
        door.clock.sleep(pause)
        now = door.clock.monotonic()
        own, last = min(own + (now - last) * rate, burst), now
        if own >= 1:
            own -= 1
            assert door.enter(throttle_per_second=rate, throttle_burst=burst)


def test_a_bucket_that_became_smaller_gives_no_more_than_it_holds():
    door = Door()
    door.count(1, throttle_per_second=10, throttle_burst=50)

    assert door.count(9, throttle_per_second=10, throttle_burst=2) == 2


def test_one_more_in_flight_is_refused_until_one_has_left_and_the_refused_take_no_room():
    door, limits = Door(), {"throttle_in_flight": 2}
    first, second, third = (door.enter(**limits) for _ in range(3))

    assert (first is None, second is None, third is None) == (False, False, True)
    door.throttle.leave(second)
    assert door.count(3, **limits) == 1


def test_a_request_refused_for_company_costs_no_token():
    door = Door()
    limits = {"throttle_per_second": 1, "throttle_burst": 2, "throttle_in_flight": 1}
    inside = door.enter(**limits)
    door.count(20, **limits)
    door.throttle.leave(inside)

    assert door.count(1, **limits) == 1


def test_exactly_the_next_request_is_refused_with_its_own_retry_after(sandbox):
    sandbox.refuse_next(1, retry_after=3)

    got = [ask(sandbox) for _ in range(3)]

    assert [one.status_code for one in got] == [429, 200, 200]
    assert got[0].headers["retry-after"] == "3"
    assert "retry-after" not in got[1].headers


@pytest.mark.parametrize(("seconds", "said"), [(0, None), (1, "1"), (7, "7")])
def test_a_429_says_for_how_long_only_if_it_is_told_to(sandbox, seconds, said):
    sandbox.change(throttle_per_second=1, throttle_burst=1, retry_after=seconds)

    got = [ask(sandbox) for _ in range(2)]

    assert [one.status_code for one in got] == [200, 429]
    assert got[1].headers.get("retry-after") == said


def test_limits_change_while_it_runs_and_habits_and_walks_stay(sandbox):
    sandbox.behave("same-cursor")
    page = {"rows": 1, "cursor": "*"}
    first = httpx.get(f"{sandbox.url}/works", params=page, trust_env=False, verify=False)
    cursor = first.json()["message"]["next-cursor"]

    sandbox.change(throttle_per_second=1, throttle_burst=1)
    page = {"rows": 1, "cursor": cursor}
    second = httpx.get(f"{sandbox.url}/works", params=page, trust_env=False, verify=False)

    assert second.json()["message"]["next-cursor"] == cursor, "the same walk, the same habit"
    assert ask(sandbox).status_code == 429
    sandbox.change(throttle_per_second=0)
    assert [ask(sandbox).status_code for _ in range(5)] == [200] * 5


def test_limits_are_told_only_when_asked_to_and_then_as_they_are_now(sandbox):
    names = ("x-rate-limit-limit", "x-rate-limit-interval", "x-concurrency-limit")

    def told():
        headers = ask(sandbox).headers
        return [headers.get(name) for name in names]

    sandbox.change(throttle_per_second=20, throttle_burst=9, throttle_in_flight=3)
    silent = told()
    sandbox.change(tell_limits=True)
    before = told()
    sandbox.change(throttle_per_second=10)

    assert silent == [None] * 3
    assert before == ["20", "1s", "3"]
    assert told() == ["10", "1s", "3"]


@pytest.mark.parametrize(
    "wrong", [{"speed": 1}, {"retry_after": -1}, {"cap": 0.5}, {"gzip": 3}, {"refuse_next": -1}]
)
def test_what_cannot_be_is_refused_and_changes_nothing(sandbox, wrong):
    with pytest.raises(HTTPError, match="400"):
        sandbox.change(**wrong)

    assert ask(sandbox).status_code == 200


def test_only_what_is_named_changes():
    before = Behaviour(latency_ms=5, habits=frozenset({"no-total"}), cap=7)

    after = changed(before, {"latency_ms": "20", "gzip": "1", "fail_every": "3"})

    assert after == Behaviour(20.0, 3, gzip=True, habits=before.habits, cap=7)
    assert changed(after, {"habits": ""}).habits == frozenset()


def test_every_arrival_is_noted_with_its_status_company_and_caller(sandbox):
    sandbox.change(latency_ms=300, throttle_in_flight=2)
    with ThreadPoolExecutor(3) as crew:
        statuses = list(crew.map(lambda name: ask(sandbox, name).status_code, "abc"))
    sandbox.change(latency_ms=0, throttle_in_flight=0)
    ask(sandbox)

    seen, stats = sandbox.arrivals(), sandbox.stats()

    assert sorted(statuses) == sorted(one.status for one in seen[:3]) == [200, 200, 429]
    assert [one.in_flight for one in seen] == [1, 2, 3, 1]
    assert {one.worker for one in seen} == {*"abc", None}
    assert [one.at for one in seen] == sorted(one.at for one in seen)
    assert stats["rate_max_per_second"] == 4
    assert stats["rate_max_by_status"] == {"200": 3, "429": 1}


def test_a_reset_forgets_arrivals_the_bucket_and_who_was_to_be_refused(sandbox):
    sandbox.change(throttle_per_second=1, throttle_burst=1)
    ask(sandbox)
    sandbox.refuse_next(5)

    sandbox.reset()

    assert sandbox.arrivals() == []
    assert ask(sandbox).status_code == 200


def test_the_most_in_a_second_is_counted_over_every_second_not_over_calendar_ones():
    clock = FakeClock()
    tally = Tally(clock)
    for pause, status in ((0.0, 200), (0.6, 200), (0.3, 429), (0.2, 200), (5.0, 429)):
        clock.sleep(pause)
        tally.leave(tally.arrive(), status, 0)

    report = tally.report()

    assert report["rate_max_per_second"] == 3
    assert report["rate_max_by_status"] == {"200": 2, "429": 1}


def test_a_long_run_keeps_the_last_arrivals_only():
    tally = Tally(FakeClock())
    for _ in range(KEPT_VISITS + 3):
        tally.leave(tally.arrive("a"), 200, 0)

    assert len(tally.arrivals()) == KEPT_VISITS
    assert tally.requests == KEPT_VISITS + 3
