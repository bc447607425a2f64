"""Plan a few slices for a look at a source: `db` is a ledger that is thrown away afterwards.

A bound that nobody gives is one slice (`window.max_span`) away from the other one. Ids are asked
for as an UPDATE would, whether or not a record of them is stored anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from patra_ingest.clock import Clock
from patra_ingest.errors import PlanError
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.plans import Plan, get_plan
from patra_ingest.ledger.slices import Slice, list_first
from patra_ingest.model.bounds import Bounds, IdSet, read_bounds
from patra_ingest.model.codes import CursorDirection, Operation, PlanStatus
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.slices import NewSlice
from patra_ingest.model.window import Window, shift
from patra_ingest.planner.bisection import cut_again
from patra_ingest.planner.derivation import Derivation
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked, aligned
from patra_ingest.spec.snapshot import SpecSnapshot

_MOST_SLICES = 20


@dataclass(frozen=True)
class Rehearsed:
    """A plan that nobody executes, its first slices, and what made its window another."""

    plan: Plan
    slices: tuple[Slice | NewSlice, ...]
    count: int  # of all its slices
    cuts: tuple[str, ...] = ()


def rehearse(
    planner: Planner, db: Db, clock: Clock, trigger: Trigger, ids: Sequence[str] = ()
) -> list[Rehearsed]:
    """Return what a trigger would lead to, one plan for each partition; PlanError for nothing."""
    if ids:
        return [_by_ids(planner, clock, trigger, ids)]
    spec = planner.look(trigger, clock.now()).spec
    planned = planner.plan(replace(trigger, asked=_bounded(spec, trigger.asked, clock)))
    found = []
    with db.read() as tx:
        for part in planned.parts:
            if part.plan_id is not None and part.progress is not None:
                first = tuple(list_first(tx, part.plan_id, _MOST_SLICES))
                plan = get_plan(tx, part.plan_id)
                found.append(Rehearsed(plan, first, part.progress.new_slices, part.cuts))
    if not found:
        by_ids = trigger.operation is Operation.UPDATE
        remedy = "Give ids with --ids A,B." if by_ids else "Give --from and --to."
        raise PlanError(f"There is nothing to read: {planned.reason}.", remedy)
    return found


def cut_finer(plan: Plan, piece: Slice | NewSlice, total: int | None) -> list[NewSlice]:
    """Return the slices that one would be cut into which proved too big; none if that is hopeless.

    They have the numbers that follow its own.
    """
    derivation = Derivation(plan.spec)
    parts = cut_again(read_bounds(piece.spec), total, plan.spec)
    return [derivation.slice(piece.no + no, bounds) for no, bounds in enumerate(parts, 1)]


def _bounded(spec: SpecSnapshot, asked: Asked, clock: Clock) -> Asked:
    zone, span = ZoneInfo(spec.window.zone), spec.window.max_span
    safe = clock.now() - spec.window.safety_lag
    if asked.start is None:
        end = aligned(min(asked.end or safe, safe), spec.window)
        return Asked(shift(end, -span, zone), end)
    if asked.end is None and asked.start < safe:
        return Asked(asked.start, min(shift(asked.start, span, zone), safe))
    return asked


def _by_ids(planner: Planner, clock: Clock, trigger: Trigger, ids: Sequence[str]) -> Rehearsed:
    rooted = planner.compile(trigger)
    spec, part, now = rooted.compiled.spec, rooted.parts[0], clock.now()
    plan = Plan(
        PlanId(0),
        rooted.root,
        PlanStatus.READY,
        part.namespace,
        CursorDirection.FORWARD,
        spec,
        rooted.compiled.fingerprint,
        Window(now - spec.window.granularity, now),
        None,
        {},
        trigger.trigger_type,
        trigger.scheduler,
    )
    asked = IdSet(spec.endpoint, tuple(dict.fromkeys(ids)))
    piece = Derivation(spec).slice(0, Bounds(ids=asked, partition=part.partition))
    return Rehearsed(plan, (piece,), 1)
