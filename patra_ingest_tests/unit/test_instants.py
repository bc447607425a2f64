from datetime import UTC, datetime, timedelta, timezone

import pytest

from patra_ingest.model.window import duration_iso, instant_iso, parse_duration, parse_instant

NAIVE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31 12:00:00+01:00", datetime(2026, 1, 31, 11, tzinfo=UTC)),
        ("2026-01-31T12:00:00-0530", datetime(2026, 1, 31, 17, 30, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456789Z", datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_as_utc(text, instant):
    assert parse_instant(text) == instant
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-01-31T12:00:00", "no time zone; add Z"),
        ("2026-02-30", "not in the calendar"),
        ("0001-01-01T00:00:00Z", "before the year 1000"),
        ("0001-01-01T00:00:00+14:00", "not in the calendar"),
        ("yesterday", "not an instant"),
        ("20260131", "not an instant"),
        ("2026-W05-6", "not an instant"),
        ("٢٠٢٦-01-31", "not an instant"),
        ("", "not an instant"),
    ],
)
def test_what_is_no_instant_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_instant(text)


def test_an_instant_is_written_with_all_its_digits_in_utc():
    local = datetime(2026, 1, 1, 1, tzinfo=timezone(HOUR))

    assert instant_iso(local) == "2026-01-01T00:00:00.000000Z"
    with pytest.raises(ValueError, match="no time zone"):
        instant_iso(NAIVE)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("1d", DAY),
        ("36h", 36 * HOUR),
        ("10m", timedelta(minutes=10)),
        ("90s", timedelta(seconds=90)),
        ("100ms", timedelta(milliseconds=100)),
        ("5m100ms", timedelta(minutes=5, milliseconds=100)),
        ("1d12h", 36 * HOUR),
        ("2w", 14 * DAY),
        ("0s", timedelta(0)),
        ("PT10M", timedelta(minutes=10)),
        ("P1D", DAY),
        ("P2W", 14 * DAY),
        ("P1DT12H", 36 * HOUR),
        ("PT0.25S", timedelta(milliseconds=250)),
    ],
)
def test_a_duration_is_read(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", "d", "1", "10", "1M", "P1M", "P1Y", "P", "PT", "P1DT", "-1d", "1 d", "1h1d", "1.5d"],
)
def test_a_duration_without_a_fixed_length_is_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_a_duration_longer_than_the_calendar_is_refused():
    with pytest.raises(ValueError, match="longer than"):
        parse_duration("99999999999d")


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "PT0S"),
        (timedelta(minutes=10), "PT10M"),
        (36 * HOUR, "P1DT12H"),
        (timedelta(seconds=1, microseconds=500000), "PT1.5S"),
        (timedelta(microseconds=1), "PT0.000001S"),
    ],
)
def test_a_duration_is_written_in_one_way(duration, text):
    assert duration_iso(duration) == text


def test_a_negative_duration_has_no_text():
    with pytest.raises(ValueError, match="never negative"):
        duration_iso(-DAY)
