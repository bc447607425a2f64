"""How holes are cut into slices."""

from datetime import timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from patra_ingest.model.bounds import Bounds, IdSet, PageRange
from patra_ingest.model.codes import Operation, SliceStrategy
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.planner.density import Basis, Density
from patra_ingest.planner.slicing import (
    Cut,
    Grid,
    count_roughly,
    cut,
    expect,
    is_newest_first,
    read_cut,
    split_evenly,
    strategy_of,
    target_of,
)
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest.spec.slice_spec import Expected
from patra_ingest.spec.snapshot import CapSpec
from patra_ingest.spec.words import Meaning
from patra_ingest_tests.builders import a_spec, a_window, day, days

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SPEC = a_spec()
TIME, DATE, VOLUME = SliceStrategy.TIME, SliceStrategy.DATE, SliceStrategy.VOLUME_BUDGET
EVENLY = Density((), 100.0, Basis.DECLARED)


def a_source(planning=None, **window):
    changed = {"window": a_window(**window), "planning": PlanningSpec(**(planning or {}))}
    return SPEC.model_copy(update=changed)


def slices(*holes, strategy=TIME, newest_first=False, target=None, density=EVENLY, **window):
    how = Cut(strategy, holes, newest_first, target, density)
    return [bounds.window for bounds in cut(how, a_source(**window))]


def test_a_hole_is_cut_into_spans_of_at_most_the_declared_length():
    assert slices(days(0, 3)) == [days(0, 1), days(1, 2), days(2, 3)]
    assert slices(days(0, 3), max_span=2 * 86_400) == [days(0, 2), days(2, 3)]


def test_every_hole_is_tiled_for_itself():
    assert slices(days(0, 1), days(5, 7)) == [days(0, 1), days(5, 6), days(6, 7)]


def test_no_hole_no_slice():
    assert slices() == []


def test_the_newest_come_first_from_the_last_hole_on():
    found = slices(days(0, 1), days(5, 7), newest_first=True)

    assert found == [days(6, 7), days(5, 6), days(0, 1)]


@pytest.mark.parametrize("strategy", [TIME, DATE, VOLUME])
@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("granularity", ["SECOND", "HOUR", "DAY"])
@pytest.mark.parametrize("span", [3600, 5 * 3600, 86_400, 7 * 86_400])
def test_slices_tile_without_gap_or_overlap_also_when_the_clocks_change(
    strategy, newest_first, zone, granularity, span
):
    autumn = Window(day(40), day(80))  # New York leaves summer time on 2025-11-02
    given = {"zone": zone, "granularity": granularity, "max_span": span, "min_span": 3600}

    parts = slices(autumn, strategy=strategy, newest_first=newest_first, target=150, **given)

    assert parts == sorted(parts, reverse=newest_first)
    parts.sort()
    assert (parts[0].start, parts[-1].end) == (autumn.start, autumn.end)
    assert all(left.end == right.start for left, right in pairwise(parts))


@pytest.mark.parametrize("strategy", [TIME, DATE])
def test_a_day_of_the_source_is_never_cut(strategy):
    parts = slices(days(0, 2), strategy=strategy, granularity="DAY", max_span=3600)

    assert parts == [days(0, 1), days(1, 2)]


def test_by_date_is_by_day_also_for_a_source_that_knows_seconds():
    morning = Window(day(0) + 9 * HOUR, day(3) + 9 * HOUR)

    assert slices(morning, strategy=DATE, max_span=36 * 3600, target=1) == [
        Window(morning.start, day(1)),
        days(1, 2),
        days(2, 3),
        Window(day(3), morning.end),
    ]


def test_a_single_slice_is_the_whole_hole():
    single = SliceStrategy.SINGLE

    assert slices(days(0, 9), strategy=single, newest_first=True, target=1) == [days(0, 9)]


def test_a_piece_is_halved_until_its_estimate_fits_or_its_floor_is_reached():
    given = {"max_span": 8 * 86_400, "min_span": 86_400}

    assert slices(days(0, 8), target=200, **given) == [days(n, n + 2) for n in (0, 2, 4, 6)]
    assert slices(days(0, 8), target=1, **given) == [days(n, n + 1) for n in range(8)]
    assert slices(days(0, 8), target=1, density=Density(), **given) == [days(0, 8)]
    assert slices(days(0, 8), target=None, **given) == [days(0, 8)]


def test_by_volume_every_slice_holds_as_much_as_the_others():
    busy = Density(((days(2, 4), 400.0),), 100.0, Basis.HISTORY)
    given = {"strategy": VOLUME, "density": busy, "max_span": 30 * 86_400, "granularity": "HOUR"}

    parts = slices(days(0, 8), target=200, min_span=3600, **given)

    assert [(part.end - part.start) / DAY for part in parts] == [2, 0.5, 0.5, 0.5, 0.5, 2, 2]
    assert slices(days(0, 8), target=10**6, **given) == [days(0, 8)]


@pytest.mark.parametrize("hours", [0, 1, 23])
def test_by_volume_no_slice_is_longer_than_the_source_takes(hours):
    hole = Window(day(0) + hours * HOUR, day(3) + 12 * HOUR)
    given = {"granularity": "DAY", "max_span": 86_400, "min_span": 86_400}

    parts = slices(hole, strategy=VOLUME, target=10, **given)

    assert [part.end for part in parts] == [day(1), day(2), day(3), hole.end]


def test_by_volume_slices_end_on_the_grid_of_the_source():
    given = {"granularity": "HOUR", "min_span": 3600}
    parts = slices(days(0, 1), strategy=VOLUME, target=30, **given)  # 7.2 hours

    assert [part.duration for part in parts] == [7 * HOUR, 7 * HOUR, 7 * HOUR, 3 * HOUR]


def test_by_volume_without_an_estimate_is_by_time():
    assert slices(days(0, 2), strategy=VOLUME, target=10, density=Density()) == [
        days(0, 1),
        days(1, 2),
    ]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (None, [PageRange(1)]),
        (1, [PageRange(1)]),
        (10, [PageRange(1)]),
        (11, [PageRange(1, 11), PageRange(11)]),
        (25, [PageRange(1, 11), PageRange(11, 21), PageRange(21)]),
    ],
)
def test_the_last_range_of_pages_is_open(pages, expected):
    how = Cut(SliceStrategy.PAGE_RANGE, (), partition="bio", pages=pages)
    found = list(cut(how, a_source({"pages_per_slice": 10})))

    assert found == [Bounds(pages=one, partition="bio") for one in expected]


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_first_of_very_many_slices_comes_at_once(newest_first):
    how = Cut(TIME, (days(0, 365),), newest_first)
    first, second = islice(cut(how, a_source(max_span=60, min_span=1)), 2)

    assert {first.window.duration, second.window.duration} == {timedelta(minutes=1)}
    assert (first.window < second.window) is not newest_first


def test_a_cut_is_the_same_after_writing_and_reading_it():
    density = Density(((days(0, 1), 3.5),), 7.25, Basis.HISTORY)
    how = Cut(VOLUME, (days(0, 1), days(2, 3)), True, 99, density, "bio", 7, 12)

    assert read_cut(how.as_json()) == how
    assert read_cut(Cut(TIME, ()).as_json()) == Cut(TIME, ())


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({}, TIME),
        ({"window": a_window(granularity="DAY")}, DATE),
        ({"planning": PlanningSpec(strategy=VOLUME)}, VOLUME),
        ({"operation": Operation.UPDATE}, TIME),
        ({"window": a_window(meaning=Meaning.NONE)}, SliceStrategy.SINGLE),
    ],
)
def test_what_a_source_is_cut_by(update, expected):
    assert strategy_of(SPEC.model_copy(update=update)) is expected


@pytest.mark.parametrize(
    ("operation", "order", "expected"),
    [
        (Operation.BACKFILL, None, True),
        (Operation.HARVEST, None, False),
        (Operation.UPDATE, None, False),
        (Operation.BACKFILL, "OLDEST_FIRST", False),
        (Operation.HARVEST, "NEWEST_FIRST", True),
    ],
)
def test_a_backfill_begins_with_the_newest_unless_told_otherwise(operation, order, expected):
    changed = {"operation": operation, "planning": PlanningSpec(order=order)}

    assert is_newest_first(SPEC.model_copy(update=changed)) is expected


@pytest.mark.parametrize(
    ("cap", "declared", "expected"),
    [(None, None, None), (1000, None, 800), (1, None, 1), (1000, 50, 50), (None, 50, 50)],
)
def test_a_slice_is_aimed_below_the_cap(cap, declared, expected):
    changed = {"cap": CapSpec(max=cap), "planning": PlanningSpec(records_per_slice=declared)}

    assert target_of(SPEC.model_copy(update=changed)) == expected


@pytest.mark.parametrize(
    ("bounds", "density", "expected"),
    [
        (Bounds(days(0, 2)), EVENLY, Expected(200, 5, "DECLARED")),
        (Bounds(days(0, 2)), Density(), Expected()),
        (Bounds(pages=PageRange(1)), EVENLY, Expected()),
        (Bounds(ids=IdSet("works", ("a", "b", "c"))), EVENLY, Expected(3, 3, "IDS")),
    ],
)
def test_what_a_slice_should_hold_and_cost(bounds, density, expected):
    batching = SPEC.batching.model_copy(update={"ids_per_request": 1})
    spec = SPEC.model_copy(update={"batching": batching})

    assert expect(Cut(TIME, (), density=density), spec, bounds) == expected


def test_the_number_of_slices_is_known_roughly_beforehand():
    assert count_roughly((days(0, 3), Window(day(5), day(5) + HOUR)), a_window()) == 4


def test_a_window_is_cut_on_the_grid_in_the_zone_of_the_source():
    zone = ZoneInfo("America/New_York")
    start, end = parse_instant("2026-03-07T05:00Z"), parse_instant("2026-03-10T04:00Z")

    parts = split_evenly(Window(start, end), 3, Grid(DAY, DAY, zone))

    assert [part.end for part in parts] == [
        parse_instant("2026-03-08T05:00Z"),
        parse_instant("2026-03-09T04:00Z"),
        end,
    ]


@pytest.mark.parametrize(("minutes", "expected"), [(20, [HOUR / 3] * 3), (40, [HOUR])])
def test_an_hour_that_comes_twice_is_cut_like_any_other(minutes, expected):
    autumn = Window(parse_instant("2026-11-01T06:00Z"), parse_instant("2026-11-01T07:00Z"))
    zone = ZoneInfo("America/New_York")
    grid = Grid(timedelta(seconds=1), timedelta(minutes=minutes), zone)

    assert [part.duration for part in split_evenly(autumn, 9, grid)] == expected
