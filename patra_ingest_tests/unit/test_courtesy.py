"""When a source wants large jobs to run: NCBI's nights and weekends, and stranger hours."""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.planner.courtesy import next_courtesy
from patra_ingest.spec.planning import Courtesy

NCBI = Courtesy(zone="America/New_York", hours="21:00-05:00", weekends=True)
MINUTE = timedelta(minutes=1)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "starts"),
    [
        # Summer: New York is four hours behind. 2025-09-22 is a Monday.
        ("2025-09-22T08:59", "2025-09-22T08:59"),  # Monday 04:59, still night
        ("2025-09-22T09:00", "2025-09-23T01:00"),  # 05:00: the hours are over
        ("2025-09-22T15:00", "2025-09-23T01:00"),  # 11:00
        ("2025-09-23T00:59", "2025-09-23T01:00"),  # 20:59
        ("2025-09-23T01:00", "2025-09-23T01:00"),  # 21:00
        ("2025-09-23T03:59", "2025-09-23T03:59"),  # 23:59
        ("2025-09-23T04:00", "2025-09-23T04:00"),  # midnight
        # Friday 05:00 to 21:00 is out, from there to Monday 05:00 all is in.
        ("2025-09-26T09:00", "2025-09-27T01:00"),
        ("2025-09-27T01:00", "2025-09-27T01:00"),  # Friday 21:00
        ("2025-09-27T09:00", "2025-09-27T09:00"),  # Saturday 05:00
        ("2025-09-28T16:00", "2025-09-28T16:00"),  # Sunday noon
        ("2025-09-29T04:00", "2025-09-29T04:00"),  # Monday midnight
        ("2025-09-29T08:59", "2025-09-29T08:59"),  # Monday 04:59
        ("2025-09-29T09:00", "2025-09-30T01:00"),  # Monday 05:00
        # Winter: five hours behind.
        ("2025-01-15T09:59", "2025-01-15T09:59"),
        ("2025-01-15T10:00", "2025-01-16T02:00"),
        # The clock goes forward on Sunday 2025-03-09: Monday's 05:00 is an hour earlier.
        ("2025-03-07T10:00", "2025-03-08T02:00"),
        ("2025-03-10T08:59", "2025-03-10T08:59"),
        ("2025-03-10T09:00", "2025-03-11T01:00"),
        # And back on Sunday 2025-11-02.
        ("2025-10-31T09:00", "2025-11-01T01:00"),
        ("2025-11-03T09:59", "2025-11-03T09:59"),
        ("2025-11-03T10:00", "2025-11-04T02:00"),
    ],
)
def test_ncbi_wants_large_jobs_at_night_and_on_weekends(asked, starts):
    assert next_courtesy(NCBI, utc(asked)) == utc(starts)


def test_a_weekend_is_one_period():
    instant, monday = utc("2025-09-27T01:00"), utc("2025-09-29T09:00")
    while instant < monday:
        assert next_courtesy(NCBI, instant) == instant
        instant += 7 * MINUTE


@pytest.mark.parametrize(
    ("hours", "asked", "starts"),
    [
        ("21:00-05:00", "2025-09-26T22:00", "2025-09-26T22:00"),  # Friday night …
        ("21:00-05:00", "2025-09-27T00:00", "2025-09-29T00:00"),  # … ends when Friday does
        ("01:00-03:00", "2025-09-26T02:00", "2025-09-26T02:00"),
        ("01:00-03:00", "2025-09-26T03:00", "2025-09-29T01:00"),
        ("22:00-00:00", "2025-09-22T23:59", "2025-09-22T23:59"),
        ("22:00-00:00", "2025-09-23T00:00", "2025-09-23T22:00"),
        ("00:00-06:00", "2025-09-23T05:59", "2025-09-23T05:59"),
        ("00:00-06:00", "2025-09-23T06:00", "2025-09-24T00:00"),
    ],
)
def test_without_weekends_only_weekdays_count(hours, asked, starts):
    courtesy = Courtesy(zone="UTC", hours=hours)

    assert next_courtesy(courtesy, utc(asked)) == utc(starts)


def test_hours_that_a_clock_change_skips_come_as_long_after_it():
    # Cairo's clock goes from Friday 2025-04-25, 00:00, to 01:00.
    cairo = Courtesy(zone="Africa/Cairo", hours="00:10-00:50")

    found = next_courtesy(cairo, utc("2025-04-24T12:00"))

    assert found == utc("2025-04-24T22:10")  # 01:10
    assert next_courtesy(cairo, utc("2025-04-24T22:50")) == utc("2025-04-27T21:10")


def test_an_instant_of_another_zone_comes_back_in_utc():
    eastern = datetime.fromisoformat("2025-09-22T11:00:00-04:00")

    assert next_courtesy(NCBI, eastern).tzinfo is UTC
