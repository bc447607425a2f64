"""The `ing_task` table: the queue between the planner and the executor.

`lease_owner` is new with every claim, so it is also the fencing token: whoever is not the owner any
more writes nothing. How leases are given is in `leases`. No function here commits: the caller owns
the transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from patra_ingest.errors import LeaseLost
from patra_ingest.ledger.db import insert_missing, instant_text, json_text
from patra_ingest.ledger.statements import execute
from patra_ingest.model.codes import Operation, TaskStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId, SliceId, TaskId


class Partition(NamedTuple):
    """The tasks that take turns as one: those of one endpoint and operation."""

    provenance: str
    endpoint: str
    operation: str

    def __str__(self) -> str:
        return f"{self.provenance}/{self.endpoint} {self.operation}"


@dataclass(frozen=True)
class Lease:
    """The right of `owner` to write for one task until `until`."""

    task_id: TaskId
    slice_id: SliceId
    plan_id: PlanId
    schedule_instance_id: ScheduleInstanceId
    owner: str
    until: datetime
    partition: Partition


@dataclass(frozen=True)
class TaskFilter:
    """Which tasks a worker takes; the default is all of them."""

    plan_id: PlanId | None = None
    first_task: TaskId | None = None
    last_task: TaskId | None = None
    provenance: str | None = None
    endpoint: str | None = None
    operation: Operation | None = None

    def has(self, partition: Partition) -> bool:
        """Return whether tasks of a partition can be among those wanted."""
        asked = (self.provenance, self.endpoint, self.operation and self.operation.value)
        return all(one in (None, has) for one, has in zip(asked, partition, strict=True))

    def sql(self) -> tuple[str, dict[str, Any]]:
        """Return the extra conditions and their values."""
        parts: Iterable[tuple[str, Any]] = (
            ("t.plan_id = :plan_id", self.plan_id),
            ("t.id >= :first_task", self.first_task),
            ("t.id <= :last_task", self.last_task),
            ("t.provenance_code = :provenance", self.provenance),
            ("t.endpoint_name = :endpoint", self.endpoint),
            ("t.operation_code = :operation", self.operation and self.operation.value),
        )
        used = [(condition, value) for condition, value in parts if value is not None]
        values = {condition.rpartition(":")[2]: value for condition, value in used}
        return "".join(f" AND {condition}" for condition, _ in used), values


EVERY_TASK = TaskFilter()


def ensure_tasks(tx: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Queue the tasks that are missing; one task per slice, one per idempotent key."""
    stored = [{**row, "params": json_text(row["params"])} for row in rows]
    insert_missing(tx, "ing_task", stored)


# Of a task `t`.
NOT_HELD = """
    NOT EXISTS (SELECT 1 FROM ing_hold h
                 WHERE h.provenance_code = t.provenance_code AND h.resumed_at IS NULL
                   AND (h.endpoint_name IS NULL OR h.endpoint_name = t.endpoint_name))
"""

_HOLD_ON = """
    UPDATE ing_task SET last_heartbeat_at = :now
     WHERE id = :id AND lease_owner = :owner AND status_code IN ('DISPATCHED', 'EXECUTING')
"""


def require_lease(tx: Connection, lease: Lease, now: datetime) -> None:
    """Raise LeaseLost unless this very claim still owns the task.

    The row stays locked until the transaction ends, so the task cannot change hands in between.
    """
    values = {"id": lease.task_id, "owner": lease.owner, "now": instant_text(now)}
    if execute(tx, _HOLD_ON, values).rowcount != 1:
        raise LeaseLost(f"task {lease.task_id} is no longer leased by {lease.owner}")


_RENEW = text("""
    UPDATE ing_task
       SET leased_until = :until, lease_count = lease_count + 1, last_heartbeat_at = :now
     WHERE id = :id AND lease_owner = :owner AND status_code IN ('DISPATCHED', 'EXECUTING')
""")


def try_renew(tx: Connection, lease: Lease, now: datetime, term: timedelta) -> bool:
    """Prolong a lease; False when another worker has taken the task."""
    values = {
        "id": lease.task_id,
        "owner": lease.owner,
        "now": instant_text(now),
        "until": instant_text(now + term),
    }
    return tx.execute(_RENEW, values).rowcount == 1


_START = text("""
    UPDATE ing_task
       SET status_code = 'EXECUTING', started_at = COALESCE(started_at, :now), updated_at = :now
     WHERE id = :id AND lease_owner = :owner
""")


def mark_executing(tx: Connection, lease: Lease, now: datetime) -> None:
    """Move a leased task to EXECUTING; the caller has required the lease."""
    ensure_transition(TaskStatus.DISPATCHED, TaskStatus.EXECUTING)
    tx.execute(_START, {"id": lease.task_id, "owner": lease.owner, "now": instant_text(now)})


_FINISH = text("""
    UPDATE ing_task
       SET status_code = :status, lease_owner = NULL, leased_until = NULL, finished_at = :now,
           last_error_code = :code, last_error_msg = :message, updated_at = :now
     WHERE id = :id AND lease_owner = :owner
""")


def finish_task(
    tx: Connection, lease: Lease, status: TaskStatus, now: datetime, error: tuple[str, str] | None
) -> None:
    """End a task in a final status; the caller has required the lease."""
    ensure_transition(TaskStatus.EXECUTING, status)
    code, message = error or (None, None)
    tx.execute(
        _FINISH,
        {
            "id": lease.task_id,
            "owner": lease.owner,
            "status": status.value,
            "code": code,
            "message": message and message[:512],
            "now": instant_text(now),
        },
    )


_RELEASE = text("""
    UPDATE ing_task
       SET status_code = 'QUEUED', lease_owner = NULL, leased_until = NULL,
           scheduled_at = :due,
           retry_count = CASE WHEN :has_moved = 1 THEN 0 ELSE retry_count END + :retries,
           silent_count = 0,
           last_error_code = CASE WHEN :is_told = 1 THEN :code ELSE last_error_code END,
           last_error_msg = CASE WHEN :is_told = 1 THEN :message ELSE last_error_msg END,
           updated_at = :now
     WHERE id = :id AND lease_owner = :owner
""")


def release_task(
    tx: Connection,
    lease: Lease,
    now: datetime,
    due: datetime | None = None,
    error: tuple[str, str] | None = None,
    has_moved: bool = False,
) -> None:
    """Give a task back to the queue, for now or for later.

    An error counts as a retry. Retries are those in a row: a task that has moved begins anew, and
    one that only had to wait keeps the error it waits for.
    """
    ensure_transition(TaskStatus.EXECUTING, TaskStatus.QUEUED)
    code, message = error or (None, None)
    tx.execute(
        _RELEASE,
        {
            "id": lease.task_id,
            "owner": lease.owner,
            "due": due and instant_text(due),
            "retries": 0 if error is None else 1,
            "has_moved": int(has_moved),
            "is_told": int(error is not None or has_moved),
            "code": code,
            "message": message and message[:512],
            "now": instant_text(now),
        },
    )


_QUEUED = text("""
    SELECT COUNT(*) FROM ing_task
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
       AND operation_code = :operation AND status_code = 'QUEUED'
""")


def count_queued(tx: Connection, provenance: str, endpoint: str, operation: Operation) -> int:
    """Count the tasks of a partition that wait, also those that are due later."""
    values = {"provenance": provenance, "endpoint": endpoint, "operation": operation.value}
    return int(tx.execute(_QUEUED, values).scalar_one())


def count_left(tx: Connection, wanted: TaskFilter = EVERY_TASK) -> int:
    """Count the tasks in the queue, whenever they are due and whether or not they are held."""
    conditions, values = wanted.sql()
    query = f"SELECT COUNT(*) FROM ing_task t WHERE t.status_code = 'QUEUED' {conditions}"
    return int(tx.execute(text(query), values).scalar_one())


def count_open(tx: Connection, due_before: datetime, wanted: TaskFilter = EVERY_TASK) -> int:
    """Count the tasks being worked on, and the queued ones that may start before `due_before`."""
    conditions, values = wanted.sql()
    query = f"""
        SELECT COUNT(*) FROM ing_task t
         WHERE (t.status_code IN ('DISPATCHED', 'EXECUTING')
                OR (t.status_code = 'QUEUED' AND {NOT_HELD}
                    AND (t.scheduled_at IS NULL OR t.scheduled_at < :due_before)))
         {conditions}
    """
    return int(
        tx.execute(text(query), {"due_before": instant_text(due_before), **values}).scalar_one()
    )


def count_startable(
    tx: Connection, now: datetime, wanted: TaskFilter = EVERY_TASK, most: int = 1_000_000_000
) -> int:
    """Count the tasks a worker could lease at `now`: due and not held, or left by a silent one.

    It does not count beyond `most`: whoever asks every few seconds need not read a long queue.
    """
    conditions, values = wanted.sql()
    query = f"""
        SELECT COUNT(*) FROM (
            SELECT 1 FROM ing_task t
             WHERE ((t.status_code = 'QUEUED' AND {NOT_HELD}
                     AND (t.scheduled_at IS NULL OR t.scheduled_at <= :now))
                    OR (t.status_code IN ('DISPATCHED', 'EXECUTING') AND t.leased_until < :now))
             {conditions} LIMIT :most) AS startable
    """
    asked = {"now": instant_text(now), "most": most, **values}
    return int(tx.execute(text(query), asked).scalar_one())
