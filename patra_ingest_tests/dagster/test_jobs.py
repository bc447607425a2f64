"""Tags that runs are found by, going on after a failure, `update_candidates_job`, `upkeep_job`."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import text

from patra_ingest.definitions import defs
from patra_ingest.defs.processes import own_process
from patra_ingest.ledger.signals import add_signals
from patra_ingest.model.codes import Signal
from patra_ingest.rawstore.store import RawStore
from patra_ingest.views.records import list_ids
from patra_ingest_tests.builders import NOON, day

DAYS = {"provenance": "sandbox", "window_from": "2025-09-01", "window_to": "2025-09-03"}


def description_of(result):
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data.description


def tags_of(instance, result):
    found = instance.get_run_by_id(result.run_id).tags
    ours = {name.removeprefix("patra/"): v for name, v in found.items() if name.startswith("patra")}
    assert ours.pop("process") == own_process()
    return ours


def test_every_run_says_what_it_worked_on(home, execute, instance, sandbox):
    planned = execute("plan_job", **DAYS, base_url=sandbox.url)
    drained = execute("execute_job")

    window = "[2025-09-01T00:00:00Z, 2025-09-03T00:00:00Z)"
    common = {"source": "sandbox", "endpoint": "works", "operation": "HARVEST", "plan": "1"}
    assert tags_of(instance, planned) == {**common, "trigger": "person", "window": window}
    own = {**common, "role": "executor", "trigger": "person", "window": window}
    assert tags_of(instance, drained) == own
    for run in (planned, drained):
        found = instance.get_runs(dg.RunsFilter(tags={"patra/plan": "1"}))
        assert run.run_id in {one.run_id for one in found}


def test_a_failed_drain_executed_again_goes_on_and_repeats_nothing(
    home, execute, instance, ledger, rows, sandbox, grumpy
):
    sandbox.reset()
    execute("plan_job", **DAYS, base_url=grumpy.url)
    first = execute("execute_job")
    assert not first.success
    asked = sandbox.stats()["requests"]
    assert (
        asked
        == rows("SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'")[0][0]
    )

    again = defs.resolve_job_def("execute_job").execute_in_process(
        instance=instance,
        tags={"dagster/parent_run_id": first.run_id, "dagster/root_run_id": first.run_id},
        raise_on_error=False,
    )

    assert again.success  # nothing is left in the queue: the failed slice waits for a new plan
    assert sandbox.stats()["requests"] == asked
    with ledger.read() as tx:
        assert list_ids(tx, "sandbox", "works") == set(sandbox.truth(day(0), day(1)).ids)


def update(execute, **config):
    return execute("update_candidates_job", **config)


def test_signalled_records_are_planned_and_the_plan_names_its_run(
    home, execute, instance, ledger, rows, sandbox
):
    execute("ingest_job", **DAYS, base_url=sandbox.url)
    one = min(sandbox.truth(day(0), day(1)).ids)
    with ledger.write() as tx:
        add_signals(tx, "sandbox", "works", [one], Signal.RETRACTION, "ann", None, NOON)

    result = update(execute, provenance="sandbox")

    assert result.success
    assert rows("SELECT status_code FROM ing_signal") == [("CONSUMED",)]
    plan = "SELECT s.scheduler_log_id FROM ing_plan p JOIN ing_schedule_instance s"
    assert rows(f"{plan} ON s.id = p.schedule_instance_id WHERE p.operation_code = 'UPDATE'") == [
        (result.run_id,)
    ]
    assert tags_of(instance, result)["plan"] == "2"


def test_where_nothing_is_due_nothing_is_planned(home, execute, rows):
    result = update(execute)

    assert result.success
    assert result.output_for_node("plan_updates") == 0
    assert rows("SELECT COUNT(*) FROM ing_plan") == [(0,)]


def test_a_source_that_takes_no_update_is_named(home, execute):
    said = description_of(update(execute, provenance="epmc", endpoint="search"))

    assert said == "epmc/search has no endpoint that can be run as UPDATE."


@pytest.fixture
def upkeep(instance):
    """Run the upkeep with the config of its ops; return what each step said."""

    def run(**ops):
        result = defs.resolve_job_def("upkeep_job").execute_in_process(
            run_config={"ops": {op: {"config": config} for op, config in ops.items()}},
            instance=instance,
            raise_on_error=False,
        )
        outputs = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
        told = {
            event.step_key: {k: v.value for k, v in event.step_output_data.metadata.items()}
            for event in outputs
        }
        return result, told

    return run


def test_the_upkeep_of_a_healthy_ledger_changes_nothing(home, execute, rows, sandbox, upkeep):
    execute("ingest_job", **DAYS, base_url=sandbox.url)
    bodies = len(list((home / "raw").rglob("*.zst")))

    result, told = upkeep()

    assert result.success
    assert told == {
        "free_leases": {"tasks freed": 0, "tasks failed": 0, "runs closed": 0},
        "drop_quotas": {"windows dropped": 0},
        "verify_cursors": {"cursors": 1, "wrong": 0},
        "drop_old_bodies": {
            "bodies dropped": 0,
            "bytes freed": 0,
            "unfinished files dropped": 0,
        },
        "drop_dagster_runs": {"runs deleted": 0},
    }
    assert len(list((home / "raw").rglob("*.zst"))) == bodies > 0


def test_a_silent_workers_task_and_a_run_that_nobody_goes_on_with_are_ended(
    home, execute, ledger, rows, sandbox, upkeep
):
    execute("plan_job", **DAYS, base_url=sandbox.url)
    long_ago = "2025-01-01 00:00:00.000000"
    with ledger.write() as tx:
        held = "status_code = 'EXECUTING', lease_owner = 'dead/1', leased_until = :at"
        tx.execute(text(f"UPDATE ing_task SET {held} WHERE id = 1"), {"at": long_ago})
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'EXECUTING' WHERE id = 1"))
        for task in (1, 2):
            tx.execute(
                text(
                    "INSERT INTO ing_task_run (task_id, attempt_no, provenance_code,"
                    " endpoint_name, operation_code, status_code, updated_at, lease_owner)"
                    " VALUES (:task, 1, 'sandbox', 'works', 'HARVEST', 'RUNNING', :at, 'dead/1')"
                ),
                {"task": task, "at": long_ago},
            )

    _, told = upkeep()

    assert told["free_leases"] == {"tasks freed": 1, "tasks failed": 0, "runs closed": 2}
    assert rows("SELECT DISTINCT status_code FROM ing_task") == [("QUEUED",)]
    assert rows("SELECT DISTINCT status_code FROM ing_task_run") == [("FAILED",)]


def test_a_cursor_that_its_events_do_not_lead_to_fails_the_upkeep_and_nothing_else(
    home, execute, ledger, sandbox, upkeep
):
    execute("ingest_job", **DAYS, base_url=sandbox.url)
    with ledger.write() as tx:
        moved = "cursor_value = '2025-09-09T00:00:00.000000Z'"
        moved += ", normalized_instant = '2025-09-09 00:00:00.000000'"
        tx.execute(text(f"UPDATE ing_cursor SET {moved}"))

    result, told = upkeep()

    assert description_of(result).startswith(
        "The cursor sandbox/works HARVEST stands at 2025-09-09"
    )
    assert set(told) == {"free_leases", "drop_quotas", "drop_old_bodies", "drop_dagster_runs"}


def test_quota_windows_that_are_long_over_go_and_their_lock_stays(home, ledger, rows, upkeep):
    now = datetime.now(UTC)
    ends = {"lock": datetime(1970, 1, 2, tzinfo=UTC), "old": now - timedelta(days=40)}
    ends |= {"owed": now - timedelta(days=40), "new": now}
    with ledger.write() as tx:
        for key, end in ends.items():
            row = {"key": key, "reserved": int(key == "owed"), "to": f"{end:%F %T}.000000"}
            row["from"] = f"{end - timedelta(days=1):%F %T}.000000"
            tx.execute(
                text(
                    "INSERT INTO ing_quota_window (rate_key, window_from, window_to, limit_amount,"
                    " reserved_amount) VALUES (:key, :from, :to, 10, :reserved)"
                ),
                row,
            )

    _, told = upkeep()

    assert told["drop_quotas"] == {"windows dropped": 1}
    assert set(rows("SELECT rate_key FROM ing_quota_window")) == {("lock",), ("owed",), ("new",)}


def age(path: Path, days: float) -> None:
    at = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(path, (at, at))


def test_bodies_go_with_their_retention_but_never_one_that_a_young_batch_speaks_of(
    home, execute, ledger, rows, sandbox, upkeep
):
    execute("ingest_job", **DAYS, base_url=sandbox.url)
    raw = home / "raw"
    spoken_of = list(raw.rglob("*.zst"))
    orphan = raw / RawStore(raw).put(b"nobody speaks of me")
    half = orphan.with_name(f"{orphan.name}.1.part")
    half.write_bytes(b"half")
    for path in (*spoken_of, orphan, half):
        age(path, 40)

    _, told = upkeep()
    assert told["drop_old_bodies"]["bodies dropped"] == 1
    assert told["drop_old_bodies"]["unfinished files dropped"] == 1
    assert sorted(raw.rglob("*.*")) == sorted(spoken_of)

    with ledger.write() as tx:
        old = f"{datetime.now(UTC) - timedelta(days=40):%F %T}.000000"
        tx.execute(text("UPDATE ing_task_run_batch SET updated_at = :old"), {"old": old})
    for kept in ({"days": 0}, {"days": 50}, {"days_of": {"sandbox": 90}}, {"days_of": {"a": 0}}):
        _, told = upkeep(drop_old_bodies=kept)
        left = 0 if kept == {"days_of": {"a": 0}} else len(spoken_of)
        assert len(list(raw.rglob("*.zst"))) == left


def test_dagsters_own_runs_are_deleted_only_when_asked(home, upkeep, instance):
    first, _ = upkeep()
    _, told = upkeep(drop_dagster_runs={"days": 1})

    assert told["drop_dagster_runs"] == {"runs deleted": 0}
    assert instance.get_run_by_id(first.run_id) is not None


@pytest.mark.parametrize(
    ("op", "config", "sentence"),
    [
        ("drop_dagster_runs", {"days": -1}, "days is -1; give a number from 0 on."),
        ("drop_old_bodies", {"days": -1}, "days is -1; give a number from 0 on."),
        ("drop_old_bodies", {"days_of": {"a": -2}}, "days_of a is -2; give a number from 0 on."),
    ],
)
def test_days_below_zero_are_refused_at_launch(home, refused_ops, op, config, sentence):
    assert refused_ops("upkeep_job", **{op: config}) == sentence
