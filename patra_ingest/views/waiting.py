"""What a planner could do now without any trigger: plans with room in their queue, re-slices."""

from sqlalchemy import Connection, text

from patra_ingest.ledger.holds import find_hold

_REQUESTS = text("""
    SELECT p.provenance_code, p.endpoint_name, COUNT(*) AS n
      FROM ing_reslice_request r JOIN ing_plan p ON p.id = r.plan_id
     WHERE r.status_code = 'PENDING' GROUP BY p.provenance_code, p.endpoint_name
""")
_PLANS = text("""
    SELECT p.id, p.provenance_code, p.endpoint_name,
           JSON_EXTRACT(p.spec_snapshot, '$.planning.max_queued') AS most,
           (SELECT COUNT(*) FROM ing_task t
             WHERE t.provenance_code = p.provenance_code AND t.endpoint_name = p.endpoint_name
               AND t.operation_code = p.operation_code AND t.status_code = 'QUEUED') AS queued
      FROM ing_plan p WHERE p.status_code IN ('DRAFT', 'SLICING', 'PARTIAL') ORDER BY p.id
""")


def list_waiting(tx: Connection) -> list[str]:
    """Return, in words, what waits and could go on; nothing while it is held or the queue full."""
    found = []
    for row in tx.execute(_REQUESTS).all():
        if not find_hold(tx, row.provenance_code, row.endpoint_name):
            found.append(f"{row.n} slices to cut again")
    for row in tx.execute(_PLANS).all():
        has_room = int(row.queued) < int(row.most)
        if has_room and not find_hold(tx, row.provenance_code, row.endpoint_name):
            found.append(f"plan {row.id}")
    return found
