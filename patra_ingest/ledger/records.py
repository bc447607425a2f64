"""The `ing_record` table: one row per (provenance, endpoint, provider id). The newer version wins.

No function here commits; two workers that insert the same new record at once make one of them
fail with an IntegrityError, and that one repeats its transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import find_instant, instant_text
from patra_ingest.model.records import ChangeCounts, ChangeRule, Known, NewRecord, change_of

_KNOWN = """
    SELECT provider_id, source_updated_at, content_hash, is_deleted, spec_fingerprint
      FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND provider_id IN :ids
"""

_CHECKED = text("""
    UPDATE ing_record SET last_checked_at = :now
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND provider_id IN :ids
""").bindparams(bindparam("ids", expanding=True))

_KEY = ("provenance_code", "endpoint_name", "provider_id")
_KEPT = (*_KEY, "first_seen_at")


def upsert_newer(  # noqa: PLR0913 - the batch's records, their rule, their owner and their time
    tx: Connection,
    provenance: str,
    endpoint: str,
    records: Sequence[NewRecord],
    rule: ChangeRule,
    stamp: Mapping[str, Any],
    now: datetime,
) -> ChangeCounts:
    """Store what is new or newer; `stamp` holds the lineage and hashes every changed row gets."""
    scope = {"provenance": provenance, "endpoint": endpoint}
    ids = sorted({record.provider_id for record in records})
    known = _list_known(tx, scope, ids)
    before = set(known)
    counts = dict.fromkeys((field.name for field in fields(ChangeCounts)), 0)
    changed: dict[str, NewRecord] = {}
    made_by = stamp["spec_fingerprint"]
    for record in records:
        change = change_of(known.get(record.provider_id), record, rule)
        counts[change] += 1
        if change not in ("unchanged", "stale") or _is_remapped(change, known, record, made_by):
            changed[record.provider_id] = record
            known[record.provider_id] = Known(
                record.source_updated_at, record.content_hash, record.is_deleted, made_by
            )
    owner = {"provenance_code": provenance, "endpoint_name": endpoint, **stamp}
    rows = [_row(changed[key], owner, now) for key in sorted(changed)]
    _insert(tx, [row for row in rows if row["provider_id"] not in before])
    _replace(tx, [row for row in rows if row["provider_id"] in before])
    seen_again = sorted(before - changed.keys())
    if seen_again:
        tx.execute(_CHECKED, {**scope, "ids": seen_again, "now": instant_text(now)})
    return ChangeCounts(**counts)


def _is_remapped(change: str, known: Mapping[str, Known], record: NewRecord, made_by: str) -> bool:
    """Return whether the same version was mapped by another spec: its fields are written anew."""
    return change == "unchanged" and known[record.provider_id].made_by != made_by


def _list_known(tx: Connection, scope: Mapping[str, str], ids: list[str]) -> dict[str, Known]:
    if not ids:
        return {}
    query = _KNOWN + (" FOR UPDATE" if tx.dialect.name == "mysql" else "")
    statement = text(query).bindparams(bindparam("ids", expanding=True))
    return {
        row.provider_id: Known(
            find_instant(row.source_updated_at),
            row.content_hash,
            bool(row.is_deleted),
            row.spec_fingerprint,
        )
        for row in tx.execute(statement, {**scope, "ids": ids})
    }


def _row(record: NewRecord, owner: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    at = instant_text(now)
    updated = record.source_updated_at
    return {
        **owner,
        "provider_id": record.provider_id,
        "source_updated_at": updated and instant_text(updated),
        "content_hash": record.content_hash,
        "is_deleted": int(record.is_deleted),
        "fields": record.fields_json,
        "payload": record.payload,
        "first_seen_at": at,
        "last_checked_at": at,
        "updated_at": at,
    }


def _insert(tx: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        tx.execute(text(_insert_sql(rows[0])), [dict(row) for row in rows])


def _replace(tx: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    # One multi-row statement instead of a round trip per row; the rows are there and locked.
    if not rows:
        return
    names = [name for name in rows[0] if name not in _KEPT]
    if tx.dialect.name == "mysql":
        values = ", ".join(f"{name} = VALUES({name})" for name in names)
        tail = f" ON DUPLICATE KEY UPDATE {values}, version = version + 1"
    else:
        values = ", ".join(f"{name} = excluded.{name}" for name in names)
        tail = f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {values}, version = version + 1"
    tx.execute(text(_insert_sql(rows[0]) + tail), [dict(row) for row in rows])


def _insert_sql(row: Mapping[str, Any]) -> str:
    names = ", ".join(row)
    return f"INSERT INTO ing_record ({names}) VALUES ({', '.join(f':{name}' for name in row)})"


_GONE = text("""
    UPDATE ing_record SET is_deleted = 1, last_checked_at = :now, version = version + 1
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND provider_id IN :ids
""").bindparams(bindparam("ids", expanding=True))


def mark_gone(
    tx: Connection, provenance: str, endpoint: str, ids: Sequence[str], now: datetime
) -> list[str]:
    """Mark records that the source does not have any more; return the ids we have no record of."""
    if not ids:
        return []
    scope = {"provenance": provenance, "endpoint": endpoint}
    known = _list_known(tx, scope, sorted(ids))
    if known:
        tx.execute(_GONE, {**scope, "ids": sorted(known), "now": instant_text(now)})
    return [one for one in ids if one not in known]


_NEWEST = text("""
    SELECT MAX(source_updated_at) FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
""")


def find_newest_update(tx: Connection, provenance: str, endpoint: str) -> datetime | None:
    """Return the newest update time the source has shown us: evidence, never the cursor."""
    values = {"provenance": provenance, "endpoint": endpoint}
    return find_instant(tx.execute(_NEWEST, values).scalar())
