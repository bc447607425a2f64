"""The tasks of silent workers: lease expiry alone frees them, and the queue has them again.

A worker that falls silent may be killed, cut off or suspended, and the task is not to blame. But a
task that loses worker after worker before one has committed anything new is likely what kills them:
it ends FAILED, and its slice is a hole that a new plan fills. No function here commits.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text

from patra_ingest.ledger.batches import close_lost_batches
from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.plans import try_complete_plan
from patra_ingest.ledger.quotas import free
from patra_ingest.ledger.runs import close_lost_runs, forget_addresses
from patra_ingest.ledger.slices import follow_task
from patra_ingest.ledger.statements import execute
from patra_ingest.model.codes import SliceStatus, TaskStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, SliceId, TaskId

MAX_SILENT = 5  # in a row, without a new batch
TOLD = (
    f"the worker fell silent {MAX_SILENT} times in a row before it had committed a batch: it was"
    " killed, ran out of memory, or was cut off from the ledger; look for what ended it (smaller"
    " pages, paging.page_size, need less memory), then plan the window again"
)


@dataclass(frozen=True)
class Freed:
    """What silent workers have left: tasks that are in the queue again, and those given up."""

    requeued: tuple[TaskId, ...] = ()
    failed: tuple[TaskId, ...] = ()


_EXPIRED = """
    SELECT id, slice_id, plan_id, silent_count FROM ing_task
     WHERE status_code IN ('DISPATCHED', 'EXECUTING') AND leased_until < :now
"""


def free_silent(tx: Connection, now: datetime) -> Freed:
    """Free the tasks of silent workers, with everything of them that was open."""
    query = _EXPIRED + (" FOR UPDATE SKIP LOCKED" if tx.dialect.name == "mysql" else "")
    found = execute(tx, query, {"now": instant_text(now)}).all()
    if not found:
        return Freed()
    tasks = [TaskId(row.id) for row in found]
    moved = set(tx.execute(_MOVED, {"ids": tasks}).scalars())
    lost = [one for one in found if one.id not in moved and one.silent_count + 1 >= MAX_SILENT]
    kept = [one for one in found if one not in lost]
    _write(tx, _REQUEUE, kept, now, moved=list(moved))
    _write(tx, _FAIL, lost, now, told=TOLD)
    close_lost_runs(tx, tasks, now)
    close_lost_batches(tx, tasks, now)
    for one in found:
        status = SliceStatus.FAILED if one in lost else SliceStatus.READY
        follow_task(tx, SliceId(one.slice_id), status, now)
    for plan_id in sorted({PlanId(one.plan_id) for one in lost}):
        try_complete_plan(tx, plan_id, now)
    free(tx, [SliceId(one.slice_id) for one in lost], now)
    forget_addresses(tx, [TaskId(one.id) for one in lost])
    return Freed(tuple(TaskId(one.id) for one in kept), tuple(TaskId(one.id) for one in lost))


# The checkpoint of a run is written with every batch, and with nothing else.
_MOVED = text("""
    SELECT task_id FROM ing_task_run
     WHERE task_id IN :ids AND status_code = 'RUNNING' AND checkpoint IS NOT NULL
""").bindparams(bindparam("ids", expanding=True))

_REQUEUE = text("""
    UPDATE ing_task
       SET status_code = 'QUEUED', lease_owner = NULL, leased_until = NULL,
           retry_count = CASE WHEN id IN :moved THEN 0 ELSE retry_count END,
           silent_count = CASE WHEN id IN :moved THEN 0 ELSE silent_count + 1 END,
           last_error_code = 'LEASE_LOST', updated_at = :now
     WHERE id IN :ids
""").bindparams(bindparam("ids", expanding=True), bindparam("moved", expanding=True))

_FAIL = text("""
    UPDATE ing_task
       SET status_code = 'FAILED', lease_owner = NULL, leased_until = NULL, finished_at = :now,
           silent_count = silent_count + 1,
           last_error_code = 'LEASE_LOST', last_error_msg = :told, updated_at = :now
     WHERE id IN :ids
""").bindparams(bindparam("ids", expanding=True))


def _write(tx: Connection, query: Any, rows: list[Row[Any]], now: datetime, **more: Any) -> None:
    for old in (TaskStatus.DISPATCHED, TaskStatus.EXECUTING):
        for new in (TaskStatus.QUEUED, TaskStatus.FAILED):
            ensure_transition(old, new)
    if rows:
        tx.execute(query, {"ids": [one.id for one in rows], "now": instant_text(now), **more})
