"""The `ing_plan` table: one window, one spec, one strategy. No function here commits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import (
    find_instant,
    insert_missing,
    instant_text,
    json_text,
    read_instant,
    read_json,
)
from patra_ingest.ledger.remarks import append_remark
from patra_ingest.model.codes import (
    CursorDirection,
    PlanStatus,
    Scheduler,
    SliceStrategy,
    TriggerType,
)
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window
from patra_ingest.spec.compile import Compiled
from patra_ingest.spec.snapshot import SpecSnapshot


@dataclass(frozen=True)
class Plan:
    """A plan as planners and executors need it: its spec, its namespace and how it is cut."""

    id: PlanId
    schedule_instance_id: ScheduleInstanceId
    status: PlanStatus
    namespace: Namespace
    direction: CursorDirection
    spec: SpecSnapshot
    fingerprint: str
    window: Window
    campaign: str | None
    slice_params: dict[str, Any]
    trigger_type: TriggerType
    scheduler: Scheduler


@dataclass(frozen=True)
class NewPlan:
    """Everything a plan row is made of."""

    root: ScheduleInstanceId
    key: str
    namespace: Namespace
    direction: CursorDirection
    window: Window
    compiled: Compiled
    strategy: SliceStrategy
    slice_params: dict[str, Any]
    remarks: list[dict[str, Any]]
    campaign: str | None = None


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
        "slice_strategy_code": new.strategy.value,
        "campaign": new.campaign,
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


_GET = text("""
    SELECT p.*, r.trigger_type_code, r.scheduler_code
      FROM ing_plan p JOIN ing_schedule_instance r ON r.id = p.schedule_instance_id
     WHERE p.id = :id
""")


def get_plan(tx: Connection, plan_id: PlanId) -> Plan:
    """Return a plan with its stored spec; nothing else decides how it runs."""
    row = tx.execute(_GET, {"id": plan_id}).mappings().one_or_none()
    if row is None:
        raise UnknownName(f"There is no plan {plan_id}.", "List plans with `patra status`.")
    return Plan(
        PlanId(row["id"]),
        ScheduleInstanceId(row["schedule_instance_id"]),
        PlanStatus(row["status_code"]),
        Namespace.of(row),
        CursorDirection(row["direction_code"]),
        SpecSnapshot.model_validate(read_json(row["spec_snapshot"])),
        row["spec_fingerprint"],
        Window(read_instant(row["window_from"]), read_instant(row["window_to"])),
        row["campaign"],
        read_json(row["slice_params"]) or {},
        TriggerType(row["trigger_type_code"]),
        Scheduler(row["scheduler_code"]),
    )


def find_plan(tx: Connection, key: str) -> tuple[PlanId, PlanStatus] | None:
    """Return the plan with this key, if there is one."""
    query = text("SELECT id, status_code FROM ing_plan WHERE plan_key = :key")
    row = tx.execute(query, {"key": key}).one_or_none()
    return None if row is None else (PlanId(row.id), PlanStatus(row.status_code))


_UNFINISHED = "SELECT id FROM ing_plan WHERE status_code IN ('DRAFT', 'SLICING', 'PARTIAL')"
_OF_PARTITION = """
    AND provenance_code = :provenance_code AND endpoint_name = :endpoint_name
    AND operation_code = :operation_code
"""


def list_unfinished(tx: Connection, namespace: Namespace | None = None) -> list[PlanId]:
    """Return the plans whose slices are not all written or not all queued, oldest first.

    With a namespace only those of its provenance, endpoint and operation.
    """
    query = _UNFINISHED + (_OF_PARTITION if namespace else "") + " ORDER BY id"
    names = ("provenance_code", "endpoint_name", "operation_code")
    values = {name: namespace.columns()[name] for name in names} if namespace else {}
    return [PlanId(found) for found in tx.execute(text(query), values).scalars()]


_PACE = text("""
    SELECT MAX(window_to) FROM ing_plan
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
       AND status_code <> 'CANCELLED'
""")


def find_pace(tx: Connection, namespace: Namespace) -> datetime | None:
    """Return the end of the last window that a namespace was planned for."""
    return find_instant(tx.execute(_PACE, namespace.columns()).scalar())


def lock_plan(tx: Connection, plan_id: PlanId) -> PlanStatus:
    """Return a plan's status and keep others from going on with it until `tx` ends."""
    tail = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    query = text(f"SELECT status_code FROM ing_plan WHERE id = :id{tail}")
    return PlanStatus(tx.execute(query, {"id": plan_id}).scalar_one())


def save_slice_params(
    tx: Connection, plan_id: PlanId, params: dict[str, Any], now: datetime
) -> None:
    """Write down how a plan is cut; the caller has locked it."""
    query = "UPDATE ing_plan SET slice_params = :params, updated_at = :now WHERE id = :id"
    values = {"id": plan_id, "params": json_text(params), "now": instant_text(now)}
    tx.execute(text(query), values)


def mark_partial(
    tx: Connection, plan_id: PlanId, old: PlanStatus, reason: str, why: str, now: datetime
) -> None:
    """Leave a plan PARTIAL with the reason: BACKPRESSURE, BUDGET or HELD."""
    if old != PlanStatus.PARTIAL:
        mark_plan(tx, plan_id, old, PlanStatus.PARTIAL, now)
    append_remark(tx, "ing_plan", [plan_id], "planner", why, now, kind=reason)


_LOCK = "SELECT id FROM reg_provenance WHERE provenance_code = :code"


def lock_planning(tx: Connection, provenance: str) -> None:
    """Let one planner at a time decide what a provenance still lacks."""
    # SQLite's write transaction already excludes everybody else.
    tail = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    tx.execute(text(_LOCK + tail), {"code": provenance})


_COMPLETE = text("""
    UPDATE ing_plan SET status_code = 'COMPLETED', version = version + 1, updated_at = :now
     WHERE id = :id AND status_code = 'READY'
       AND NOT EXISTS (SELECT 1 FROM ing_plan_slice s WHERE s.plan_id = :id
                        AND s.status_code IN ('PENDING', 'READY', 'DISPATCHED', 'EXECUTING'))
""")


def try_complete_plan(tx: Connection, plan_id: PlanId, now: datetime) -> bool:
    """Mark a plan COMPLETED when all its tasks are final; False when some are not.

    A slice follows its task, and one whose rest waits to be cut again is open until it was.
    """
    if tx.dialect.name == "mysql":
        # Two workers that end the last two tasks at once would each see the other's as open.
        tx.execute(text("SELECT id FROM ing_plan WHERE id = :id FOR UPDATE"), {"id": plan_id})
    done = tx.execute(_COMPLETE, {"id": plan_id, "now": instant_text(now)})
    return done.rowcount == 1
