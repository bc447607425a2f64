"""A look at one namespace: its window tiled by cover, and for every hole why it is there."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from patra_ingest.cli.coverage_strip import write_moment
from patra_ingest.model.codes import Operation, SliceStatus
from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import Cover, Interval, cover
from patra_ingest.planner.windowing import Asked
from patra_ingest.views.coverage import Failure, NamespaceFacts


@dataclass(frozen=True)
class Stretch:
    """An interval of coverage; a hole says why it is there and what to do about it."""

    interval: Interval
    why: str | None = None
    remedy: str | None = None

    @property
    def is_hole(self) -> bool:
        """Whether something must still happen here."""
        return self.remedy is not None


@dataclass(frozen=True)
class Look:
    """One namespace over the window that is looked at; None when it has no time to show."""

    facts: NamespaceFacts
    window: Window | None
    stretches: list[Stretch]

    def seconds(self) -> dict[Cover, float]:
        """Return how much time has which cover."""
        sums = dict.fromkeys(Cover, 0.0)
        for stretch in self.stretches:
            sums[stretch.interval.cover] += stretch.interval.window.duration.total_seconds()
        return sums


def look_at(facts: NamespaceFacts, asked: Asked, now: datetime) -> Look:
    """Tile what is asked for with its cover; by default all that was planned or is due by now."""
    if facts.planned is None:
        return Look(facts, None, [])
    settled = facts.newest.settled_until(now)
    start = asked.start or facts.planned.start
    end = asked.end or (max(facts.planned.end, settled) if _goes_on(facts) else facts.planned.end)
    if start >= end:
        return Look(facts, None, [])
    window = Window(start, end)
    marks = (facts.planned.start, facts.planned.end, settled, facts.cursor)
    edges = sorted(mark for mark in marks if mark)
    parts = [part for whole in cover(window, facts.facts) for part in _cut(whole, edges)]
    return Look(facts, window, [_explain(facts, part, settled) for part in parts])


def _goes_on(facts: NamespaceFacts) -> bool:
    return facts.namespace.operation is Operation.HARVEST and facts.superseded_by is None


def _cut(interval: Interval, edges: Iterable[datetime]) -> Iterator[Interval]:
    """Cut what nobody planned where the reason for it may change."""
    start, end = interval.window.start, interval.window.end
    for edge in edges if interval.cover is Cover.MISSING else ():
        if start < edge < end:
            yield replace(interval, window=Window(start, edge))
            start = edge
    yield replace(interval, window=Window(start, end))


def _explain(facts: NamespaceFacts, interval: Interval, settled: datetime) -> Stretch:
    match interval.cover:
        case Cover.SUCCEEDED:
            return Stretch(interval)
        case Cover.LIVE:
            return Stretch(interval, _held(facts))
        case Cover.FAILED:
            ended = [facts.failures[one] for one in interval.slices if one in facts.failures]
            return Stretch(interval, _why_failed(ended), _remedy(facts, interval.window))
        case Cover.MISSING if interval.window.start >= settled:
            return Stretch(interval, "not due yet: the source is given time to settle")
        case Cover.MISSING:
            why = _held(facts) or _why_missing(facts, interval.window)
            return Stretch(interval, why, _remedy(facts, interval.window))


def _held(facts: NamespaceFacts) -> str | None:
    if facts.hold is None:
        return None
    since = write_moment(facts.hold.held_at.replace(microsecond=0))
    reason = f" ({facts.hold.reason})" if facts.hold.reason else ""
    return f"held since {since} by {facts.hold.held_by}{reason}"


def _why_missing(facts: NamespaceFacts, window: Window) -> str:
    planned = facts.planned or window
    if window.end <= planned.start:
        return "before the first plan: nobody asked for it"
    if window.start < planned.end:
        return "left out: a later --from was asked"
    if not _goes_on(facts):
        return "after the last plan: nobody asked for it"
    if facts.cursor or facts.newest.has_start:
        return "not planned yet: the next trigger plans it"
    return "not planned yet: nothing has succeeded, so the next trigger needs its --from"


def _why_failed(failures: Sequence[Failure]) -> str:
    """Return every kind of failure once, in the words of its last case."""
    alike: dict[tuple[SliceStatus, str | None], list[Failure]] = defaultdict(list)
    for failure in failures:
        code = None if failure.status is SliceStatus.CANCELLED else failure.error_code
        alike[failure.status, code].append(failure)
    sentences = [
        _ended(group[-1]) + (f" ({len(group)} slices)" if len(group) > 1 else "")
        for group in alike.values()
    ]
    # Slices of pages and of ids have no window: only their plan as a whole has one.
    return "; ".join(sentences) or "not every slice of its plan succeeded"


def _ended(failure: Failure) -> str:
    remark = failure.remark
    note = f": {remark.note}" if remark and remark.note else ""
    if failure.status is SliceStatus.CANCELLED:
        by = f" by {remark.by}" if remark and remark.by else ""
        at = f" on {remark.time[:10]}" if remark and remark.time else ""
        return f"cancelled{by}{at}{note}"
    if failure.error_code is None:
        return f"ended {failure.status}{note}"
    ended = f", ended {write_moment(failure.finished_at)}" if failure.finished_at else ""
    message = f": {failure.error}" if failure.error else ""
    return f"{failure.error_code}{message} [{failure.retries} retries{ended}]"


def _remedy(facts: NamespaceFacts, window: Window) -> str:
    """Return what fills a hole; it is true as long as the options stay those of the last plan."""
    own, newest = facts.namespace, facts.newest
    if facts.superseded_by is not None:
        return f"nothing: plan {facts.superseded_by} asks another question, see its own coverage"
    words = f"patra plan {own.provenance} --endpoint {own.endpoint}"
    behind = facts.cursor is not None and window.end <= facts.cursor
    operation = Operation.BACKFILL if behind and _goes_on(facts) else own.operation
    if facts.forward is not None and window.start >= facts.forward:
        operation = Operation.HARVEST  # a BACKFILL ends where HARVEST stands
    if operation is not Operation.HARVEST:
        words += f" --op {operation}"
    if not _next_trigger_reaches(facts, window):
        words += f" --from {write_moment(window.start)} --to {write_moment(window.end)}"
    same = newest.overrides or newest.partition or newest.campaign
    command = f"`{words}`" + (f" with the options of plan {newest.plan_id}" if same else "")
    return f"`patra resume {facts.hold.place}`, then {command}" if facts.hold else command


def _next_trigger_reaches(facts: NamespaceFacts, window: Window) -> bool:
    return _goes_on(facts) and facts.cursor is not None and facts.cursor <= window.start
