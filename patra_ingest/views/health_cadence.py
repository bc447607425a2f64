"""How often an endpoint is harvested on its own: the longest pause that its cron line leaves."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import pairwise

from sqlalchemy import Connection

from patra_ingest.registry.history import find_provenance, rows_at
from patra_ingest.registry.rows import SCHEDULE
from patra_ingest.views.health_finding import Cadence

_NAMES = {
    name: number
    for names, first in (
        ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
        ("SUN MON TUE WED THU FRI SAT", 0),
    )
    for number, name in enumerate(names.split(), first)
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_SOME_DAY = date(2027, 1, 1)
_DAYS = 4 * 366  # long enough for a 29th of February
_MINUTES = 24 * 60


def read_cadence(tx: Connection, provenance: str, endpoint: str, now: datetime) -> Cadence:
    """Return what the Registry says of an endpoint's HARVEST; its own line before a general one."""
    source = find_provenance(tx, provenance)
    rows = [] if source is None else rows_at(tx, SCHEDULE, source["id"], now)
    own = [
        row
        for row in rows
        if row["endpoint_name"] in (None, endpoint) and row["task_type"] in (None, "HARVEST")
    ]
    own.sort(key=lambda row: (row["endpoint_name"] is None, row["task_type"] is None))
    if not own:
        return Cadence()
    return Cadence(longest_pause(own[0]["cron"]), bool(own[0]["is_enabled"]))


def longest_pause(cron: str) -> timedelta | None:
    """Return the longest time between two ticks of a cron line in UTC; None if it never ticks."""
    minutes, hours, days, months, weekdays = (
        _expand(field, *bounds) for field, bounds in zip(cron.split(), _RANGES, strict=True)
    )
    either = not cron.split()[2].startswith("*") and not cron.split()[4].startswith("*")
    ticking = []
    for number in range(_DAYS):
        day = _SOME_DAY + timedelta(days=number)
        weekday = day.isoweekday() % 7
        fits = (day.day in days, weekday in weekdays or (weekday == 0 and 7 in weekdays))
        if day.month in months and (any(fits) if either else all(fits)):
            ticking.append(number)
    times = sorted(hour * 60 + minute for hour in hours for minute in minutes)
    within = [later - earlier for earlier, later in pairwise(times)]
    over = [(later - earlier) * _MINUTES for earlier, later in pairwise(ticking)]
    if not over:
        return None
    return timedelta(minutes=max(*within, max(over) - times[-1] + times[0], 1))


def _expand(field: str, lowest: int, highest: int) -> set[int]:
    return {number for part in field.split(",") for number in _part(part, lowest, highest)}


def _part(part: str, lowest: int, highest: int) -> Iterator[int]:
    span, _, step = part.partition("/")
    ends = [_number(end) for end in re.split("-", span)] if span != "*" else [lowest, highest]
    last = ends[-1] if len(ends) > 1 or not step else highest
    yield from range(ends[0], last + 1, int(step or 1))


def _number(text: str) -> int:
    return _NAMES[text.upper()] if text.upper() in _NAMES else int(text)
