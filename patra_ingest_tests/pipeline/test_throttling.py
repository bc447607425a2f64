"""An upstream that is busy or says "later" is waited out; no page is lost or doubled."""

from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.builders import a_pack, a_trigger, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import (
    end_state,
    records_of,
    sandbox_trigger,
    truth_of,
    work_off,
)

WORLD = World(records=300, start=datetime(2025, 1, 1, tzinfo=UTC), days=2, seed=7)
END = WORLD.start + timedelta(days=2)


def sums(home):
    stats = [read_json(row[0]) for row in home.rows("SELECT stats FROM ing_task_run_batch")]
    return {
        name: sum(one[name] for one in stats) for name in ("reqCount", "retryCount", "429Count")
    }


def harvest(home, behaviour):
    with start_sandbox(WORLD, behaviour) as box:
        home.plan(sandbox_trigger(box, WORLD.start, END))
        home.work(lanes=2)
        assert records_of(home, "works") == truth_of(box, WORLD.start, END)
        stats = box.stats()
    assert stats["pages"]["repeated"] == {}
    assert end_state(home).cursor == END
    assert end_state(home).fates["inserted"] == 300
    return stats


def test_503s_are_asked_again_and_counted(home):
    stats = harvest(home, Behaviour(fail_every=4))

    failed = stats["by_status"]["503"]
    assert failed >= 4
    assert sums(home) == {"reqCount": stats["requests"], "retryCount": failed, "429Count": 0}


def test_429s_are_waited_out_by_all_lanes_and_counted(home):
    stats = harvest(home, Behaviour(throttle_per_second=5))

    refused = stats["by_status"]["429"]
    assert refused >= 1
    assert sums(home) == {
        "reqCount": stats["requests"],
        "retryCount": refused,
        "429Count": refused,
    }
    bucket = home.rows("SELECT cool_down_until, last_signal FROM ing_rate_bucket")[0]
    assert read_json(bucket.last_signal)["signal"] == "RETRY_AFTER"
    assert read_instant(bucket.cool_down_until) > datetime.now(UTC) - timedelta(minutes=5)


@pytest.mark.parametrize("status", [429, 503])
def test_a_long_pause_is_spent_in_the_queue_and_is_nobodys_failure(home, status):
    with upstream(lambda _: (status, {}, {"Retry-After": "3600"})) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(2)))
        before = datetime.now(UTC)

        drained = home.work()

        assert len(source.asked) == 1, "Retry-After is for every task of the rate key"
    assert drained.tasks == {"RELEASED": 2}
    for task in home.rows("SELECT * FROM ing_task"):
        assert (task.status_code, task.retry_count, task.lease_owner) == ("QUEUED", 0, None)
        assert read_instant(task.scheduled_at) > before + timedelta(minutes=59)
    silence = home.one("SELECT cool_down_until FROM ing_rate_bucket WHERE rate_key = 'example'")
    assert read_instant(silence) > before + timedelta(minutes=59)
    assert home.one("SELECT COUNT(*) FROM ing_cursor") == 0


@pytest.mark.parametrize("header", ["0", "Sat, 20 Sep 2025 11:00:00 GMT"])
def test_a_pause_of_no_length_is_a_pause_all_the_same(home, header):
    asked_at = []

    def answer(_):
        asked_at.append(monotonic())
        if len(asked_at) == 1:
            return 429, {}, {"Retry-After": header}
        return 200, {"items": [], "total": 0}

    with upstream(answer) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))

        assert home.work().tasks == {"SUCCEEDED": 1}
    assert asked_at[1] - asked_at[0] > 0.9


def test_an_upstream_that_stays_busy_sends_the_task_back_and_at_last_fails_it(home):
    with upstream(lambda _: (500, b"<h1>busy</h1>")) as source, home.live() as live:
        home.apply(a_pack(source.url))
        live.planner.plan(a_trigger(start=day(0), end=day(1)))
        ends = []
        for _ in range(4):
            ends += work_off(live).tasks.elements()
            home.pass_pauses()

        assert ends == ["RELEASED"] * 3 + ["FAILED"]
        assert len(source.asked) == 4 * 2, "two attempts per run, as declared"
    task = home.rows(
        "SELECT status_code, retry_count, last_error_code, last_error_msg FROM ing_task"
    )[0]
    assert tuple(task[:3]) == ("FAILED", 3, "L1")
    assert "answered 500" in task.last_error_msg
    assert home.one("SELECT COUNT(*) FROM ing_cursor") == 0
