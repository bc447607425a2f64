"""Cancelling: what is open ends, what is final stays, and every row says who wanted it and why."""

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from patra_ingest.errors import LeaseLost, PlanError, UnknownName
from patra_ingest.ledger.cancel import (
    Cancelled,
    cancel_plan,
    cancel_slice,
    cancel_task,
    cancel_tasks,
)
from patra_ingest.ledger.db import insert, instant_text, read_instant
from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.quotas import reserve
from patra_ingest.ledger.remarks import read_remarks
from patra_ingest.ledger.tasks import require_lease, try_renew
from patra_ingest.model.codes import PlanStatus, SliceStatus, TaskStatus
from patra_ingest.model.lifecycle import is_final
from patra_ingest.model.quotas import Reservation
from patra_ingest.planner.plan import Planner
from patra_ingest.registry.apply import apply_pack
from patra_ingest_tests.builders import NOON, START, a_pack, a_trigger, day, days
from patra_ingest_tests.fakes import FakeClock, dying

LATER, MINUTE = NOON + timedelta(minutes=5), timedelta(minutes=1)
CANCEL = {"plan": cancel_plan, "slice": cancel_slice, "task": cancel_task}
TABLE = {"plan": "ing_plan", "slice": "ing_plan_slice", "task": "ing_task"}
STATUSES = {"plan": PlanStatus, "slice": SliceStatus, "task": TaskStatus}


@pytest.fixture
def planned(db):
    """A plan of three slices and their tasks."""
    with db.write() as tx:
        apply_pack(tx, a_pack(), START)
    Planner(db, FakeClock(NOON)).plan(a_trigger(start=day(0), end=day(3)))
    return db


def rows(db, table):
    with db.read() as tx:
        return tx.execute(text(f"SELECT * FROM {table} ORDER BY id")).mappings().all()


def statuses(db, table):
    return [row["status_code"] for row in rows(db, table)]


def change(db, statement, **values):
    with db.write() as tx:
        return tx.execute(text(statement), values).rowcount


def set_status(db, thing, number, status):
    """Put a row into a status, whatever its lifecycle says; a slice follows its task."""
    final = ", finished_at = updated_at" if thing == "task" else ""
    query = f"UPDATE {TABLE[thing]} SET status_code = :s{final} WHERE id = :id"
    change(db, query, s=status.value, id=number)


def cancel(db, thing, number):
    with db.write() as tx:
        return CANCEL[thing](tx, number, "ada", "wrong window", LATER)


def execute_first(db):
    """Let a worker have the first task in hand: a lease, a run, a batch under way."""
    with db.write() as tx:
        (lease,) = lease_tasks(tx, "worker-a/1#1", 1, NOON, MINUTE)
        tx.execute(text("UPDATE ing_task SET status_code = 'EXECUTING' WHERE id = 1"))
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'EXECUTING' WHERE id = 1"))
        common = {"provenance_code": "example", "endpoint_name": "works"}
        common |= {"operation_code": "HARVEST", "status_code": "RUNNING", "task_id": 1}
        run = insert(tx, "ing_task_run", {**common, "started_at": instant_text(NOON)})
        for number in (1, 2):
            mark = f"{number:064d}"
            more = {"run_id": run, "batch_no": number, "slice_id": 1, "before_token_hash": mark}
            insert(tx, "ing_task_run_batch", {**common, **more, "idempotent_key": mark})
        done = "status_code = 'SUCCEEDED', committed_at = updated_at"
        tx.execute(text(f"UPDATE ing_task_run_batch SET {done} WHERE batch_no = 1"))
    return lease


def last_remark(row):
    said = read_remarks(row["record_remarks"])[-1]
    return said["type"], said["by"], read_instant(said["time"]), said["note"]


WHO_AND_WHY = ("cancel", "ada", LATER, "wrong window")


@pytest.mark.parametrize("thing", ["task", "slice"])
def test_a_task_and_its_slice_end_together_and_leave_the_others_alone(planned, thing):
    assert cancel(planned, thing, 2) == Cancelled(slices=1, tasks=1)

    assert statuses(planned, "ing_task") == ["QUEUED", "CANCELLED", "QUEUED"]
    assert statuses(planned, "ing_plan_slice") == ["READY", "CANCELLED", "READY"]
    assert statuses(planned, "ing_plan") == ["READY"]
    task = rows(planned, "ing_task")[1]
    assert read_instant(task["finished_at"]) == LATER
    assert task["last_error_code"] == "CANCELLED"
    assert task["last_error_msg"] == "CANCELLED by ada: wrong window"


def test_a_plan_ends_with_everything_that_is_open_and_keeps_what_is_final(planned):
    set_status(planned, "task", 1, TaskStatus.SUCCEEDED)
    set_status(planned, "slice", 1, SliceStatus.SUCCEEDED)

    assert cancel(planned, "plan", 1) == Cancelled(plans=1, slices=2, tasks=2, already_final=1)

    assert statuses(planned, "ing_plan") == ["CANCELLED"]
    assert statuses(planned, "ing_task") == ["SUCCEEDED", "CANCELLED", "CANCELLED"]
    assert statuses(planned, "ing_plan_slice") == ["SUCCEEDED", "CANCELLED", "CANCELLED"]


@pytest.mark.parametrize("thing", ["task", "slice", "plan"])
def test_every_row_that_is_touched_says_who_and_why_and_no_other_does(planned, thing):
    execute_first(planned)
    cancel(planned, thing, 1)

    tables = ("ing_task", "ing_plan_slice", "ing_task_run", "ing_task_run_batch", "ing_plan")
    for table in tables:
        for row in rows(planned, table):
            ended = row["status_code"] in ("CANCELLED", "FAILED")
            remarked = bool(row["record_remarks"]) and last_remark(row) == WHO_AND_WHY
            assert remarked == ended, (table, row["id"])
    asked = read_remarks(rows(planned, "ing_task")[0]["record_remarks"])[-1]["data"]
    assert asked == {"asked": f"{thing} 1"}


def test_what_a_plan_said_of_itself_before_stays(planned):
    before = read_remarks(rows(planned, "ing_plan")[0]["record_remarks"])
    cancel(planned, "plan", 1)

    after = read_remarks(rows(planned, "ing_plan")[0]["record_remarks"])
    assert before
    assert after[:-1] == before


@pytest.mark.parametrize("thing", ["task", "slice", "plan"])
def test_a_worker_on_a_cancelled_task_has_lost_it_with_its_run_and_open_batch(planned, thing):
    lease = execute_first(planned)
    cancel(planned, thing, 1)

    task = rows(planned, "ing_task")[0]
    assert (task["lease_owner"], task["leased_until"]) == (None, None)
    with planned.write() as tx:
        assert try_renew(tx, lease, LATER, MINUTE) is False
    with planned.write() as tx, pytest.raises(LeaseLost):
        require_lease(tx, lease, LATER)
    (run,) = rows(planned, "ing_task_run")
    assert (run["status_code"], run["error"]) == ("CANCELLED", "CANCELLED by ada: wrong window")
    assert read_instant(run["finished_at"]) == LATER
    assert statuses(planned, "ing_task_run_batch") == ["SUCCEEDED", "FAILED"]


def test_a_cancelled_task_is_never_leased(planned):
    cancel(planned, "task", 1)
    with planned.write() as tx:
        leased = lease_tasks(tx, "worker-b/1#1", 9, LATER, MINUTE)

    assert [lease.task_id for lease in leased] == [2, 3]


@pytest.mark.parametrize(
    ("thing", "status"),
    [(thing, status) for thing, kind in STATUSES.items() for status in kind],
    ids=lambda value: str(value),
)
def test_only_what_is_not_final_is_cancelled_and_a_refusal_writes_nothing(planned, thing, status):
    set_status(planned, thing, 1, status)
    before = {table: rows(planned, table) for table in TABLE.values()}

    if is_final(status):
        said = rf"^{thing.capitalize()} 1 is {status} already; nothing was cancelled\. "
        with pytest.raises(PlanError, match=said):
            cancel(planned, thing, 1)
        assert {table: rows(planned, table) for table in TABLE.values()} == before
    else:
        cancel(planned, thing, 1)
        assert statuses(planned, TABLE[thing])[0] == "CANCELLED"


@pytest.mark.parametrize("thing", ["task", "slice", "plan"])
def test_cancelling_twice_is_refused_the_second_time(planned, thing):
    cancel(planned, thing, 1)

    with pytest.raises(PlanError, match="is CANCELLED already"):
        cancel(planned, thing, 1)


@pytest.mark.parametrize("thing", ["task", "slice", "plan"])
def test_what_does_not_exist_is_an_unknown_name(planned, thing):
    with pytest.raises(UnknownName, match=rf"^There is no {thing} 999\. "):
        cancel(planned, thing, 999)


def test_a_slice_that_has_no_task_yet_is_cancelled_alone(planned):
    change(planned, "DELETE FROM ing_task WHERE id = 2")
    set_status(planned, "slice", 2, SliceStatus.PENDING)
    set_status(planned, "plan", 1, PlanStatus.PARTIAL)

    assert cancel(planned, "slice", 2) == Cancelled(slices=1)
    assert statuses(planned, "ing_plan") == ["PARTIAL"]


@pytest.mark.parametrize("thing", ["task", "slice"])
def test_cancelling_the_last_open_task_completes_a_plan_that_is_all_derived(planned, thing):
    for number in (1, 2):
        cancel(planned, thing, number)
        assert statuses(planned, "ing_plan") == ["READY"]
    cancel(planned, thing, 3)

    (plan,) = rows(planned, "ing_plan")
    assert plan["status_code"] == "COMPLETED"
    assert last_remark(plan)[1] == "ada"
    assert last_remark(plan)[3] == (f"completed: {thing} 3 was cancelled and nothing else was open")


def test_several_tasks_are_cancelled_at_once_and_final_ones_only_counted(planned):
    set_status(planned, "task", 2, TaskStatus.FAILED)
    set_status(planned, "slice", 2, SliceStatus.FAILED)
    with planned.write() as tx:
        done = cancel_tasks(tx, [3, 2, 1, 1], "ada", "wrong window", LATER)

    assert done == Cancelled(slices=2, tasks=2, already_final=1)
    assert statuses(planned, "ing_plan_slice") == ["CANCELLED", "FAILED", "CANCELLED"]
    assert statuses(planned, "ing_plan") == ["COMPLETED"]


def test_one_unknown_task_among_several_and_none_is_cancelled(planned):
    with planned.write() as tx, pytest.raises(UnknownName, match="no task 8, 9"):
        cancel_tasks(tx, [1, 8, 9], "ada", "wrong window", LATER)

    assert set(statuses(planned, "ing_task")) == {"QUEUED"}


def ask_to_cut(db, slice_id, status="PENDING"):
    row = {"slice_id": slice_id, "reason_code": "CAP", "status_code": status}
    more = {"dedup_key": f"{slice_id}-{status}", "consumed_at": instant_text(NOON)}
    with db.write() as tx:
        insert(tx, "ing_reslice_request", {**row, **more})


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("task", ["REJECTED", "CONSUMED", "PENDING"]),
        ("slice", ["REJECTED", "CONSUMED", "PENDING"]),
        ("plan", ["REJECTED", "CONSUMED", "REJECTED"]),
    ],
)
def test_what_is_cancelled_is_not_cut_again(planned, thing, expected):
    for slice_id, status in ((1, "PENDING"), (1, "CONSUMED"), (2, "PENDING")):
        ask_to_cut(planned, slice_id, status)
    cancel(planned, thing, 1)

    requests = rows(planned, "ing_reslice_request")
    assert [row["status_code"] for row in requests] == expected
    assert last_remark(requests[0]) == WHO_AND_WHY
    assert requests[1]["record_remarks"] is None


@pytest.mark.parametrize(("thing", "left"), [("task", 7), ("slice", 7), ("plan", 0)])
def test_what_it_had_spoken_for_of_a_quota_is_free_again(planned, thing, left):
    with planned.write() as tx:
        for slice_id, amount in ((1, Decimal(5)), (2, Decimal(7))):
            spoken = [Reservation("example", days(19, 20), amount)]
            reserve(tx, slice_id, spoken, {("example", days(19, 20)): Decimal(100)}, NOON)
    cancel(planned, thing, 1)

    assert [row["reserved_amount"] for row in rows(planned, "ing_quota_window")] == [left]


def test_a_plan_of_many_slices_is_cancelled_by_few_statements(planned):
    values = {"window": {"max_span": "2m"}}
    trigger = a_trigger(start=day(3), end=day(6), values=values)
    plan = Planner(planned, FakeClock(NOON)).plan(trigger)
    queued = len(rows(planned, "ing_task")) - 3  # the others wait without a task
    with dying(planned, lambda _: False) as statements:
        done = cancel(planned, "plan", plan.plan_id)

    assert done == Cancelled(plans=1, slices=2160, tasks=queued)
    assert len(statements) < 80
    assert statuses(planned, "ing_plan_slice").count("CANCELLED") == 2160
    assert statuses(planned, "ing_task").count("CANCELLED") == queued > 0
    assert statuses(planned, "ing_plan") == ["READY", "CANCELLED"]


def test_the_window_of_a_cancelled_plan_is_planned_again_by_the_next_trigger(planned):
    cancel(planned, "plan", 1)
    again = Planner(planned, FakeClock(LATER)).plan(a_trigger(start=day(0), end=day(3)))

    assert (again.plan_id, again.slices) == (2, 3)
    assert statuses(planned, "ing_task") == ["CANCELLED"] * 3 + ["QUEUED"] * 3
