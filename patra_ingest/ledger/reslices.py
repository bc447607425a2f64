"""The `ing_reslice_request` table: an executor asks the planner to cut the rest of a slice again.

Each request is answered once: whoever has locked it as PENDING answers it in the same transaction.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert_missing, instant_text, json_text, read_json
from patra_ingest.ledger.remarks import append_remark
from patra_ingest.model.codes import ResliceReason, ResliceStatus
from patra_ingest.model.lineage import Lineage, PlanId, SliceId


@dataclass(frozen=True)
class NewRequest:
    """What an executor leaves: why, what is still to be asked for, and what it has measured."""

    lineage: Lineage
    reason: ResliceReason
    remaining: dict[str, Any]
    density: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A request that waits to be answered."""

    id: int
    plan_id: PlanId
    slice_id: SliceId
    reason: ResliceReason
    remaining: dict[str, Any]
    density: dict[str, Any]


def add_request(tx: Connection, new: NewRequest, now: datetime) -> None:
    """Leave a request; the same run asks once."""
    columns = new.lineage.columns()
    row = {
        **columns,
        "reason_code": new.reason.value,
        "remaining": json_text(new.remaining),
        "density": json_text(new.density),
        "status_code": ResliceStatus.PENDING.value,
        "dedup_key": f"slice-{new.lineage.slice_id}",
        "created_at": instant_text(now),
    }
    insert_missing(tx, "ing_reslice_request", [row])


_PENDING = """
    SELECT r.id FROM ing_reslice_request r JOIN ing_plan p ON p.id = r.plan_id
     WHERE r.status_code = 'PENDING' {conditions} ORDER BY r.id LIMIT :limit
"""


def list_pending(
    tx: Connection, provenance: str | None = None, plan_id: PlanId | None = None, limit: int = 500
) -> list[int]:
    """Return the requests that wait, oldest first."""
    named = {"p.provenance_code = :provenance": provenance, "r.plan_id = :plan": plan_id}
    conditions = "".join(f" AND {sql}" for sql, value in named.items() if value is not None)
    values = {"provenance": provenance, "plan": plan_id, "limit": limit}
    used = {name: value for name, value in values.items() if value is not None}
    return list(tx.execute(text(_PENDING.format(conditions=conditions)), used).scalars())


_TAKE = """
    SELECT id, plan_id, slice_id, reason_code, remaining, density FROM ing_reslice_request
     WHERE id = :id AND status_code = 'PENDING'
"""


def lock_request(tx: Connection, request_id: int) -> Request | None:
    """Return a request that still waits, locked; None when somebody has answered it."""
    tail = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    row = tx.execute(text(_TAKE + tail), {"id": request_id}).one_or_none()
    if row is None:
        return None
    return Request(
        row.id,
        PlanId(row.plan_id),
        SliceId(row.slice_id),
        ResliceReason(row.reason_code),
        read_json(row.remaining) or {},
        read_json(row.density) or {},
    )


_PLAN_OF = text("SELECT plan_id FROM ing_reslice_request WHERE id = :id")


def plan_of_request(tx: Connection, request_id: int) -> PlanId:
    """Return the plan whose slice a request speaks of."""
    return PlanId(tx.execute(_PLAN_OF, {"id": request_id}).scalar_one())


_ANSWER = text("""
    UPDATE ing_reslice_request
       SET status_code = :status, consumed_at = :now, version = version + 1, updated_at = :now
     WHERE id = :id AND status_code = 'PENDING'
""")


def answer_request(
    tx: Connection, request_id: int, status: ResliceStatus, note: str, now: datetime
) -> None:
    """End a request, with what became of it."""
    values = {"id": request_id, "status": status.value, "now": instant_text(now)}
    tx.execute(_ANSWER, values)
    append_remark(tx, "ing_reslice_request", [request_id], "planner", note, now)


_BROUGHT = text("SELECT 1 FROM ing_task WHERE slice_id = :id AND status_code = 'PARTIAL'")


def has_brought(tx: Connection, slice_id: SliceId) -> bool:
    """Return whether the task of a slice that is cut again had committed anything."""
    return tx.execute(_BROUGHT, {"id": slice_id}).scalar() is not None


_BLAME = text("""
    UPDATE ing_task SET last_error_code = 'RESLICE', last_error_msg = :problem
     WHERE slice_id = :id
""")


def blame_task(tx: Connection, slice_id: SliceId, problem: str) -> None:
    """Say on the task of a slice why the slice could not be cut again."""
    tx.execute(_BLAME, {"id": slice_id, "problem": problem[:512]})
