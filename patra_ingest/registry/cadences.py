"""When the Registry says that endpoints are asked without a person asking."""

from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import instant_text
from patra_ingest.model.codes import Operation
from patra_ingest.registry.pack import SchedulePart
from patra_ingest.registry.rows import SCHEDULE

_CADENCES = text(f"""
    SELECT p.provenance_code, s.endpoint_name, s.cron, s.is_enabled
      FROM {SCHEDULE} s JOIN reg_provenance p ON p.id = s.provenance_id
     WHERE p.deleted = 0 AND s.deleted = 0 AND s.lifecycle_status_code = 'ACTIVE'
       AND s.task_type = :operation AND s.effective_from <= :at
       AND (s.effective_to IS NULL OR s.effective_to > :at)
     ORDER BY s.effective_from, s.id
""")


def list_cadences(
    tx: Connection, operation: Operation, at: datetime
) -> dict[tuple[str, str], SchedulePart]:
    """Return the schedules of an operation that count at `at`, by source and endpoint."""
    values = {"operation": operation.value, "at": instant_text(at)}
    return {
        (row.provenance_code, row.endpoint_name): SchedulePart(
            cron=row.cron, enabled=bool(row.is_enabled)
        )
        for row in tx.execute(_CADENCES, values)
    }
