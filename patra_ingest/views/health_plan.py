"""What a plan leaves to an auditor beside its summary: whole days, runs to replay, bad items."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.cursor.frontier import frontier
from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.db import find_instant, read_json
from patra_ingest.model.codes import Operation, SliceStatus
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.views.plan_summary import FATES

DAYS = 31  # of one plan, the newest; more would be more events than anybody reads
FIRST_DAY = date(2020, 1, 1)  # unless the source says when it begins
_DAY = timedelta(days=1)
_BRING_DAYS = (Operation.HARVEST, Operation.BACKFILL)  # an UPDATE asks for records, not for time
_NUMBERS = ("reqCount", "itemsCount", *FATES)


@dataclass(frozen=True)
class WholeDay:
    """A UTC day that a namespace has entirely; `counts` is what its own slices brought.

    None: it was brought by slices that reach beyond it.
    """

    day: date
    counts: dict[str, int] | None


@dataclass(frozen=True)
class RunFact:
    """One run of a plan, and how many batches it has to show."""

    run_id: int
    status: str
    batches: int


@dataclass(frozen=True)
class PlanAudit:
    """`earlier_days` counts the whole days that `days` leaves out, `more_runs` those of `runs`."""

    expr_hash: str
    days: tuple[WholeDay, ...]
    earlier_days: int
    runs: tuple[RunFact, ...]
    more_runs: int
    quarantine_open: int
    cursor: datetime | None


_PLAN = text("""
    SELECT provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key, window_from, window_to, expr_proto_hash,
           JSON_EXTRACT(spec_snapshot, '$.planning.earliest') AS earliest
      FROM ing_plan WHERE id = :id
""")
_RUNS = text("""
    SELECT r.id, r.status_code,
           (SELECT COUNT(*) FROM ing_task_run_batch b
             WHERE b.run_id = r.id AND b.status_code = 'SUCCEEDED')
      FROM ing_task t JOIN ing_task_run r ON r.task_id = t.id
     WHERE t.plan_id = :id ORDER BY r.id DESC LIMIT 5
""")
_RUN_COUNT = text(
    "SELECT COUNT(*) FROM ing_task t JOIN ing_task_run r ON r.task_id = t.id WHERE t.plan_id = :id"
)
_OPEN = text("""
    SELECT COUNT(*) FROM ing_quarantine
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND status_code = 'OPEN'
""")
_CURSOR = text("""
    SELECT normalized_instant FROM ing_cursor
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
""")


def audit_plan(tx: Connection, plan_id: PlanId) -> PlanAudit:
    """Return what an auditor asks for after a plan."""
    row = tx.execute(_PLAN, {"id": plan_id}).mappings().one()
    namespace = Namespace.of(row)
    runs = [RunFact(int(run), status, int(n)) for run, status, n in tx.execute(_RUNS, _id(plan_id))]
    runs_in_all = int(tx.execute(_RUN_COUNT, _id(plan_id)).scalar_one())
    whole = _whole_days(tx, namespace, row)
    place = {"provenance": namespace.provenance, "endpoint": namespace.endpoint}
    return PlanAudit(
        row["expr_proto_hash"],
        tuple(WholeDay(day, _counts(tx, slices)) for day, slices in whole[-DAYS:]),
        max(0, len(whole) - DAYS),
        tuple(sorted(runs, key=lambda one: one.run_id)),
        max(0, runs_in_all - len(runs)),
        int(tx.execute(_OPEN, place).scalar_one()),
        find_instant(tx.execute(_CURSOR, namespace.columns()).scalar()),
    )


def _id(plan_id: PlanId) -> dict[str, int]:
    return {"id": plan_id}


def _whole_days(
    tx: Connection, namespace: Namespace, row: Any
) -> list[tuple[date, list[CoveredWindow]]]:
    """Return the days that the plan's window touches and its namespace has from end to end.

    A plan of a quarter of an hour completes the day that others have begun.
    """
    start, end = find_instant(row["window_from"]), find_instant(row["window_to"])
    if start is None or end is None or namespace.operation not in _BRING_DAYS:
        return []
    first = max(_midnight(start.date(), start), _midnight(_first_day(row["earliest"]), start))
    known = list_windows(tx, namespace, first, end + _DAY) if first < end else []
    done = [one for one in known if one.status is SliceStatus.SUCCEEDED]
    found = []
    while first < end:
        day = Window(first, first + _DAY)
        of_day = [one for one in done if one.window.start < day.end and one.window.end > day.start]
        if frontier(day.start, (one.window for one in of_day)) >= day.end:
            found.append((first.date(), of_day))
        first += _DAY
    return found


def _first_day(earliest: str | None) -> date:
    written = read_json(earliest) if earliest and earliest.startswith('"') else earliest
    return parse_instant(written).date() if written and written != "null" else FIRST_DAY


def _midnight(day: date, like: datetime) -> datetime:
    return datetime.combine(day, time(), like.tzinfo)


_SUMS = text(
    "SELECT "
    + ", ".join(f"SUM(JSON_EXTRACT(stats, '$.\"{name}\"'))" for name in _NUMBERS)
    + " FROM ing_task_run_batch WHERE slice_id IN :slices AND status_code = 'SUCCEEDED'"
).bindparams(bindparam("slices", expanding=True))


def _counts(tx: Connection, covering: Iterable[CoveredWindow]) -> dict[str, int] | None:
    slices = {one.slice_id for one in covering if one.slice_id is not None}
    if not slices or any(one.window.duration > _DAY for one in covering):
        return None
    row = tx.execute(_SUMS, {"slices": sorted(slices)}).one()
    return {name: int(value or 0) for name, value in zip(_NUMBERS, row, strict=True)}
