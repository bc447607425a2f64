"""What became of one plan: its slices, requests, records, proof and cursor, in one value."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import find_instant, read_instant, read_json
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.window import Window

# What became of the items a plan has seen; together they are all of them.
FATES = ("inserted", "updated", "unchanged", "stale", "deleted", "quarantined", "outOfWindow")
_SUMMED = ("itemsCount", *FATES, "reqCount", "retryCount", "429Count")


@dataclass(frozen=True)
class PlanSummary:
    """The numbers a person asks for after a harvest."""

    plan_id: PlanId
    provenance: str
    endpoint: str
    operation: str
    status: str
    window: Window
    fingerprint: str
    slices: dict[str, int]
    pages: int
    counts: dict[str, int]
    bytes: int
    certificates: dict[str, int]
    promised: int | None
    landed: int
    cursor_before: datetime | None
    cursor_after: datetime | None
    seconds: float | None
    errors: tuple[str, ...]

    @property
    def is_proved(self) -> bool:
        """Whether every slice succeeded and carries its certificate."""
        done = self.slices.get("SUCCEEDED", 0)
        own = sum(self.slices.values()) - self.slices.get("SUPERSEDED", 0)
        return done == own == sum(self.certificates.values())


def summarize_plan(tx: Connection, plan_id: PlanId) -> PlanSummary:
    """Return the summary of a plan as the ledger has it now."""
    plan = tx.execute(text("SELECT * FROM ing_plan WHERE id = :id"), {"id": plan_id}).mappings()
    row = plan.one_or_none()
    if row is None:
        raise UnknownName(f"There is no plan {plan_id}.", "List plans with `patra status`.")
    sums = _batch_sums(tx, plan_id)
    proofs = _certificates(tx, plan_id)
    promises = [proof["promised"] for proof in proofs if proof["promised"] is not None]
    verdicts = [proof["verdict"] for proof in proofs]
    before, after = _cursor_step(tx, plan_id, row["schedule_instance_id"])
    return PlanSummary(
        plan_id,
        row["provenance_code"],
        row["endpoint_name"],
        row["operation_code"],
        row["status_code"],
        Window(read_instant(row["window_from"]), read_instant(row["window_to"])),
        row["spec_fingerprint"],
        _by_status(tx, plan_id),
        sums.pop("pages"),
        {name: sums[name] for name in _SUMMED},
        sums["bytes"],
        {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        sum(promises) if promises else None,
        sum(proof["landed"] for proof in proofs),
        before,
        after,
        _seconds(tx, plan_id),
        list_errors(tx, plan_id),
    )


_SUMS = text(
    "SELECT COUNT(*) AS n_pages, SUM(JSON_EXTRACT(stats, '$.http.bytes')) AS n_bytes, "
    + ", ".join(f"SUM(JSON_EXTRACT(stats, '$.\"{name}\"')) AS n_{name}" for name in _SUMMED)
    + " FROM ing_task_run_batch WHERE plan_id = :id AND status_code = 'SUCCEEDED'"
)


def _batch_sums(tx: Connection, plan_id: PlanId) -> dict[str, int]:
    row = tx.execute(_SUMS, {"id": plan_id}).mappings().one()
    return {str(name).removeprefix("n_"): int(value or 0) for name, value in row.items()}


# The slices that were cut again are gathered once: asked for slice by slice, a plan of many
# slices would be read as many times.
_SLICES = text("""
    SELECT CASE WHEN s.id IN (SELECT c.parent_slice_id FROM ing_plan_slice c
                               WHERE c.plan_id = :id AND c.parent_slice_id IS NOT NULL)
                THEN 'SUPERSEDED' ELSE s.status_code END AS state, COUNT(*)
      FROM ing_plan_slice s WHERE s.plan_id = :id GROUP BY state ORDER BY state
""")


def _by_status(tx: Connection, plan_id: PlanId) -> dict[str, int]:
    found = tx.execute(_SLICES, {"id": plan_id})
    return {status: int(count) for status, count in found}


_RUNS = " FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id WHERE t.plan_id = :id"


def _certificates(tx: Connection, plan_id: PlanId) -> list[dict[str, Any]]:
    query = f"SELECT r.certificate {_RUNS} AND r.status_code = 'SUCCEEDED'"
    return [read_json(value) for value in tx.execute(text(query), {"id": plan_id}).scalars()]


def _cursor_step(
    tx: Connection, plan_id: PlanId, root: int
) -> tuple[datetime | None, datetime | None]:
    query = (
        "SELECT prev_instant, new_instant, window_from FROM ing_cursor_event"
        " WHERE schedule_instance_id = :root AND plan_id = :id AND reason = 'ADVANCE'"
        " AND cursor_type_code = 'TIME' ORDER BY id"
    )
    steps = tx.execute(text(query), {"root": root, "id": plan_id}).all()
    if not steps:
        return None, None
    # Workers that race may write their steps down in another order: the farthest one counts.
    reached = [read_instant(step.new_instant) for step in steps]
    down = steps[0].new_instant == steps[0].window_from
    return find_instant(steps[0].prev_instant), min(reached) if down else max(reached)


def _seconds(tx: Connection, plan_id: PlanId) -> float | None:
    query = f"SELECT MIN(r.started_at), MAX(r.finished_at) {_RUNS}"
    started, finished = tx.execute(text(query), {"id": plan_id}).one()
    if started is None or finished is None:
        return None
    return (read_instant(finished) - read_instant(started)).total_seconds()


def list_errors(tx: Connection, plan_id: PlanId) -> tuple[str, ...]:
    """Return what a few of a plan's tasks that have not succeeded ended with."""
    query = (
        "SELECT DISTINCT t.last_error_code, t.last_error_msg FROM ing_task t"
        " WHERE t.plan_id = :id AND t.last_error_msg IS NOT NULL AND t.status_code <> 'SUCCEEDED'"
        " AND t.slice_id NOT IN (SELECT c.parent_slice_id FROM ing_plan_slice c"
        " WHERE c.plan_id = :id AND c.parent_slice_id IS NOT NULL) LIMIT 5"
    )
    return tuple(f"{code}: {message}" for code, message in tx.execute(text(query), {"id": plan_id}))
