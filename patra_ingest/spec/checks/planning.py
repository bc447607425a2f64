"""Planning: a window is cut by what the source can be asked for, and quotas keep the priorities."""

from collections.abc import Iterator
from datetime import timedelta

from patra_ingest.model.codes import Operation, SliceStrategy
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import Meaning, PagingType, duration_text

_STRATEGY = "planning.strategy"
_BY_TIME = (SliceStrategy.TIME, SliceStrategy.DATE, SliceStrategy.VOLUME_BUDGET)
_BUILT = (*_BY_TIME, SliceStrategy.PAGE_RANGE, SliceStrategy.ID_RANGE, SliceStrategy.SINGLE)
_DAY = timedelta(days=1)


def the_strategy_is_built(subject: Subject) -> Iterator[Problem]:
    """A strategy that nothing can cut by would plan nothing."""
    strategy = _strategy(subject)
    if strategy and strategy not in _BUILT:
        yield Problem(_STRATEGY, f"{strategy} is not built yet", f"use {', '.join(_BUILT)} or none")


def the_strategy_fits_the_operation(subject: Subject) -> Iterator[Problem]:
    """HARVEST and BACKFILL cut a window, UPDATE cuts ids."""
    strategy, operation = _strategy(subject), subject.operation
    by_window = strategy in (*_BY_TIME, SliceStrategy.PAGE_RANGE)
    if subject.by_ids and by_window:
        yield Problem(
            _STRATEGY,
            f"{strategy} cuts a window, and {operation} asks for ids",
            "use ID_RANGE, or say it under operations for HARVEST or BACKFILL",
        )
    elif strategy == SliceStrategy.ID_RANGE and not subject.by_ids:
        yield Problem(
            _STRATEGY,
            f"ID_RANGE cuts ids, and {operation} asks for a window",
            "say it under operations for UPDATE",
        )
    elif strategy == SliceStrategy.PAGE_RANGE and operation == Operation.HARVEST:
        yield Problem(
            _STRATEGY,
            "PAGE_RANGE: a page number is no watermark for HARVEST",
            "use TIME, or say it under operations for BACKFILL",
        )


def page_ranges_need_numbers(subject: Subject) -> Iterator[Problem]:
    """A walk by tokens cannot begin in the middle."""
    kind = subject.shaped.paging.type
    numbered = kind in (PagingType.OFFSET, PagingType.PAGE)
    if _strategy(subject) == SliceStrategy.PAGE_RANGE and kind and not numbered:
        yield Problem(
            _STRATEGY,
            f"PAGE_RANGE needs pages with numbers, and paging.type is {kind}",
            "use paging.type OFFSET or PAGE, or the strategy TIME",
        )


def time_can_be_asked_for(subject: Subject) -> Iterator[Problem]:
    """Without a date to filter by, every slice of time would be the whole source."""
    strategy = _strategy(subject)
    if strategy in _BY_TIME and subject.shaped.window.meaning == Meaning.NONE:
        yield Problem(
            _STRATEGY,
            f"{strategy} needs a filter by time, and window.meaning is NONE",
            "use SINGLE or PAGE_RANGE",
        )


def dates_are_whole_days(subject: Subject) -> Iterator[Problem]:
    """DATE cuts at midnights only."""
    span = subject.shaped.window.max_span or _DAY
    if _strategy(subject) == SliceStrategy.DATE and (span < _DAY or span % _DAY):
        yield Problem(
            "window.max_span",
            f"DATE cuts whole days, and {duration_text(span)} is none",
            "use 1d, 2d, …, or the strategy TIME",
        )


def a_volume_has_a_size(subject: Subject) -> Iterator[Problem]:
    """Slices of equal size need that size."""
    volume = _strategy(subject) == SliceStrategy.VOLUME_BUDGET
    if volume and subject.shaped.planning.records_per_slice is None:
        yield Problem(
            "planning.records_per_slice", "VOLUME_BUDGET needs it", "say how many a slice may hold"
        )


def slices_stay_below_the_cap(subject: Subject) -> Iterator[Problem]:
    """A slice that is planned above the cap is cut again, every time."""
    size, most = subject.shaped.planning.records_per_slice, subject.shaped.cap.max
    if size and most and size > most:
        yield Problem(
            "planning.records_per_slice",
            f"{size} is above cap.max: every slice would be cut again",
            f"use {most} or less",
        )


def quotas_keep_the_priorities(subject: Subject) -> Iterator[Problem]:
    """HARVEST goes before UPDATE, UPDATE before BACKFILL, and something is left to plan."""
    planning = subject.shaped.planning
    backfill, update = planning.backfill_share or 0.0, planning.update_share or 0.0
    if backfill > update:
        yield Problem(
            "planning.backfill_share",
            f"{backfill:g} is above the {update:g} of update_share: BACKFILL would go first",
            f"use {update:g} or less, or raise update_share",
        )
    if (planning.quota_margin or 0.0) >= 1:
        yield Problem("planning.quota_margin", "nothing would be left to plan", "use less than 1")


def _strategy(subject: Subject) -> SliceStrategy | None:
    """Return what slices are cut by; a detail endpoint has none of its own."""
    return None if subject.is_detail else subject.shaped.planning.strategy


CHECKS = (
    the_strategy_is_built,
    the_strategy_fits_the_operation,
    page_ranges_need_numbers,
    time_can_be_asked_for,
    dates_are_whole_days,
    a_volume_has_a_size,
    slices_stay_below_the_cap,
    quotas_keep_the_priorities,
)
