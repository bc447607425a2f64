"""Write the slices of a plan, in groups that commit alone.

How a plan is cut stands in its row, so whoever goes on with it after a crash, and whoever works on
it at the same time, writes the very same slices.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from sqlalchemy import Connection

from patra_ingest.clock import Clock
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.plans import Plan, lock_plan, mark_plan, save_slice_params
from patra_ingest.ledger.slices import count_slices, ensure_slices
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.codes import Operation, PlanStatus
from patra_ingest.model.slices import NewSlice
from patra_ingest.planner.derivation import Derivation
from patra_ingest.planner.queue_tasks import GROUP
from patra_ingest.planner.slicing import Cut, cut, expect, read_cut

_NOTHING = timedelta(0)


def cut_plan(db: Db, clock: Clock, plan: Plan) -> int:
    """Write the slices that are missing; return how many this call wrote."""
    how = read_cut(plan.slice_params)
    if how.slices is not None:
        return 0
    slices = _slices(plan, how)
    taken = written = 0
    while True:
        with db.write() as tx:
            if not _begin(tx, clock, plan):
                return written
            there = count_slices(tx, plan.id)
            # Another planner may have written some meanwhile: those we skip.
            group = list(islice(slices, there - taken, there - taken + GROUP))
            taken = there + len(group)
            ensure_slices(tx, plan.id, plan.namespace, group) if group else None
            written += len(group)
            if len(group) < GROUP:
                params = {**plan.slice_params, "slices": taken}
                save_slice_params(tx, plan.id, params, clock.now())
                return written


def _begin(tx: Connection, clock: Clock, plan: Plan) -> bool:
    status = lock_plan(tx, plan.id)
    if status is PlanStatus.DRAFT:
        mark_plan(tx, plan.id, status, PlanStatus.SLICING, clock.now())
    return status in (PlanStatus.DRAFT, PlanStatus.SLICING)


def _slices(plan: Plan, how: Cut) -> Iterator[NewSlice]:
    derivation = Derivation(plan.spec)
    first = how.holes[0].start if how.holes else None
    for no, bounds in enumerate(cut(how, plan.spec)):
        lookback = _NOTHING
        if plan.namespace.operation is Operation.HARVEST and _begins_at(bounds, first):
            lookback = plan.spec.window.lookback
        yield derivation.slice(no, bounds, expect(how, plan.spec, bounds), lookback)


def _begins_at(bounds: Bounds, first: object) -> bool:
    return bounds.window is not None and bounds.window.start == first
