"""`python -m patra_ingest.defs.launch`: a run without a server, and how it is stopped."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
import yaml

from patra_ingest.defs import launch
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.views.records import list_ids
from patra_ingest_tests.builders import day

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dagster_home(tmp_path, monkeypatch):
    """DAGSTER_HOME with the shipped dagster.yaml, also for child processes."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    shutil.copy(ROOT / "dagster.yaml", folder)
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder


@pytest.fixture
def slow_sandbox():
    """An upstream with two days of ten pages each, a third of a second per answer."""
    with start_sandbox(World(2000, day(0), 2, 1), Behaviour(latency_ms=333)) as box:
        yield box


@pytest.fixture
def started(slow_sandbox):
    """Start runs in processes of their own; none survives the test."""
    processes = []

    def start():
        config = {"provenance": "sandbox", "base_url": slow_sandbox.url}
        config |= {"window_from": "2025-09-01", "window_to": "2025-09-03"}
        command = [sys.executable, "-m", "patra_ingest.defs.launch", json.dumps(config)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_until(is_so, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def test_a_stopped_run_gives_its_tasks_back_and_the_next_one_goes_on(
    home, dagster_home, started, rows, ledger, slow_sandbox
):
    first = started()
    run_id = first.stdout.readline().strip()
    done = "SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'"
    with dg.DagsterInstance.get() as instance:
        wait_until(lambda: rows(done)[0][0] >= 2)
        # What the UI's Terminate does: it notes the wish, then interrupts the process. Ctrl-C in a
        # terminal interrupts it, too, and so may its parent.
        instance.report_run_canceling(instance.get_run_by_id(run_id))
        first.send_signal(signal.SIGINT)
        first.send_signal(signal.SIGTERM)

        assert first.wait(30) == 1
        run = instance.get_run_by_id(run_id)
    assert run.status == dg.DagsterRunStatus.CANCELED
    assert rows("SELECT DISTINCT status_code, lease_owner FROM ing_task") == [("QUEUED", None)]
    assert rows("SELECT DISTINCT status_code FROM ing_task_run_batch") == [("SUCCEEDED",)]
    assert rows(done)[0][0] < 20

    assert started().wait(60) == 0

    with ledger.read() as tx:
        assert list_ids(tx, "sandbox", "works") == set(slow_sandbox.truth().ids)
    assert slow_sandbox.stats()["requests"] == rows(done)[0][0]  # no page was asked for twice
    # The UI lists the run with its job and can execute it again.
    assert where(run) == (*workspace(), "__repository__", "ingest_job")


def where(run):
    """Return the module, the location, the repository and the job that a run belongs to."""
    origin = run.remote_job_origin
    repository = origin.repository_origin.repository_name
    return launch.MODULE, origin.location_name, repository, origin.job_name


def workspace():
    """Return the module and the name of the workspace's only location."""
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    return location["python_module"]["module_name"], location["python_module"]["location_name"]
