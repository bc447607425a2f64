"""The `ing_cursor` table, and the writing of `ing_cursor_event`: where a namespace is, and why.

Events are only ever added, and nowhere but here. The cursor is moved by compare-and-swap on its
version and its value. No commit here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert_missing, instant_text, json_text, read_instant
from patra_ingest.model import keys
from patra_ingest.model.codes import CursorDirection, CursorReason, CursorType
from patra_ingest.model.lineage import Lineage, PlanId, ScheduleInstanceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window, instant_iso

Value = TypeVar("Value")


@dataclass(frozen=True)
class Cursor(Generic[Value]):
    """How far a namespace has come: an instant, the number of a row, or a token."""

    value: Value
    observed_max: datetime | None
    version: int


TimeCursor = Cursor[datetime]


@dataclass(frozen=True)
class CursorEvent:
    """One step of a cursor, or why it took none; with the slice or the person behind it.

    `of` is what tells it from the same step taken once more, see `keys.cursor_event_key`.
    """

    namespace: Namespace
    direction: CursorDirection
    previous: Any
    reached: Any
    observed_max: datetime | None
    window: Window | None
    lineage: Lineage
    expr_hash: str | None = None
    kind: CursorType = CursorType.TIME
    reason: CursorReason = CursorReason.ADVANCE
    by: str = "cursor"
    note: str | None = None
    of: object = None

    @property
    def key(self) -> str:
        """Return what makes this event itself."""
        return keys.cursor_event_key(
            self.namespace.columns(),
            self.reason.value,
            write_value(self.previous),
            str(write_value(self.reached)),
            self.window,
            self.of,
        )

    def remarks(self, now: datetime) -> str | None:
        """Return why it was written, as the row keeps it; None for a plain step."""
        if self.note is None:
            return None
        note = {"time": now, "by": self.by, "note": self.note, "type": self.reason.value}
        span = {"from": write_value(self.previous), "to": write_value(self.reached)}
        return json_text([{**note, "data": span}])


def write_value(value: Any) -> str | None:
    """Return a cursor's value as the ledger and people read it."""
    return (
        instant_iso(value) if isinstance(value, datetime) else None if value is None else f"{value}"
    )


_WHERE = """
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
"""
_FIND = f"""
    SELECT cursor_type_code, cursor_value, normalized_instant, normalized_numeric,
           observed_max_value, version
      FROM ing_cursor {_WHERE}
"""
_LOOK = text(_FIND)


def find_any_cursor(tx: Connection, namespace: Namespace) -> Cursor[Any] | None:
    """Return the cursor of a namespace, whatever it measures; None before its first step."""
    row = tx.execute(_LOOK, namespace.columns()).one_or_none()
    return None if row is None else _read(row)


def _read(row: Any) -> Cursor[Any]:
    value: Any = row.cursor_value
    if row.cursor_type_code == CursorType.TIME:
        value = read_instant(row.normalized_instant)
    elif row.cursor_type_code == CursorType.ID:
        value = int(row.cursor_value)
    observed = row.observed_max_value
    return Cursor(value, datetime.fromisoformat(observed) if observed else None, row.version)


def find_cursor(tx: Connection, namespace: Namespace) -> TimeCursor | None:
    """Return the cursor of a namespace that measures time, or None before its first advance."""
    return find_any_cursor(tx, namespace)


def lock_cursor(tx: Connection, namespace: Namespace) -> Cursor[Any] | None:
    """Return a cursor and keep others from moving it until `tx` ends."""
    # SQLite's write transaction already excludes everybody else.
    tail = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    row = tx.execute(text(_FIND + tail), namespace.columns()).one_or_none()
    return None if row is None else _read(row)


def append_event(tx: Connection, event: CursorEvent, now: datetime) -> None:
    """Write down a step before it is taken; the same step is written once."""
    row = {
        **event.namespace.columns(),
        "cursor_type_code": event.kind.value,
        "prev_value": write_value(event.previous),
        "new_value": write_value(event.reached),
        "observed_max_value": write_value(event.observed_max),
        "prev_instant": _instant(event.previous),
        "new_instant": _instant(event.reached),
        "prev_numeric": _number(event.previous),
        "new_numeric": _number(event.reached),
        "window_from": event.window and instant_text(event.window.start),
        "window_to": event.window and instant_text(event.window.end),
        "direction_code": event.direction.value,
        "reason": event.reason.value,
        "idempotent_key": event.key,
        **event.lineage.columns(),
        "expr_hash": event.expr_hash,
        "record_remarks": event.remarks(now),
        "created_at": instant_text(now),
        "created_by_name": event.by[:100],
    }
    insert_missing(tx, "ing_cursor_event", [row])


def _instant(value: Any) -> str | None:
    return instant_text(value) if isinstance(value, datetime) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _state(event: CursorEvent, now: datetime) -> dict[str, Any]:
    lineage = event.lineage.columns()
    return {
        "cursor_value": write_value(event.reached),
        "observed_max_value": write_value(event.observed_max),
        "normalized_instant": _instant(event.reached),
        "normalized_numeric": _number(event.reached),
        "schedule_instance_id": lineage["schedule_instance_id"],
        "plan_id": lineage["plan_id"],
        "slice_id": lineage["slice_id"],
        "task_id": lineage["task_id"],
        "last_run_id": lineage["run_id"],
        "last_batch_id": lineage["batch_id"],
        "expr_hash": event.expr_hash,
        "updated_at": instant_text(now),
    }


def try_create_cursor(tx: Connection, event: CursorEvent, now: datetime) -> bool:
    """Create the cursor of a namespace; False when another worker was first."""
    row = {
        **event.namespace.columns(),
        "cursor_type_code": event.kind.value,
        **_state(event, now),
        "version": 1,
    }
    insert_missing(tx, "ing_cursor", [row])
    found = find_any_cursor(tx, event.namespace)
    return found is not None and (found.value, found.version) == (event.reached, 1)


# What the stored value must be for a step to be one forward; tokens have no order.
_BEFORE = {
    (CursorType.TIME, CursorDirection.FORWARD): "normalized_instant < :normalized_instant",
    (CursorType.TIME, CursorDirection.BACKFILL): "normalized_instant > :normalized_instant",
    (CursorType.ID, CursorDirection.FORWARD): "normalized_numeric < :normalized_numeric",
    (CursorType.ID, CursorDirection.BACKFILL): "normalized_numeric > :normalized_numeric",
}


def try_move_cursor(tx: Connection, event: CursorEvent, seen: Cursor[Any], now: datetime) -> bool:
    """Move the cursor from the version that was seen, forward only; False when the race is lost."""
    state = _state(event, now)
    assignments = ", ".join(f"{name} = :{name}" for name in state)
    before = _BEFORE.get((event.kind, event.direction), "cursor_value <> :cursor_value")
    moved = tx.execute(
        text(
            f"UPDATE ing_cursor SET {assignments}, version = version + 1 {_WHERE}"
            f" AND version = :seen AND {before}"
        ),
        {**event.namespace.columns(), **state, "seen": seen.version},
    )
    return moved.rowcount == 1


# Only plans that reach beyond their cursor are looked into: most end long before it.
_BEHIND = text("""
    SELECT p.provenance_code, p.endpoint_name, p.operation_code, p.cursor_key,
           p.namespace_scope_code, p.namespace_key, MAX(p.direction_code) AS direction_code,
           MAX(p.id) AS plan_id
      FROM ing_plan p
      LEFT JOIN ing_cursor c ON c.provenance_code = p.provenance_code
       AND c.endpoint_name = p.endpoint_name AND c.operation_code = p.operation_code
       AND c.cursor_key = p.cursor_key AND c.namespace_scope_code = p.namespace_scope_code
       AND c.namespace_key = p.namespace_key
     WHERE (c.id IS NULL
            OR (p.direction_code = 'FORWARD' AND p.window_to > c.normalized_instant)
            OR (p.direction_code = 'BACKFILL' AND p.window_from < c.normalized_instant))
       AND EXISTS (
           SELECT 1 FROM ing_plan_slice s
            WHERE s.plan_id = p.id AND (s.status_code = 'SUCCEEDED' OR s.done_to IS NOT NULL)
              AND (c.id IS NULL OR s.window_from IS NULL
                   OR (p.direction_code = 'FORWARD' AND s.window_to > c.normalized_instant)
                   OR (p.direction_code = 'BACKFILL' AND s.window_from < c.normalized_instant)))
     GROUP BY p.provenance_code, p.endpoint_name, p.operation_code, p.cursor_key,
              p.namespace_scope_code, p.namespace_key
""")


_ROOT = text("SELECT schedule_instance_id FROM ing_plan WHERE id = :id")


def list_behind(tx: Connection) -> list[tuple[Namespace, CursorDirection, Lineage]]:
    """Return the namespaces whose cursor is behind a succeeded slice, with their newest plan."""
    return [
        (Namespace.of(row), CursorDirection(row["direction_code"]), _lineage(tx, row["plan_id"]))
        for row in tx.execute(_BEHIND).mappings().all()
    ]


def _lineage(tx: Connection, plan_id: int) -> Lineage:
    root = tx.execute(_ROOT, {"id": plan_id}).scalar_one()
    return Lineage(ScheduleInstanceId(root), PlanId(plan_id))
