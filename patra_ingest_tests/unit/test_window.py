from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from patra_ingest.model.registry_codes import CalendarAlign
from patra_ingest.model.window import (
    Window,
    ceil_to,
    floor_calendar,
    floor_to,
    merge,
    parse_instant,
    shift,
)

BERLIN = ZoneInfo("Europe/Berlin")
LONDON = ZoneInfo("Europe/London")
NEW_YORK = ZoneInfo("America/New_York")
ST_JOHNS = ZoneInfo("America/St_Johns")
KATHMANDU = ZoneInfo("Asia/Kathmandu")
APIA = ZoneInfo("Pacific/Apia")
UTC_ZONE = ZoneInfo("UTC")
NAIVE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def at(text):
    return parse_instant(text)


def window(start, end):
    return Window(at(start), at(end))


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        pytest.param(NAIVE, NAIVE + DAY, "UTC", id="naive"),
        pytest.param(
            datetime(2026, 7, 1, tzinfo=BERLIN), at("2026-07-02"), "UTC", id="another zone"
        ),
        pytest.param(at("2026-01-01"), at("2026-01-01"), "empty", id="empty"),
        pytest.param(at("2026-01-02"), at("2026-01-01"), "empty", id="backwards"),
    ],
)
def test_a_window_refuses_what_cannot_be_right(start, end, reason):
    with pytest.raises(ValueError, match=reason):
        Window(start, end)


def test_a_window_given_in_london_winter_counts_in_utc_days():
    winter = Window(datetime(2026, 3, 28, tzinfo=LONDON), at("2026-03-31"))

    assert [part.duration for part in winter.split(DAY)] == [DAY, DAY, DAY]


def test_a_window_owns_its_start_and_not_its_end():
    day = window("2026-01-01", "2026-01-02")

    assert day.contains(at("2026-01-01"))
    assert day.contains(at("2026-01-01T23:59:59.999999Z"))
    assert not day.contains(at("2026-01-02"))


def test_a_window_reads_like_mathematics_and_shows_microseconds_only_when_it_has_some():
    assert str(window("2026-01-01", "2026-01-02")) == "[2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z)"
    assert str(window("2026-01-01", "2026-01-01T00:00:00.000001Z")).endswith("00:00:00.000001Z)")


def test_day_slices_in_new_york_are_23_and_25_hours_long_when_the_clock_changes():
    spring = window("2026-03-07T05:00:00Z", "2026-03-10T04:00:00Z")
    autumn = window("2026-10-31T04:00:00Z", "2026-11-03T05:00:00Z")

    for span, hours in ((spring, [24, 23, 24]), (autumn, [24, 25, 24])):
        days = list(span.split_aligned(DAY, DAY, NEW_YORK))
        assert [day.duration // HOUR for day in days] == hours
        assert {day.start.astimezone(NEW_YORK).hour for day in days} == {0}


def test_a_width_in_days_is_calendar_days_so_weeks_keep_their_weekday_across_the_clock_change():
    quarter = window("2026-03-01T23:00:00Z", "2026-04-12T22:00:00Z")

    weeks = list(quarter.split_aligned(7 * DAY, DAY, BERLIN))

    assert {week.start.astimezone(BERLIN).weekday() for week in weeks} == {0}
    assert len(weeks) == 6


def test_a_grid_cell_is_never_cut_even_when_it_is_wider_than_asked_for():
    days = list(window("2026-01-01", "2026-01-03").split_aligned(HOUR, DAY, UTC_ZONE))

    assert days == [window("2026-01-01", "2026-01-02"), window("2026-01-02", "2026-01-03")]


def test_only_the_ends_of_the_window_itself_may_lie_off_the_grid():
    odd = window("2026-01-01T10:30:00Z", "2026-01-03T07:00:00Z")

    assert [str(part) for part in odd.split_aligned(DAY, DAY, UTC_ZONE)] == [
        "[2026-01-01T10:30:00Z, 2026-01-02T00:00:00Z)",
        "[2026-01-02T00:00:00Z, 2026-01-03T00:00:00Z)",
        "[2026-01-03T00:00:00Z, 2026-01-03T07:00:00Z)",
    ]
    assert odd.align_outward(DAY, UTC_ZONE) == window("2026-01-01", "2026-01-04")


def test_a_year_in_seconds_is_cut_into_days_without_counting_every_second():
    year = window("2026-01-01", "2027-01-01")

    assert len(list(year.split_aligned(DAY, SECOND, BERLIN))) == 365


@pytest.mark.parametrize(
    ("instant", "granularity", "zone", "floor", "ceil"),
    [
        pytest.param(
            "2026-03-29T12:00:00Z",
            DAY,
            BERLIN,
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z",
            id="a day of 23 hours",
        ),
        pytest.param(
            "2026-01-01T00:00:00Z",
            DAY,
            UTC_ZONE,
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z",
            id="on the grid already",
        ),
        pytest.param(
            "2026-01-01T23:30:00Z",
            7 * HOUR,
            UTC_ZONE,
            "2026-01-01T21:00:00Z",
            "2026-01-02T00:00:00Z",
            id="the last step of a day may be short",
        ),
        pytest.param(
            "2010-11-07T02:40:00Z",
            DAY,
            ST_JOHNS,
            "2010-11-07T02:30:00Z",
            "2010-11-08T03:30:00Z",
            id="yesterday's date comes back after midnight",
        ),
        pytest.param(
            "2011-12-30T12:00:00Z",
            DAY,
            APIA,
            "2011-12-30T10:00:00Z",
            "2011-12-31T10:00:00Z",
            id="a date that never was",
        ),
    ],
)
def test_the_grid_is_the_sources_own(instant, granularity, zone, floor, ceil):
    assert floor_to(at(instant), granularity, zone) == at(floor)
    assert ceil_to(at(instant), granularity, zone) == at(ceil)


@pytest.mark.parametrize(
    ("align", "zone", "instant", "floor"),
    [
        ("HOUR", UTC_ZONE, "2026-05-14T12:34:56Z", "2026-05-14T12:00:00Z"),
        ("HOUR", KATHMANDU, "2026-05-14T12:34:56Z", "2026-05-14T12:15:00Z"),
        ("DAY", UTC_ZONE, "2026-05-14T12:34:56Z", "2026-05-14T00:00:00Z"),
        ("DAY", NEW_YORK, "2026-05-14T03:59:59Z", "2026-05-13T04:00:00Z"),
        ("WEEK", UTC_ZONE, "2026-05-14T12:34:56Z", "2026-05-11T00:00:00Z"),
        ("WEEK", UTC_ZONE, "2026-05-11T00:00:00Z", "2026-05-11T00:00:00Z"),
        ("WEEK", UTC_ZONE, "2026-05-10T23:59:59Z", "2026-05-04T00:00:00Z"),
        ("WEEK", NEW_YORK, "2026-03-09T03:59:59Z", "2026-03-02T05:00:00Z"),
        ("WEEK", NEW_YORK, "2026-03-12T00:00:00Z", "2026-03-09T04:00:00Z"),
        ("MONTH", UTC_ZONE, "2026-05-31T23:59:59Z", "2026-05-01T00:00:00Z"),
        ("MONTH", NEW_YORK, "2026-11-30T00:00:00Z", "2026-11-01T04:00:00Z"),
        ("MONTH", NEW_YORK, "2026-04-01T03:59:59Z", "2026-03-01T05:00:00Z"),
        ("MONTH", ST_JOHNS, "2010-11-07T02:40:00Z", "2010-11-01T02:30:00Z"),
        ("MONTH", APIA, "2011-12-30T12:00:00Z", "2011-12-01T10:00:00Z"),
    ],
)
def test_an_hour_a_day_a_week_and_a_month_begin_by_the_calendar_of_the_source(
    align, zone, instant, floor
):
    assert floor_calendar(at(instant), CalendarAlign(align), zone) == at(floor)


@pytest.mark.parametrize("granularity", [timedelta(0), -DAY, timedelta(hours=36)])
def test_a_granularity_without_a_grid_is_refused(granularity):
    with pytest.raises(ValueError, match="granularity"):
        floor_to(at("2026-01-01"), granularity, UTC_ZONE)


@pytest.mark.parametrize("width", [timedelta(0), -DAY])
def test_a_width_that_leads_nowhere_is_refused(width):
    day = window("2026-01-01", "2026-01-02")

    with pytest.raises(ValueError, match="width"):
        list(day.split(width))
    with pytest.raises(ValueError, match="width"):
        list(day.split_aligned(width, DAY, UTC_ZONE))


def test_an_instant_without_a_zone_has_no_place_on_any_grid():
    with pytest.raises(ValueError, match="no time zone"):
        floor_to(NAIVE, DAY, UTC_ZONE)
    with pytest.raises(ValueError, match="no time zone"):
        shift(NAIVE, DAY, UTC_ZONE)


@pytest.mark.parametrize(
    ("start", "by", "end"),
    [
        pytest.param("2026-03-08T05:00:00Z", DAY, "2026-03-09T04:00:00Z", id="a day of 23 hours"),
        pytest.param("2026-03-09T04:00:00Z", -DAY, "2026-03-08T05:00:00Z", id="and back"),
        pytest.param("2026-03-08T05:00:00Z", 12 * HOUR, "2026-03-08T17:00:00Z", id="hours pass"),
        pytest.param(
            "2026-03-08T05:00:00Z", DAY + HOUR, "2026-03-09T05:00:00Z", id="a day, then an hour"
        ),
    ],
)
def test_days_are_calendar_days_and_hours_are_hours(start, by, end):
    assert shift(at(start), by, NEW_YORK) == at(end)


def test_touching_and_overlapping_windows_become_one():
    first, second = window("2026-01-01", "2026-01-02"), window("2026-01-02", "2026-01-04")
    inside, apart = window("2026-01-02", "2026-01-03"), window("2026-01-05", "2026-01-06")

    assert merge([apart, inside, second, first]) == [window("2026-01-01", "2026-01-04"), apart]


def test_what_is_not_covered_is_left_over_in_order():
    month = window("2026-01-01", "2026-02-01")
    covered = [
        window("2025-12-20", "2026-01-05"),
        window("2026-01-20", "2026-03-01"),
        window("2026-01-07", "2026-01-08"),
    ]

    assert month.minus(covered) == [
        window("2026-01-05", "2026-01-07"),
        window("2026-01-08", "2026-01-20"),
    ]
    assert month.minus([]) == [month]
    assert month.minus([month]) == []


def test_a_shift_of_less_than_a_day_is_time_that_passes_also_in_the_hour_that_comes_twice():
    zone = ZoneInfo("America/New_York")
    second = parse_instant("2026-11-01T06:30:00Z")  # 01:30 for the second time

    assert shift(second, timedelta(hours=1), zone) == second + timedelta(hours=1)
    assert shift(second, timedelta(seconds=-1), zone) == second - timedelta(seconds=1)
    assert shift(second, timedelta(0), zone) == second
