"""The `ing_outbox_message` table, written: what others are told about our records.

`add_changes` belongs to the transaction that writes the records. `outbox_queue` is the same table
as publishers see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import Connection

from patra_ingest.ledger.db import instant_text
from patra_ingest.model import keys
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.window import instant_iso

_CHANNEL_CHARS = 64
_PARTITION_CHARS = 128


@dataclass(frozen=True)
class Change:
    """What became of one record, for those who are told."""

    provenance: str
    endpoint: str
    provider_id: str
    kind: Literal["UPSERT", "DELETE"]
    source_updated_at: datetime | None
    content_hash: str


_RECORDS = """
    SELECT provider_id, id, version FROM ing_record
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""
_IDS_AT_ONCE = 1000

# Not INSERT IGNORE: on MySQL that would also swallow truncated and invalid values.
_KEEP = {"mysql": " ON DUPLICATE KEY UPDATE id = id", "sqlite": " ON CONFLICT DO NOTHING"}
_COLUMNS = (
    "aggregate_type",
    "aggregate_id",
    "channel",
    "op_type",
    "partition_key",
    "dedup_key",
    "payload_json",
    "created_at",
    "updated_at",
)


def add_changes(tx: Connection, changes: Sequence[Change], lineage: Lineage, now: datetime) -> int:
    """Queue one message per version of a record; return how many there are for these changes.

    A version that is queued already, or was published, is left as it is. Called in the transaction
    that wrote the records, after that: a message carries the record's id and revision. A record
    that we do not have gets neither.
    """
    rows = {}
    shown = _shown_lineage(lineage)
    at = instant_text(now)
    for provenance, endpoint in dict.fromkeys((c.provenance, c.endpoint) for c in changes):
        own = [c for c in changes if (c.provenance, c.endpoint) == (provenance, endpoint)]
        known = _find_records(tx, provenance, endpoint, own)
        for change in own:
            row = _row(change, known.get(change.provider_id, (None, 0)), shown, at)
            rows[row[2], row[5]] = row
    if rows:
        _insert(tx, list(rows.values()))
    return len(rows)


def _find_records(
    tx: Connection, provenance: str, endpoint: str, changes: Sequence[Change]
) -> dict[str, tuple[int, int]]:
    ids = list(dict.fromkeys(change.provider_id for change in changes))
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[start : start + _IDS_AT_ONCE]
        query = _RECORDS.format(_mark(tx), ", ".join([_mark(tx)] * len(some)))
        rows = tx.exec_driver_sql(query, (provenance, endpoint, *some))
        found.update({row[0]: (row[1], row[2]) for row in rows})
    return found


def _row(
    change: Change, record: tuple[int | None, int], lineage: orjson.Fragment, at: str
) -> tuple[Any, ...]:
    record_id, revision = record
    updated = change.source_updated_at
    version = None if updated is None else instant_iso(updated)
    who = (change.provenance, change.endpoint, change.provider_id)
    payload = {
        "provenance": change.provenance,
        "endpoint": change.endpoint,
        "id": change.provider_id,
        "kind": change.kind,
        "sourceUpdatedAt": version,
        "contentHash": change.content_hash,
        "recordId": record_id,
        "revision": revision,
        "lineage": lineage,
    }
    return (
        "RECORD",
        record_id or 0,
        channel_of(change.provenance),
        change.kind,
        partition_of(change.endpoint, change.provider_id),
        keys.outbox_key(*who, change.kind, version, change.content_hash, revision),
        orjson.dumps(payload).decode(),
        at,
        at,
    )


def _insert(tx: Connection, rows: list[tuple[Any, ...]]) -> None:
    # In the driver's own terms: this runs once per record, and names cost as much as the values.
    values = ", ".join(_mark(tx) for _ in _COLUMNS)
    statement = f"INSERT INTO ing_outbox_message ({', '.join(_COLUMNS)}) VALUES ({values})"
    tx.exec_driver_sql(statement + _KEEP[tx.dialect.name], rows)


def _mark(tx: Connection) -> str:
    return "%s" if tx.dialect.name == "mysql" else "?"


def _shown_lineage(lineage: Lineage) -> orjson.Fragment:
    columns = lineage.columns().items()
    return orjson.Fragment(orjson.dumps({_camel(name): value for name, value in columns}))


def _camel(column: str) -> str:
    first, *rest = column.split("_")
    return first + "".join(word.capitalize() for word in rest)


def channel_of(provenance: str) -> str:
    """Return the channel that tells of a source's records."""
    return _fitted(f"record.{provenance}", _CHANNEL_CHARS)


def partition_of(endpoint: str, provider_id: str) -> str:
    """Return the key within which order is kept: one record's."""
    return _fitted(f"{endpoint}/{provider_id}", _PARTITION_CHARS)


def _fitted(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 17]}~{keys.digest(name)[:16]}"
