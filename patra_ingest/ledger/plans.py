"""The `ing_plan` table: one window, one spec, one strategy. No function here commits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import insert_missing, instant_text, json_text, read_json
from patra_ingest.model.codes import (
    CursorDirection,
    NamespaceScope,
    Operation,
    PlanStatus,
    SliceStrategy,
)
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window
from patra_ingest.spec.compile import Compiled
from patra_ingest.spec.snapshot import SpecSnapshot


@dataclass(frozen=True)
class Plan:
    """A plan as executors need it: its spec and its namespace."""

    id: PlanId
    schedule_instance_id: ScheduleInstanceId
    status: PlanStatus
    namespace: Namespace
    direction: CursorDirection
    spec: SpecSnapshot
    fingerprint: str


@dataclass(frozen=True)
class NewPlan:
    """Everything a plan row is made of."""

    root: ScheduleInstanceId
    key: str
    namespace: Namespace
    direction: CursorDirection
    window: Window
    compiled: Compiled
    slice_params: dict[str, Any]
    remarks: list[dict[str, Any]]


def ensure_plan(tx: Connection, new: NewPlan) -> tuple[PlanId, PlanStatus]:
    """Insert the plan, or return the one that already has its key."""
    compiled = new.compiled
    row = {
        "schedule_instance_id": new.root,
        "plan_key": new.key,
        **new.namespace.columns(),
        "direction_code": new.direction.value,
        "expr_proto_hash": compiled.proto_hash,
        "expr_proto_snapshot": json_text(compiled.proto),
        "spec_fingerprint": compiled.fingerprint,
        "spec_snapshot": compiled.spec.model_dump_json(),
        "provenance_config_snapshot": json_text(compiled.config),
        "provenance_config_hash": compiled.config_hash,
        "window_from": instant_text(new.window.start),
        "window_to": instant_text(new.window.end),
        "slice_strategy_code": SliceStrategy.TIME.value,
        "slice_params": json_text(new.slice_params),
        "status_code": PlanStatus.DRAFT.value,
        "record_remarks": json_text(new.remarks),
    }
    insert_missing(tx, "ing_plan", [row])
    found = tx.execute(
        text("SELECT id, status_code FROM ing_plan WHERE plan_key = :key"), {"key": new.key}
    ).one()
    return PlanId(found.id), PlanStatus(found.status_code)


def mark_plan(
    tx: Connection, plan_id: PlanId, old: PlanStatus, new: PlanStatus, now: datetime
) -> None:
    """Move a plan's status along its lifecycle."""
    ensure_transition(old, new)
    tx.execute(
        text(
            "UPDATE ing_plan SET status_code = :new, version = version + 1, updated_at = :now"
            " WHERE id = :id AND status_code = :old"
        ),
        {"id": plan_id, "old": old.value, "new": new.value, "now": instant_text(now)},
    )


def get_plan(tx: Connection, plan_id: PlanId) -> Plan:
    """Return a plan with its stored spec; nothing else decides how it runs."""
    row = (
        tx.execute(text("SELECT * FROM ing_plan WHERE id = :id"), {"id": plan_id})
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise UnknownName(f"There is no plan {plan_id}.", "List plans with `patra status`.")
    namespace = Namespace(
        row["provenance_code"],
        row["endpoint_name"],
        Operation(row["operation_code"]),
        row["cursor_key"],
        NamespaceScope(row["namespace_scope_code"]),
        row["namespace_key"],
    )
    return Plan(
        PlanId(row["id"]),
        ScheduleInstanceId(row["schedule_instance_id"]),
        PlanStatus(row["status_code"]),
        namespace,
        CursorDirection(row["direction_code"]),
        SpecSnapshot.model_validate(read_json(row["spec_snapshot"])),
        row["spec_fingerprint"],
    )


_LOCK = "SELECT id FROM reg_provenance WHERE provenance_code = :code"


def lock_planning(tx: Connection, provenance: str) -> None:
    """Let one planner at a time decide what a provenance still lacks."""
    # SQLite's write transaction already excludes everybody else.
    tail = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    tx.execute(text(_LOCK + tail), {"code": provenance})


_COMPLETE = text("""
    UPDATE ing_plan SET status_code = 'COMPLETED', version = version + 1, updated_at = :now
     WHERE id = :id AND status_code = 'READY'
       AND NOT EXISTS (SELECT 1 FROM ing_task t WHERE t.plan_id = :id
                        AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING'))
""")


def try_complete_plan(tx: Connection, plan_id: PlanId, now: datetime) -> bool:
    """Mark a plan COMPLETED when all its tasks are final; False when some are not."""
    if tx.dialect.name == "mysql":
        # Two workers that end the last two tasks at once would each see the other's as open.
        tx.execute(text("SELECT id FROM ing_plan WHERE id = :id FOR UPDATE"), {"id": plan_id})
    done = tx.execute(_COMPLETE, {"id": plan_id, "now": instant_text(now)})
    return done.rowcount == 1
