"""The `ing_record` table: one row per (provenance, endpoint, provider id). The newer version wins.

No function here commits; two workers that insert the same new record at once make one of them
fail with an IntegrityError, and that one repeats its transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, instant_text
from patra_ingest.ledger.outbox import Change
from patra_ingest.ledger.statements import execute_for_ids, insert_rows
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.records import ChangeCounts, ChangeRule, Known, NewRecord, change_of
from patra_ingest.model.window import Window

_KNOWN = """
    SELECT provider_id, source_updated_at, content_hash, is_deleted, spec_fingerprint, id, version
      FROM ing_record
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""
_LOCKED = {"mysql": f"{_KNOWN} FOR UPDATE", "sqlite": _KNOWN}
_IDS = """
    SELECT provider_id, id FROM ing_record
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""
_CHECKED = """
    UPDATE ing_record SET last_checked_at = {0}
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""
_GONE = """
    UPDATE ing_record SET {2} is_deleted = 1, last_checked_at = {0}, updated_at = {0},
           version = version + 1
     WHERE provenance_code = {0} AND endpoint_name = {0} AND provider_id IN ({1})
"""

_KEY = ("provenance_code", "endpoint_name", "provider_id")
_KEPT = (*_KEY, "first_seen_at", "created_at")
# What a tombstone does not say stays as it was.
_STAYING = ("source_updated_at", "fields", "payload")
_OF_RECORD = ("provider_id", "source_updated_at", "content_hash", "is_deleted", "fields", "payload")
_OF_TIME = ("first_seen_at", "last_checked_at", "created_at", "updated_at")

Scope = tuple[str, str]  # provenance, endpoint


@dataclass(frozen=True)
class Upserted:
    """What became of the records of a batch."""

    counts: ChangeCounts
    changes: list[Change]  # one per record that was inserted, updated or deleted: its last version
    late: int  # of those that were accepted: last changed before the window they came with


@dataclass(frozen=True)
class Gone:
    """What became of ids that the source does not have any more."""

    changes: list[Change]  # those that we had
    unknown: list[str]  # those that we have no record of


def upsert_newer(  # noqa: PLR0913 - the batch's records, their rule, their owner and their time
    tx: Connection,
    provenance: str,
    endpoint: str,
    records: Sequence[NewRecord],
    rule: ChangeRule,
    stamp: Mapping[str, Any],
    now: datetime,
    window: Window | None = None,
) -> Upserted:
    """Store what is new or newer; `stamp` holds the lineage and hashes every changed row gets.

    A record whose update time lies before the start of `window` is late: an earlier window had to
    bring it.
    """
    scope = (provenance, endpoint)
    known = _list_known(tx, scope, sorted({record.provider_id for record in records}))
    decided = _Decided(known, rule, stamp["spec_fingerprint"])
    for record in records:
        decided.take(record, window)
    # In the order of the ids: lanes that meet then wait, not deadlock.
    rows = {one: _values(decided.latest[one]) for one in sorted(decided.latest)}
    new = _write(tx, scope, known, rows, stamp, instant_text(now))
    changes = [
        _change(scope, decided.latest[one], rows[one][1], known.get(one), new)
        for one in decided.changed
    ]
    return Upserted(ChangeCounts(**decided.counts), changes, decided.late)


class _Decided:
    """What becomes of the records of a batch, decided one after the other."""

    def __init__(self, before: Mapping[str, Known], rule: ChangeRule, made_by: str) -> None:
        self.before = before
        self.counts = {"inserted": 0, "updated": 0, "unchanged": 0, "stale": 0, "deleted": 0}
        self.latest: dict[str, NewRecord] = {}  # what is written, by provider id
        self.changed: dict[str, None] = {}  # … and is news, in the order of the page
        self.late = 0
        self._known = dict(before)
        self._rule = rule
        self._made_by = made_by

    def take(self, record: NewRecord, window: Window | None) -> None:
        """Count what a record does to the version we have, or to an earlier one of this batch."""
        one = record.provider_id
        known = self._known.get(one)
        change = change_of(known, record, self._rule)
        self.counts[change] += 1
        if change == "stale":
            return
        if change == "unchanged":
            if known is None or known.made_by == self._made_by:
                return
            # The same version was mapped by another spec: its fields are written anew.
        else:
            self.changed[one] = None
            at = record.source_updated_at
            self.late += window is not None and at is not None and at < window.start
        before = self.latest.get(one)
        if record.is_tombstone and before is not None:
            # It keeps what this batch has said of the record.
            record = before._replace(is_deleted=True, content_hash=record.content_hash)
        self.latest[one] = record
        self._known[one] = _known_after(record, known, self._made_by)


def _known_after(record: NewRecord, known: Known | None, made_by: str) -> Known:
    at = record.source_updated_at or (known.source_updated_at if known else None)
    return Known(at, record.content_hash, record.is_deleted, made_by)


def _change(
    scope: Scope, record: NewRecord, at: str | None, known: Known | None, new: Mapping[str, int]
) -> Change:
    if at is None and known:
        at = _find_text(known.source_updated_at)
    kind: Literal["UPSERT", "DELETE"] = "DELETE" if record.is_deleted else "UPSERT"
    row = (known.row_id, known.revision + 1) if known else (new[record.provider_id], 0)
    return Change(*scope, record.provider_id, kind, at, record.content_hash, row)


def _write(
    tx: Connection,
    scope: Scope,
    before: Mapping[str, Known],
    rows: Mapping[str, tuple[Any, ...]],
    stamp: Mapping[str, Any],
    at: str,
) -> dict[str, int]:
    """Write the rows that were decided on and return the new ones, by the ids of their records."""
    owner = {"provenance_code": scope[0], "endpoint_name": scope[1]}
    alike = {**owner, **stamp, **dict.fromkeys(_OF_TIME, at)}
    inserted: dict[str, int] = {}
    if new := [row for one, row in rows.items() if one not in before]:
        last = insert_rows(tx, "ing_record", alike, _OF_RECORD, new)
        inserted = _list_new(tx, scope, [one for one in rows if one not in before], last)
    if old := [row for one, row in rows.items() if one in before]:
        # One multi-row statement instead of a round trip per row; the rows are there and locked.
        tail = _replacing(tx.dialect.name, (*alike, *_OF_RECORD))
        insert_rows(tx, "ing_record", alike, _OF_RECORD, old, tail)
    execute_for_ids(tx, _CHECKED, (at, *scope), sorted(before.keys() - rows.keys()))
    return inserted


def _values(record: NewRecord) -> tuple[Any, ...]:
    return (
        record.provider_id,
        _find_text(record.source_updated_at),
        record.content_hash,
        int(record.is_deleted),
        record.fields_json or None,
        record.payload or None,
    )


def _find_text(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


def _list_known(tx: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Known]:
    known = {}
    for found in execute_for_ids(tx, _LOCKED[tx.dialect.name], scope, ids):
        for one, updated, content, is_deleted, made_by, row_id, revision in found:
            at = find_instant(updated)
            known[one] = Known(at, content, bool(is_deleted), made_by, row_id, revision)
    return known


def _list_new(tx: Connection, scope: Scope, ids: Sequence[str], last: int) -> dict[str, int]:
    """Return the rows of the records that were inserted just now, in this order."""
    if tx.dialect.name == "sqlite":  # one writer, one row after the other: they are consecutive
        return dict(zip(ids, range(last - len(ids) + 1, last + 1), strict=True))
    found = execute_for_ids(tx, _IDS, scope, ids)
    return {provider_id: row_id for rows in found for provider_id, row_id in rows}


@lru_cache(maxsize=64)
def _replacing(dialect: str, names: tuple[str, ...]) -> str:
    new = "VALUES({0})" if dialect == "mysql" else "excluded.{0}"
    there = "DUPLICATE KEY UPDATE" if dialect == "mysql" else f"CONFLICT ({', '.join(_KEY)}) DO"
    start = "" if dialect == "mysql" else " UPDATE SET"
    values = [_assigned(name, new.format(name)) for name in names if name not in _KEPT]
    return f" ON {there}{start} {', '.join(values)}, version = ing_record.version + 1"


def _assigned(name: str, new: str) -> str:
    return f"{name} = COALESCE({new}, ing_record.{name})" if name in _STAYING else f"{name} = {new}"


def mark_gone(
    tx: Connection,
    provenance: str,
    endpoint: str,
    ids: Sequence[str],
    now: datetime,
    lineage: Lineage | None = None,
) -> Gone:
    """Mark records that the source does not have any more; what they said is kept."""
    scope, at = (provenance, endpoint), instant_text(now)
    known = _list_known(tx, scope, sorted(set(ids)))
    fresh = [one for one in sorted(known) if not known[one].is_deleted]
    columns = lineage.columns() if lineage else {}
    said = _GONE.replace("{2}", "".join(f"{name} = {{0}}, " for name in columns))
    execute_for_ids(tx, said, (*columns.values(), at, at, *scope), fresh)
    execute_for_ids(tx, _CHECKED, (at, *scope), sorted(known.keys() - set(fresh)))
    changes = [_deletion(scope, one, known[one]) for one in fresh]
    return Gone(changes, [one for one in ids if one not in known])


def _deletion(scope: Scope, one: str, known: Known) -> Change:
    row = (known.row_id, known.revision + 1)
    at = _find_text(known.source_updated_at)
    return Change(*scope, one, "DELETE", at, known.content_hash, row)


_NEWEST = text("""
    SELECT MAX(source_updated_at) FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
""")


def find_newest_update(tx: Connection, provenance: str, endpoint: str) -> datetime | None:
    """Return the newest update time the source has shown us: evidence, never the cursor."""
    values = {"provenance": provenance, "endpoint": endpoint}
    return find_instant(tx.execute(_NEWEST, values).scalar())
