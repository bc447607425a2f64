"""What cannot be meant is refused before there is a run; what goes wrong fails it. One sentence."""

import json

import dagster as dg
import pytest
from dagster._core.errors import DagsterUserCodeProcessError
from dagster._core.execution.api import execute_run
from sqlalchemy import text

from patra_ingest.definitions import defs
from patra_ingest.ledger.holds import place_hold
from patra_ingest_tests.builders import day

BAD = {
    "unknown source": (
        {"provenance": "nowhere"},
        "There is no source 'nowhere' in the Registry. Known sources: ",
    ),
    "unknown endpoint": (
        {"provenance": "sandbox", "endpoint": "wrks"},
        "sandbox has no endpoint 'wrks' for HARVEST.",
    ),
    "from after to": (
        {"provenance": "sandbox", "window_from": "2025-09-02", "window_to": "2025-09-01"},
        "The window [2025-09-02T00:00:00.000000Z, 2025-09-01T00:00:00.000000Z) is empty.",
    ),
    "from equal to": (
        {"provenance": "sandbox", "window_from": "2025-09-02", "window_to": "2025-09-02"},
        "The window [2025-09-02T00:00:00.000000Z, 2025-09-02T00:00:00.000000Z) is empty.",
    ),
    "no date": (
        {"provenance": "sandbox", "window_from": "yesterday"},
        "window_from: 'yesterday' is not an instant;",
    ),
    "no such day": (
        {"provenance": "sandbox", "window_to": "2025-02-30"},
        "window_to: '2025-02-30' is not in the calendar:",
    ),
}


def failure_of(result):
    """Return the name of the step that failed, and what it says first."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    assert data.error.cls_name == "Failure"
    assert data.error.cause is None
    assert data.error.message.startswith(
        f"dagster._core.definitions.events.Failure: {data.user_failure_data.description}"
    )
    return event.step_key, data.user_failure_data.description


@pytest.mark.parametrize("job", ["ingest_job", "plan_job"])
@pytest.mark.parametrize(("config", "sentence"), BAD.values(), ids=BAD)
def test_a_trigger_that_cannot_be_meant_is_refused_at_launch(
    home, refused, rows, job, config, sentence
):
    assert refused(job, **config).startswith(sentence)
    for table in ("ing_schedule_instance", "ing_plan", "ing_plan_slice", "ing_task"):
        assert rows(f"SELECT COUNT(*) FROM {table}") == [(0,)]


@pytest.mark.parametrize("lanes", [0, -1, 9])
def test_a_number_of_lanes_out_of_range_is_refused(home, refused, lanes):
    said = refused("execute_job", lanes=lanes)

    assert said == f"lanes is {lanes}; give a number from 1 to 8."


@pytest.mark.parametrize("minutes", [0, -1, 10081])
def test_minutes_out_of_range_are_refused(home, refused, minutes):
    said = refused("execute_job", max_minutes=minutes)

    assert said == f"max_minutes is {minutes}; give a number from 1 to 10080."


@pytest.mark.parametrize("threads", [0, 65])
def test_a_number_of_threads_out_of_range_is_refused(home, refused_ops, threads):
    own = {"compile_spec": {"provenance": "sandbox"}, "execute_slice": {"threads": threads}}

    said = refused_ops("ingest_job", **own)

    assert said == f"threads is {threads}; give a number from 1 to 64."


def test_what_has_become_wrong_while_the_run_was_queued_is_refused_when_it_starts(
    home, instance, ledger
):
    job = dg.reconstructable(the_job)
    asked = {"ops": {"compile_spec": {"config": {"provenance": "sandbox"}}}}
    run = instance.create_run_for_job(the_job(), run_config=asked)
    with ledger.write() as tx:
        tx.execute(text("UPDATE reg_provenance SET is_active = 0"))

    with pytest.raises(DagsterUserCodeProcessError, match="There is no source 'sandbox'"):
        execute_run(job, run, instance)


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"provenance": "sandbox", "windw_from": "2025-09-01"}, "windw_from"),
        ({"provenance": "sandbox", "operation": "HARVST"}, "HARVST"),
        ({"window_from": "2025-09-01"}, "provenance"),
    ],
    ids=["no such field", "no such operation", "no source"],
)
def test_a_wrong_field_is_named_while_one_types(config, wrong):
    with pytest.raises(dg.DagsterInvalidConfigError, match=wrong):
        dg.validate_run_config(
            defs.resolve_job_def("ingest_job"), {"ops": {"compile_spec": {"config": config}}}
        )


def test_a_window_in_the_future_is_refused_and_stays_on_the_root_row(home, execute, rows):
    asked = {"provenance": "sandbox", "window_from": "2999-01-01"}
    step, said = failure_of(execute("ingest_job", **asked))

    assert step == "open_plan"
    assert said.startswith("The window begins at 2999-01-01T00:00:00.000000Z, which is in the fut")
    assert rows("SELECT COUNT(*) FROM ing_plan") == [(0,)]
    ((problems,),) = rows("SELECT problems FROM ing_schedule_instance")
    assert "which is in the future" in problems


def test_a_spec_that_does_not_compile_fails_the_run_and_makes_no_plan(home, execute, rows):
    step, said = failure_of(execute("plan_job", provenance="sandbox", base_url="nonsense"))

    assert step == "compile_spec"
    assert said.startswith("sandbox/works for HARVEST does not compile: ")
    ((problems,),) = rows("SELECT problems FROM ing_schedule_instance")
    assert json.loads(problems)[0] in said
    assert rows("SELECT COUNT(*) FROM ing_plan") == [(0,)]


def test_a_ledger_without_tables_is_named(tmp_path, refused, monkeypatch):
    monkeypatch.setenv("PATRA_DB_URL", f"sqlite:///{tmp_path / 'empty.db'}")

    said = refused("ingest_job", provenance="sandbox")

    assert "empty.db" in said
    assert "`patra init`" in said


def test_a_failed_slice_fails_the_run_and_the_cursor_waits(home, execute, rows, grumpy):
    asked = {"provenance": "sandbox", "base_url": grumpy.url}
    result = execute("ingest_job", **asked, window_from="2025-09-01", window_to="2025-09-04")

    step, said = failure_of(result)
    assert step == "settle"
    assert said.startswith("Plan 1: 1 of 3 slices failed (L2: ")
    assert "400" in said
    assert rows("SELECT status_code FROM ing_plan_slice ORDER BY window_from") == [
        ("SUCCEEDED",),
        ("FAILED",),
        ("SUCCEEDED",),
    ]
    ((cursor,),) = rows("SELECT normalized_instant FROM ing_cursor")
    assert cursor.startswith(day(1).date().isoformat())
    (plan, *_) = result.get_asset_materialization_events()
    assert plan.materialization.metadata["slices_failed"].value == 1


def test_the_next_run_fills_the_hole(home, execute, rows, grumpy):
    asked = {"provenance": "sandbox", "base_url": grumpy.url, "window_to": "2025-09-04"}
    execute("ingest_job", **asked, window_from="2025-09-01")
    grumpy.refused = "nothing"

    result = execute("ingest_job", **asked)

    assert result.success
    ((cursor,),) = rows("SELECT normalized_instant FROM ing_cursor")
    assert cursor.startswith(day(3).date().isoformat())


def the_job():
    return defs.resolve_job_def("ingest_job")


def test_a_held_endpoint_is_no_success_however_often_it_is_repeated(
    home, instance, ledger, sandbox
):
    with ledger.write() as tx:
        place_hold(tx, "sandbox", "works", "L4", "a person looks at it", "me", ledger.now(tx))
    asked = {"provenance": "sandbox", "base_url": sandbox.url}
    asked |= {"window_from": "2025-09-01", "window_to": "2025-09-03"}
    job = dg.reconstructable(the_job)

    first = dg.execute_job(
        job, instance, {"ops": {"compile_spec": {"config": asked}}}, raise_on_error=False
    )
    again = dg.ReexecutionOptions.from_failure(first.run_id, instance)
    second = dg.execute_job(job, instance, reexecution_options=again, raise_on_error=False)

    for result in (first, second):
        step, said = failure_of(result)
        assert step == "open_plan"
        assert said.startswith("sandbox/works is held by me: a person looks at it; nothing of it")
