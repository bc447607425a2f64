"""The sensors start what is missing: bounded, in order, once, and again after a restart."""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from sqlalchemy import text

from patra_ingest.definitions import defs
from patra_ingest.defs.runs import AUTOMATIC
from patra_ingest.ledger.signals import add_signals
from patra_ingest.model.codes import Signal
from patra_ingest_tests.builders import NOON

DAYS = {"provenance": "sandbox", "window_from": "2025-09-01", "window_to": "2025-09-04"}
OPERATIONS = ["HARVEST", "UPDATE", "BACKFILL"]


def fill(ledger, operation, tasks):
    """Make copies of the first task: so many of them are due."""
    copied = "plan_id, schedule_instance_id, provenance_code, endpoint_name, priority, status_code"
    copied += ", expr_hash"
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {tasks})"
    with ledger.write() as tx:
        tx.execute(
            text(
                f"INSERT INTO ing_task (slice_id, idempotent_key, operation_code, {copied})"
                f" {numbers} SELECT 1000000 * length(:op) + i, 'copy-' || :op || i, :op, {copied}"
                " FROM n, (SELECT * FROM ing_task ORDER BY id LIMIT 1)"
            ),
            {"op": operation},
        )


@pytest.fixture
def planned(home, execute, sandbox):
    execute("plan_job", **DAYS, base_url=sandbox.url)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_has_a_sensor_that_looks_at_its_own_tasks(planned, ledger, tick, operation):
    name = f"queued_{operation.lower()}"
    with ledger.write() as tx:
        tx.execute(text("DELETE FROM ing_task WHERE id > 1"))
        tx.execute(text("UPDATE ing_task SET operation_code = :op"), {"op": operation})

    (request,) = tick(name).run_requests

    job = defs.resolve_job_def("execute_job")
    assert dg.validate_run_config(job, request.run_config)
    assert request.run_config["ops"]["open_lanes"]["config"]["operation"] == operation
    assert request.tags["patra/operation"] == operation
    for other in {*OPERATIONS} - {operation}:
        assert tick(f"queued_{other.lower()}").run_requests == []


def test_news_are_dequeued_before_refreshes_and_these_before_the_past(planned, ledger, tick):
    fill(ledger, "UPDATE", 1)
    fill(ledger, "BACKFILL", 1)

    first = [tick(f"queued_{op.lower()}").run_requests[0].tags for op in OPERATIONS]

    assert [int(tags["dagster/priority"]) for tags in first] == [2, 1, 0]


@pytest.mark.parametrize(("tasks", "runs"), [(1, 1), (190, 1), (250, 2), (5000, 2)])
def test_so_many_runs_are_started_as_there_is_work_for_and_never_more_than_two(
    planned, ledger, tick, instance, tasks, runs
):
    fill(ledger, "HARVEST", tasks)

    requests = tick("queued_harvest").run_requests

    assert len(requests) == runs
    assert {request.run_key for request in requests} == {None}
    instance.create_run_for_job(defs.resolve_job_def("execute_job"), tags=requests[0].tags)
    assert len(tick("queued_harvest").run_requests) == runs - 1  # a tick later, none is doubled


def test_a_tick_over_a_hundred_thousand_tasks_is_quick(planned, ledger, tick):
    fill(ledger, "HARVEST", 100_000)
    tick("queued_harvest")

    began = time.perf_counter()
    assert len(tick("queued_harvest").run_requests) == 2
    assert time.perf_counter() - began < 0.6  # 0.2 s by itself; other tests run beside this one


def signal(ledger, *ids):
    with ledger.write() as tx:
        add_signals(tx, "sandbox", "works", ids, Signal.CORRECTION, "ann", None, NOON)


def test_signals_lead_to_one_update_of_their_source(home, ledger, tick):
    assert tick("signals_waiting").skip_message == "signals of 0 sources wait, none of them is new"
    signal(ledger, "10.1/a", "10.1/b")

    looked = tick("signals_waiting")

    (request,) = looked.run_requests
    job = defs.resolve_job_def("update_candidates_job")
    assert dg.validate_run_config(job, request.run_config)
    own = {"patra/source": "sandbox", "patra/operation": "UPDATE"}
    assert request.tags == {**own, **AUTOMATIC, "dagster/sensor_name": "signals_waiting"}
    assert tick("signals_waiting", looked.cursor).run_requests == []


def test_a_later_signal_is_news_and_one_that_still_waits_is_tried_again(home, ledger, tick):
    signal(ledger, "10.1/a")
    seen = tick("signals_waiting").cursor
    signal(ledger, "10.1/b")
    assert len(tick("signals_waiting", seen).run_requests) == 1

    now = datetime.now(UTC)
    for minutes, again in ((5, 0), (20, 1)):
        at = (now - timedelta(minutes=minutes)).isoformat()
        looked = tick("signals_waiting", f'{{"sandbox": ["2", "{at}"]}}')
        assert len(looked.run_requests) == again


def test_an_update_that_is_on_its_way_is_not_started_twice(home, ledger, tick, instance):
    signal(ledger, "10.1/a")
    (request,) = tick("signals_waiting").run_requests
    job = defs.resolve_job_def("update_candidates_job")
    instance.create_run_for_job(job, run_config=request.run_config, tags=request.tags)

    assert tick("signals_waiting").run_requests == []  # not even when the cursor was lost


def test_a_reslice_that_is_on_its_way_is_not_started_twice(home, execute, sandbox, tick, instance):
    past = {"operation": "BACKFILL", "window_from": "2025-06-01", "window_to": "2025-09-05"}
    execute("plan_job", provenance="sandbox", base_url=sandbox.url, **past)
    execute("execute_job", operation="BACKFILL")
    assert len(tick("reslice_requests").run_requests) == 1

    instance.create_run_for_job(defs.resolve_job_def("reslice_job"))

    assert tick("reslice_requests").skip_message == "1 wait, and reslice_job is at it"
