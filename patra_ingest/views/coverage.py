"""What every namespace of a source has been asked for, how it stands, and why a part failed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.db import Row, find_instant, read_json
from patra_ingest.ledger.holds import Hold, find_hold
from patra_ingest.model import keys
from patra_ingest.model.codes import NamespaceScope, Operation, SliceStatus
from patra_ingest.model.lineage import PlanId, SliceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, floor_to, parse_duration


@dataclass(frozen=True)
class Remark:
    """What somebody noted on a row."""

    time: str | None
    by: str | None
    note: str | None


@dataclass(frozen=True)
class Failure:
    """How a slice ended that did not succeed."""

    plan_id: PlanId
    status: SliceStatus
    error_code: str | None
    error: str | None
    retries: int
    finished_at: datetime | None
    remark: Remark | None


@dataclass(frozen=True)
class PlanFacts:
    """What the newest plan of a namespace says of it."""

    plan_id: PlanId
    partition: str | None
    campaign: str | None
    safety_lag: timedelta
    granularity: timedelta
    zone: str
    has_start: bool
    overrides: Mapping[str, Any]
    question: str  # the hash of what it asks, without any window

    def settled_until(self, now: datetime) -> datetime:
        """Return how far a plan of this moment would reach: now − safety lag, on the grid."""
        return floor_to(now - self.safety_lag, self.granularity, ZoneInfo(self.zone))


@dataclass(frozen=True)
class NamespaceFacts:
    """One namespace: what was planned, what became of it, and what stands in its way.

    `unwindowed` counts by status the slices that have no window: those of ids and of pages.
    `superseded_by` is the newest plan of the same endpoint and options that asks another question;
    no trigger will ever plan this namespace again.
    """

    namespace: Namespace
    newest: PlanFacts
    planned: Window | None
    facts: list[CoveredWindow]
    failures: dict[SliceId, Failure]
    unwindowed: dict[str, int]
    cursor: datetime | None
    hold: Hold | None
    superseded_by: PlanId | None = None
    forward: datetime | None = None  # of a BACKFILL: where HARVEST stands; the rest is left to it


_OF = """
     WHERE p.provenance_code = :provenance_code AND p.endpoint_name = :endpoint_name
       AND p.operation_code = :operation_code AND p.cursor_key = :cursor_key
       AND p.namespace_scope_code = :namespace_scope_code AND p.namespace_key = :namespace_key
"""
_NAMESPACES = text("""
    SELECT provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key, MIN(window_from) AS first, MAX(window_to) AS past, MAX(id) AS newest
      FROM ing_plan
     WHERE provenance_code = :provenance AND (:endpoint IS NULL OR endpoint_name = :endpoint)
       AND (:operation IS NULL OR operation_code = :operation)
     GROUP BY provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
              namespace_key
     ORDER BY endpoint_name, operation_code, newest DESC
""")


def list_coverage(
    tx: Connection,
    provenance: str,
    endpoint: str | None = None,
    operation: Operation | None = None,
) -> list[NamespaceFacts]:
    """Return every namespace that was ever planned, the newest of an endpoint first."""
    wanted = {
        "provenance": provenance,
        "endpoint": endpoint,
        "operation": operation and operation.value,
    }
    found = tx.execute(_NAMESPACES, wanted).mappings().all()
    return _with_successors([_read(tx, dict(row)) for row in found])


def _with_successors(found: Iterable[NamespaceFacts]) -> list[NamespaceFacts]:
    """Mark the namespaces of a HARVEST whose question has changed since."""
    current: dict[tuple[object, ...], PlanId] = {}
    marked = []
    for item in found:  # the newest first
        own, newest = item.namespace, item.newest
        if own.operation is Operation.HARVEST:
            asked = sorted((name, repr(value)) for name, value in newest.overrides.items())
            key = (own.endpoint, newest.partition, newest.campaign, *asked)
            successor = current.setdefault(key, newest.plan_id)
            if successor != newest.plan_id:
                item = replace(item, superseded_by=successor)
        marked.append(item)
    return marked


def _read(tx: Connection, row: Row) -> NamespaceFacts:
    namespace = Namespace.of(row)
    first, past = find_instant(row["first"]), find_instant(row["past"])
    planned = Window(first, past) if first and past else None
    facts = list_windows(tx, namespace, planned.start) if planned else []
    newest = _plan_facts(tx, PlanId(row["newest"]))
    forward = None
    if planned and namespace.operation is Operation.BACKFILL:
        harvest = _harvest_of(namespace, newest)
        forward = find_cursor(tx, harvest)
        facts += _harvested(tx, harvest, planned.start) if newest.campaign is None else []
    unwindowed = _count_unwindowed(tx, namespace)
    cursor = find_cursor(tx, namespace)
    return NamespaceFacts(
        namespace,
        newest,
        # A plan of ids or pages may have a window, but no slice of it stands for a part of it.
        planned if facts or not unwindowed else None,
        facts,
        _failures(tx, namespace),
        unwindowed,
        cursor.value if cursor else None,
        find_hold(tx, namespace.provenance, namespace.endpoint),
        forward=forward.value if forward else None,
    )


def _harvest_of(namespace: Namespace, newest: PlanFacts) -> Namespace:
    key = keys.namespace_key(NamespaceScope.EXPR, newest.question, partition=newest.partition)
    return replace(namespace, operation=Operation.HARVEST, scope=NamespaceScope.EXPR, key=key)


def _harvested(tx: Connection, harvest: Namespace, after: datetime) -> list[CoveredWindow]:
    """Return what HARVEST has of the same question: a BACKFILL does not ask for it again."""
    found = list_windows(tx, harvest, after)
    return [one for one in found if one.status is SliceStatus.SUCCEEDED]


_PLAN = text("""
    SELECT p.id, p.campaign, p.expr_proto_hash, p.slice_params, p.spec_snapshot, s.trigger_params
      FROM ing_plan p LEFT JOIN ing_schedule_instance s ON s.id = p.schedule_instance_id
     WHERE p.id = :id
""")


def _plan_facts(tx: Connection, plan_id: PlanId) -> PlanFacts:
    row = tx.execute(_PLAN, {"id": plan_id}).mappings().one()
    params = read_json(row["slice_params"]) or {}
    window = read_json(row["spec_snapshot"])["window"]
    asked = read_json(row["trigger_params"]) or {}
    return PlanFacts(
        plan_id,
        params.get("partition"),
        row["campaign"] or params.get("campaign"),
        parse_duration(window["safety_lag"]),
        parse_duration(window["granularity"]),
        window["zone"],
        window.get("initial_from") is not None,
        {name: asked[name] for name in ("set", "params", "query") if asked.get(name)},
        row["expr_proto_hash"],
    )


_UNWINDOWED = text(f"""
    SELECT s.status_code, COUNT(*) FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
    {_OF} AND s.window_from IS NULL GROUP BY s.status_code ORDER BY s.status_code
""")


def _count_unwindowed(tx: Connection, namespace: Namespace) -> dict[str, int]:
    return {status: int(count) for status, count in tx.execute(_UNWINDOWED, namespace.columns())}


_FAILURES = text(f"""
    SELECT s.id, s.plan_id, s.status_code, s.record_remarks, t.last_error_code, t.last_error_msg,
           t.retry_count, t.finished_at
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
      LEFT JOIN ing_task t ON t.slice_id = s.id
    {_OF} AND s.status_code IN ('FAILED', 'PARTIAL', 'CANCELLED')
""")


def _failures(tx: Connection, namespace: Namespace) -> dict[SliceId, Failure]:
    return {
        SliceId(row["id"]): Failure(
            PlanId(row["plan_id"]),
            SliceStatus(row["status_code"]),
            row["last_error_code"],
            row["last_error_msg"],
            row["retry_count"] or 0,
            find_instant(row["finished_at"]),
            _last_remark(read_json(row["record_remarks"])),
        )
        for row in tx.execute(_FAILURES, namespace.columns()).mappings()
    }


def _last_remark(remarks: list[dict[str, Any]] | None) -> Remark | None:
    if not remarks:
        return None
    last = remarks[-1]
    return Remark(last.get("time"), last.get("by"), last.get("note"))
