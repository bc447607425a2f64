"""The `ing_plan_slice` table: the smallest unit of parallel work. No function here commits.

A slice is PENDING until its task is queued. From then on it follows its task, and nobody else
moves it; only when its rest has to be cut again does it stay EXECUTING until the planner did so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import (
    find_instant,
    insert_missing,
    instant_text,
    json_text,
    read_instant,
    read_json,
)
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, SliceId, TaskId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import NewSlice
from patra_ingest.model.window import Window


@dataclass(frozen=True)
class Slice:
    """A slice as it stands in the ledger."""

    id: SliceId
    plan_id: PlanId
    no: int
    status: SliceStatus
    signature: str
    expr_hash: str
    spec: dict[str, Any]
    window: Window | None


def ensure_slices(
    tx: Connection,
    plan_id: PlanId,
    namespace: Namespace,
    slices: Sequence[NewSlice],
    parent: SliceId | None = None,
) -> None:
    """Insert the slices that are missing; one that is there stays as it is."""
    rows = [
        {
            "plan_id": plan_id,
            "parent_slice_id": parent,
            "provenance_code": namespace.provenance,
            "endpoint_name": namespace.endpoint,
            "operation_code": namespace.operation.value,
            "slice_no": new.no,
            "slice_signature_hash": new.signature,
            "slice_spec": json_text(new.spec),
            "expr_hash": new.expr_hash,
            "expr_snapshot": json_text(new.localized),
            "window_from": new.window and instant_text(new.window.start),
            "window_to": new.window and instant_text(new.window.end),
            "status_code": SliceStatus.PENDING.value,
        }
        for new in slices
    ]
    insert_missing(tx, "ing_plan_slice", rows)


def count_slices(tx: Connection, plan_id: PlanId) -> int:
    """Return the number the next slice of a plan gets: they are numbered from 0, without a gap."""
    query = text("SELECT COALESCE(MAX(slice_no) + 1, 0) FROM ing_plan_slice WHERE plan_id = :id")
    return int(tx.execute(query, {"id": plan_id}).scalar_one())


_COLUMNS = """
    id, plan_id, slice_no, status_code, slice_signature_hash, expr_hash, slice_spec,
    window_from, window_to
"""
_UNDERIVED = f"""
    SELECT {_COLUMNS} FROM ing_plan_slice {{by_number}}
     WHERE plan_id = :id AND slice_no > :after AND status_code = 'PENDING'
     ORDER BY slice_no LIMIT :limit
"""
# By its number, not by its status: that would sort all slices of a large plan for every group.
_BY_NUMBER = {"mysql": "FORCE INDEX (uk_slice_unique)", "sqlite": "INDEXED BY uk_slice_unique"}


def list_underived(tx: Connection, plan_id: PlanId, limit: int, after: int = -1) -> list[Slice]:
    """Return the first slices of a plan, after this number, that have no task yet."""
    query = text(_UNDERIVED.format(by_number=_BY_NUMBER[tx.dialect.name]))
    found = tx.execute(query, {"id": plan_id, "limit": limit, "after": after})
    return [_slice(row) for row in found]


def count_underived(tx: Connection, plan_id: PlanId) -> int:
    """Count the slices of a plan that have no task yet."""
    query = "SELECT COUNT(*) FROM ing_plan_slice WHERE plan_id = :id AND status_code = 'PENDING'"
    return int(tx.execute(text(query), {"id": plan_id}).scalar_one())


_DERIVED = text("SELECT COUNT(*) FROM ing_task WHERE slice_id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)


def count_derived(tx: Connection, slice_ids: Sequence[SliceId]) -> int:
    """Count those of these slices that have a task."""
    return int(tx.execute(_DERIVED, {"ids": list(slice_ids)}).scalar_one())


_CHILDREN = text(f"""
    SELECT {_COLUMNS} FROM ing_plan_slice
     WHERE plan_id = :plan AND parent_slice_id = :parent ORDER BY slice_no
""")


def list_children(tx: Connection, plan_id: PlanId, parent: SliceId) -> list[Slice]:
    """Return the slices that a slice was cut into."""
    return [_slice(row) for row in tx.execute(_CHILDREN, {"plan": plan_id, "parent": parent})]


_FIRST = text(f"""
    SELECT {_COLUMNS} FROM ing_plan_slice WHERE plan_id = :plan ORDER BY slice_no LIMIT :limit
""")


def list_first(tx: Connection, plan_id: PlanId, limit: int) -> list[Slice]:
    """Return the first slices of a plan, whatever became of them."""
    return [_slice(row) for row in tx.execute(_FIRST, {"plan": plan_id, "limit": limit})]


def get_slice(tx: Connection, slice_id: SliceId) -> Slice:
    """Return one slice."""
    query = text(f"SELECT {_COLUMNS} FROM ing_plan_slice WHERE id = :id")
    return _slice(tx.execute(query, {"id": slice_id}).one())


def _slice(row: Any) -> Slice:
    start, end = find_instant(row.window_from), find_instant(row.window_to)
    return Slice(
        SliceId(row.id),
        PlanId(row.plan_id),
        row.slice_no,
        SliceStatus(row.status_code),
        row.slice_signature_hash,
        row.expr_hash,
        read_json(row.slice_spec),
        Window(start, end) if start and end else None,
    )


_READY = text("""
    UPDATE ing_plan_slice SET status_code = 'READY', version = version + 1, updated_at = :now
     WHERE id IN :ids AND status_code = 'PENDING'
""").bindparams(bindparam("ids", expanding=True))


def mark_ready(tx: Connection, slice_ids: Sequence[SliceId], now: datetime) -> None:
    """Say that these slices have a queued task."""
    ensure_transition(SliceStatus.PENDING, SliceStatus.READY)
    if slice_ids:
        tx.execute(_READY, {"ids": list(slice_ids), "now": instant_text(now)})


_OF_TASK = text("""
    SELECT s.id, s.plan_id, s.slice_no, s.status_code, s.slice_signature_hash, s.expr_hash,
           s.slice_spec, s.window_from, s.window_to, t.retry_count
      FROM ing_task t JOIN ing_plan_slice s ON s.id = t.slice_id WHERE t.id = :id
""")


def get_slice_of(tx: Connection, task_id: TaskId) -> tuple[Slice, int]:
    """Return a task's slice, and how often the task was retried."""
    row = tx.execute(_OF_TASK, {"id": task_id}).one()
    return _slice(row), row.retry_count


_STATUS = text("SELECT status_code FROM ing_plan_slice WHERE id = :id")
_FOLLOW = text("""
    UPDATE ing_plan_slice SET status_code = :new, version = version + 1, updated_at = :now
     WHERE id = :id
""")


def follow_task(tx: Connection, slice_id: SliceId, status: SliceStatus, now: datetime) -> None:
    """Project a task's status onto its slice."""
    old = SliceStatus(tx.execute(_STATUS, {"id": slice_id}).scalar_one())
    if old == status:
        return
    ensure_transition(old, status)
    tx.execute(_FOLLOW, {"id": slice_id, "new": status.value, "now": instant_text(now)})


_DONE_TO = text("UPDATE ing_plan_slice SET done_to = :done WHERE id = :id")


def mark_done_to(tx: Connection, slice_id: SliceId, done: datetime) -> None:
    """Say up to when a slice that was cut again is done itself."""
    tx.execute(_DONE_TO, {"id": slice_id, "done": instant_text(done)})


_LANDED = text("""
    SELECT s.plan_id, s.window_from, s.window_to,
           JSON_EXTRACT(s.slice_spec, '$.partition') AS part,
           JSON_EXTRACT(r.certificate, '$.landed') AS landed
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
      JOIN ing_task t ON t.slice_id = s.id JOIN ing_task_run r ON r.task_id = t.id
     WHERE p.provenance_code = :provenance AND p.endpoint_name = :endpoint
       AND p.expr_proto_hash = :proto AND s.status_code = 'SUCCEEDED'
       AND s.window_from IS NOT NULL AND r.status_code = 'SUCCEEDED'
     ORDER BY s.id DESC LIMIT :limit
""")


def list_landed(
    tx: Connection,
    provenance: str,
    endpoint: str,
    proto_hash: str,
    partition: str | None,
    limit: int = 500,
) -> list[tuple[Window, int]]:
    """Return how many records the newest succeeded windows of a question held, newest first.

    Slices that share their window because it was cut by a second dimension count together.
    """
    values = {"provenance": provenance, "endpoint": endpoint, "proto": proto_hash, "limit": limit}
    landed: dict[Any, int] = {}
    for row in tx.execute(_LANDED, values):
        named = None if row.part is None else str(row.part).strip('"')
        if row.landed is not None and named == partition:
            key = (row.plan_id, row.window_from, row.window_to)
            landed[key] = landed.get(key, 0) + int(row.landed)
    return [
        (Window(read_instant(start), read_instant(end)), count)
        for (_, start, end), count in landed.items()
    ]
