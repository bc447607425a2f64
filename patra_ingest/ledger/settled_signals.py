"""How far the signals of an endpoint are settled: taken up by a plan that has ended, or discarded.

The id up to which that is so for every signal is the cursor of an UPDATE by signals.
"""

from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.remarks import read_remarks
from patra_ingest.model.codes import PlanStatus, SignalStatus
from patra_ingest.model.lifecycle import is_final

_AT_ONCE = 500


def list_signal_places(tx: Connection, provenance: str | None = None) -> list[tuple[str, str]]:
    """Return (provenance, endpoint) of everything that was ever signalled."""
    where = "WHERE provenance_code = :provenance" if provenance else ""
    query = f"""
        SELECT provenance_code, endpoint_name FROM ing_signal {where}
         GROUP BY provenance_code, endpoint_name ORDER BY provenance_code, endpoint_name
    """
    values = {"provenance": provenance} if provenance else {}
    return [(row.provenance_code, row.endpoint_name) for row in tx.execute(text(query), values)]


_NEXT = text("""
    SELECT id, status_code, record_remarks FROM ing_signal
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND id > :after
     ORDER BY id LIMIT :limit
""")


def find_settled(tx: Connection, provenance: str, endpoint: str, after: int) -> int:
    """Return the largest id up to which every signal is settled, from `after` on."""
    settled, plans = after, _Plans(tx)
    while True:
        values = {"provenance": provenance, "endpoint": endpoint, "limit": _AT_ONCE}
        rows = tx.execute(_NEXT, {**values, "after": settled}).all()
        for row in rows:
            if not _is_settled(row, plans):
                return settled
            settled = int(row.id)
        if len(rows) < _AT_ONCE:
            return settled


class _Plans:
    """Which plans have ended; each is asked for once."""

    def __init__(self, tx: Connection) -> None:
        self._tx = tx
        self._known: dict[int, bool] = {}

    def has_ended(self, plan_id: int) -> bool:
        if plan_id not in self._known:
            query = text("SELECT status_code FROM ing_plan WHERE id = :id")
            status = self._tx.execute(query, {"id": plan_id}).scalar()
            self._known[plan_id] = status is None or is_final(PlanStatus(status))
        return self._known[plan_id]


def _is_settled(row: Any, plans: _Plans) -> bool:
    if row.status_code != SignalStatus.CONSUMED:
        return bool(row.status_code == SignalStatus.DISCARDED)
    takers = (remark.get("data") or {} for remark in read_remarks(row.record_remarks))
    return all(plans.has_ended(data["plan_id"]) for data in takers if "plan_id" in data)
