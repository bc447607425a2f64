"""When a source wants large jobs to run."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from patra_ingest.spec.planning import Courtesy

_DAY = timedelta(days=1)
_SATURDAY = 5

Span = tuple[datetime, datetime]


def next_courtesy(courtesy: Courtesy, instant: datetime) -> datetime:
    """Return `instant` if a large job may run then, else the start of the next period.

    The zone's date says whether it is a weekday, its clock whether the hours have begun.
    """
    zone = ZoneInfo(courtesy.zone)
    day = instant.astimezone(zone).date()
    while True:
        for start, end in _spans(courtesy, day, zone):
            if start < end and instant < end:
                return max(instant, start).astimezone(UTC)
        day += _DAY


def _spans(courtesy: Courtesy, day: date, zone: ZoneInfo) -> Iterator[Span]:
    """Yield the spans of one local day, in order; on the day of a clock change one may be empty."""
    midnight, next_midnight = _at(day, time.min, zone), _at(day + _DAY, time.min, zone)
    if day.weekday() >= _SATURDAY:
        if courtesy.weekends:
            yield midnight, next_midnight
        return
    start, end = (time.fromisoformat(clock) for clock in courtesy.hours.split("-"))
    if start < end:
        yield _at(day, start, zone), _at(day, end, zone)
        return
    yield midnight, _at(day, end, zone)
    yield _at(day, start, zone), next_midnight


def _at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    # Of two such moments the first; of none, as long after the gap as it would have been in it.
    return datetime.combine(day, clock, zone).astimezone(UTC)
