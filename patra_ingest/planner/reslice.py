"""Answer the executors' requests to cut the rest of a slice again, each exactly once.

Children, their tasks, the parent's end and the answer commit together. What the parent had finished
and its children tile the parent's window exactly. A rest that cannot be cut any finer has failed,
loudly: its slice is FAILED, and whoever called is told.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from patra_ingest.clock import Clock
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.holds import find_hold
from patra_ingest.ledger.plans import Plan, get_plan, lock_plan, lock_planning, try_complete_plan
from patra_ingest.ledger.quotas import free
from patra_ingest.ledger.remarks import append_remark
from patra_ingest.ledger.reslices import (
    Request,
    answer_request,
    blame_task,
    has_brought,
    list_pending,
    lock_request,
    plan_of_request,
)
from patra_ingest.ledger.slices import (
    Slice,
    count_slices,
    ensure_slices,
    follow_task,
    get_slice,
    list_children,
    mark_done_to,
)
from patra_ingest.model.bounds import Bounds, read_bounds
from patra_ingest.model.codes import ResliceStatus, SliceStatus
from patra_ingest.model.lineage import PlanId, SliceId
from patra_ingest.planner.bisection import cut_again
from patra_ingest.planner.budgeting import Placed
from patra_ingest.planner.derivation import Derivation
from patra_ingest.planner.queue_tasks import derive, place_all
from patra_ingest.planner.slicing import expect, read_cut
from patra_ingest.planner.trigger import Resliced
from patra_ingest.spec.slice_spec import Expected


def reslice(
    db: Db, clock: Clock, provenance: str | None = None, plan_id: PlanId | None = None
) -> list[Resliced]:
    """Answer every request that waits, of all sources, of one, or of one plan."""
    with db.read() as tx:
        waiting = list_pending(tx, provenance, plan_id)
    answers = []
    for request_id in waiting:
        with db.write() as tx:
            answer = _answer(tx, request_id, clock.now())
        answers.extend([answer] if answer else [])
    return answers


def _answer(tx: Connection, request_id: int, now: datetime) -> Resliced | None:
    plan = get_plan(tx, plan_of_request(tx, request_id))
    name = plan.namespace
    lock_planning(tx, name.provenance)
    lock_plan(tx, plan.id)
    request = lock_request(tx, request_id)
    if request is None or find_hold(tx, name.provenance, name.endpoint):
        return None
    parent = get_slice(tx, request.slice_id)
    rest = read_bounds({**parent.spec, **request.remaining})
    parts = cut_again(rest, request.density.get("total"), plan.spec)
    if not parts:
        return _fail(tx, plan, parent, request, now)
    children = _write_children(tx, plan, parent, parts, request, now)
    _end_parent(tx, parent, rest, children, now)
    note = f"cut into {len(children)} slices: {', '.join(map(str, children[:20]))}"
    answer_request(tx, request.id, ResliceStatus.CONSUMED, note, now)
    return Resliced(plan.id, parent.id, len(children))


def _write_children(
    tx: Connection,
    plan: Plan,
    parent: Slice,
    parts: Sequence[Bounds],
    request: Request,
    now: datetime,
) -> list[SliceId]:
    first = count_slices(tx, plan.id)
    derivation = Derivation(plan.spec, parent.spec["budget"]["priority"])
    slices = [
        derivation.slice(first + n, bounds, _expected(plan, bounds, request, len(parts)))
        for n, bounds in enumerate(parts)
    ]
    ensure_slices(tx, plan.id, plan.namespace, slices, parent.id)
    children = list_children(tx, plan.id, parent.id)
    free(tx, [parent.id], now)  # the children speak for what is left of it
    placed = {one.id: place for one, place in place_all(tx, plan, children, now)}
    # A child without room in any quota window is queued all the same: the gate will hold it back.
    derive(tx, plan, [(one, placed.get(one.id, Placed(None, ()))) for one in children], now)
    return [one.id for one in children]


def _expected(plan: Plan, bounds: Bounds, request: Request, parts: int) -> Expected:
    """Return what a child should hold: its share of what was measured, else as the plan knew."""
    total = request.density.get("total")
    if total is None:
        return expect(read_cut(plan.slice_params), plan.spec, bounds)
    records = -(-int(total) // parts)
    return Expected(records, 1 + records // plan.spec.paging.page_size, "MEASURED")


def _end_parent(
    tx: Connection, parent: Slice, rest: Bounds, children: Sequence[SliceId], now: datetime
) -> None:
    """End the parent as its task ended: PARTIAL if it brought anything, else CANCELLED."""
    status = SliceStatus.PARTIAL if has_brought(tx, parent.id) else SliceStatus.CANCELLED
    follow_task(tx, parent.id, status, now)
    if parent.window and rest.window and rest.window.start > parent.window.start:
        mark_done_to(tx, parent.id, rest.window.start)
    data = {"children": list(children)}
    note = f"superseded by {len(children)} slices"
    append_remark(
        tx, "ing_plan_slice", [parent.id], "planner", note, now, kind="RESLICE", data=data
    )


def _fail(tx: Connection, plan: Plan, parent: Slice, request: Request, now: datetime) -> Resliced:
    asked = parent.window or parent.spec["bounds"]
    total = request.density.get("total")
    held = f"{total} records" if total is not None else "too much"
    cap, by = plan.spec.cap.max, [split.by for split in plan.spec.cap.then]
    advice = "declare a second dimension in its pack: cap.then"
    if by:
        advice = f"what its pack declares in cap.then ({', '.join(by)}) is used up; declare more"
    problem = (
        f"{plan.namespace.provenance}/{plan.namespace.endpoint} slice {parent.id} {asked} holds"
        f" {held} ({request.reason}{f', the source gives {cap} at most' if cap else ''}) and cannot"
        f" be cut any finer; {advice}"
    )
    follow_task(tx, parent.id, SliceStatus.FAILED, now)
    free(tx, [parent.id], now)
    append_remark(tx, "ing_plan_slice", [parent.id], "planner", problem, now, kind="RESLICE")
    blame_task(tx, parent.id, problem)
    answer_request(tx, request.id, ResliceStatus.REJECTED, problem, now)
    try_complete_plan(tx, plan.id, now)
    return Resliced(plan.id, parent.id, 0, problem)
