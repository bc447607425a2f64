from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from patra_ingest.model.window import (
    Window,
    ceil_to,
    duration_iso,
    floor_to,
    instant_iso,
    merge,
    parse_duration,
    parse_instant,
    shift,
)

MICROSECOND, HOUR, DAY = timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1)
# Lord Howe moves its clock by half an hour; St. John's did so at 00:01 and returned to yesterday;
# Apia left out a whole date; Havana has two midnights once a year; Kathmandu is 45 minutes off.
ZONES = [
    ZoneInfo(name)
    for name in (
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/St_Johns",
        "America/Havana",
        "Pacific/Apia",
        "Asia/Kathmandu",
    )
]
# Days on which one of the zones changes its clock.
CHANGES = [
    datetime(2026, 3, 29, tzinfo=UTC),
    datetime(2026, 10, 25, tzinfo=UTC),
    datetime(2026, 3, 8, tzinfo=UTC),
    datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2026, 4, 4, tzinfo=UTC),
    datetime(2026, 10, 3, tzinfo=UTC),
    datetime(2010, 11, 7, tzinfo=UTC),
    datetime(2011, 12, 30, tzinfo=UTC),
]

zones = st.sampled_from(ZONES)
near_a_change = st.builds(
    lambda day, by: day + by,
    st.sampled_from(CHANGES),
    st.timedeltas(min_value=-2 * DAY, max_value=3 * DAY),
)
instants = near_a_change | st.datetimes(
    min_value=datetime(1990, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    max_value=datetime(2040, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    timezones=st.just(UTC),
)
granularities = st.sampled_from(
    [HOUR / 3600, HOUR / 60, HOUR / 3, HOUR, 7 * HOUR, DAY, 2 * DAY, 7 * DAY]
)
widths = st.timedeltas(min_value=timedelta(hours=3), max_value=9 * DAY)


@st.composite
def windows(draw, longest=12 * DAY):
    start = draw(instants)
    return Window(start, start + draw(st.timedeltas(min_value=MICROSECOND, max_value=longest)))


@st.composite
def neighbours(draw):
    """Windows on a coarse scale, so that they often touch, overlap and repeat."""
    hours = st.integers(min_value=0, max_value=40)
    start = draw(hours)
    end = start + draw(st.integers(min_value=1, max_value=20))
    return Window(CHANGES[0] + start * HOUR, CHANGES[0] + end * HOUR)


def assert_tiles(parts, whole):
    assert (parts[0].start, parts[-1].end) == (whole.start, whole.end)
    assert all(left.end == right.start for left, right in pairwise(parts))


@given(windows(), widths)
def test_slices_tile_the_window_without_gap_or_overlap(window, width):
    parts = list(window.split(width))

    assert_tiles(parts, window)
    assert all(part.duration <= width for part in parts)


@given(windows(), widths, granularities, zones)
def test_aligned_slices_tile_the_window_at_any_granularity_in_any_zone(
    window, width, granularity, zone
):
    parts = list(window.split_aligned(width, granularity, zone))

    assert_tiles(parts, window)


@given(windows(), widths, granularities, zones)
def test_aligned_slices_meet_only_on_the_grid(window, width, granularity, zone):
    cuts = [part.end for part in window.split_aligned(width, granularity, zone)][:-1]

    assert all(cut == floor_to(cut, granularity, zone) for cut in cuts)


@given(windows(), widths, granularities, zones)
def test_an_aligned_slice_is_wider_than_asked_for_only_if_it_is_a_single_cell(
    window, width, granularity, zone
):
    for part in window.split_aligned(width, granularity, zone):
        is_one_cell = ceil_to(part.start + MICROSECOND, granularity, zone) >= part.end
        assert is_one_cell or part.end <= shift(part.start, width, zone)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("change", CHANGES, ids=lambda day: day.date().isoformat())
def test_days_tile_every_day_on_which_a_clock_changes(zone, change):
    week = Window(change - 3 * DAY, change + 4 * DAY)

    days = list(week.split_aligned(DAY, DAY, zone))

    assert_tiles(days, week)
    assert all(timedelta(hours=22) < day.duration <= timedelta(hours=26) for day in days[1:-1])


@given(instants, granularities, zones)
def test_the_grid_is_a_set_of_instants(instant, granularity, zone):
    floor, ceil = floor_to(instant, granularity, zone), ceil_to(instant, granularity, zone)

    assert floor <= instant <= ceil
    assert floor_to(floor, granularity, zone) == floor
    assert ceil_to(ceil, granularity, zone) == ceil
    if floor != ceil:
        assert floor_to(ceil - MICROSECOND, granularity, zone) == floor
        assert ceil_to(floor + MICROSECOND, granularity, zone) == ceil


@given(instants, instants, granularities, zones)
def test_a_later_instant_never_has_an_earlier_floor(one, other, granularity, zone):
    earlier, later = sorted((one, other))

    assert floor_to(earlier, granularity, zone) <= floor_to(later, granularity, zone)


@given(windows(), granularities, zones)
def test_aligning_outward_loses_nothing(window, granularity, zone):
    outer = window.align_outward(granularity, zone)

    assert outer.intersect(window) == window
    assert outer.align_outward(granularity, zone) == outer


@given(neighbours(), st.lists(neighbours(), max_size=6))
def test_what_is_covered_and_what_is_left_over_make_up_the_window(window, covered):
    left_over = window.minus(covered)
    inside = [part for other in covered if (part := window.intersect(other))]

    assert merge([*left_over, *inside]) == [window]
    assert all(part.intersect(other) is None for part in left_over for other in covered)
    assert merge(left_over) == left_over


@given(st.lists(neighbours(), max_size=8), st.integers(min_value=-1, max_value=62))
def test_merging_keeps_every_instant_and_adds_none(listed, hour):
    instant = CHANGES[0] + hour * HOUR
    merged = merge(listed)

    assert any(w.contains(instant) for w in merged) == any(w.contains(instant) for w in listed)
    assert all(left.end < right.start for left, right in pairwise(merged))


@given(neighbours(), neighbours())
def test_windows_share_an_instant_or_have_no_intersection(one, other):
    both = one.intersect(other)

    assert both == other.intersect(one)
    assert (both is None) == (one.end <= other.start or other.end <= one.start)


@given(instants, zones)
def test_an_instant_is_the_same_after_writing_and_reading_it_in_any_zone(instant, zone):
    local = instant.astimezone(zone)

    assert parse_instant(instant_iso(local)) == instant
    assert instant_iso(local) == instant_iso(instant)
    assert parse_instant(local.isoformat()) == instant


@given(st.timedeltas(min_value=timedelta(0), max_value=1000 * DAY))
@example(timedelta(microseconds=1))
def test_a_duration_is_the_same_after_writing_and_reading_it(duration):
    assert parse_duration(duration_iso(duration)) == duration


@given(st.text(alphabet="PT019DHMSWdhmsw.- ", max_size=12))
def test_a_duration_text_is_read_or_refused(text):
    with suppress(ValueError):
        assert parse_duration(text) >= timedelta(0)


@given(instants, zones, st.integers(min_value=-400, max_value=400))
def test_moving_by_days_keeps_the_local_clock_where_it_exists(instant, zone, days):
    moved = shift(instant, days * DAY, zone).astimezone(zone)
    expected = instant.astimezone(zone).replace(tzinfo=None) + days * DAY
    # Where the clock jumps, the wanted local time may not exist.
    assume(
        expected.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None)
        == expected
    )

    assert moved.replace(tzinfo=None) == expected
