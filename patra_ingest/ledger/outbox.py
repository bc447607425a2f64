"""The `ing_outbox_message` table, written: what others are told about our records.

`add_changes` belongs to the transaction that writes the records. `outbox_queue` is the same table
as publishers see it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import Connection

from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.statements import execute_for_ids, insert_rows
from patra_ingest.model import keys
from patra_ingest.model.lineage import Lineage

_CHANNEL_CHARS = 64
_PARTITION_CHARS = 128


class Change(NamedTuple):
    """What became of one record, for those who are told."""

    provenance: str
    endpoint: str
    provider_id: str
    kind: Literal["UPSERT", "DELETE"]
    source_updated_at: str | None  # as the ledger writes instants
    content_hash: str
    record: tuple[int, int] | None = None  # its id and revision, if whoever wrote it knows them


_RECORDS = """
    SELECT provider_id, id, version FROM ing_record
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""
# Not INSERT IGNORE: on MySQL that would also swallow truncated and invalid values.
_KEEP = {"mysql": " ON DUPLICATE KEY UPDATE id = id", "sqlite": " ON CONFLICT DO NOTHING"}
_COLUMNS = ("aggregate_id", "op_type", "partition_key", "dedup_key", "payload_json")


def add_changes(tx: Connection, changes: Sequence[Change], lineage: Lineage, now: datetime) -> int:
    """Queue one message per version of a record; return how many there are for these changes.

    A version that is queued already, or was published, is left as it is. Called in the transaction
    that wrote the records, after that: a message carries the record's id and revision. A record
    that we do not have gets neither.
    """
    count, shown = 0, _shown_lineage(lineage)
    for scope in dict.fromkeys((c.provenance, c.endpoint) for c in changes):
        own = [c for c in changes if (c.provenance, c.endpoint) == scope]
        known = _find_records(tx, scope, [c.provider_id for c in own if c.record is None])
        rows = {}
        for change in own:
            row = _row(change, change.record or known.get(change.provider_id), shown)
            rows[row[3]] = row
        _insert(tx, scope[0], list(rows.values()), instant_text(now))
        count += len(rows)
    return count


def _find_records(
    tx: Connection, scope: tuple[str, str], ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    found = execute_for_ids(tx, _RECORDS, scope, list(dict.fromkeys(ids)))
    return {row[0]: (row[1], row[2]) for rows in found for row in rows}


def _row(
    change: Change, record: tuple[int, int] | None, lineage: orjson.Fragment
) -> tuple[Any, ...]:
    record_id, revision = record or (None, 0)
    updated = change.source_updated_at
    version = updated and f"{updated[:10]}T{updated[11:]}Z"
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
        record_id or 0,
        change.kind,
        partition_of(change.endpoint, change.provider_id),
        keys.outbox_key(*who, change.kind, version, change.content_hash, revision),
        orjson.dumps(payload),
    )


def _insert(tx: Connection, provenance: str, rows: list[tuple[Any, ...]], at: str) -> None:
    alike = {
        "aggregate_type": "RECORD",
        "channel": channel_of(provenance),
        "created_at": at,
        "updated_at": at,
    }
    insert_rows(tx, "ing_outbox_message", alike, _COLUMNS, rows, _KEEP[tx.dialect.name])


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
