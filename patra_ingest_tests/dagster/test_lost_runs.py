"""Runs whose process is gone: they are told from those that live, and nobody waits for them."""

import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta

import dagster as dg
import pytest

from patra_ingest.cli.setup import prepare
from patra_ingest.definitions import defs
from patra_ingest.defs.processes import PROCESS, end_lost_runs, is_gone, own_process
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest.wiring import open_ingest
from patra_ingest_tests.builders import day
from patra_ingest_tests.household import Household

STARTED = dg.DagsterRunStatus.STARTED


def spawn():
    """Return a living process, and what it says of itself."""
    code = (
        "import sys; from patra_ingest.defs.processes import own_process;"
        " print(own_process(), flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return child, child.stdout.readline().strip()


@pytest.fixture
def dead():
    """A process that was killed."""
    child, process = spawn()
    assert not is_gone(process)
    child.kill()
    child.communicate()
    return process


def test_a_process_is_gone_when_it_was_killed(dead):
    assert is_gone(dead)
    assert not is_gone(own_process())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of births and zombies")
def test_a_process_that_nobody_has_buried_is_gone():
    child, process = spawn()
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert is_gone(process), "a zombie"
    child.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of births and zombies")
def test_another_process_with_its_number_is_not_it():
    host, number, birth = own_process().split("/")

    assert is_gone(f"{host}/{number}/{birth}0")
    assert is_gone(f"{host}/{number}/00000000-{birth.partition('-')[2]}"), "before a restart"


def test_of_other_machines_nothing_is_known(dead):
    other = dead.replace(socket.gethostname(), "elsewhere", 1)

    assert not is_gone(other)


def start(instance, process, status=STARTED, job="execute_job", **tags):
    own = {PROCESS: process} if process else {}
    definition = defs.resolve_job_def(job)
    run = instance.create_run_for_job(definition, tags={**own, **tags}, status=status)
    return run.run_id


def test_a_started_run_without_a_process_is_ended_and_the_others_are_left_alone(instance, dead):
    lost = start(instance, dead)
    left = {
        start(instance, own_process()): STARTED,
        start(instance, dead.replace(socket.gethostname(), "elsewhere", 1)): STARTED,
        start(instance, None): STARTED,
        start(instance, dead, dg.DagsterRunStatus.STARTING): dg.DagsterRunStatus.STARTING,
        start(instance, dead, dg.DagsterRunStatus.SUCCESS): dg.DagsterRunStatus.SUCCESS,
    }

    assert [end_lost_runs(instance) for _ in range(2)] == [1, 0]

    assert instance.get_run_by_id(lost).status is dg.DagsterRunStatus.FAILURE
    (told,) = instance.all_logs(lost, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert dead in told.message
    assert {run: instance.get_run_by_id(run).status for run in left} == left


@pytest.mark.parametrize("process", ["dead", "own"])
def test_the_sensor_starts_another_executor_when_the_active_one_is_dead(
    home, execute, sandbox, tick, instance, dead, process
):
    window = {"window_from": "2025-09-01", "window_to": "2025-09-04", "base_url": sandbox.url}
    execute("plan_job", provenance="sandbox", **window)
    (request,) = tick("queued_harvest").run_requests
    start(instance, dead if process == "dead" else own_process(), **request.tags)

    assert len(tick("queued_harvest").run_requests) == (1 if process == "dead" else 0)


@pytest.mark.parametrize("job", [job.name for job in defs.jobs])
def test_a_run_of_any_job_says_which_process_it_is(home, execute, instance, sandbox, job):
    harvest = {"provenance": "sandbox", "base_url": sandbox.url}
    harvest |= {"window_from": "2025-09-01", "window_to": "2025-09-02"}
    needed = {"replay_job": {"run": 1}, "publish_outbox_job": {"to": f"jsonl:{home}/outbox"}}
    config = {**needed, "ingest_job": harvest, "plan_job": harvest}.get(job, {})
    if job == "replay_job":
        execute("ingest_job", **harvest)
    if job == "publish_outbox_job":
        result = defs.resolve_job_def(job).execute_in_process(
            run_config={"ops": {"publish_messages": {"config": config}}}, instance=instance
        )
    else:
        result = execute(job, **config)

    assert instance.get_run_by_id(result.run_id).tags[PROCESS] == own_process()


TASKS = "SELECT status_code, COUNT(*) FROM ing_task GROUP BY status_code"


def runs_of(house, job):
    with house.instance() as stored:
        return {run.run_id: run for run in stored.get_runs(dg.RunsFilter(job_name=job))}


@pytest.mark.timeout(600)
def test_when_the_code_location_dies_with_its_runs_others_go_on(tmp_path, monkeypatch):
    """Its machine lost power: Dagster would show the run as started, and start no other."""
    house = Household(tmp_path, PATRA_LEASE_SECONDS="5")
    monkeypatch.setattr("patra_ingest.packs.FOLDER", house.packs)
    with start_sandbox(World(400, day(0), 5 / 1440, 1), Behaviour(latency_ms=2000)) as box:
        house.write_pack(box.url, day(0))
        settings = Settings(home=house.patra, db_url="")
        prepare(settings)
        with open_ingest(settings) as live:
            asked = Asked(day(0), day(0) + timedelta(minutes=5))
            live.planner.plan(Trigger("sandbox", "works", asked=asked))
        try:
            house.start_code()
            house.switch_on("queued_harvest")
            house.start_daemon()
            lost = wait_for_work(house)
            house.kill("code")
            assert [run.status for run in runs_of(house, "execute_job").values()] == [STARTED]
            box.change(latency_ms=0)
            house.start_code()

            house.wait_until(lambda: dict(house.rows(TASKS)).keys() == {"SUCCEEDED"}, 120)
            house.wait_until(lambda: not house.active_runs(), 60)
        finally:
            house.stop()

    runs = runs_of(house, "execute_job")
    assert runs.pop(lost).status is dg.DagsterRunStatus.FAILURE
    assert {run.status for run in runs.values()} == {dg.DagsterRunStatus.SUCCESS}
    assert house.rows("SELECT COUNT(*) FROM ing_record") == [(400,)]


def wait_for_work(house):
    """Return the run that executes the first task."""
    house.wait_until(
        lambda: house.rows("SELECT 1 FROM ing_task WHERE status_code = 'EXECUTING'"), 120
    )
    (run,) = runs_of(house, "execute_job")
    return run
