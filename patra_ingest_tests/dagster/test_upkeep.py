"""Plans that wait go on, too big slices are cut again, the past is launched like the present."""

from sqlalchemy import text

from patra_ingest.ledger.holds import place_hold
from patra_ingest.ledger.reslices import NewRequest, add_request
from patra_ingest.model.codes import ResliceReason
from patra_ingest.model.lineage import Lineage, PlanId, ScheduleInstanceId, SliceId
from patra_ingest.views.records import list_ids
from patra_ingest_tests.builders import day

LONG = {"window_from": "2025-06-01", "window_to": "2025-09-05"}  # 96 days, 50 of them queued


def backfill(execute, sandbox, job):
    return execute(job, provenance="sandbox", operation="BACKFILL", base_url=sandbox.url, **LONG)


def test_a_long_past_is_executed_in_one_run_although_the_queue_is_short(
    home, execute, ledger, rows, sandbox
):
    result = backfill(execute, sandbox, "ingest_job")

    assert result.success
    assert rows("SELECT status_code, COUNT(*) FROM ing_plan_slice GROUP BY 1") == [
        ("SUCCEEDED", 96)
    ]
    with ledger.read() as tx:
        assert list_ids(tx, "sandbox", "works") == set(sandbox.truth(day(0), day(4)).ids)


def test_the_sensor_goes_on_with_a_plan_when_its_queue_has_room(home, execute, rows, sandbox, tick):
    planned = backfill(execute, sandbox, "plan_job")
    assert planned.success
    assert rows("SELECT status_code FROM ing_plan") == [("PARTIAL",)]
    assert tick("reslice_requests").skip_message == "no plan waits that could go on"

    execute("execute_job", operation="BACKFILL")

    (request,) = tick("reslice_requests").run_requests
    assert request.tags["patra/waiting"] == "plan 1"
    assert execute("reslice_job").output_for_node("go_on") == 46
    assert rows("SELECT status_code FROM ing_plan") == [("READY",)]


def ask_to_reslice(ledger, hold=False):
    with ledger.write() as tx:
        now = ledger.now(tx)
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'EXECUTING' WHERE id = 1"))
        end = "UPDATE ing_task SET status_code = 'CANCELLED', finished_at = created_at"
        tx.execute(text(f"{end} WHERE slice_id = 1"))
        lineage = Lineage(ScheduleInstanceId(1), PlanId(1), SliceId(1))
        add_request(tx, NewRequest(lineage, ResliceReason.RESULT_CAP, {}, {"total": 9}), now)
        if hold:
            place_hold(tx, "sandbox", None, "OPERATOR", "not now", "ann", now)


def test_the_sensor_has_too_big_slices_cut_again(home, execute, ledger, rows, sandbox, tick):
    days = {"window_from": "2025-09-01", "window_to": "2025-09-03"}
    execute("plan_job", provenance="sandbox", base_url=sandbox.url, **days)
    ask_to_reslice(ledger)

    (request,) = tick("reslice_requests").run_requests
    assert request.tags["patra/waiting"] == "1 slices to cut again"
    assert execute("reslice_job").output_for_node("go_on") == 2
    assert rows("SELECT COUNT(*) FROM ing_plan_slice WHERE parent_slice_id = 1") == [(2,)]
    assert tick("reslice_requests").skip_message


def test_nothing_is_cut_again_while_it_is_held(home, execute, ledger, rows, sandbox, tick):
    days = {"window_from": "2025-09-01", "window_to": "2025-09-03"}
    execute("plan_job", provenance="sandbox", base_url=sandbox.url, **days)
    ask_to_reslice(ledger, hold=True)

    assert tick("reslice_requests").skip_message == "no plan waits that could go on"
    assert execute("reslice_job").output_for_node("go_on") == 0


def test_a_slice_that_cannot_be_cut_fails_the_upkeep(home, execute, ledger, sandbox):
    second = {"window_from": "2025-09-01T00:00:00Z", "window_to": "2025-09-01T00:00:01Z"}
    execute("plan_job", provenance="sandbox", base_url=sandbox.url, **second)
    ask_to_reslice(ledger)

    result = execute("reslice_job")

    assert not result.success
    (event,) = [event for event in result.all_events if event.is_step_failure]
    said = event.step_failure_data.user_failure_data.description
    assert "holds 9 records (RESULT_CAP) and cannot be cut any finer" in said
