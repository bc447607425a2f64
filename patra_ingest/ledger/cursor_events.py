"""Reading `ing_cursor_event`: the steps of a namespace in the order they were written."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from patra_ingest.ledger.cursors import CursorEvent
from patra_ingest.ledger.db import find_instant, read_instant
from patra_ingest.model.codes import CursorDirection, CursorReason, CursorType
from patra_ingest.model.lineage import (
    BatchId,
    Lineage,
    PlanId,
    RunId,
    ScheduleInstanceId,
    SliceId,
    TaskId,
)
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window

_AT_ONCE = 1_000  # rows in memory while a chain is read

_WHERE = """
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
"""
# Older versions wrote BACKFILL on steps that went up: the window tells which way one really went.
_WAY = """
    CASE WHEN new_instant = window_from THEN 'BACKFILL' WHEN new_instant = window_to THEN 'FORWARD'
         ELSE direction_code END
"""
# Instants as text: both engines write them alike, text sorts by time, and nothing is parsed.
_VALUES = {
    CursorType.TIME: "CAST(prev_instant AS CHAR), CAST(new_instant AS CHAR)",
    CursorType.ID: "prev_numeric, new_numeric",
    CursorType.TOKEN: "prev_value, new_value",
}
_COUNTS = "reason IN ('ADVANCE', 'FORCE_FORWARD', 'COMPENSATE')"


def stream_steps(tx: Connection, namespace: Namespace, kind: CursorType) -> Iterator[Any]:
    """Yield (id, reason, direction, previous, new) of every event, oldest first.

    Values compare with each other; `read_value` makes the last one readable. The rows come a few
    thousand at a time, so that memory does not depend on how many there are.
    """
    query = text(
        f"SELECT id, reason, {_WAY} AS way, {_VALUES[kind]} FROM ing_cursor_event {_WHERE}"
        " ORDER BY id"
    ).execution_options(stream_results=True, max_row_buffer=_AT_ONCE)
    for rows in tx.execute(query, namespace.columns()).partitions(_AT_ONCE):
        yield from rows


def read_value(kind: CursorType, value: Any) -> Any:
    """Return a value of `stream_steps` as a cursor has it."""
    if value is None or kind is CursorType.TOKEN:
        return value
    return int(value) if kind is CursorType.ID else read_instant(value)


class Known(NamedTuple):
    """A namespace that has a cursor, events, or both."""

    namespace: Namespace
    kind: CursorType


_NAMES = """provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key"""


def list_known(tx: Connection, provenance: str | None = None) -> list[Known]:
    """Return every namespace that has a cursor or an event, in order of name."""
    where = "WHERE provenance_code = :provenance" if provenance else ""
    found: dict[Namespace, CursorType] = {}
    values = {"provenance": provenance} if provenance else {}
    cursors = f"SELECT {_NAMES}, cursor_type_code FROM ing_cursor {where}"
    for row in tx.execute(text(cursors), values).mappings():
        found[Namespace.of(row)] = CursorType(row["cursor_type_code"])
    named = f"SELECT {_NAMES} FROM ing_cursor_event {where} GROUP BY {_NAMES}"
    for row in tx.execute(text(named), values).mappings().all():
        namespace = Namespace.of(row)
        if namespace not in found:
            found[namespace] = _kind(tx, namespace)
    return [Known(*one) for one in sorted(found.items(), key=lambda one: str(one[0].columns()))]


def _kind(tx: Connection, namespace: Namespace) -> CursorType:
    query = f"SELECT cursor_type_code FROM ing_cursor_event {_WHERE} ORDER BY id LIMIT 1"
    return CursorType(tx.execute(text(query), namespace.columns()).scalar_one())


_GOES_UP = text(f"""
    SELECT {_WAY} FROM ing_cursor_event {_WHERE} AND {_COUNTS} ORDER BY id DESC LIMIT 1
""")


def goes_up(tx: Connection, namespace: Namespace) -> bool:
    """Say whether the newest step of a namespace went towards now.

    Those of a BACKFILL did before it had a direction of its own.
    """
    way = tx.execute(_GOES_UP, namespace.columns()).scalar()
    return bool(way == CursorDirection.FORWARD.value)


_ORIGIN = text(
    f"SELECT window_from FROM ing_cursor_event {_WHERE} AND {_COUNTS} ORDER BY id LIMIT 1"
)


def find_origin(tx: Connection, namespace: Namespace) -> datetime | None:
    """Return where the first step of a cursor that goes up began."""
    return find_instant(tx.execute(_ORIGIN, namespace.columns()).scalar())


_NEWEST = f"SELECT id FROM ing_cursor_event {_WHERE} AND {_COUNTS} ORDER BY id DESC LIMIT 1"


def find_newest_event(tx: Connection, namespace: Namespace) -> CursorEvent | None:
    """Return the event that counts and was written last."""
    found = tx.execute(text(_NEWEST), namespace.columns()).scalar()
    return None if found is None else get_event(tx, found)


_GET = text(f"SELECT {_WAY} AS way, e.* FROM ing_cursor_event e WHERE id = :id")


def get_event(tx: Connection, event_id: int) -> CursorEvent:
    """Return one event with all that stands behind it."""
    row = tx.execute(_GET, {"id": event_id}).mappings().one()
    kind = CursorType(row["cursor_type_code"])
    start, end = find_instant(row["window_from"]), find_instant(row["window_to"])
    observed = row["observed_max_value"]
    return CursorEvent(
        Namespace.of(row),
        CursorDirection(row["way"]),
        _value(row, kind, "prev"),
        _value(row, kind, "new"),
        datetime.fromisoformat(observed) if observed else None,
        Window(start, end) if start and end else None,
        Lineage(
            _id(ScheduleInstanceId, row["schedule_instance_id"]),
            _id(PlanId, row["plan_id"]),
            _id(SliceId, row["slice_id"]),
            _id(TaskId, row["task_id"]),
            _id(RunId, row["run_id"]),
            _id(BatchId, row["batch_id"]),
        ),
        row["expr_hash"],
        kind,
        CursorReason(row["reason"]),
    )


def _value(row: Any, kind: CursorType, side: str) -> Any:
    column = {CursorType.TIME: "instant", CursorType.ID: "numeric", CursorType.TOKEN: "value"}[kind]
    return read_value(kind, row[f"{side}_{column}"])


def _id(of: Any, value: int | None) -> Any:
    return None if value is None else of(value)


_TOKENS = text(f"""
    SELECT reason, prev_value, new_value FROM ing_cursor_event {_WHERE} AND {_COUNTS}
     ORDER BY id DESC
""")


def find_good_token(tx: Connection, namespace: Namespace, dead: str) -> str:
    """Return the newest token that nobody has found dead; empty when there is none."""
    gone = {dead}
    for row in tx.execute(_TOKENS, namespace.columns()):
        if row.reason == CursorReason.COMPENSATE:
            gone.add(row.prev_value or "")
        elif row.new_value not in gone:
            return str(row.new_value)
    return ""
