"""Cancel a task, a slice or a plan: what is open ends CANCELLED, and each row says who and why.

The worker on a cancelled task has lost its lease and writes nothing more. Locks are taken as
workers and planners take them: the provenance's planning, a task before its slice, quotas, the
plan; so nobody waits in a circle. No function here commits; who catches an error must roll back.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from sqlalchemy import Connection, Row, TextClause, bindparam, text

from patra_ingest.errors import PlanError, UnknownName
from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.plans import lock_planning, try_complete_plan
from patra_ingest.ledger.quotas import free
from patra_ingest.ledger.remarks import append_remark, appended, remark_text
from patra_ingest.ledger.runs import forget_addresses, save_sums
from patra_ingest.model.codes import (
    BatchStatus,
    PlanStatus,
    ResliceStatus,
    RunStatus,
    SliceStatus,
    TaskStatus,
)
from patra_ingest.model.lifecycle import ensure_transition, is_final
from patra_ingest.model.lineage import PlanId, SliceId, TaskId

_GROUP = 1000
_OPEN_PLANS = tuple(status for status in PlanStatus if not is_final(status))
_OPEN_SLICES = tuple(status for status in SliceStatus if not is_final(status))
_OPEN_TASKS = tuple(status for status in TaskStatus if not is_final(status))
_OPEN_RUNS = tuple(status for status in RunStatus if not is_final(status))


@dataclass(frozen=True)
class Cancelled:
    """How much was cancelled, and how many tasks or slices were final and stay as they are."""

    plans: int = 0
    slices: int = 0
    tasks: int = 0
    already_final: int = 0


@dataclass(frozen=True)
class _Order:
    """Who cancels what, and why."""

    asked: str
    by: str
    why: str
    now: datetime

    def values(self) -> dict[str, Any]:
        data = {"asked": self.asked}
        return {
            "now": instant_text(self.now),
            "error": f"CANCELLED by {self.by}: {self.why}"[:512],
            "remark": remark_text(self.by, self.why, self.now, kind="cancel", data=data),
        }


def cancel_task(tx: Connection, task_id: TaskId, by: str, why: str, now: datetime) -> Cancelled:
    """Cancel a task and its slice; a plan that has nothing else open is completed."""
    order = _Order(f"task {task_id}", by, why, now)
    row = _get_open(tx, "task", task_id, _OPEN_TASKS)
    lock_planning(tx, row.provenance_code)
    done = _cancel_tasks(tx, [task_id], order)
    if not done.tasks:
        _refuse(tx, "task", task_id)
    return done


def cancel_slice(tx: Connection, slice_id: SliceId, by: str, why: str, now: datetime) -> Cancelled:
    """Cancel a slice and its task, if it has one; a plan with nothing else open is completed."""
    order = _Order(f"slice {slice_id}", by, why, now)
    row = _get_open(tx, "slice", slice_id, _OPEN_SLICES)
    lock_planning(tx, row.provenance_code)
    tasks = _end_tasks(tx, _ids(tx, _OF_SLICES, [slice_id], _OPEN_TASKS), order)
    _reject_requests(tx, [slice_id], order)
    slices = _end_slices(tx, [slice_id], order)
    if not slices:
        _refuse(tx, "slice", slice_id)
    _complete(tx, PlanId(row.plan_id), order)
    free(tx, [slice_id], now)
    return Cancelled(slices=slices, tasks=tasks)


def cancel_plan(tx: Connection, plan_id: PlanId, by: str, why: str, now: datetime) -> Cancelled:
    """Cancel a plan with everything of it that is still open; what is final stays."""
    order = _Order(f"plan {plan_id}", by, why, now)
    row = _get_open(tx, "plan", plan_id, _OPEN_PLANS)
    lock_planning(tx, row.provenance_code)
    tasks = slices = total = 0
    # What workers have in hand comes last: from there on they wait until we have committed.
    for statuses in ((TaskStatus.QUEUED,), _OPEN_TASKS):
        total = 0
        for group in _slices_of(tx, plan_id):
            total += len(group)
            tasks += _end_tasks(tx, _ids(tx, _OF_SLICES, group, statuses), order)
            slices += _end_slices(tx, _ids(tx, _LEFT_OPEN, group, _OPEN_SLICES), order)
            _reject_requests(tx, group, order)
    _ensure(_OPEN_PLANS, PlanStatus.CANCELLED)
    if not _update(tx, _PLAN, [plan_id], _OPEN_PLANS, order):
        _refuse(tx, "plan", plan_id)
    free(tx, list(tx.execute(_RESERVED, {"plan": plan_id}).scalars()), now)
    return Cancelled(1, slices, tasks, total - slices)


def cancel_tasks(
    tx: Connection, task_ids: Sequence[TaskId], by: str, why: str, now: datetime
) -> Cancelled:
    """Cancel these tasks and their slices; those that are final already are only counted."""
    ids = sorted(set(task_ids))
    order = _Order(f"{len(ids)} tasks", by, why, now)
    found = [row for group in _grouped(ids) for row in _rows(tx, "task", group)]
    if unknown := sorted(set(ids) - {row.id for row in found}):
        _unknown("task", ", ".join(str(number) for number in unknown[:10]))
    for provenance in sorted({row.provenance_code for row in found}):
        lock_planning(tx, provenance)
    return _cancel_tasks(tx, ids, order)


def _cancel_tasks(tx: Connection, ids: Sequence[TaskId], order: _Order) -> Cancelled:
    tasks = sum(_end_tasks(tx, group, order) for group in _grouped(ids))
    rows = [row for group in _grouped(ids) for row in _rows(tx, "task", group)]
    ended = [SliceId(row.slice_id) for row in rows if row.status_code == TaskStatus.CANCELLED]
    slices = 0
    for group in _grouped(ended):
        _reject_requests(tx, group, order)
        slices += _end_slices(tx, group, order)
    for plan_id in sorted({PlanId(row.plan_id) for row in rows}):
        _complete(tx, plan_id, order)
    free(tx, ended, order.now)
    return Cancelled(slices=slices, tasks=tasks, already_final=len(ids) - tasks)


# By id and nothing else: a scan of an index over the status would lock entries that a worker,
# which holds the row already, is about to change.
_TASKS = """
    UPDATE ing_task {by_id}
       SET status_code = 'CANCELLED', lease_owner = NULL, leased_until = NULL, finished_at = :now,
           last_error_code = 'CANCELLED', last_error_msg = :error, updated_at = :now,
           record_remarks = {appended}
     WHERE id IN :ids AND status_code IN :open
"""
_RUNS = """
    UPDATE ing_task_run
       SET status_code = 'CANCELLED', error = :error, finished_at = :now, updated_at = :now,
           record_remarks = {appended}
     WHERE task_id IN :ids AND status_code IN :open
"""
_BATCHES = """
    UPDATE ing_task_run_batch
       SET status_code = 'FAILED', error = :error, updated_at = :now, record_remarks = {appended}
     WHERE task_id IN :ids AND status_code IN :open
"""


def _end_tasks(tx: Connection, ids: Sequence[TaskId], order: _Order) -> int:
    """Cancel the open ones of at most a group of tasks, with their runs and batches."""
    _ensure(_OPEN_TASKS, TaskStatus.CANCELLED)
    _ensure(_OPEN_RUNS, RunStatus.CANCELLED)
    _ensure((BatchStatus.RUNNING,), BatchStatus.FAILED)
    ended = _update(tx, _TASKS, ids, _OPEN_TASKS, order)
    if ended:
        save_sums(tx, ids)
        forget_addresses(tx, ids)
        _update(tx, _RUNS, ids, _OPEN_RUNS, order)
        _update(tx, _BATCHES, ids, (BatchStatus.RUNNING,), order)
    return ended


_SLICES = """
    UPDATE ing_plan_slice {by_id}
       SET status_code = 'CANCELLED', version = version + 1, updated_at = :now,
           record_remarks = {appended}
     WHERE id IN :ids AND status_code IN :open
"""
_PLAN = _SLICES.replace("ing_plan_slice", "ing_plan")


def _end_slices(tx: Connection, ids: Sequence[SliceId], order: _Order) -> int:
    """Cancel the open ones of at most a group of slices."""
    _ensure(_OPEN_SLICES, SliceStatus.CANCELLED)
    return _update(tx, _SLICES, ids, _OPEN_SLICES, order)


_REQUESTS = """
    UPDATE ing_reslice_request
       SET status_code = 'REJECTED', version = version + 1, updated_at = :now,
           record_remarks = {appended}
     WHERE slice_id IN :ids AND status_code IN :open
"""


def _reject_requests(tx: Connection, ids: Sequence[SliceId], order: _Order) -> None:
    """See to it that none of at most a group of slices is cut again."""
    _update(tx, _REQUESTS, ids, (ResliceStatus.PENDING,), order)


def _complete(tx: Connection, plan_id: PlanId, order: _Order) -> None:
    if try_complete_plan(tx, plan_id, order.now):
        note = f"completed: {order.asked} was cancelled and nothing else was open"
        append_remark(tx, "ing_plan", [plan_id], order.by, note, order.now, kind="cancel")


def _update(
    tx: Connection, query: str, ids: Sequence[int], statuses: Sequence[str], order: _Order
) -> int:
    if not ids:
        return 0
    by_id = "FORCE INDEX (PRIMARY)" if tx.dialect.name == "mysql" else ""
    prepared = _prepared(query.format(by_id=by_id, appended=appended(tx)))
    values = {**order.values(), "ids": list(ids), "open": [str(status) for status in statuses]}
    return tx.execute(prepared, values).rowcount


def _ensure(olds: Iterable[Any], new: Any) -> None:
    for old in olds:
        ensure_transition(old, new)


_NEXT = text("""
    SELECT id, slice_no FROM ing_plan_slice WHERE plan_id = :plan AND slice_no > :after
     ORDER BY slice_no LIMIT :limit
""")


def _slices_of(tx: Connection, plan_id: PlanId) -> Iterator[list[SliceId]]:
    after = -1
    while found := tx.execute(_NEXT, {"plan": plan_id, "after": after, "limit": _GROUP}).all():
        yield [SliceId(row.id) for row in found]
        after = found[-1].slice_no


# Freed in one call: quota windows are locked in one order, over all slices of the plan.
_RESERVED = text("""
    SELECT DISTINCT r.slice_id FROM ing_plan_slice s
      JOIN ing_quota_reservation r ON r.slice_id = s.id
     WHERE s.plan_id = :plan AND r.left_amount > 0
""")
_OF_SLICES = "SELECT id FROM ing_task WHERE slice_id IN :ids AND status_code IN :open ORDER BY id"
# While its task is open a slice follows that; it may be cancelled when the task has ended.
_LEFT_OPEN = """
    SELECT s.id FROM ing_plan_slice s LEFT JOIN ing_task t ON t.slice_id = s.id
     WHERE s.id IN :ids AND s.status_code IN :open
       AND (t.id IS NULL OR t.status_code NOT IN ('QUEUED', 'DISPATCHED', 'EXECUTING'))
"""


def _ids(tx: Connection, query: str, ids: Sequence[int], statuses: Sequence[str]) -> list[Any]:
    values = {"ids": list(ids), "open": [str(status) for status in statuses]}
    return list(tx.execute(_prepared(query), values).scalars())


def _prepared(query: str) -> TextClause:
    made = text(query)
    return made.bindparams(bindparam("ids", expanding=True), bindparam("open", expanding=True))


_TABLES = {
    "task": "SELECT id, provenance_code, plan_id, slice_id, status_code FROM ing_task",
    "slice": "SELECT id, provenance_code, plan_id, status_code FROM ing_plan_slice",
    "plan": "SELECT id, provenance_code, status_code FROM ing_plan",
}


def _rows(tx: Connection, thing: str, ids: Sequence[int]) -> Sequence[Row[Any]]:
    query = text(f"{_TABLES[thing]} WHERE id IN :ids").bindparams(bindparam("ids", expanding=True))
    return tx.execute(query, {"ids": list(ids)}).all()


def _get_open(tx: Connection, thing: str, number: int, statuses: Sequence[str]) -> Row[Any]:
    rows = _rows(tx, thing, [number])
    if not rows:
        _unknown(thing, str(number))
    if rows[0].status_code not in statuses:
        _refuse(tx, thing, number)
    return rows[0]


def _unknown(thing: str, listed: str) -> NoReturn:
    raise UnknownName(f"There is no {thing} {listed}.", "See what there is with `patra status`.")


def _refuse(tx: Connection, thing: str, number: int) -> NoReturn:
    status = _rows(tx, thing, [number])[0].status_code
    raise PlanError(
        f"{thing.capitalize()} {number} is {status} already; nothing was cancelled.",
        "What is final stays as it is.",
    )


def _grouped(ids: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (ids[first : first + _GROUP] for first in range(0, len(ids), _GROUP))
