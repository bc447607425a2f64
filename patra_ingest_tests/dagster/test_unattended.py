"""An hour nobody looks at, in a few minutes: everything is on, the source lives, processes die.

A real sandbox whose works come, change and are deleted, asked every minute; a real code location
and a real daemon, with every schedule and every sensor on. The daemon is killed twice while runs
are in flight, the code location is loaded anew, and once it dies with all its runs.
PATRA_UNATTENDED_MINUTES=60 makes it the hour, and all of that happens again and again.
"""

import os
import statistics
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import cycle, pairwise

import dagster as dg
import pytest

from patra_ingest.cli.setup import prepare
from patra_ingest.clock import SystemClock
from patra_ingest.cursor.replay import check_cursors
from patra_ingest.ledger.db import open_db, read_instant
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest_tests.household import Household

MINUTES = float(os.environ.get("PATRA_UNATTENDED_MINUTES", "3.5"))
PAST = timedelta(minutes=8)  # what the source had before anybody looked
WORKS_PER_MINUTE = 120
TROUBLE_SECONDS = 45.0
AWAY_SECONDS = 4.0
SETTLE_SECONDS = 420.0
SENSORS = (
    *("queued_harvest", "queued_update", "queued_backfill"),
    *("reslice_requests", "signals_waiting", "alerts"),
)
SCHEDULES = (
    *("harvest_sandbox_works", "backfill_sandbox_works", "update_sandbox_works"),
    *("harvest_sandbox_papers", "backfill_sandbox_papers"),
    *("harvest_registry", "backfill_registry", "update_registry"),
    *("check_schedule", "upkeep_daily"),
)
STARTED = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED)
WAITING = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING)
# What a killed process may leave behind; every other failure is one of ours.
EXCUSES = ("seconds to start", "Its process is gone", "unexpectedly exited")


@pytest.fixture
def world():
    start = (SystemClock().now() - PAST).replace(microsecond=0)
    minutes = PAST.total_seconds() / 60 + MINUTES
    return World(round(WORKS_PER_MINUTE * minutes), start, minutes / 1440, 1)


@pytest.fixture
def sandbox(world):
    with start_sandbox(world, Behaviour(living=True, latency_ms=100)) as box:
        yield box


@pytest.fixture
def house(tmp_path, monkeypatch, world, sandbox):
    """A household in which everything is switched on; only its patience is shorter than usual."""
    house = Household(tmp_path, PATRA_LEASE_SECONDS="15")
    house.configure("run_monitoring", start_timeout_seconds=40, poll_interval_seconds=5)
    house.write_pack(sandbox.url, world.start)
    monkeypatch.setattr("patra_ingest.packs.FOLDER", house.packs)
    prepare(Settings(home=house.patra, db_url=""))
    try:
        house.start_code()
        assert house.switch_on() == {*SENSORS, *SCHEDULES}
        house.start_daemon()
        yield house
    finally:
        house.stop()


def kill_daemon(house, at):
    """Kill the daemon while runs are in one of these states; start it again a little later."""
    house.wait_until(lambda: any(run.status in at for run in house.active_runs()), 120)
    house.kill("daemon")
    time.sleep(AWAY_SECONDS)
    house.start_daemon()


def reload_code(house):
    house.wait_until(lambda: any(run.status in STARTED for run in house.active_runs()), 120)
    house.reload_code()


def kill_code(house):
    house.wait_until(lambda: any(run.status in STARTED for run in house.active_runs()), 120)
    house.kill("code")
    time.sleep(AWAY_SECONDS)
    house.start_code()


TROUBLES = (
    lambda house: kill_daemon(house, STARTED),
    reload_code,
    lambda house: kill_daemon(house, WAITING),
    kill_code,
)


def signal_some(house):
    """Somebody wants a few works asked for once more."""
    known = house.rows("SELECT provider_id FROM ing_record WHERE endpoint_name = 'works' LIMIT 500")
    if known:
        chosen = [name for (name,) in known[:: len(known) // 5 or 1]]
        house.run("patra", "signal", "add", "sandbox/works", *chosen)


def tell_others(house):
    """Somebody publishes what has changed."""
    sink = f"jsonl:{house.folder / 'outbox'}"
    house.run("patra", "outbox", "publish", "--until-empty", "--to", sink)


def live_through(house, world):
    """Let time pass, with one trouble after the other, until the world has ended."""
    end = world.first_second + world.seconds
    pause = min(TROUBLE_SECONDS, (end - time.time()) / 5)
    happened = Counter()
    for number in cycle(range(len(TROUBLES))):
        time.sleep(pause)
        if time.time() > end and happened.total() >= len(TROUBLES):
            return happened
        signal_some(house)
        tell_others(house)
        TROUBLES[number](house)
        happened[number] += 1
    raise AssertionError("it never ends")


OPEN = """
    SELECT COUNT(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
    UNION ALL SELECT COUNT(*) FROM ing_signal WHERE status_code = 'PENDING'
    UNION ALL SELECT COUNT(*) FROM ing_plan WHERE status_code NOT IN ('COMPLETED', 'CANCELLED')
"""
CURSORS = "SELECT endpoint_name, operation_code, normalized_instant FROM ing_cursor"


def has_settled(house, world):
    """Say whether everything the source has was asked for, and nobody works."""
    end = world.start + timedelta(seconds=world.seconds)
    at = {(row[0], row[1]): read_instant(row[2]) for row in house.rows(CURSORS) if row[2]}
    ends = [at.get((name, "HARVEST"), world.start) >= end for name in ("works", "papers")]
    begins = [at.get((name, "BACKFILL"), end) <= world.start for name in ("works", "papers")]
    nothing = not any(count for (count,) in house.rows(OPEN))
    return all([*ends, *begins, nothing]) and not house.active_runs()


RECORDS = """
    SELECT provider_id, is_deleted, source_updated_at, JSON_EXTRACT(fields, '$.version')
      FROM ing_record WHERE endpoint_name = '{}'
"""


def records_of(house, endpoint):
    return {row[0]: row[1:] for row in house.rows(RECORDS.format(endpoint))}


def written(instant):
    return f"{read_instant(instant):%FT%TZ}"


def assert_ledger_is_truth(house, sandbox):
    """Ids, times, versions and deletions are the source's own."""
    truth, works = sandbox.truth(), records_of(house, "works")
    assert works.keys() == set(truth.ids)
    assert {name: written(row[1]) for name, row in works.items()} == truth.updated_at
    assert {row[0] for row in works.values()} == {0}

    truth, papers = sandbox.truth(face="oai"), records_of(house, "papers")
    live = {name: row for name, row in papers.items() if not row[0]}
    assert live.keys() == set(truth.ids)
    assert {name: row[2] for name, row in live.items()} == truth.versions
    assert {name: written(row[1]) for name, row in live.items()} == truth.updated_at
    assert papers.keys() - live.keys() == set(truth.deleted)
    assert max(truth.versions.values()) > 2, "the source has changed while it was asked"


def assert_nothing_is_doubled(house):
    """Slices tile; every task has one slice, ended once, and nothing is left open."""
    for endpoint in ("works", "papers"):
        for operation in ("HARVEST", "BACKFILL"):
            windows = house.rows(
                "SELECT window_from, window_to FROM ing_plan_slice WHERE status_code = 'SUCCEEDED'"
                f" AND endpoint_name = '{endpoint}' AND operation_code = '{operation}' ORDER BY 1"
            )
            assert len(windows) > 3
            assert all(one[1] == other[0] for one, other in pairwise(windows)), windows
    tasks = (
        "SELECT COUNT(*), COUNT(DISTINCT slice_id), COUNT(DISTINCT idempotent_key) FROM ing_task"
    )
    ((count, slices, keys),) = house.rows(tasks)
    assert count == slices == keys
    ended = house.rows(
        "SELECT t.id, SUM(r.status_code = 'SUCCEEDED') FROM ing_task t"
        " JOIN ing_task_run r ON r.task_id = t.id GROUP BY t.id"
    )
    assert len(ended) == count
    assert {times for _, times in ended} == {1}
    for table in ("ing_task_run", "ing_task_run_batch"):
        open_rows = f"SELECT COUNT(*) FROM {table} WHERE status_code NOT IN ('SUCCEEDED', 'FAILED')"
        assert house.rows(open_rows) == [(0,)]


def assert_cursors_are_their_events(house):
    db = open_db(f"sqlite:///{house.patra / 'ledger.db'}")
    checks = list(check_cursors(db, SystemClock(), lambda _: True))
    db.close()
    assert len(checks) >= 4
    assert [check for check in checks if not check.is_fine] == []


def assert_dagster_is_at_rest(house):
    """No run is left, none was started twice for one tick, and none failed but by violence."""
    with house.instance() as stored:
        runs = stored.get_runs()
        failed = [run for run in runs if run.status is not dg.DagsterRunStatus.SUCCESS]
        why = {run.run_id: last_words(stored, run.run_id) for run in failed}
        ticks = [run.tags["dagster/run_key"] for run in runs if "dagster/run_key" in run.tags]
    assert [run for run in failed if not run.is_finished] == []
    assert {k: w for k, w in why.items() if not any(excuse in w for excuse in EXCUSES)} == {}
    assert [key for key, times in Counter(ticks).items() if times > 1] == []
    return Counter((run.job_name, run.status.value) for run in runs)


def last_words(stored, run_id):
    told = stored.all_logs(run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    return "; ".join(f"{entry.message} {entry.dagster_event.event_specific_data}" for entry in told)


def assert_every_check_is_green(house):
    house.run("dagster", "job", "execute", "-f", "location.py", "-a", "defs", "-j", "check_job")
    with house.instance() as stored:
        (run,) = stored.get_runs(dg.RunsFilter(job_name="check_job"), limit=1)
        kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        told = [
            entry.dagster_event.event_specific_data for entry in stored.all_logs(run.run_id, kind)
        ]
    assert len(told) == 20
    assert [
        (one.asset_key, one.check_name, one.description) for one in told if not one.passed
    ] == []


def latencies(house):
    """Return for every task the seconds from its queueing to its first execution."""
    waits = house.rows(
        "SELECT t.created_at, MIN(r.started_at) FROM ing_task t"
        " JOIN ing_task_run r ON r.task_id = t.id GROUP BY t.id"
    )
    return [(read_instant(b) - read_instant(a)).total_seconds() for a, b in waits]


@pytest.mark.timeout(MINUTES * 60 + 1200)
def test_an_hour_unattended_ends_with_the_truth(house, sandbox, world, record_property):
    happened = live_through(house, world)
    assert min(happened[number] for number in range(len(TROUBLES))) >= 1, happened
    house.wait_until(lambda: has_settled(house, world), SETTLE_SECONDS)
    house.kill("daemon")

    runs = assert_dagster_is_at_rest(house)
    assert_ledger_is_truth(house, sandbox)
    assert_nothing_is_doubled(house)
    assert_cursors_are_their_events(house)
    assert_every_check_is_green(house)
    waits = latencies(house)
    figures = {
        "runs": {f"{job} {status}": count for (job, status), count in sorted(runs.items())},
        "tasks": len(waits),
        "median seconds from queued to executing": round(statistics.median(waits), 1),
        "at": f"{datetime.now(UTC):%F %TZ}, load {os.getloadavg()[0]:.1f}",
    }
    record_property("unattended", str(figures))
    sys.stdout.write(f"{figures}\n")
    assert statistics.median(waits) < 120, figures
