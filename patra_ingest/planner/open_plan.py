"""Decide the window of one part of a trigger, what of it is missing, and open the plan for that.

One planner at a time decides this for a provenance, in one transaction: no window is claimed twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from patra_ingest.cursor.frontier import frontier
from patra_ingest.errors import PlanError
from patra_ingest.ledger.coverage import find_start, list_windows
from patra_ingest.ledger.cursor_events import find_origin, goes_up
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.plans import ensure_plan, find_pace, find_plan, lock_planning
from patra_ingest.ledger.runs import find_freshness
from patra_ingest.ledger.slices import list_landed
from patra_ingest.model import keys
from patra_ingest.model.codes import (
    CursorDirection,
    Operation,
    PlanStatus,
    SliceStatus,
    SliceStrategy,
)
from patra_ingest.model.lifecycle import is_final
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import STANDING, missing, refilled
from patra_ingest.planner.density import measure
from patra_ingest.planner.namespaces import forward_of
from patra_ingest.planner.open_update import open_update
from patra_ingest.planner.plan_row import plan_key, plan_row
from patra_ingest.planner.slicing import (
    Cut,
    count_roughly,
    is_newest_first,
    strategy_of,
    target_of,
)
from patra_ingest.planner.trigger import Opened, Part, Rooted
from patra_ingest.planner.windowing import Decision, Standing, decide_window
from patra_ingest.spec.words import duration_text

MAX_SLICES = 200_000
_FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Found:
    """A window with what its namespace has of it."""

    window: Window
    covered: Sequence[CoveredWindow]
    holes: tuple[Window, ...]


def open_plan(tx: Connection, rooted: Rooted, part: Part, now: datetime) -> Opened:
    """Return the plan of one part of a trigger: a new one, or the one it had before."""
    lock_planning(tx, part.namespace.provenance)
    decision = _decide(tx, rooted, part, now)
    opened = _opened(tx, rooted, part, decision, now)
    if opened.plan_id is None and decision.window and _walks(rooted, part):
        passed = _passed(tx, rooted, part, decision.window.end)
        if passed <= decision.window.start:
            decision = _decide(tx, rooted, part, now, passed)
            opened = _opened(tx, rooted, part, decision, now)
    return replace(opened, cuts=tuple(decision.cuts))


def _walks(rooted: Rooted, part: Part) -> bool:
    """Return whether a plan is one more step into the past, and nobody asks for a certain one."""
    asked = rooted.trigger.asked
    return part.namespace.operation is Operation.BACKFILL and not asked.start and not asked.end


def _passed(tx: Connection, rooted: Rooted, part: Part, end: datetime) -> datetime:
    """Return how far down from `end` everything is done, by HARVEST or by BACKFILL.

    The cursor of a BACKFILL waits where HARVEST has been: that would stop the walk for ever.
    """
    spaces = [part.namespace]
    if rooted.trigger.campaign is None:
        spaces.append(forward_of(part, rooted.compiled))
    known = [one for space in spaces for one in list_windows(tx, space, _FIRST, end)]
    done = [one.window for one in known if one.status is SliceStatus.SUCCEEDED]
    return frontier(end, done, CursorDirection.BACKFILL)


def _opened(
    tx: Connection, rooted: Rooted, part: Part, decision: Decision, now: datetime
) -> Opened:
    if decision.window is None:
        return Opened(rooted, None, None, decision.reason, part.partition)
    if _asks_ids(rooted):
        return open_update(tx, rooted, part, decision, now)
    window = decision.window
    known = find_plan(tx, plan_key(rooted, part, window, None))
    if known is not None and not is_final(known[1]):
        plan_id, status = known
        return Opened(rooted, plan_id, window, f"plan {plan_id} is {status}", part.partition)
    covered = list_windows(tx, part.namespace, window.start)
    holes = tuple(missing(window, [*covered, *_harvested(tx, rooted, part, window)]))
    if not holes:
        return Opened(rooted, None, window, _covered(window, known), part.partition)
    found = _Found(window, covered, holes)
    done = window.duration - sum((hole.duration for hole in holes), timedelta(0))
    if done:
        decision.cuts.append(f"without {duration_text(done)} of it that are covered already")
    return _open(tx, rooted, part, decision, found)


def _harvested(tx: Connection, rooted: Rooted, part: Part, window: Window) -> list[CoveredWindow]:
    """Return what HARVEST has or is on: a BACKFILL asks for it only as a campaign."""
    if part.namespace.operation is not Operation.BACKFILL or rooted.trigger.campaign is not None:
        return []
    found = list_windows(tx, forward_of(part, rooted.compiled), window.start)
    return [one for one in found if one.status in STANDING]


def _covered(window: Window, known: tuple[int, PlanStatus] | None) -> str:
    by = f" by plan {known[0]}" if known else ""
    return f"{window} is covered already{by}"


def _decide(
    tx: Connection, rooted: Rooted, part: Part, now: datetime, passed: datetime | None = None
) -> Decision:
    spec, operation = rooted.compiled.spec, part.namespace.operation
    cursor = find_cursor(tx, part.namespace)
    forward = begun = None
    if operation is Operation.BACKFILL:
        harvest = forward_of(part, rooted.compiled)
        forward = find_cursor(tx, harvest)
        if rooted.trigger.campaign is None:
            begun = find_origin(tx, harvest) or find_start(tx, harvest)
        if cursor and goes_up(tx, part.namespace):
            cursor = None  # of an older version: it says where its run ends, not where it begins
    fresh = None
    if spec.window.freshness is not None:
        fresh = find_freshness(tx, spec.provenance, spec.endpoint)
    by_ids = _asks_ids(rooted)
    standing = Standing(
        now,
        passed or (cursor.value if cursor else None),
        forward.value if forward else None,
        begun,
        fresh,
        by_ids,
        find_pace(tx, part.namespace) if by_ids else None,
    )
    return decide_window(operation, spec.window, spec.planning, rooted.trigger.asked, standing)


def _asks_ids(rooted: Rooted) -> bool:
    return strategy_of(rooted.compiled.spec) is SliceStrategy.ID_RANGE


def _open(tx: Connection, rooted: Rooted, part: Part, decision: Decision, found: _Found) -> Opened:
    spec = rooted.compiled.spec
    _require_bearable(rooted, found.holes)
    question = rooted.compiled.proto_hash
    history = list_landed(tx, spec.provenance, spec.endpoint, question, part.partition)
    how = Cut(
        strategy_of(spec),
        found.holes,
        is_newest_first(spec),
        target_of(spec),
        measure(history, found.window, spec.planning.records_per_day),
        part.partition,
        _pages(rooted, history),
    )
    failed = sorted({i for hole in found.holes for i in refilled(hole, found.covered)})
    refill = keys.digest(failed)[:12] if failed else None
    params = {**how.as_json(), "refill": refill}
    mark = refill and f"refill-{refill}"
    ended = find_plan(tx, plan_key(rooted, part, found.window, mark))
    if ended is not None and is_final(ended[1]):
        # It was cancelled before it had slices, or is final and has a hole: this is another plan.
        mark = f"after-{ended[0]}"
        params["refill"] = refill or mark
    plan_id, _ = ensure_plan(tx, plan_row(rooted, part, decision, params, mark))
    return Opened(rooted, plan_id, found.window, None, part.partition)


def _require_bearable(rooted: Rooted, holes: tuple[Window, ...]) -> None:
    count = count_roughly(holes, rooted.compiled.spec.window)
    by_time = strategy_of(rooted.compiled.spec) not in (
        SliceStrategy.SINGLE,
        SliceStrategy.PAGE_RANGE,
    )
    if by_time and count > MAX_SLICES:
        raise PlanError(
            f"This window would be cut into about {count:,} slices; a plan has {MAX_SLICES:,}"
            " at most.",
            "Ask for a shorter window, or for longer slices: --set window.max_span=7d.",
        )


def _pages(rooted: Rooted, history: Sequence[tuple[Window, int]]) -> int | None:
    spec = rooted.compiled.spec
    records = max((landed for _, landed in history), default=None) or spec.planning.total_records
    return None if records is None else -(-records // spec.paging.page_size)
