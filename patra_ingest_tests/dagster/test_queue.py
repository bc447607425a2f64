"""Planning and executing in separate runs: plan_job, the sensor, execute_job."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from patra_ingest.definitions import defs
from patra_ingest.defs.execution import Lane, execute_slice
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.ledger.tasks import TaskFilter
from patra_ingest.views.records import list_ids
from patra_ingest_tests.builders import day


@pytest.fixture
def plan(execute, sandbox):
    """Queue three days of the sandbox."""

    def run():
        config = {"window_from": "2025-09-01", "window_to": "2025-09-04", "base_url": sandbox.url}
        return execute("plan_job", provenance="sandbox", **config)

    return run


def test_a_plan_only_queues_and_a_drain_executes_it(home, plan, execute, ledger, rows, sandbox):
    sandbox.reset()
    planned = plan()

    assert planned.success
    assert planned.output_for_node("queue_slices") == 3
    assert rows("SELECT status_code, COUNT(*) FROM ing_task GROUP BY 1") == [("QUEUED", 3)]
    assert sandbox.stats()["requests"] == 0

    drained = execute("execute_job")

    assert drained.success
    with ledger.read() as tx:
        assert list_ids(tx, "sandbox", "works") == set(sandbox.truth(day(0), day(3)).ids)
    told = {event.asset_key for event in drained.get_asset_materialization_events()}
    assert dg.AssetKey(["records", "sandbox", "works"]) in told


def test_several_lanes_take_every_task_once(home, plan, execute):
    plan()

    done = execute("execute_job", lanes=2).output_for_node("execute_slice")

    assert [lane.get("tasks_succeeded", 0) for lane in done.values()] == [3, 0]


def test_lanes_have_the_minutes_that_the_run_was_given(home, plan, execute):
    plan()
    began = datetime.now(UTC)

    result = execute("execute_job", max_minutes=5)

    (lane,) = result.output_for_node("open_lanes").values()
    assert timedelta(0) <= lane.until - began - timedelta(minutes=5) < timedelta(minutes=1)
    (done,) = result.output_for_node("execute_slice").values()
    assert done["tasks_succeeded"] == 3, "they were enough"


def test_a_lane_whose_minutes_are_over_leaves_the_queue_as_it_is(home, plan, rows):
    plan()

    @dg.op(out=dg.DynamicOut(Lane))
    def open_late():
        yield Lane("late", "any task", TaskFilter(), day(0)).output()

    @dg.graph
    def drain():
        open_late().map(execute_slice)

    result = drain.execute_in_process(resources={"ledger": LedgerResource()})

    (done,) = result.output_for_node("execute_slice").values()
    assert (done["pages"], done["tasks_left_at_deadline"]) == (0, 3)
    assert rows("SELECT DISTINCT status_code, lease_count FROM ing_task") == [("QUEUED", 0)]


def test_an_empty_queue_is_drained_at_once(home, execute):
    result = execute("execute_job")

    assert result.success
    assert result.get_asset_materialization_events() == []


def test_the_sensor_waits_while_nothing_is_due(home, tick):
    looked = tick("queued_harvest")

    assert looked.run_requests == []
    assert looked.skip_message == "0 tasks are due, 0 executor runs are active"


def test_the_sensor_counts_no_further_than_it_must(home, plan, tick, instance, monkeypatch):
    monkeypatch.setattr("patra_ingest.defs.sensors.ENOUGH", 2)
    plan()
    (request,) = tick("queued_harvest").run_requests
    instance.create_run_for_job(
        defs.resolve_job_def("execute_job"), run_config=request.run_config, tags=request.tags
    )

    looked = tick("queued_harvest")

    assert looked.skip_message == "2 or more tasks are due, 1 executor runs are active"


def test_the_sensor_starts_an_executor_when_tasks_are_due(home, plan, tick):
    plan()

    (request,) = tick("queued_harvest").run_requests

    assert dg.validate_run_config(defs.resolve_job_def("execute_job"), request.run_config)
    assert request.run_key is None
    assert request.tags["patra/role"] == "executor"
    assert request.tags["patra/operation"] == "HARVEST"


@pytest.mark.parametrize(
    ("status", "started"),
    [
        (dg.DagsterRunStatus.NOT_STARTED, 0),
        (dg.DagsterRunStatus.STARTED, 0),
        (dg.DagsterRunStatus.CANCELING, 0),
        (dg.DagsterRunStatus.SUCCESS, 1),
        (dg.DagsterRunStatus.FAILURE, 1),
    ],
)
def test_an_executor_that_is_active_is_not_started_twice(
    home, plan, tick, instance, status, started
):
    plan()
    (request,) = tick("queued_harvest").run_requests
    instance.create_run_for_job(
        defs.resolve_job_def("execute_job"),
        run_config=request.run_config,
        tags=request.tags,
        status=status,
    )

    assert len(tick("queued_harvest").run_requests) == started
