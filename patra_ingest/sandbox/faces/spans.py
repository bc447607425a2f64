"""The spans of time in the questions of the faces, read into seconds `[first, past)`. Pure."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from patra_ingest.sandbox.faces.stage import BadAsk

_DAYS = re.compile(r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)")


def midnight(day: date, zone: ZoneInfo) -> int:
    """Return the first second of a day on a zone's calendar."""
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


def read_days(first: str, last: str, zone: ZoneInfo) -> tuple[int, int]:
    """Return the seconds from one day to another, both counted in."""
    try:
        start, end = (date(*map(int, _day(text))) for text in (first, last))
    except ValueError:
        raise BadAsk(f"{first} to {last} are no days") from None
    return midnight(start, zone), midnight(end + timedelta(days=1), zone)


def _day(text: str) -> tuple[str, ...]:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found.groups()


def read_second(text: str) -> int:
    """Return an instant of UTC that is written to the second."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise BadAsk(f"{text} is no time to the second") from None


def find_span(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return both ends of the range that a query holds."""
    found = pattern.search(text)
    if found is None:
        raise BadAsk(f"the query {text!r} has no range that this source understands")
    return found.group(1), found.group(2)
