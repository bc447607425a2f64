"""Where an UPDATE finds its candidates: signals, quarantine, records of other specs, stale records.

Every query walks an index and ends at its limit. No function here commits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import Connection, TextClause, bindparam, text

from patra_ingest.ledger.db import instant_text, read_json
from patra_ingest.ledger.signals import in_groups
from patra_ingest.model.bounds import read_bounds
from patra_ingest.model.namespace import Namespace
from patra_ingest.spec.snapshot import SpecSnapshot


class Found(NamedTuple):
    """A record that may be asked for again; `row_id` is the row of the signal or bad item."""

    endpoint: str
    provider_id: str
    row_id: int | None = None


_SIGNALS = text("""
    SELECT endpoint_name, provider_id, id FROM ing_signal
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND status_code = 'PENDING'
     ORDER BY id LIMIT :limit
""")


def list_signals(
    tx: Connection, provenance: str, endpoints: Iterable[str], limit: int
) -> list[Found]:
    """Return the signals that wait, oldest first."""
    return _oldest_rows(tx, _SIGNALS, provenance, endpoints, limit)


_QUARANTINED = text("""
    SELECT endpoint_name, provider_id, id FROM ing_quarantine
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND status_code = 'OPEN'
       AND provider_id IS NOT NULL AND (kind_code = 'ITEM' OR operation_code <> 'UPDATE')
     ORDER BY id LIMIT :limit
""")


def list_quarantined(
    tx: Connection, provenance: str, endpoints: Iterable[str], limit: int
) -> list[Found]:
    """Return the open quarantined items and ids, oldest first; not those whose id is unknown."""
    return _oldest_rows(tx, _QUARANTINED, provenance, endpoints, limit)


def _oldest_rows(
    tx: Connection, query: TextClause, provenance: str, endpoints: Iterable[str], limit: int
) -> list[Found]:
    rows = _of_each(tx, query, endpoints, {"provenance": provenance, "limit": limit})
    return [Found(*row) for row in sorted(rows, key=lambda row: row.id)[:limit]]


def _of_each(
    tx: Connection, query: TextClause, endpoints: Iterable[str], values: Mapping[str, Any]
) -> list[Any]:
    # One query per endpoint: only then does the index give the rows in their order.
    names = sorted(set(endpoints))
    return [row for name in names for row in tx.execute(query, {**values, "endpoint": name})]


# The planner asks for the spec of each: there are few, however many records they made.
_NEXT_FINGERPRINT = text(
    "SELECT MIN(spec_fingerprint) FROM ing_record WHERE spec_fingerprint > :last"
)
_OWNER = text("SELECT provenance_code FROM ing_record WHERE spec_fingerprint = :made_by LIMIT 1")
_MADE_BY = text("""
    SELECT endpoint_name, provider_id FROM ing_record
     WHERE spec_fingerprint = :made_by AND provenance_code = :provenance
       AND endpoint_name IN :endpoints AND is_deleted = 0
     ORDER BY spec_fingerprint, id LIMIT :limit
""").bindparams(bindparam("endpoints", expanding=True))


def list_fingerprints(tx: Connection, provenance: str, endpoints: Iterable[str]) -> set[str]:
    """Return the specs that made the records we have; withdrawn records do not count."""
    names = sorted(set(endpoints))
    return {
        made_by
        for made_by in _walk_fingerprints(tx)
        # A spec belongs to one provenance: one of its records tells which.
        if tx.execute(_OWNER, {"made_by": made_by}).scalar() == provenance
        and any(_made_by(tx, provenance, names, [made_by], 1))
    }


def _walk_fingerprints(tx: Connection) -> Iterator[str]:
    last: str | None = ""
    while (last := tx.execute(_NEXT_FINGERPRINT, {"last": last}).scalar()) is not None:
        yield last


def list_made_by(
    tx: Connection,
    provenance: str,
    endpoints: Iterable[str],
    fingerprints: Iterable[str],
    limit: int,
) -> list[Found]:
    """Return records that these specs made, oldest first within each spec; not withdrawn ones."""
    names = sorted(set(endpoints))
    return list(islice(_made_by(tx, provenance, names, sorted(set(fingerprints)), limit), limit))


def _made_by(
    tx: Connection, provenance: str, endpoints: list[str], fingerprints: list[str], limit: int
) -> Iterator[Found]:
    values = {"provenance": provenance, "endpoints": endpoints, "limit": limit}
    for made_by in fingerprints:
        for row in tx.execute(_MADE_BY, {**values, "made_by": made_by}):
            yield Found(*row)


# Ties go by id, which every index ends with: by provider_id MySQL would read and sort them all.
_STALE = text("""
    SELECT endpoint_name, provider_id, last_checked_at, id FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
       AND last_checked_at >= :since AND last_checked_at < :before AND is_deleted = 0
     ORDER BY last_checked_at, id LIMIT :limit
""")


_BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)


def list_stale(
    tx: Connection,
    provenance: str,
    endpoints: Iterable[str],
    before: datetime,
    limit: int,
    since: datetime = _BEGINNING,
) -> list[Found]:
    """Return records last checked in `[since, before)`, oldest check first; no withdrawn ones."""
    span = {"since": instant_text(since), "before": instant_text(before)}
    values = {"provenance": provenance, **span, "limit": limit}
    rows = _of_each(tx, _STALE, endpoints, values)
    rows.sort(key=lambda row: (row.last_checked_at, row.id))
    return [Found(row.endpoint_name, row.provider_id) for row in rows[:limit]]


_COUNT = text("""
    SELECT COUNT(*) FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
""")


def count_records(tx: Connection, provenance: str, endpoints: Iterable[str]) -> int:
    """Return how many records there are, withdrawn ones too: the index alone knows that."""
    rows = _of_each(tx, _COUNT, endpoints, {"provenance": provenance})
    return sum(count for (count,) in rows)


_LIVE = text("""
    SELECT s.slice_spec
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
     WHERE p.provenance_code = :provenance_code AND p.endpoint_name = :endpoint_name
       AND p.operation_code = :operation_code AND p.cursor_key = :cursor_key
       AND p.namespace_scope_code = :namespace_scope_code AND p.namespace_key = :namespace_key
       AND s.provenance_code = :provenance_code
       AND s.status_code IN ('PENDING', 'READY', 'DISPATCHED', 'EXECUTING')
""")


def list_live_ids(tx: Connection, namespace: Namespace) -> set[tuple[str, str]]:
    """Return (endpoint, id) of every record that an unfinished slice of the namespace asks for."""
    found = (
        read_bounds(read_json(row.slice_spec)).ids for row in tx.execute(_LIVE, namespace.columns())
    )
    return {(asked.endpoint, name) for asked in found if asked is not None for name in asked.ids}


_SPEC = text("""
    SELECT spec_snapshot FROM ing_plan WHERE spec_fingerprint = :made_by ORDER BY id DESC LIMIT 1
""")


def find_spec(tx: Connection, fingerprint: str) -> SpecSnapshot | None:
    """Return the spec with this fingerprint; None if no plan has it, or in a form of long ago."""
    stored = tx.execute(_SPEC, {"made_by": fingerprint}).scalar()
    try:
        return None if stored is None else SpecSnapshot.model_validate(read_json(stored))
    except ValidationError:
        return None


_RETRIED = text("""
    UPDATE ing_quarantine SET status_code = 'RETRIED', version = version + 1, updated_at = :now
     WHERE id IN :ids AND status_code = 'OPEN'
""").bindparams(bindparam("ids", expanding=True))


def mark_retried(tx: Connection, row_ids: Collection[int], now: datetime) -> int:
    """Note that the quarantined items are asked for again; return how many were still open."""
    at, groups = instant_text(now), in_groups(sorted(set(row_ids)))
    return sum(tx.execute(_RETRIED, {"ids": ids, "now": at}).rowcount for ids in groups)
