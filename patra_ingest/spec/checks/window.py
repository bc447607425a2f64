"""Windows, order and watermark: what a cursor measures must be able to move forward."""

from collections.abc import Iterator
from datetime import timedelta

from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import (
    CalendarAlign,
    EndpointUsage,
    Operation,
    SliceStrategy,
    TimeUnit,
    WatermarkSource,
    WindowMode,
)
from patra_ingest.spec.platform import LETTERS, UNITS
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import Consistency, Meaning, duration_text

_CENTURY = timedelta(days=36_525)
_ALIGNED = {
    CalendarAlign.HOUR: timedelta(hours=1),
    CalendarAlign.DAY: timedelta(days=1),
    CalendarAlign.WEEK: timedelta(weeks=1),
    CalendarAlign.MONTH: timedelta(days=28),
}


def operations_fit_the_endpoint(subject: Subject) -> Iterator[Problem]:
    """HARVEST goes forward and BACKFILL back over windows; UPDATE asks for ids."""
    usage = subject.shaped.endpoint.usage
    windowed = usage in (EndpointUsage.SEARCH, EndpointUsage.BATCH, EndpointUsage.METRICS)
    by_window = subject.operation in (Operation.HARVEST, Operation.BACKFILL)
    if by_window and not windowed and not subject.is_detail:
        yield Problem(
            "endpoint.operations",
            f"a {usage} endpoint has no window, so it cannot {subject.operation}",
            "declare operations: [UPDATE], or none for an endpoint that others use",
        )


def a_harvest_sees_what_is_new(subject: Subject) -> Iterator[Problem]:
    """A date that does not move when a record appears or changes loses records for ever."""
    meaning = subject.shaped.window.meaning
    blind = meaning in (Meaning.PUBLISHED, Meaning.NONE)
    if subject.operation == Operation.HARVEST and blind and not subject.is_detail:
        yield Problem(
            "window.meaning",
            f"{meaning}: late and changed records would never be seen",
            "declare operations: [BACKFILL] or [UPDATE], not HARVEST",
        )


def a_window_narrows_something(subject: Subject) -> Iterator[Problem]:
    """Without a date to filter by, every slice would be the whole source."""
    no_filter = subject.shaped.window.meaning == Meaning.NONE
    client = subject.shaped.response.client_window
    whole = subject.shaped.planning.strategy in (SliceStrategy.SINGLE, SliceStrategy.PAGE_RANGE)
    if subject.operation == Operation.BACKFILL and no_filter and not client and not whole:
        yield Problem(
            "window.meaning",
            "NONE: no window can be asked for",
            "declare planning.strategy: SINGLE or PAGE_RANGE, operations: [UPDATE],"
            " or response.client_window with updated_at",
        )


def spans_fit_the_calendar(subject: Subject) -> Iterator[Problem]:
    """A window is added to a date, and dates end in the year 9999."""
    for key in ("max_span", "min_span", "overlap", "lookback", "safety_lag"):
        span = getattr(subject.shaped.window, key)
        if span is not None and span > _CENTURY:
            yield Problem(
                f"window.{key}", f"{duration_text(span)} is longer than a century", "use less"
            )


def the_lag_covers_the_grain(subject: Subject) -> Iterator[Problem]:
    """A day that is not over yet, or that the source still fills, is not asked for."""
    window = subject.shaped.window
    lag = window.safety_lag or timedelta(0)
    grain = UNITS[window.granularity or TimeUnit.SECOND]
    least = max(grain, window.publication_delay or timedelta(0))
    if lag < least and not subject.by_ids:
        yield Problem(
            "window.safety_lag",
            f"{duration_text(lag)} is shorter than the source's {duration_text(least)}",
            f"use {duration_text(least)} or more",
        )


def spans_make_sense(subject: Subject) -> Iterator[Problem]:
    """A slice is at least a grain, and not below its own floor."""
    window = subject.shaped.window
    grain = UNITS[window.granularity or TimeUnit.SECOND]
    most, least = window.max_span or timedelta(0), window.min_span or grain
    if most < grain:
        yield Problem(
            "window.max_span",
            f"{duration_text(most)} is shorter than a grain of the filter",
            f"use {duration_text(grain)} or more",
        )
    elif most < least:
        yield Problem("window.min_span", "is longer than max_span", "make it shorter")


def calendars_are_aligned(subject: Subject) -> Iterator[Problem]:
    """A calendar window says to what it is aligned, and is not shorter than that."""
    window = subject.shaped.window
    if (window.mode == WindowMode.CALENDAR) != (window.align is not None):
        yield Problem("window.align", "CALENDAR and align belong together", "say both, or neither")
    elif window.align and (window.max_span or timedelta(0)) < _ALIGNED[window.align]:
        yield Problem("window.max_span", f"is shorter than a {window.align}", "align finer")


def the_watermark_can_be_read(subject: Subject) -> Iterator[Problem]:
    """What the cursor advances to must be in the answers, and must not skip anything."""
    window, paging = subject.shaped.window, subject.shaped.paging
    source = window.watermark_source
    ordered = paging.order == "ASC" and paging.consistency != Consistency.UNSTABLE
    updated_at = (subject.detail or subject).shaped.response.updated_at
    if source == WatermarkSource.RECORD_MAX and not (ordered and updated_at):
        yield Problem(
            "window.watermark_source",
            "RECORD_MAX skips records unless items come in ascending, stable order",
            "declare paging.order: ASC, consistency and response.updated_at, or use WINDOW_END",
        )
    if source == WatermarkSource.SERVER_DATE and not window.server_date:
        yield Problem("window.server_date", "SERVER_DATE needs it", "say where the date is")
    if source == WatermarkSource.RELEASE and not window.release:
        yield Problem("window.release", "RELEASE needs it", "say where the release is")


def the_format_shows_the_grain(subject: Subject) -> Iterator[Problem]:
    """A window of seconds that is written in days asks for other records than its own."""
    window = subject.shaped.window
    if window.format is None:
        return
    try:
        compile_template(f"${{window.from|format('{window.format}')}}")
    except ValueError as error:
        yield Problem("window.format", str(error), "write for example yyyy-MM-dd")
        return
    letters = LETTERS[window.granularity or TimeUnit.SECOND]
    if letters not in window.format:
        yield Problem(
            "window.format",
            f"{window.format} does not show the {window.granularity} it filters by",
            f"add {letters}, or say a coarser granularity",
        )


def freshness_is_an_endpoint(subject: Subject) -> Iterator[Problem]:
    """What tells how fresh the source is must be callable."""
    freshness = subject.shaped.window.freshness
    if freshness and freshness.endpoint not in subject.declaration.endpoints:
        yield Problem(
            "window.freshness.endpoint",
            f"there is no endpoint {freshness.endpoint}",
            f"endpoints: {', '.join(subject.declaration.endpoints)}",
        )
    if freshness and freshness.endpoint == subject.declaration.endpoint:
        yield Problem("window.freshness.endpoint", "is this endpoint itself", "name another one")


CHECKS = (
    operations_fit_the_endpoint,
    a_harvest_sees_what_is_new,
    a_window_narrows_something,
    the_lag_covers_the_grain,
    spans_make_sense,
    spans_fit_the_calendar,
    calendars_are_aligned,
    the_watermark_can_be_read,
    the_format_shows_the_grain,
    freshness_is_an_endpoint,
)
