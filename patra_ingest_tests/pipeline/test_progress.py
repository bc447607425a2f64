"""A task is retried while it moves; what stands still, or begins again for ever, has an end."""

import threading

import pytest

from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import read_instant
from patra_ingest.ledger.silent import MAX_SILENT
from patra_ingest_tests.builders import a_trigger, day
from patra_ingest_tests.fakes import Died, dying
from patra_ingest_tests.pipeline.harness import Home, work_off
from patra_ingest_tests.pipeline.walks import (
    a_source,
    harvest,
    ids,
    last_error,
    listening,
    records,
    work_on,
    works,
)

WORKS = works(80)
# Every try that fails is one attempt at the task.
AT_ONCE = {"retry": {"max_attempts": 1, "breaker": {"failures": 50, "cooldown": "1s"}}}


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


class Shaky:
    """Answers every page at the second try, or at none, or with nothing."""

    def __init__(self, dead=(), empty=(), shaky=True):
        self.dead, self.empty, self.shaky, self.tried = dead, empty, shaky, set()

    def __call__(self, asked):
        start = int(asked["offset"])
        if start == 0 and len(self.tried) > 1:
            self.tried = {0}  # another walk
        first = start not in self.tried
        self.tried.add(start)
        if start in self.dead or (self.shaky and first and start):
            return 503, {}
        return 200, {"items": [] if start in self.empty else WORKS[start : start + 10], "total": 80}


def retries(home):
    return home.one("SELECT retry_count FROM ing_task")


def test_a_long_slice_outlives_any_number_of_failures_while_it_moves(home):
    with listening(Shaky()) as server:
        home.apply(a_source(server.url, AT_ONCE))

        assert harvest(home, rounds=12) == ["RELEASED"] * 8 + ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(80)


def test_a_source_that_is_dead_fails_its_task_though_the_breaker_keeps_us_away(home):
    breaker = {"retry": {"max_attempts": 9, "breaker": {"failures": 3, "cooldown": "2h"}}}
    with listening(Shaky(dead={0})) as server:
        home.apply(a_source(server.url, breaker))
        ends = harvest(home, rounds=2)
        assert retries(home) == 1, "who only has to wait does not fail once more"
        assert "answered 503" in home.one("SELECT last_error_msg FROM ing_task")
        while ends[-1] == "RELEASED":
            home.pass_pauses()
            home.execute("UPDATE ing_rate_bucket SET cool_down_until = NULL")
            ends += work_on(home)  # a new worker, whose breaker is closed

        assert ends == ["RELEASED"] * 4 + ["FAILED"]
        assert len(server.asked) == 4 * 3
    assert "answered 503" in last_error(home)[2]


def test_the_pause_begins_anew_with_the_count(home):
    with listening(Shaky()) as server:
        home.apply(a_source(server.url, AT_ONCE))
        harvest(home, rounds=5)

    (row,) = home.rows("SELECT retry_count, scheduled_at, updated_at FROM ing_task")
    assert row.retry_count == 1
    assert 25 < (read_instant(row.scheduled_at) - read_instant(row.updated_at)).seconds <= 30


def test_a_task_that_does_not_move_is_retried_three_times(home):
    with listening(Shaky(dead={30})) as server:
        home.apply(a_source(server.url, AT_ONCE))
        ends = harvest(home, rounds=12)

        # Two pages on the way were shaky; the third attempt meets the one that never comes.
        assert ends == ["RELEASED"] * 5 + ["FAILED"]
    assert "after 3 retries" in last_error(home)[2]


def test_progress_is_no_excuse_for_walks_that_prove_void(home):
    with listening(Shaky(empty={20})) as server:
        home.apply(a_source(server.url, AT_ONCE))
        ends = harvest(home, rounds=30)

    assert ends[-1] == "FAILED"
    assert last_error(home)[1] == "INCOMPLETE"
    void = home.one("SELECT COUNT(*) FROM ing_task_run WHERE error LIKE 'INCOMPLETE:%'")
    assert void == 4, "the first walk and three more"


def test_a_worker_that_stops_after_a_batch_has_moved_its_task(home):
    with listening(Shaky(shaky=False)) as server:
        home.apply(a_source(server.url, AT_ONCE))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.execute("UPDATE ing_task SET retry_count = 3")
        stop = threading.Event()
        with home.live() as live:
            live.worker().work(Order(), stop, lambda _: stop.set())
        assert retries(home) == 0

        assert work_on(home) == ["SUCCEEDED"]


def kill(home, reason):
    """Let a worker die before the statement that `reason` names, and its lease run out."""
    with home.live() as live, dying(live.db, reason), pytest.raises(Died):
        work_off(live)
    home.pass_leases()


def stores(seen):
    return seen.startswith("INSERT INTO ing_record")


def test_a_page_that_kills_every_worker_becomes_a_hole_that_a_new_plan_fills(home):
    with listening(Shaky(shaky=False)) as server:
        home.apply(a_source(server.url, AT_ONCE))
        home.plan(a_trigger(start=day(0), end=day(1)))
        for _ in range(MAX_SILENT):
            kill(home, stores)
            assert last_error(home)[0] == "EXECUTING"
        assert work_on(home) == ["FAILED"], "nobody executes it any more"
        assert last_error(home)[:2] == ("FAILED", "LEASE_LOST")
        assert (len(server.asked), records(home)) == (MAX_SILENT, [])

        assert harvest(home) == ["SUCCEEDED"], "mended, and planned again"
    assert records(home) == ids(80)


def test_a_task_that_moves_outlives_any_number_of_kills(home):
    with listening(Shaky(shaky=False)) as server:
        home.apply(a_source(server.url, AT_ONCE))
        home.plan(a_trigger(start=day(0), end=day(1)))
        for _ in range(MAX_SILENT + 1):
            begun = len(server.asked)
            kill(home, lambda seen, begun=begun: stores(seen) and len(server.asked) > begun + 1)

        assert work_on(home) == ["SUCCEEDED"]
        assert len(server.asked) <= 9 + MAX_SILENT + 1, "each kill costs one page"
    assert records(home) == ids(80)
