"""How a plan's holes become slices. Pure: the cut is stored with the plan and always the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.model.bounds import Bounds, PageRange
from patra_ingest.model.codes import Operation, SliceStrategy
from patra_ingest.model.window import (
    Window,
    ceil_to,
    floor_to,
    instant_iso,
    parse_instant,
    shift,
)
from patra_ingest.planner.density import Density, read_density
from patra_ingest.spec.slice_spec import Expected
from patra_ingest.spec.snapshot import SpecSnapshot, WindowSpec
from patra_ingest.spec.words import Meaning, PagingType

_DAY = timedelta(days=1)
_CAP_USED = 0.8  # a slice is aimed below the source's cap: an estimate is never exact
_BLOCK = 256  # slices cut at a time when the newest come first


@dataclass(frozen=True)
class Cut:
    """What is cut, by what, and what was known of it; stored as the plan's slice_params."""

    strategy: SliceStrategy
    holes: tuple[Window, ...]
    newest_first: bool = False
    target: int | None = None
    density: Density = field(default_factory=Density)
    partition: str | None = None
    pages: int | None = None
    slices: int | None = None  # how many there are, once all are written

    def as_json(self) -> dict[str, Any]:
        """Return the cut as a plan keeps it."""
        return {
            "strategy": self.strategy.value,
            "holes": [[instant_iso(hole.start), instant_iso(hole.end)] for hole in self.holes],
            "newestFirst": self.newest_first,
            "recordsPerSlice": self.target,
            "density": self.density.as_json(),
            "partition": self.partition,
            "pages": self.pages,
            "slices": self.slices,
        }


@dataclass(frozen=True)
class Grid:
    """Where a source's time may be cut, and how short a part may be."""

    grain: timedelta
    floor: timedelta
    zone: ZoneInfo


def read_cut(written: Mapping[str, Any]) -> Cut:
    """Return the cut that a plan keeps; the opposite of `Cut.as_json`."""
    return Cut(
        SliceStrategy(written["strategy"]),
        tuple(Window(parse_instant(a), parse_instant(b)) for a, b in written["holes"]),
        written["newestFirst"],
        written["recordsPerSlice"],
        read_density(written["density"]),
        written["partition"],
        written["pages"],
        written["slices"],
    )


def strategy_of(spec: SpecSnapshot) -> SliceStrategy:
    """Return what slices are cut by: as declared, else as the operation and the source suggest."""
    if spec.planning.strategy is not None:
        return spec.planning.strategy
    if spec.operation is Operation.UPDATE and spec.reconcile is not None:
        return SliceStrategy.ID_RANGE
    if spec.window.meaning is Meaning.NONE:
        by_number = spec.paging.type in (PagingType.OFFSET, PagingType.PAGE)
        return SliceStrategy.PAGE_RANGE if by_number else SliceStrategy.SINGLE
    return SliceStrategy.DATE if spec.window.granularity >= _DAY else SliceStrategy.TIME


def is_newest_first(spec: SpecSnapshot) -> bool:
    """Return whether the newest slice is queued first; a BACKFILL does so unless told otherwise."""
    if spec.planning.order is not None:
        return spec.planning.order == "NEWEST_FIRST"
    return spec.operation is Operation.BACKFILL


def target_of(spec: SpecSnapshot) -> int | None:
    """Return how many records a slice should hold at most; None when nothing limits it."""
    if spec.planning.records_per_slice is not None:
        return spec.planning.records_per_slice
    return max(1, int(spec.cap.max * _CAP_USED)) if spec.cap.max else None


def cut(plan: Cut, spec: SpecSnapshot) -> Iterator[Bounds]:
    """Yield the slices of a plan, in the order they are queued. They tile its holes exactly."""
    if plan.strategy is SliceStrategy.PAGE_RANGE:
        for pages in _pages(plan.pages, spec.planning.pages_per_slice):
            yield Bounds(pages=pages, partition=plan.partition)
        return
    for window in _windows(plan, spec.window):
        yield Bounds(window=window, partition=plan.partition)


def expect(plan: Cut, spec: SpecSnapshot, bounds: Bounds) -> Expected:
    """Return what a slice should hold and cost."""
    if bounds.ids is not None:
        count = len(bounds.ids.ids)
        return Expected(count, -(-count // spec.batching.ids_per_request), "IDS")
    records = plan.density.expected(bounds.window) if bounds.window else None
    if records is None or plan.density.basis is None:
        return Expected()
    count = ceil(records)
    requests = 1 + count // spec.paging.page_size
    if spec.detail is not None:
        requests += -(-count // spec.detail.batch)
    return Expected(count, requests, plan.density.basis.value)


def count_roughly(holes: tuple[Window, ...], spec: WindowSpec) -> int:
    """Return about how many slices the holes give at their longest."""
    return sum(-(-hole.duration // spec.max_span) for hole in holes)


def _pages(total: int | None, per_slice: int) -> Iterator[PageRange]:
    """Yield ranges of pages; the last one is open, so that nothing beyond the estimate is lost."""
    first = 1
    while total is not None and first + per_slice <= total:
        yield PageRange(first, first + per_slice)
        first += per_slice
    yield PageRange(first)


def _windows(plan: Cut, spec: WindowSpec) -> Iterator[Window]:
    if not plan.newest_first or plan.strategy is SliceStrategy.SINGLE:
        for hole in plan.holes:
            yield from _pieces(plan, spec, hole)
        return
    for hole in reversed(plan.holes):
        # From the end on, but a block at a time: a century in seconds does not fit into memory.
        width = min(spec.max_span * _BLOCK, max(spec.max_span, hole.duration))
        blocks = hole.split_aligned(width, _grain(plan, spec), ZoneInfo(spec.zone))
        for block in reversed(list(blocks)):
            yield from reversed(list(_pieces(plan, spec, block)))


def _grain(plan: Cut, spec: WindowSpec) -> timedelta:
    return max(_DAY, spec.granularity) if plan.strategy is SliceStrategy.DATE else spec.granularity


def _pieces(plan: Cut, spec: WindowSpec, hole: Window) -> Iterator[Window]:
    zone = ZoneInfo(spec.zone)
    match plan.strategy:
        case SliceStrategy.SINGLE:
            yield hole
        case SliceStrategy.VOLUME_BUDGET if plan.target and plan.density.basis:
            yield from _by_volume(hole, plan.target, plan.density, spec)
        case SliceStrategy.DATE:
            width = max(spec.max_span // _DAY, 1) * _DAY
            days = Grid(max(_DAY, spec.granularity), max(_DAY, spec.min_span), zone)
            for piece in hole.split_aligned(width, days.grain, zone):
                yield from _fitting(piece, plan, days)
        case _:
            for piece in hole.split_aligned(spec.max_span, spec.granularity, zone):
                yield from _fitting(piece, plan, grid_of(spec))


def _fitting(piece: Window, plan: Cut, grid: Grid) -> Iterator[Window]:
    """Yield a piece, halved as often as its estimate asks for and its floor allows."""
    expected = plan.density.expected(piece)
    halves = [piece]
    if plan.target is not None and expected is not None and expected > plan.target:
        halves = split_evenly(piece, 2, grid)
    if len(halves) == 1:
        yield piece
        return
    for half in halves:
        yield from _fitting(half, plan, grid)


def _by_volume(hole: Window, target: int, density: Density, spec: WindowSpec) -> Iterator[Window]:
    """Yield windows of equal expected size, none longer than the source takes."""
    zone, start = ZoneInfo(spec.zone), hole.start
    while start < hole.end:
        rest = Window(start, hole.end)
        longest = next(rest.split_aligned(spec.max_span, spec.granularity, zone)).end
        end = density.reach(start, target, longest)
        if end < longest:
            least = ceil_to(_soonest(start, grid_of(spec)), spec.granularity, zone)
            end = min(max(floor_to(end, spec.granularity, zone), least), longest)
        yield Window(start, end)
        start = end


def grid_of(spec: WindowSpec) -> Grid:
    """Return the grid of a source."""
    return Grid(spec.granularity, spec.min_span, ZoneInfo(spec.zone))


def split_evenly(window: Window, parts: int, grid: Grid) -> list[Window]:
    """Cut a window into at most `parts` of about equal length, on the source's grid.

    No part is shorter than the floor, counted in the calendar days of the source.
    """
    edges = [window.start]
    parts = max(2, min(parts, round(window.duration / grid.floor)))
    for number in range(1, parts):
        wanted = window.start + window.duration * (number / parts)
        around = (floor_to(wanted, grid.grain, grid.zone), ceil_to(wanted, grid.grain, grid.zone))
        for edge in sorted(around, key=lambda edge: abs(edge - wanted)):
            if _fits(edges[-1], edge, grid) and _fits(edge, window.end, grid):
                edges.append(edge)
                break
    first = ceil_to(_soonest(window.start, grid), grid.grain, grid.zone)
    if len(edges) == 1 and _fits(first, window.end, grid):
        edges.append(first)  # not even, but the only cut there may be
    edges.append(window.end)
    return [Window(start, end) for start, end in pairwise(edges)]


def _fits(start: datetime, end: datetime, grid: Grid) -> bool:
    return _soonest(start, grid) <= end


def _soonest(start: datetime, grid: Grid) -> datetime:
    """Return when a part that begins at `start` may end: after so many days at midnight.

    The first day of summer time may begin at 01:00; a day later it is midnight that counts.
    """
    if grid.floor < _DAY:
        return start + grid.floor
    end = shift(start, grid.floor, grid.zone)
    counts_days = not grid.floor % _DAY and start == floor_to(start, _DAY, grid.zone)
    return floor_to(end, _DAY, grid.zone) if counts_days else end
