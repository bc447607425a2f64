"""Every cursor with its lag, and the events that brought it where it is."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, read_instant, read_json
from patra_ingest.ledger.remarks import read_remarks
from patra_ingest.model.codes import CursorType, Operation
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import parse_duration

_WARN, _CRITICAL = 2, 4  # times the safety lag


@dataclass(frozen=True)
class CursorState:
    """Where a cursor stands, how far that is from now, and who brought it there."""

    namespace: Namespace
    kind: CursorType
    value: str
    instant: datetime | None
    observed_max: datetime | None
    safety_lag: timedelta | None
    moved_at: datetime
    plan_id: int | None
    slice_id: int | None
    run_id: int | None

    def now_lag(self, now: datetime) -> timedelta | None:
        """Return how far the cursor is behind now; a BACKFILL is not behind anything."""
        if self.instant is None or self.namespace.operation is Operation.BACKFILL:
            return None
        return now - self.instant

    @property
    def source_lag(self) -> timedelta | None:
        """Return how far it is behind the newest record we have seen; zero when it is past that."""
        goes_down = self.namespace.operation is Operation.BACKFILL
        if self.instant is None or self.observed_max is None or goes_down:
            return None
        return max(self.observed_max - self.instant, timedelta(0))

    def level(self, now: datetime) -> str | None:
        """Return OK, WARN or CRITICAL for a HARVEST, by its distance from now in safety lags."""
        lag = self.now_lag(now)
        if lag is None or not self.safety_lag or self.namespace.operation is not Operation.HARVEST:
            return None
        if lag > _CRITICAL * self.safety_lag:
            return "CRITICAL"
        return "WARN" if lag > _WARN * self.safety_lag else "OK"


_CURSORS = """
    SELECT * FROM ing_cursor {where}
     ORDER BY provenance_code, endpoint_name, operation_code, cursor_key, namespace_key
"""
_SPEC = text("""
    SELECT spec_snapshot FROM ing_plan
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
     ORDER BY id DESC LIMIT 1
""")


def list_cursors(tx: Connection, provenance: str | None = None) -> list[CursorState]:
    """Return every cursor, or those of one source, in order of name."""
    where = "WHERE provenance_code = :provenance" if provenance else ""
    query = text(_CURSORS.format(where=where))
    values = {"provenance": provenance} if provenance else {}
    return [_state(tx, row) for row in tx.execute(query, values).mappings().all()]


def _state(tx: Connection, row: Any) -> CursorState:
    namespace = Namespace.of(row)
    observed = row["observed_max_value"]
    return CursorState(
        namespace,
        CursorType(row["cursor_type_code"]),
        row["cursor_value"],
        find_instant(row["normalized_instant"]),
        datetime.fromisoformat(observed) if observed else None,
        _safety_lag(tx, namespace),
        read_instant(row["updated_at"]),
        row["plan_id"],
        row["slice_id"],
        row["last_run_id"],
    )


def _safety_lag(tx: Connection, namespace: Namespace) -> timedelta | None:
    stored = tx.execute(_SPEC, namespace.columns()).scalar()
    lag = (read_json(stored) or {}).get("window", {}).get("safety_lag")
    return None if lag is None else parse_duration(lag)


@dataclass(frozen=True)
class EventView:
    """One event as a person reads it."""

    id: int
    at: datetime
    namespace: Namespace
    direction: str | None
    reason: str | None
    previous: str | None
    reached: str
    window_from: datetime | None
    window_to: datetime | None
    by: str | None
    why: str | None
    lineage: dict[str, int | None]


_LINEAGE = ("schedule_instance_id", "plan_id", "slice_id", "task_id", "run_id", "batch_id")
_TIMELINE = """
    SELECT * FROM ing_cursor_event
     WHERE provenance_code = :provenance {more}
     ORDER BY id DESC LIMIT :limit
"""


def list_events(
    tx: Connection,
    provenance: str,
    limit: int,
    endpoint: str | None = None,
    operation: str | None = None,
    key_prefix: str | None = None,
) -> list[EventView]:
    """Return the last events of a source, oldest of them first."""
    asked = {"endpoint_name": endpoint, "operation_code": operation}
    filters: dict[str, Any] = {name: value for name, value in asked.items() if value}
    more = "".join(f" AND {name} = :{name}" for name in filters)
    if key_prefix:
        more += " AND SUBSTR(namespace_key, 1, :length) = :prefix"
        filters |= {"length": len(key_prefix), "prefix": key_prefix}
    values = {"provenance": provenance, "limit": limit, **filters}
    rows = tx.execute(text(_TIMELINE.format(more=more)), values).mappings().all()
    return [_event(row) for row in reversed(rows)]


def _event(row: Any) -> EventView:
    remarks = read_remarks(row["record_remarks"])
    return EventView(
        row["id"],
        read_instant(row["created_at"]),
        Namespace.of(row),
        row["direction_code"],
        row["reason"],
        row["prev_value"],
        row["new_value"],
        find_instant(row["window_from"]),
        find_instant(row["window_to"]),
        row["created_by_name"],
        remarks[-1].get("note") if remarks else None,
        {name: row[name] for name in _LINEAGE},
    )


_PLANNED = text("""
    SELECT provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key
      FROM ing_plan WHERE provenance_code = :provenance
     GROUP BY provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
              namespace_key
""")


def list_planned(tx: Connection, provenance: str) -> list[Namespace]:
    """Return every namespace of a source that was ever planned."""
    found = tx.execute(_PLANNED, {"provenance": provenance}).mappings()
    return [Namespace.of(row) for row in found]
