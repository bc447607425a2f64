"""Update times in every form that sources write them, and what is not one."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.moments import find_moment
from patra_ingest_tests.builders import a_spec, an_item

ZULU = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
NO_TIMES = a_spec(response={"updated_at": None}, endpoint={"changed": "HASH"})


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


NOON = utc(2025, 1, 31, 12)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2025-01-31T12:00:00Z", NOON),
        ("2025-01-31t12:00:00z", NOON),
        ("2025-01-31 12:00:00Z", NOON),
        ("2025-01-31 12:00:00 UTC", NOON),
        ("2025-01-31 12:00:00 GMT", NOON),
        ("2025-01-31 12:00:00 +0000", NOON),
        ("  2025-01-31T12:00:00Z\n", NOON),
        ("2025-01-31T12:00:00+00", NOON),
        ("2025-01-31T12:00:00+00:00", NOON),
        ("2025-01-31T12:00:00-00:00", NOON),
        ("2025-01-31T13:00:00+01", NOON),
        ("2025-01-31T17:30:00+0530", NOON),
        ("2025-01-31T07:00:00-05:00", NOON),
        ("2025-01-31T12:00Z", NOON),
        ("2025-01-31T12Z", NOON),
        ("2025-01-31T12:00:00", NOON),
        ("2025-01-31 12:00", NOON),
        ("20250131T120000Z", NOON),
        ("20250131T1200Z", NOON),
        ("20250131T120000", NOON),
        ("20250131T120000.5Z", utc(2025, 1, 31, 12, 0, 0, 500000)),
        ("2025-01-31T12:00:00.5Z", utc(2025, 1, 31, 12, 0, 0, 500000)),
        ("2025-01-31T12:00:00,25Z", utc(2025, 1, 31, 12, 0, 0, 250000)),
        ("2025-01-31T12:00:00.123456789Z", utc(2025, 1, 31, 12, 0, 0, 123456)),
        ("2025-01-31T24:00", utc(2025, 2, 1)),
        ("2025-01-31T24:00:00Z", utc(2025, 2, 1)),
        ("20250131T2400+0100", utc(2025, 1, 31, 23)),
        ("2016-12-31T23:59:60Z", utc(2017, 1, 1)),
        ("2016-12-31T23:59:60.5Z", utc(2017, 1, 1, 0, 0, 0, 500000)),
        ("20161231T235960Z", utc(2017, 1, 1)),
        ("2025-W05-5", utc(2025, 1, 31)),
        ("2025W055T12:00:00Z", NOON),
        ("2025-031", utc(2025, 1, 31)),
        ("2024-366T12:00Z", utc(2024, 12, 31, 12)),
        ("2025-01-31", utc(2025, 1, 31)),
        ("2024-02-29", utc(2024, 2, 29)),
        ("2025-01", utc(2025, 1, 1)),
        ("2025", utc(2025, 1, 1)),
        ("20250131", utc(2025, 1, 31)),
        (20250131, utc(2025, 1, 31)),
        ("202501", utc(2025, 1, 1)),
        (2025, utc(2025, 1, 1)),
        ("20250131120000", NOON),
        (1738324800, NOON),
        ("1738324800", NOON),
        (1738324800.5, NOON + timedelta(seconds=0.5)),
        ("1738324800.250", NOON + timedelta(seconds=0.25)),
        (1738324800000, NOON),
        ("1738324800000", NOON),
        (1738324800123, NOON + timedelta(milliseconds=123)),
        # Read as ISO, this would be 23:45 on the first day of 1612.
        ("1612010112345", utc(2021, 1, 30, 12, 35, 12, 345000)),
        (99_999_999_999, utc(5138, 11, 16, 9, 46, 39)),
        (100_000_000_000, utc(1973, 3, 3, 9, 46, 40)),
        (-315619200, utc(1960, 1, 1)),
        ([[2025, 1, 31]], utc(2025, 1, 31)),
        ([[2025, 1]], utc(2025, 1, 1)),
        ([[2025]], utc(2025, 1, 1)),
        ([2025, 1, 31], utc(2025, 1, 31)),
        ([["2025", "01"]], utc(2025, 1, 1)),
        ([[2025, None]], utc(2025, 1, 1)),
        ("2999-01-01", utc(2999, 1, 1)),
        (datetime(2025, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))), NOON),
    ],
)
def test_every_way_to_write_a_time_becomes_utc(written, expected):
    found = find_moment(written, ZULU)

    assert found == expected
    assert found.tzinfo is UTC


@pytest.mark.parametrize("value", [None, "", "  ", [[None]], []])
def test_nothing_is_no_time(value):
    assert find_moment(value, ZULU) is None


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("yesterday", "neither ISO nor a number"),
        ("31/01/2025", "neither ISO nor a number"),
        ("2025-1-31", "neither ISO nor a number"),
        ("2025-01-31T12:00:00Europe/Berlin", "neither ISO nor a number"),
        ("2025-01-31T12:00:00.1234567890Z", "neither ISO nor a number"),
        ("２０２５-01-31", "neither ISO nor a number"),
        ("２０２５", "neither ISO nor a number"),
        ("2025-02-30", "not in the calendar"),
        ("2025-02-29T00:00:00Z", "not in the calendar"),
        ("2025-13", "not in the calendar"),
        ("20251301", "not in the calendar"),
        ("2025-01-31T25:00:00Z", "not in the calendar"),
        ("2025-01-31T24:00:01Z", "not in the calendar"),
        ("2025-01-31T12:00:61Z", "not in the calendar"),
        ("2025-366", "not in the calendar"),
        ("2025-000", "not in the calendar"),
        ("2025-W54-1", "not in the calendar"),
        ("9998-12-31T24:00Z", "not between the years"),
        ("2025-01-31T12:00:00+99:00", "not in the calendar"),
        ("0000-01-01", "not in the calendar"),
        ("0000", "not in the calendar"),
        ([[2025, 13]], "not in the calendar"),
        ([[0, 1, 1]], "not in the calendar"),
        ("0001-01-01T00:00:00Z", "not between the years"),
        ("9999-12-31T23:59:59Z", "not between the years"),
        ("9999-12-31T23:59:59-01:00", "not in the calendar"),
        ("0001-01-01T00:00:00+01:00", "not in the calendar"),
        ("10000-01-01", "neither ISO nor a number"),
        (10**400, "further away than time reaches"),
        ([[2**31]], "further away than time reaches"),
        (10**17, "further away than time reaches"),
        (1_738_324_800_000_000, "further away than time reaches"),
        (-35_000_000_000_000, "not between the years"),
        (float("inf"), "neither a date nor since 1970"),
        (float("nan"), "neither a date nor since 1970"),
        (0, "neither a date nor since 1970"),
        ("0", "neither a date nor since 1970"),
        (12345, "neither a date nor since 1970"),
        (2025.5, "neither a date nor since 1970"),
        ("2025.01", "neither ISO nor a number"),
        (True, "but a bool"),
        ({"date-parts": [[2025]]}, "but a dict"),
        ([2025, 1, 31, 12], "not a list of year, month and day"),
        ("x" * 5000, "neither ISO nor a number"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(written, why):
    with pytest.raises(ValueError, match=why) as refused:
        find_moment(written, ZULU)

    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2025-07-31T12:00:00", utc(2025, 7, 31, 16)),
        ("2025-01-31T12:00:00", utc(2025, 1, 31, 17)),
        ("2025-01-31", utc(2025, 1, 31, 5)),
        ("2025-03-09T24:00", utc(2025, 3, 10, 4)),  # a day of 23 hours
        ("20250131", utc(2025, 1, 31, 5)),
        ("2025-01", utc(2025, 1, 1, 5)),
        ([[2025]], utc(2025, 1, 1, 5)),
        ("2025-01-31T12:00:00Z", NOON),
        ("2025-03-09T02:30:00", utc(2025, 3, 9, 7, 30)),  # an hour that does not exist there
        ("2025-11-02T01:30:00", utc(2025, 11, 2, 5, 30)),  # one that comes twice: the first
        (1738324800, NOON),
    ],
)
def test_what_has_no_zone_is_in_that_of_the_source(written, expected):
    assert find_moment(written, NEW_YORK) == expected


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda at: 1000 <= at.year < 9999))
def test_what_python_writes_is_read_back(at):
    naive = at.replace(tzinfo=None).isoformat()

    for written in (at.isoformat(), at.isoformat(" "), naive + "Z", naive):
        assert find_moment(written, ZULU) == at


@given(st.integers(min_value=10**9, max_value=10**11 - 1))
def test_seconds_and_milliseconds_of_one_instant_are_one_time(seconds):
    assert find_moment(seconds, ZULU) == find_moment(str(seconds), ZULU)
    if seconds < 10**10:  # of 14 digits on, a number is a calendar date
        assert find_moment(seconds * 1000, ZULU) == find_moment(seconds, ZULU)


@given(
    st.text()
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.lists(st.lists(st.integers() | st.none() | st.text(), max_size=4), max_size=2)
    | st.text("0123456789-T:.Z+ ", max_size=30)
)
def test_any_value_is_a_time_or_refused(value):
    try:
        found = find_moment(value, NEW_YORK)
    except ValueError:
        return
    assert found is None or (found.tzinfo is UTC and 1000 <= found.year < 9999)


@pytest.mark.parametrize("written", [None, "yesterday", "2025-13-01", "", 10**17])
def test_an_item_without_a_usable_update_time_is_bad(written):
    (bad,) = map_items([an_item("a", updated=written)], a_spec(), "UTC", None).bad

    assert (bad.path, bad.provider_id, bad.item_no) == ("$.updated", "a", 1)


def test_a_time_may_also_be_what_a_conversion_makes_of_it():
    spec = a_spec(response={"updated_at": "$.updated|epochMillis"})

    (record,) = map_items([an_item(updated=86400000)], spec, "UTC", None).records

    assert record.source_updated_at == utc(1970, 1, 2)


def test_a_source_may_have_no_update_times():
    (record,) = map_items([{"id": "a", "title": "t"}], NO_TIMES, "UTC", None).records

    assert record.source_updated_at is None
