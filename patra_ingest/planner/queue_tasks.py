"""Queue one task for each slice of a plan, as far as the queue and the quotas bear it.

Groups of at most 500 commit alone; a task that is there is found again. What has no room waits in
the plan, which stays PARTIAL with the reason; the next trigger goes on from the first such slice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from patra_ingest.clock import Clock
from patra_ingest.errors import PlanError
from patra_ingest.ledger.db import Db, instant_text
from patra_ingest.ledger.holds import find_hold
from patra_ingest.ledger.plans import (
    Plan,
    lock_plan,
    lock_planning,
    mark_partial,
    mark_plan,
    try_complete_plan,
)
from patra_ingest.ledger.quotas import list_usages, lock_usages, reserve_all
from patra_ingest.ledger.slices import (
    Slice,
    count_derived,
    count_underived,
    list_underived,
    mark_ready,
)
from patra_ingest.ledger.tasks import count_queued, ensure_tasks
from patra_ingest.model import keys
from patra_ingest.model.codes import Operation, PlanStatus, TaskStatus
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.quotas import KEPT_FROM, QuotaRule, Usages, window_at
from patra_ingest.planner.budgeting import Book, Budget, Placed
from patra_ingest.planner.slicing import count_roughly, read_cut
from patra_ingest.planner.trigger import Progress
from patra_ingest.spec.quotas import rules_of
from patra_ingest.spec.slice_spec import requests_of

GROUP = 500
_UNKNOWN_REQUESTS = 10  # of a slice nobody can estimate


@dataclass(frozen=True)
class _Stop:
    """Why no more tasks are queued now."""

    reason: str
    why: str


def queue_tasks(db: Db, clock: Clock, plan: Plan) -> Progress:
    """Queue the tasks of a plan that have none yet, as many as there is room for."""
    dues: list[datetime | None] = []
    last = -1
    while True:
        with db.write() as tx:
            now = clock.now()
            lock_planning(tx, plan.namespace.provenance)
            status = lock_plan(tx, plan.id)
            if status not in (PlanStatus.SLICING, PlanStatus.PARTIAL):
                return Progress(status.value, 0, len(dues))
            stop, placed = _queue_group(tx, plan, now, last)
            dues.extend(place.at for _, place in placed)
            last = max((one.no for one, _ in placed), default=last)
            if stop is not None:
                return _wait(tx, plan, stop, dues, now)
            if not placed:
                mark_plan(tx, plan.id, status, PlanStatus.READY, now)
                done = try_complete_plan(tx, plan.id, now)
                ended = PlanStatus.COMPLETED if done else PlanStatus.READY
                return Progress(ended.value, 0, len(dues), 0, None, _later(dues))


def _queue_group(
    tx: Connection, plan: Plan, now: datetime, after: int
) -> tuple[_Stop | None, list[tuple[Slice, Placed]]]:
    name = plan.namespace
    if hold := find_hold(tx, name.provenance, name.endpoint):
        return _Stop("HELD", f"held by {hold.held_by}: {hold.reason}"), []
    most = plan.spec.planning.max_queued
    waiting = count_queued(tx, name.provenance, name.endpoint, name.operation)
    slices = list_underived(tx, plan.id, max(0, min(GROUP, most - waiting)), after)
    if not slices and waiting >= most and count_underived(tx, plan.id):
        return _Stop("BACKPRESSURE", f"{waiting} tasks are queued, at most {most} may be"), []
    placed = place_all(tx, plan, slices, now)
    derive(tx, plan, placed, now)
    if len(placed) < len(slices):
        return _Stop("BUDGET", "no quota window of the next two months has room for them"), placed
    return None, placed


def _wait(
    tx: Connection, plan: Plan, stop: _Stop, dues: Sequence[datetime | None], now: datetime
) -> Progress:
    status, waiting = lock_plan(tx, plan.id), count_underived(tx, plan.id)
    if dues or status is not PlanStatus.PARTIAL:
        why = f"{waiting} slices wait: {stop.why}"
        mark_partial(tx, plan.id, status, stop.reason, why, now)
    reason = f"{stop.reason}: {stop.why}"
    return Progress(PlanStatus.PARTIAL.value, 0, len(dues), waiting, reason, _later(dues))


def _later(dues: Sequence[datetime | None]) -> tuple[datetime, ...]:
    """Return when those tasks may start that may not at once, in order."""
    return tuple(sorted(due for due in dues if due is not None))


def place_all(
    tx: Connection, plan: Plan, slices: Sequence[Slice], now: datetime
) -> list[tuple[Slice, Placed]]:
    """Return the slices that fit, each with when it may start; what they speak for is reserved."""
    spec = plan.spec
    # What is counted by the minute is left to the gate: it would be hundreds of windows a slice.
    rules = tuple(rule for rule in rules_of(spec.rate, spec.auth) if rule.period >= KEPT_FROM)
    if spec.detail is not None:
        # What cannot be kept is refused here, not when it is executed.
        rules_of(spec.detail.rate, spec.detail.auth)
    courtesy = spec.planning.courtesy if _is_large(plan) else None
    if not slices or (not rules and courtesy is None):
        return [(one, Placed(None, ())) for one in slices]
    share = spec.planning.share_of(spec.operation)
    budget = Budget(rules, share, spec.planning.quota_margin, courtesy)
    book = Book(budget, _locked(tx, rules, now), now)
    placed = []
    for one in slices:
        place = book.place(_amount(plan, one))
        if place is None:
            break
        placed.append((one, place))
    wanted = {one.id: place.reservations for one, place in placed if place.reservations}
    reserve_all(tx, wanted, book.limits, now)
    return placed


def _locked(tx: Connection, rules: Sequence[QuotaRule], now: datetime) -> Usages:
    usages = list_usages(tx, [rule.key for rule in rules], now)
    around = [(rule.key, window_at(rule, now), rule.limit) for rule in rules]
    return {**usages, **lock_usages(tx, around, now)}


def _amount(plan: Plan, one: Slice) -> Decimal:
    requests = requests_of(one.spec)
    count = _UNKNOWN_REQUESTS if requests is None else max(1, requests)
    return Decimal(str(plan.spec.rate.cost)) * count


def _is_large(plan: Plan) -> bool:
    """Return whether a BACKFILL has to keep the source's courtesy hours."""
    courtesy = plan.spec.planning.courtesy
    if courtesy is None or plan.namespace.operation is not Operation.BACKFILL:
        return False
    cut = read_cut(plan.slice_params)
    records = [cut.density.expected(hole) for hole in cut.holes]
    known = [number for number in records if number is not None]
    slices = cut.slices or count_roughly(cut.holes, plan.spec.window)
    requests = sum(known) / plan.spec.paging.page_size if known else slices * _UNKNOWN_REQUESTS
    return max(requests, slices) >= courtesy.from_requests


def derive(
    tx: Connection, plan: Plan, placed: Sequence[tuple[Slice, Placed]], now: datetime
) -> None:
    """Queue the task of each slice; one that is there already is the same one."""
    rows = [task_row(plan, one, place.at) for one, place in placed]
    ensure_tasks(tx, rows)
    mark_ready(tx, [one.id for one, _ in placed], now)
    if rows:
        _require_all(tx, plan, [row["slice_id"] for row in rows])


def _require_all(tx: Connection, plan: Plan, slices: Sequence[SliceId]) -> None:
    found = count_derived(tx, slices)
    if found < len(slices):
        raise PlanError(
            f"Plan {plan.id}: {len(slices) - found} slices got no task because an equal task"
            " exists in another plan.",
            "Report this: the ledger is inconsistent; nothing of this group was written.",
        )


def task_row(plan: Plan, one: Slice, due: datetime | None) -> dict[str, Any]:
    """Return the queued task of a slice; `due` hides it until then."""
    namespace = plan.namespace
    params = _params(plan)
    return {
        "schedule_instance_id": plan.schedule_instance_id,
        "plan_id": plan.id,
        "slice_id": one.id,
        "provenance_code": namespace.provenance,
        "endpoint_name": namespace.endpoint,
        "operation_code": namespace.operation.value,
        "params": params,
        "idempotent_key": keys.task_key(
            slice_signature=one.signature,
            expr_hash=one.expr_hash,
            operation=namespace.operation,
            trigger_type=plan.trigger_type,
            scheduler=plan.scheduler,
            params=params,
        ),
        "expr_hash": one.expr_hash,
        "priority": one.spec["budget"]["priority"],
        "status_code": TaskStatus.QUEUED.value,
        "scheduled_at": due and instant_text(due),
    }


def _params(plan: Plan) -> Mapping[str, Any]:
    """Return what makes the tasks of this plan others than earlier ones of the same slices.

    A campaign and a second attempt at failed windows are meant as a second run. Ids are asked for
    again in every window of an UPDATE, so its end tells them apart.
    """
    params = {"campaign": plan.campaign, "refill": plan.slice_params.get("refill")}
    if plan.slice_params.get("strategy") == "ID_RANGE":
        params["until"] = instant_text(plan.window.end)
    return {name: value for name, value in params.items() if value is not None}
