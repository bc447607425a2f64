"""The `ing_cursor` and `ing_cursor_event` tables: where a namespace is, and every step it took.

Events are only ever added. The cursor is moved by compare-and-swap on its version. No commit here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, insert_missing, instant_text, read_instant
from patra_ingest.model.codes import CursorDirection, CursorType
from patra_ingest.model.lineage import Lineage, PlanId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window, instant_iso


@dataclass(frozen=True)
class TimeCursor:
    """How far a namespace has come."""

    value: datetime
    observed_max: datetime | None
    version: int


@dataclass(frozen=True)
class CursorEvent:
    """One step of a cursor, with the slice that allowed it."""

    namespace: Namespace
    direction: CursorDirection
    previous: datetime | None
    reached: datetime
    observed_max: datetime | None
    window: Window
    lineage: Lineage
    expr_hash: str | None
    key: str


_WHERE = """
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
"""

_FIND = text(f"SELECT normalized_instant, observed_max_value, version FROM ing_cursor {_WHERE}")


def find_cursor(tx: Connection, namespace: Namespace) -> TimeCursor | None:
    """Return the cursor of a namespace, or None before its first advance."""
    row = tx.execute(_FIND, namespace.columns()).one_or_none()
    if row is None:
        return None
    observed = row.observed_max_value
    return TimeCursor(
        read_instant(row.normalized_instant),
        datetime.fromisoformat(observed) if observed else None,
        row.version,
    )


def append_event(tx: Connection, event: CursorEvent, now: datetime) -> None:
    """Write down a step before it is taken; the same step is written once."""
    row = {
        **event.namespace.columns(),
        "cursor_type_code": CursorType.TIME.value,
        "prev_value": event.previous and instant_iso(event.previous),
        "new_value": instant_iso(event.reached),
        "observed_max_value": event.observed_max and instant_iso(event.observed_max),
        "prev_instant": event.previous and instant_text(event.previous),
        "new_instant": instant_text(event.reached),
        "window_from": instant_text(event.window.start),
        "window_to": instant_text(event.window.end),
        "direction_code": event.direction.value,
        "reason": "ADVANCE",
        "idempotent_key": event.key,
        **event.lineage.columns(),
        "expr_hash": event.expr_hash,
        "created_at": instant_text(now),
    }
    insert_missing(tx, "ing_cursor_event", [row])


def _state(event: CursorEvent, now: datetime) -> dict[str, Any]:
    lineage = event.lineage.columns()
    return {
        "cursor_value": instant_iso(event.reached),
        "observed_max_value": event.observed_max and instant_iso(event.observed_max),
        "normalized_instant": instant_text(event.reached),
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
        "cursor_type_code": CursorType.TIME.value,
        **_state(event, now),
        "version": 1,
    }
    insert_missing(tx, "ing_cursor", [row])
    found = find_cursor(tx, event.namespace)
    return found is not None and (found.value, found.version) == (event.reached, 1)


def try_move_cursor(tx: Connection, event: CursorEvent, seen: TimeCursor, now: datetime) -> bool:
    """Move the cursor from the version that was seen, forward only; False when the race is lost."""
    state = _state(event, now)
    assignments = ", ".join(f"{name} = :{name}" for name in state)
    moved = tx.execute(
        text(
            f"UPDATE ing_cursor SET {assignments}, version = version + 1 {_WHERE}"
            " AND version = :seen AND normalized_instant < :normalized_instant"
        ),
        {**event.namespace.columns(), **state, "seen": seen.version},
    )
    return moved.rowcount == 1


_BEHIND = text("""
    SELECT p.provenance_code, p.endpoint_name, p.operation_code, p.cursor_key,
           p.namespace_scope_code, p.namespace_key, MAX(p.direction_code) AS direction_code,
           MAX(p.id) AS plan_id
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
      LEFT JOIN ing_cursor c ON c.provenance_code = p.provenance_code
       AND c.endpoint_name = p.endpoint_name AND c.operation_code = p.operation_code
       AND c.cursor_key = p.cursor_key AND c.namespace_scope_code = p.namespace_scope_code
       AND c.namespace_key = p.namespace_key
     WHERE s.status_code = 'SUCCEEDED'
       AND (c.id IS NULL OR COALESCE(s.window_to, p.window_to) > c.normalized_instant)
     GROUP BY p.provenance_code, p.endpoint_name, p.operation_code, p.cursor_key,
              p.namespace_scope_code, p.namespace_key
""")


def list_behind(tx: Connection) -> list[tuple[Namespace, CursorDirection, PlanId]]:
    """Return the namespaces whose cursor is behind a succeeded slice, with their newest plan."""
    return [
        (
            Namespace.of(row),
            CursorDirection(row["direction_code"]),
            PlanId(row["plan_id"]),
        )
        for row in tx.execute(_BEHIND).mappings()
    ]


_EVENTS = text(f"SELECT new_instant, reason FROM ing_cursor_event {_WHERE} ORDER BY id")


def fold_events(tx: Connection, namespace: Namespace) -> datetime | None:
    """Return where the events alone would put the cursor; it equals the cursor."""
    reached: datetime | None = None
    for row in tx.execute(_EVENTS, namespace.columns()):
        instant = find_instant(row.new_instant)
        if row.reason == "ADVANCE" and instant and (reached is None or instant > reached):
            reached = instant
    return reached
