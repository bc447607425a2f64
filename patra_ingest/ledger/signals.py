"""The `ing_signal` table: hints from outside that a record should be asked for again.

While a signal is PENDING its dedup_key is the digest of what it says, so the same hint is kept
once. Who ends a signal adds the row's id to that key: the same hint may then come again. No
function here commits.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import insert_missing, instant_text, json_text, read_instant, read_json
from patra_ingest.model import keys
from patra_ingest.model.codes import Signal, SignalStatus
from patra_ingest.model.lineage import PlanId

Value = TypeVar("Value", str, int)

_GROUP = 500  # ids per statement


@dataclass(frozen=True)
class PendingSignal:
    """A hint that no UPDATE has taken up yet; who gave it, when and why."""

    id: int
    provenance: str
    endpoint: str
    provider_id: str
    signal: Signal
    reason: str | None
    by: str | None
    at: datetime


def add_signals(  # noqa: PLR0913 - a hint without its reason and its author explains nothing
    tx: Connection,
    provenance: str,
    endpoint: str,
    ids: Iterable[str],
    signal: Signal,
    by: str,
    reason: str | None,
    now: datetime,
) -> int:
    """Keep one hint for each id; return how many were not waiting already."""
    rows = [
        {
            "provenance_code": provenance,
            "endpoint_name": endpoint,
            "provider_id": provider_id,
            "signal_code": signal.value,
            "payload": json_text({"reason": reason}) if reason else None,
            "status_code": SignalStatus.PENDING.value,
            "dedup_key": _pending_key(provenance, endpoint, provider_id, signal),
            "created_at": instant_text(now),
            "created_by_name": by[:100],
            "updated_at": instant_text(now),
        }
        for provider_id in sorted(set(ids))
    ]
    waiting = _count_waiting(tx, [str(row["dedup_key"]) for row in rows])
    insert_missing(tx, "ing_signal", rows)
    return len(rows) - waiting


def _pending_key(provenance: str, endpoint: str, provider_id: str, signal: Signal) -> str:
    said = {"provenance": provenance, "endpoint": endpoint, "id": provider_id, "signal": signal}
    return keys.digest({"kind": "signal", **said})


_WAITING = text("SELECT COUNT(*) FROM ing_signal WHERE dedup_key IN :keys").bindparams(
    bindparam("keys", expanding=True)
)


def _count_waiting(tx: Connection, dedup_keys: Sequence[str]) -> int:
    return sum(
        tx.execute(_WAITING, {"keys": group}).scalar_one() for group in in_groups(dedup_keys)
    )


_PENDING = """
    SELECT id, provenance_code, endpoint_name, provider_id, signal_code, payload,
           created_by_name, created_at
      FROM ing_signal
     WHERE status_code = 'PENDING' {of_one}
     ORDER BY provenance_code, endpoint_name, id
"""


def list_pending(tx: Connection, provenance: str | None = None) -> list[PendingSignal]:
    """Return the hints that wait for an UPDATE, oldest first within their endpoint."""
    of_one = "AND provenance_code = :provenance" if provenance else ""
    found = tx.execute(text(_PENDING.format(of_one=of_one)), {"provenance": provenance})
    return [
        PendingSignal(
            row.id,
            row.provenance_code,
            row.endpoint_name,
            row.provider_id,
            Signal(row.signal_code),
            (read_json(row.payload) or {}).get("reason"),
            row.created_by_name,
            read_instant(row.created_at),
        )
        for row in found
    ]


_CONSUME = """
    UPDATE ing_signal
       SET status_code = 'CONSUMED', consumed_at = :now, dedup_key = {ended_key},
           record_remarks = {remarks}, version = version + 1, updated_at = :now
     WHERE id IN :ids AND status_code = 'PENDING'
"""
_ENDED = {
    "mysql": {
        "ended_key": "CONCAT(dedup_key, ':', id)",
        "remarks": "JSON_ARRAY_APPEND(COALESCE(record_remarks, JSON_ARRAY()),"
        " '$', CAST(:remark AS JSON))",
    },
    "sqlite": {
        "ended_key": "dedup_key || ':' || id",
        "remarks": "json_insert(COALESCE(record_remarks, '[]'), '$[#]', json(:remark))",
    },
}


def consume_signals(
    tx: Connection, row_ids: Collection[int], plan_id: PlanId, now: datetime
) -> int:
    """Note that a plan asks for what these signals name; return how many were still waiting."""
    remark = {
        "time": now,
        "by": "planner",
        "note": f"taken up by plan {plan_id}",
        "type": "consumed",
        "data": {"plan_id": plan_id},
    }
    statement = text(_CONSUME.format(**_ENDED[tx.dialect.name]))
    statement = statement.bindparams(bindparam("ids", expanding=True))
    values = {"now": instant_text(now), "remark": json_text(remark)}
    groups = in_groups(sorted(set(row_ids)))
    return sum(tx.execute(statement, {**values, "ids": ids}).rowcount for ids in groups)


_KEPT = text("""
    SELECT endpoint_name, provider_id FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name IN :endpoints AND provider_id IN :ids
""").bindparams(bindparam("endpoints", expanding=True), bindparam("ids", expanding=True))


def list_kept(
    tx: Connection, provenance: str, endpoints: Sequence[str], ids: Sequence[str]
) -> dict[str, list[str]]:
    """Return which of the ids we have, withdrawn ones too, by the endpoint of their records."""
    found: dict[str, list[str]] = {}
    for group in in_groups(ids):
        values = {"provenance": provenance, "endpoints": list(endpoints), "ids": group}
        for row in tx.execute(_KEPT, values):
            found.setdefault(row.endpoint_name, []).append(row.provider_id)
    return found


def in_groups(values: Sequence[Value]) -> Iterator[list[Value]]:
    """Yield the values in lists that fit into one statement of either engine."""
    for start in range(0, len(values), _GROUP):
        yield list(values[start : start + _GROUP])
