"""Which window a trigger means, for each operation, and why: pure, and written down with the plan.

now safe = now − safety lag. HARVEST goes from its cursor to now safe. BACKFILL walks into the past:
it ends at its own cursor, or first where HARVEST began. UPDATE goes from its own cursor to now
safe; one that asks by ids only paces itself. What a person asks for cuts the window. Both ends are
rounded down to the source's grid: what it may still be writing is left to the next window. What is
covered already is taken out later.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.errors import PlanError
from patra_ingest.model.codes import CalendarAlign, Operation, WindowMode
from patra_ingest.model.window import (
    Window,
    floor_calendar,
    floor_to,
    instant_iso,
    parse_instant,
    shift,
)
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest.spec.snapshot import WindowSpec
from patra_ingest.spec.words import duration_text

_PACE = timedelta(days=1)  # of an UPDATE by ids that never ran before


@dataclass(frozen=True)
class Asked:
    """The bounds a trigger gives; None leaves them to the cursor and to now."""

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if self.start and self.end and self.start >= self.end:
            raise PlanError(
                f"The window [{instant_iso(self.start)}, {instant_iso(self.end)}) is empty.",
                "Give a start that is earlier than the end.",
            )


@dataclass(frozen=True)
class Standing:
    """How things stand when a window is decided."""

    now: datetime
    cursor: datetime | None = None  # of the namespace itself
    forward: datetime | None = None  # how far HARVEST has come: no BACKFILL goes beyond it
    begun: datetime | None = None  # where HARVEST began: the past is what lies before it
    fresh_until: datetime | None = None  # the source's last word on how complete it is
    by_ids: bool = False  # an UPDATE that asks for ids
    paced_until: datetime | None = None  # end of the last window of such an UPDATE


@dataclass
class Decision:
    """The window, or the reason why there is none, and everything that led to it."""

    window: Window | None = None
    reason: str | None = None
    cuts: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the decision as the plan's remark keeps it."""
        return {**self.facts, "cuts": self.cuts}


def decide_window(
    operation: Operation,
    spec: WindowSpec,
    planning: PlanningSpec,
    asked: Asked,
    standing: Standing,
) -> Decision:
    """Return the window of a trigger; raise PlanError for one that cannot be meant."""
    _refuse_future(asked, standing.now)
    decision = Decision(facts=_facts(spec, asked, standing))
    end = aligned(_end(operation, spec, asked, standing, decision), spec)
    start = _start(operation, spec, asked, standing, end, decision)
    earliest = parse_instant(planning.earliest) if planning.earliest else None
    if earliest and start < earliest:
        decision.cuts.append(f"from {instant_iso(earliest)}: the source has nothing older")
        start = earliest
    start = aligned(start, spec)
    if start < end:
        decision.window = Window(start, end)
    elif earliest and end <= earliest:
        decision.reason = f"the source has nothing before {instant_iso(earliest)}"
    else:
        decision.reason = _nothing(operation, spec, start, end, asked, standing)
    return decision


def _refuse_future(asked: Asked, now: datetime) -> None:
    if asked.start and asked.start > now:
        raise PlanError(
            f"The window begins at {instant_iso(asked.start)}, which is in the future"
            f" (it is {instant_iso(now)} now).",
            "Give a start in the past; a schedule plans what is to come.",
        )


def _facts(spec: WindowSpec, asked: Asked, standing: Standing) -> dict[str, Any]:
    return {
        "now": standing.now,
        "nowSafe": standing.now - spec.safety_lag,
        "cursor": standing.cursor,
        "harvestedUpTo": standing.forward,
        "freshUntil": standing.fresh_until,
        "lookbackSeconds": spec.lookback.total_seconds(),
        "overlapSeconds": spec.overlap.total_seconds(),
        "asked": {"from": asked.start, "to": asked.end},
        "alignedTo": _grid(spec),
    }


def _grid(spec: WindowSpec) -> str:
    is_calendar = spec.mode is WindowMode.CALENDAR and spec.align
    step = spec.align if is_calendar else duration_text(spec.granularity)
    return f"{step} in {spec.zone}"


def _end(
    operation: Operation, spec: WindowSpec, asked: Asked, standing: Standing, decision: Decision
) -> datetime:
    safe = standing.now - spec.safety_lag
    end = min(asked.end or safe, safe)
    if asked.end and asked.end > safe:
        decision.cuts.append(f"to {instant_iso(safe)}: now − safety lag")
    if operation is Operation.BACKFILL and standing.forward and standing.forward < end:
        decision.cuts.append(
            f"to {instant_iso(standing.forward)}: HARVEST stands there, what follows is left to it"
        )
        end = standing.forward
    if operation is Operation.BACKFILL and not asked.start and not asked.end:
        return _past_end(end, standing, decision)
    fresh = standing.fresh_until
    if operation is Operation.HARVEST and fresh and fresh < end and _is_news(fresh, spec, standing):
        decision.cuts.append(f"to {instant_iso(fresh)}: the source is complete up to there")
        end = fresh
    return end


def _past_end(end: datetime, standing: Standing, decision: Decision) -> datetime:
    """Return where the next window into the past ends, when nobody asks for a certain one."""
    for known, why in (
        (standing.cursor, "everything from there on is done"),
        (standing.begun, "HARVEST began there"),
    ):
        if known is not None:
            if known < end:
                decision.cuts.append(f"to {instant_iso(known)}: {why}")
            return min(known, end)
    return end


def _is_news(fresh: datetime, spec: WindowSpec, standing: Standing) -> bool:
    """Say whether a word on freshness leaves anything to harvest; only a harvest brings a new one.

    On the source's grid: a word within the day that the cursor has reached would stop it for ever.
    """
    begin = standing.cursor or spec.initial_from
    return begin is None or aligned(fresh, spec) > aligned(begin, spec)


def _start(
    operation: Operation,
    spec: WindowSpec,
    asked: Asked,
    standing: Standing,
    end: datetime,
    decision: Decision,
) -> datetime:
    reached = standing.cursor
    if standing.by_ids:
        return asked.start or standing.paced_until or end - _PACE
    if operation is Operation.BACKFILL:
        # Its cursor is an end, not a beginning: what is asked for lies before it.
        known = asked.start
    elif reached and asked.start:
        _note_cut(asked.start, reached, decision)
        known = max(reached, asked.start)
    else:
        first = spec.initial_from if operation is Operation.HARVEST else None
        known = reached or asked.start or first
    if known is None:
        known = shift(end, -spec.max_span, ZoneInfo(spec.zone))
        said = "one window, for nobody says where to begin"
        if operation is Operation.BACKFILL:
            said = "one window into the past"
        decision.cuts.append(f"from {instant_iso(known)}: {said}")
    return known


def _note_cut(asked: datetime, reached: datetime, decision: Decision) -> None:
    if asked < reached:
        decision.cuts.append(
            f"from {instant_iso(reached)}: the cursor is there; BACKFILL asks for the past"
        )
    elif asked > reached:
        decision.cuts.append(
            f"from {instant_iso(asked)} as asked: what lies between the cursor"
            f" ({instant_iso(reached)}) and it is left to the next trigger"
        )


def aligned(instant: datetime, spec: WindowSpec) -> datetime:
    """Return the last step of the source's time, or of the calendar, at or before an instant."""
    zone = ZoneInfo(spec.zone)
    if spec.mode is WindowMode.CALENDAR and spec.align:
        instant = floor_calendar(instant, CalendarAlign(spec.align), zone)
    return floor_to(instant, spec.granularity, zone)


def _nothing(
    operation: Operation,
    spec: WindowSpec,
    start: datetime,
    end: datetime,
    asked: Asked,
    standing: Standing,
) -> str:
    """Say why there is nothing between a start and an end that is not after it."""
    forward, cursor = standing.forward, standing.cursor
    if operation is Operation.BACKFILL and forward and aligned(forward, spec) == end:
        return f"HARVEST stands at {instant_iso(end)}, and what follows is left to it"
    past = operation is Operation.BACKFILL
    if cursor and asked.end and asked.end <= cursor and not past:
        return (
            f"the cursor stands at {instant_iso(cursor)}: what lies before it is covered already;"
            " ask for it again by BACKFILL or with a campaign"
        )
    if cursor and aligned(cursor, spec) == start and not past:
        return (
            f"everything before {instant_iso(start)} is planned already, and the source is"
            f" given {int(spec.safety_lag.total_seconds())} s to settle"
        )
    if asked.start and asked.end and start == end == aligned(asked.end, spec):
        return f"what is asked for holds no whole step of the source's time ({_grid(spec)})"
    return (
        f"nothing after {instant_iso(end)} is asked for yet: the source is given"
        f" {int(spec.safety_lag.total_seconds())} s to settle"
    )
