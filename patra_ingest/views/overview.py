"""The state of everything, one line per endpoint and operation."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant


@dataclass(frozen=True)
class EndpointState:
    """How one endpoint and operation stands."""

    provenance: str
    endpoint: str
    operation: str
    records: int
    tasks: dict[str, int]
    cursor: datetime | None
    last_plan: int | None
    held: str | None

    def lag_seconds(self, now: datetime) -> float | None:
        """Return how far the cursor is behind now."""
        return None if self.cursor is None else (now - self.cursor).total_seconds()


_TASKS = text("""
    SELECT provenance_code, endpoint_name, operation_code, status_code, COUNT(*) AS n,
           MAX(plan_id) AS last_plan
      FROM ing_task GROUP BY provenance_code, endpoint_name, operation_code, status_code
""")
_WAITING = text("""
    SELECT provenance_code, endpoint_name, operation_code, COUNT(*) AS n, MAX(plan_id) AS last_plan
      FROM ing_plan_slice WHERE status_code = 'PENDING'
     GROUP BY provenance_code, endpoint_name, operation_code
""")
_RECORDS = text("""
    SELECT provenance_code, endpoint_name, COUNT(*) FROM ing_record
     WHERE is_deleted = 0 GROUP BY provenance_code, endpoint_name
""")
_CURSORS = text("""
    SELECT provenance_code, endpoint_name, operation_code,
           CASE WHEN operation_code = 'BACKFILL' THEN MIN(normalized_instant)
                ELSE MAX(normalized_instant) END
      FROM ing_cursor GROUP BY provenance_code, endpoint_name, operation_code
""")
_HOLDS = text(
    "SELECT provenance_code, endpoint_name, reason FROM ing_hold WHERE resumed_at IS NULL"
)


def list_states(tx: Connection) -> list[EndpointState]:
    """Return the state of every endpoint that was ever planned, in order of name."""
    tasks: dict[tuple[str, str, str], dict[str, int]] = {}
    plans: dict[tuple[str, str, str], int] = {}
    for row in tx.execute(_TASKS):
        key = (row.provenance_code, row.endpoint_name, row.operation_code)
        tasks.setdefault(key, {})[row.status_code] = int(row.n)
        plans[key] = max(plans.get(key, 0), int(row.last_plan))
    for row in tx.execute(_WAITING):
        key = (row.provenance_code, row.endpoint_name, row.operation_code)
        tasks.setdefault(key, {})["WAITING"] = int(row.n)  # slices whose plan has no room yet
        plans[key] = max(plans.get(key, 0), int(row.last_plan))
    records = {(p, e): int(count) for p, e, count in tx.execute(_RECORDS)}
    cursors = {(p, e, o): find_instant(at) for p, e, o, at in tx.execute(_CURSORS)}
    holds = {(p, e): reason for p, e, reason in tx.execute(_HOLDS)}
    return [
        EndpointState(
            *key,
            records.get(key[:2], 0),
            counts,
            cursors.get(key),
            plans[key],
            holds.get(key[:2]) or holds.get((key[0], None)),
        )
        for key, counts in sorted(tasks.items())
    ]
