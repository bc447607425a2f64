"""What nobody needs any more, in any table. No function here commits."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, text

from patra_ingest.ledger.batches import close_lost_batches
from patra_ingest.ledger.db import instant_text, read_instant
from patra_ingest.ledger.runs import close_lost_runs
from patra_ingest.model.lineage import TaskId

_QUIET = timedelta(hours=1)
_EVER = datetime(1971, 1, 1, tzinfo=UTC)

# Open runs of tasks that nobody holds: no worker can write to them any more.
_ORPHANS = text("""
    SELECT r.task_id, COUNT(*) AS n FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id
     WHERE r.status_code IN ('PLANNED', 'RUNNING') AND r.updated_at < :before
       AND t.status_code NOT IN ('DISPATCHED', 'EXECUTING')
     GROUP BY r.task_id
""")


def close_orphans(tx: Connection, now: datetime) -> int:
    """End the runs that nobody can go on with; return how many."""
    orphans = tx.execute(_ORPHANS, {"before": instant_text(now - _QUIET)}).all()
    left = [TaskId(row.task_id) for row in orphans]
    close_lost_runs(tx, left, now)
    close_lost_batches(tx, left, now)
    return sum(int(row.n) for row in orphans)


# The row of 1970 is a lock, not a window.
_DROP_WINDOWS = text("""
    DELETE FROM ing_quota_window
     WHERE window_to < :before AND reserved_amount = 0
       AND window_from > '1971-01-01 00:00:00.000000'
""")
_DROP_RESERVATIONS = text("""
    DELETE FROM ing_quota_reservation WHERE window_to < :before AND left_amount = 0
""")


def drop_quota_windows(tx: Connection, before: datetime) -> int:
    """Drop the quota windows that ended before `before` and nothing is reserved in."""
    at = {"before": instant_text(before)}
    tx.execute(_DROP_RESERVATIONS, at)
    return tx.execute(_DROP_WINDOWS, at).rowcount


# All bodies of a batch are named in its row: of the first request in a column, of the others in
# the digests.
_BATCHES = text("""
    SELECT provenance_code, updated_at, storage_key, request, response, stats
      FROM ing_task_run_batch WHERE deleted = 0 AND updated_at >= :since
""").execution_options(yield_per=1000)
_KEY = re.compile(r"sha256/[0-9a-f]{2}/(?:[0-9a-f]{2}/)?[0-9a-f]{64}\.zst")


def list_kept_bodies(
    tx: Connection,
    keys: AbstractSet[str],
    now: datetime,
    usual: timedelta | None,
    own: Mapping[str, timedelta | None],
) -> set[str]:
    """Return which of the keys a batch speaks of that is younger than its source's retention.

    `usual` holds for sources that are not in `own`; None keeps for ever.
    """
    spans = (usual, *own.values())
    known = [span for span in spans if span is not None]
    since = now - max(known) if len(known) == len(spans) else _EVER
    kept: set[str] = set()
    for row in tx.execute(_BATCHES, {"since": instant_text(since)}):
        span = own.get(row.provenance_code, usual)
        if span is None or read_instant(row.updated_at) >= now - span:
            told = f"{row.storage_key} {row.request} {row.response} {row.stats}"
            kept.update(key for key in _KEY.findall(told) if key in keys)
    return kept
