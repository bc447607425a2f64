"""The `ing_record` table: one row per (provenance, endpoint, provider id). The newer version wins.

No function here commits; two workers that insert the same new record at once make one of them
fail with an IntegrityError, and that one repeats its transaction. Statements go to the driver as
they are: a batch is a hundred rows of many columns, and SQLAlchemy would handle every value twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, instant_text
from patra_ingest.ledger.outbox import Change
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.records import ChangeCounts, ChangeRule, Known, NewRecord, change_of
from patra_ingest.model.window import Window

_KNOWN = """
    SELECT provider_id, source_updated_at, content_hash, is_deleted, spec_fingerprint
      FROM ing_record
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
_IDS_AT_ONCE = 1000  # SQLite takes 32,766 values in a statement

_KEY = ("provenance_code", "endpoint_name", "provider_id")
_KEPT = (*_KEY, "first_seen_at")
# What a tombstone does not say stays as it was.
_STAYING = ("source_updated_at", "fields", "payload")
_OF_RECORD = ("provider_id", "source_updated_at", "content_hash", "is_deleted", "fields", "payload")
_OF_TIME = ("first_seen_at", "last_checked_at", "updated_at")

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
    _write(tx, scope, decided, stamp, instant_text(now))
    changes = [_change(scope, decided.latest[one], known.get(one)) for one in decided.changed]
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
        self.latest[one] = record
        self._known[one] = _known_after(record, known, self._made_by)


def _known_after(record: NewRecord, known: Known | None, made_by: str) -> Known:
    at = record.source_updated_at or (known.source_updated_at if known else None)
    return Known(at, record.content_hash, record.is_deleted, made_by)


def _change(scope: Scope, record: NewRecord, known: Known | None) -> Change:
    at = record.source_updated_at or (known.source_updated_at if known else None)
    kind: Literal["UPSERT", "DELETE"] = "DELETE" if record.is_deleted else "UPSERT"
    return Change(*scope, record.provider_id, kind, at, record.content_hash)


def _write(
    tx: Connection, scope: Scope, decided: _Decided, stamp: Mapping[str, Any], at: str
) -> None:
    """Write what was decided, in the order of the ids: lanes that meet then wait, not deadlock."""
    before, latest, dialect = decided.before, decided.latest, tx.dialect.name
    names = (*_KEY[:2], *stamp, *_OF_RECORD, *_OF_TIME)
    owner, times = (*scope, *stamp.values()), (at, at, at)
    rows = {one: (*owner, *_values(latest[one], dialect), *times) for one in sorted(latest)}
    if new := [row for one, row in rows.items() if one not in before]:
        tx.exec_driver_sql(_insert_sql(dialect, names), new)
    if old := [row for one, row in rows.items() if one in before]:
        # One multi-row statement instead of a round trip per row; the rows are there and locked.
        tx.exec_driver_sql(_replace_sql(dialect, names), old)
    for ids in _few(sorted(before.keys() - latest.keys())):
        tx.exec_driver_sql(_sql(tx, _CHECKED, len(ids)), (at, *scope, *ids))


def _values(record: NewRecord, dialect: str) -> tuple[Any, ...]:
    updated, payload = record.source_updated_at, record.payload or None
    return (
        record.provider_id,
        None if updated is None else instant_text(updated),
        record.content_hash,
        int(record.is_deleted),
        record.fields_json or None,
        # PyMySQL writes bytes as a hex literal; text it escapes letter by letter, far slower.
        payload.encode() if payload and dialect == "mysql" else payload,
    )


def _list_known(tx: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Known]:
    known = {}
    for some in _few(ids):
        for row in tx.exec_driver_sql(_sql(tx, _KNOWN, len(some)), (*scope, *some)):
            provider_id, updated, content, is_deleted, made_by = row
            known[provider_id] = Known(find_instant(updated), content, bool(is_deleted), made_by)
    return known


def _few(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[at : at + _IDS_AT_ONCE] for at in range(0, len(ids), _IDS_AT_ONCE))


def _sql(tx: Connection, said: str, count: int) -> str:
    lock = " FOR UPDATE" if said is _KNOWN and tx.dialect.name == "mysql" else ""
    return _asked(said + lock, _mark(tx.dialect.name), count)


@lru_cache(maxsize=1024)
def _asked(said: str, mark: str, count: int) -> str:
    return said.format(mark, ", ".join([mark] * count))


def _mark(dialect: str) -> str:
    return "%s" if dialect == "mysql" else "?"


@lru_cache(maxsize=64)
def _insert_sql(dialect: str, names: tuple[str, ...]) -> str:
    marks = ", ".join([_mark(dialect)] * len(names))
    return f"INSERT INTO ing_record ({', '.join(names)}) VALUES ({marks})"


@lru_cache(maxsize=64)
def _replace_sql(dialect: str, names: tuple[str, ...]) -> str:
    new = "VALUES({0})" if dialect == "mysql" else "excluded.{0}"
    there = "DUPLICATE KEY UPDATE" if dialect == "mysql" else f"CONFLICT ({', '.join(_KEY)}) DO"
    start = "" if dialect == "mysql" else " UPDATE SET"
    values = [_assigned(name, new.format(name)) for name in names if name not in _KEPT]
    tail = f" ON {there}{start} {', '.join(values)}, version = ing_record.version + 1"
    return _insert_sql(dialect, names) + tail


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
    for some in _few(fresh):
        values = (*columns.values(), at, at, *scope, *some)
        tx.exec_driver_sql(_sql(tx, said, len(some)), values)
    for some in _few(sorted(known.keys() - set(fresh))):
        tx.exec_driver_sql(_sql(tx, _CHECKED, len(some)), (at, *scope, *some))
    changes = [
        Change(*scope, one, "DELETE", known[one].source_updated_at, known[one].content_hash)
        for one in fresh
    ]
    return Gone(changes, [one for one in ids if one not in known])


_NEWEST = text("""
    SELECT MAX(source_updated_at) FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
""")


def find_newest_update(tx: Connection, provenance: str, endpoint: str) -> datetime | None:
    """Return the newest update time the source has shown us: evidence, never the cursor."""
    values = {"provenance": provenance, "endpoint": endpoint}
    return find_instant(tx.execute(_NEWEST, values).scalar())
