"""From a trigger to slices: the window, its holes, their parts, and the parts of those."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patra_ingest.model.codes import Operation, SliceStatus, SliceStrategy, WindowMode
from patra_ingest.model.registry_codes import CalendarAlign
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, ceil_to, floor_to, merge, shift
from patra_ingest.planner.coverage import HOLES, STANDING, cover, missing
from patra_ingest.planner.density import measure
from patra_ingest.planner.slicing import Cut, cut, read_cut
from patra_ingest.planner.windowing import Asked, Standing, decide_window
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest_tests.builders import a_spec

MICROSECOND, SECOND, HOUR = timedelta(microseconds=1), timedelta(seconds=1), timedelta(hours=1)
DAY = timedelta(days=1)
SPEC = a_spec()
BY_TIME = [SliceStrategy.TIME, SliceStrategy.DATE, SliceStrategy.VOLUME_BUDGET]
# Each zone with days on which its clocks change. São Paulo changed them at midnight: one day
# began at 01:00, another had two last hours. Lord Howe changes them by half an hour.
CHANGES = {
    "UTC": ["2026-01-01"],
    "America/New_York": ["2026-03-08", "2026-11-01"],
    "Australia/Lord_Howe": ["2026-04-04", "2026-10-03"],
    "Asia/Kathmandu": ["1985-12-31"],
    "Africa/Casablanca": ["2026-02-15", "2026-03-22"],
    "America/Sao_Paulo": ["2017-10-15", "2018-02-18"],
}
ALIGNED = {
    CalendarAlign.HOUR: HOUR,
    CalendarAlign.DAY: DAY,
    CalendarAlign.WEEK: 7 * DAY,
    CalendarAlign.MONTH: 28 * DAY,
}
zones = st.sampled_from(sorted(CHANGES))
grains = st.sampled_from([SECOND, 60 * SECOND, HOUR, DAY])


@st.composite
def some_windows(draw):
    """A source's window spec: spans of one to eight floors, each of one to five grains."""
    grain = draw(grains)
    floor = grain * draw(st.integers(1, 5))
    span = floor * draw(st.integers(1, 8)) + draw(st.sampled_from([0 * grain, grain / 2]))
    aligns = [align for align, length in ALIGNED.items() if length <= span]
    align = draw(st.sampled_from([None, *aligns]))
    changed = {
        "granularity": grain,
        "min_span": floor,
        "max_span": span,
        "zone": draw(zones),
        "safety_lag": draw(st.sampled_from([timedelta(0), SECOND, HOUR, 2 * DAY])),
        "mode": WindowMode.CALENDAR if align else WindowMode.SLIDING,
        "align": align,
    }
    return SPEC.window.model_copy(update=changed)


@st.composite
def instants(draw, spec, spans=6):
    """An instant near a change of the clocks, on the grid or not."""
    day = draw(st.sampled_from(CHANGES[spec.zone]))
    change = datetime.fromisoformat(day).replace(tzinfo=UTC)
    near = change + spec.max_span * draw(st.floats(-spans, spans))
    return near if draw(st.booleans()) else floor_to(near, spec.granularity, ZoneInfo(spec.zone))


@st.composite
def decided(draw, spec):
    """A window that a BACKFILL was asked for."""
    first = draw(instants(spec))
    last = first + spec.max_span * draw(st.floats(0.1, 10))
    standing = Standing(last + 3 * DAY)
    decision = decide_window(Operation.BACKFILL, spec, PlanningSpec(), Asked(first, last), standing)
    assume(decision.window is not None)
    return decision.window


@st.composite
def histories(draw, window):
    """Slices in all statuses around a window, most of their edges on no grid."""
    edges = st.tuples(st.floats(-0.2, 1.1), st.floats(0.001, 0.4))
    statuses = st.sampled_from(list(SliceStatus))
    return [
        CoveredWindow(n, Window(start, start + length), draw(statuses))
        for n, (at, share) in enumerate(draw(st.lists(edges, max_size=5)))
        for start, length in [(window.start + window.duration * at, window.duration * share)]
        if length >= MICROSECOND
    ]


@st.composite
def planned(draw):
    """A spec, a window, what its namespace has, and the cut of what is missing."""
    spec = SPEC.model_copy(update={"window": draw(some_windows())})
    window = draw(decided(spec.window))
    covered = draw(histories(window))
    counts = st.integers(0, 10_000)
    history = [(item.window, draw(counts)) for item in covered if item.status in STANDING]
    density = measure(history, window, draw(st.none() | st.floats(0.1, 1e6)))
    how = Cut(
        draw(st.sampled_from(BY_TIME)),
        tuple(missing(window, covered)),
        draw(st.booleans()),
        draw(st.none() | st.integers(1, 500)),
        density,
    )
    return spec, window, covered, how


def slices_of(how, spec):
    return [bounds.window for bounds in cut(how, spec)]


def later(instant, by, zone):
    """Return an instant moved on: days are those of the calendar, less than a day just passes."""
    return shift(instant, by, zone) if by >= DAY else instant + by


def total(windows):
    return sum((window.duration for window in windows), timedelta(0))


@settings(deadline=None, max_examples=150)
@given(planned())
def test_planned_and_live_and_succeeded_are_the_window_without_overlap(case):
    spec, window, covered, how = case
    slices = slices_of(how, spec)
    written = [CoveredWindow(1000 + n, w, SliceStatus.PENDING) for n, w in enumerate(slices)]
    standing = [item.window for item in covered if item.status in STANDING]
    inside = [part for one in standing if (part := one.intersect(window))]

    assert HOLES.isdisjoint(one.cover for one in cover(window, [*covered, *written]))
    assert total(slices) + total(merge(inside)) == window.duration
    assert slices == sorted(slices, reverse=how.newest_first)
    assert missing(window, [*covered, *written]) == []


@settings(deadline=None, max_examples=150)
@given(planned())
def test_slices_meet_on_the_grid_and_are_not_longer_than_the_source_takes(case):
    spec, _, _, how = case
    zone, grain, span = ZoneInfo(spec.window.zone), spec.window.granularity, spec.window.max_span
    if how.strategy is SliceStrategy.DATE:
        grain, span = DAY, max(span // DAY, 1) * DAY
    edges = {edge for hole in how.holes for edge in (hole.start, hole.end)}

    for one in slices_of(how, spec):
        assert {e for e in (one.start, one.end) if floor_to(e, grain, zone) != e} <= edges
        is_one_cell = ceil_to(one.start + MICROSECOND, grain, zone) >= one.end
        assert is_one_cell or one.end <= later(one.start, span, zone)


@settings(deadline=None, max_examples=150)
@given(planned())
def test_whoever_goes_on_with_a_plan_cuts_it_as_it_was_begun(case):
    spec, _, _, how = case
    read = read_cut(json.loads(json.dumps(how.as_json())))

    assert read == how
    assert slices_of(read, spec) == slices_of(how, spec) == slices_of(how, spec)


@st.composite
def triggers(draw):
    """An operation, a source, two asks of which the second is wider, and how things stand."""
    spec = draw(some_windows())
    first, begin, end, last = sorted(draw(instants(spec)) for _ in range(4))
    now = max(begin, draw(instants(spec)))
    assume(begin < end)
    maybe = st.none() | instants(spec)
    standing = Standing(now, draw(maybe), draw(maybe), draw(maybe))
    narrow, wide = Asked(begin, end), Asked(first, last if draw(st.booleans()) else None)
    earliest = draw(maybe)
    planning = PlanningSpec(earliest=earliest and earliest.isoformat())
    operation = draw(st.sampled_from([Operation.HARVEST, Operation.BACKFILL, Operation.UPDATE]))
    return operation, spec, planning, (narrow, wide, Asked()), standing


@settings(deadline=None, max_examples=150)
@given(triggers())
def test_a_window_keeps_to_the_lag_the_cursors_and_the_grid(case):
    operation, spec, planning, asks, standing = case
    zone = ZoneInfo(spec.zone)

    for asked in asks:
        decision = decide_window(operation, spec, planning, asked, standing)
        assert decision == decide_window(operation, spec, planning, asked, standing)
        window = decision.window
        assert (window is None) == bool(decision.reason)
        if window is None:
            continue
        assert window.end <= standing.now - spec.safety_lag
        assert {floor_to(edge, spec.granularity, zone) for edge in (window.start, window.end)} == {
            window.start,
            window.end,
        }
        if operation is Operation.HARVEST and standing.cursor and not spec.align:
            assert window.start >= floor_to(standing.cursor, spec.granularity, zone)
        if operation is Operation.BACKFILL and standing.forward:
            assert window.end <= standing.forward


@settings(deadline=None, max_examples=150)
@given(triggers())
def test_who_asks_for_more_never_gets_less(case):
    operation, spec, planning, (narrow, wide, _), standing = case
    less = decide_window(operation, spec, planning, narrow, standing).window
    more = decide_window(operation, spec, planning, wide, standing).window

    if less is not None:
        assert more is not None
        assert more.start <= less.start < less.end <= more.end


@settings(deadline=None, max_examples=150)
@given(planned(), st.lists(st.floats(0, 1), max_size=5), st.floats(0.01, 0.99))
def test_what_is_expected_of_the_parts_is_expected_of_the_whole(case, shares, share):
    _, window, _, how = case
    assume(how.density.per_day)
    inner = {window.start + window.duration * at for at in shares}
    edges = sorted({window.start, window.end} | inner)
    whole = how.density.expected(window)

    parts = [how.density.expected(Window(a, b)) for a, b in pairwise(edges)]
    reached = how.density.reach(window.start, whole * share, window.end)

    assert sum(parts) == pytest.approx(whole, rel=1e-6)
    assume(window.start < reached)
    # An instant is a whole number of microseconds: so exact the estimate can be.
    rounding = max([how.density.per_day, *(n for _, n in how.density.cells)]) * (MICROSECOND / DAY)
    back = how.density.expected(Window(window.start, reached))
    assert back == pytest.approx(whole * share, rel=1e-6, abs=rounding)
