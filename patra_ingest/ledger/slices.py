"""The `ing_plan_slice` table: the smallest unit of parallel work. No function here commits."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert_missing, instant_text, json_text, read_instant
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, SliceId, TaskId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow, NewSlice
from patra_ingest.model.window import Window


def ensure_slices(
    tx: Connection, plan_id: PlanId, namespace: Namespace, slices: Sequence[NewSlice]
) -> dict[str, SliceId]:
    """Insert the slices that are missing; return their ids by signature."""
    rows = [
        {
            "plan_id": plan_id,
            "provenance_code": namespace.provenance,
            "endpoint_name": namespace.endpoint,
            "operation_code": namespace.operation.value,
            "slice_no": new.no,
            "slice_signature_hash": new.signature,
            "slice_spec": json_text(new.spec),
            "expr_hash": new.expr_hash,
            "expr_snapshot": json_text(new.localized),
            "window_from": instant_text(new.window.start),
            "window_to": instant_text(new.window.end),
            "status_code": SliceStatus.READY.value,
        }
        for new in slices
    ]
    insert_missing(tx, "ing_plan_slice", rows)
    found = tx.execute(
        text(
            "SELECT slice_signature_hash, id FROM ing_plan_slice"
            " WHERE plan_id = :id AND slice_no BETWEEN :first AND :last"
        ),
        {"id": plan_id, "first": slices[0].no, "last": slices[-1].no},
    )
    return {signature: SliceId(slice_id) for signature, slice_id in found}


_OF_TASK = text("""
    SELECT s.window_from, s.window_to, s.expr_hash, t.retry_count
      FROM ing_task t JOIN ing_plan_slice s ON s.id = t.slice_id WHERE t.id = :id
""")


def get_slice_of(tx: Connection, task_id: TaskId) -> tuple[Window, str, int]:
    """Return a task's window, the hash of its localized spec, and how often it was retried."""
    row = tx.execute(_OF_TASK, {"id": task_id}).one()
    window = Window(read_instant(row.window_from), read_instant(row.window_to))
    return window, row.expr_hash, row.retry_count


# A slice follows its only task; nobody else moves it.
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


_COVERED = text("""
    SELECT s.id, s.window_from, s.window_to, s.status_code
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
     WHERE p.provenance_code = :provenance_code AND p.endpoint_name = :endpoint_name
       AND p.operation_code = :operation_code AND p.cursor_key = :cursor_key
       AND p.namespace_scope_code = :namespace_scope_code AND p.namespace_key = :namespace_key
       AND s.window_to > :after
     ORDER BY s.window_from, s.id
""")


def list_windows(tx: Connection, namespace: Namespace, after: datetime) -> list[CoveredWindow]:
    """Return the windows of a namespace that end later than `after`, in order."""
    found = tx.execute(_COVERED, {**namespace.columns(), "after": instant_text(after)})
    return [
        CoveredWindow(
            SliceId(row.id),
            Window(read_instant(row.window_from), read_instant(row.window_to)),
            SliceStatus(row.status_code),
        )
        for row in found
    ]
