"""Update times as sources write them. Pure.

    2025-01-31T12:00:00.5+01:00     ISO: basic or extended, `T`, `t` or a blank, `.` or `,`, 1 to 9
    20250131T120000Z                digits of a second, `Z`, `UTC`, `+01`, `+0100`, `+01:00`
    2025-01-31T24:00 · T23:59:60Z   the end of a day, a leap second: the instant that follows
    2025-W05-5 · 2025W055 · 2025-031  the day of a week, the day of a year
    2025-01-31 · 2025-01 · 2025     a day, a month or a year: its first instant
    20250131 · 202501 · 2025        the same, as text or number
    20250131120000                  a second, as text or number
    1738324800 · 1738324800.5       seconds since 1970, as text or number
    1738324800000                   milliseconds since 1970: from 100 000 000 000 on, March 1973
    [[2025, 1]] · [2025, 1, 31]     date-parts of 1 to 3 parts

What has no zone is in the zone of the source. A number is told by how many digits it has, never by
what would be likely: one of 1 to 3, 5 or 7 digits is no time, so the 0 that some sources write for
“unknown” is not 1970. Digits beyond the microsecond are cut.
"""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.expr.date_parts import from_date_parts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLIS_FROM = 100_000_000_000
_LEAST_EPOCH = 100_000_000  # 9 digits; what has fewer is a date, or no time at all
_FIRST_YEAR, _PAST_YEAR = 1000, 9999  # MySQL's DATETIME begins in 1000; 9999 says “never”
_SHOWN = 80
_NOTHING = timedelta(0)

_USUAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d|\d{8}|\d{4}-W\d\d-\d|\d{4}W\d{3}|\d{4}-\d{3})"
    r"(?:[Tt ](?P<clock>\d\d(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)?|\d\d(?:\d\d(?:[.,]\d{1,9})?)?)?)"
    r" ?(?P<zone>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_DAY_OF_YEAR = re.compile(r"\d{4}-\d{3}", re.ASCII)
_DAY_ENDS = re.compile(r"24(?::?00){0,2}(?:[.,]0+)?")
_LEAP_SECOND = re.compile(r"(\d\d:?\d\d:?)60")
_MONTH = re.compile(r"\d{4}-\d\d", re.ASCII)
_NUMBER = re.compile(r"-?\d{9,13}(?:\.\d{1,9})?", re.ASCII)
# How much of a calendar date a number of so many digits says.
_DIGITS = {4: "{0}-01-01", 6: "{0}-{1}-01", 8: "{0}-{1}-{2}", 14: "{0}-{1}-{2}T{3}:{4}:{5}"}


def find_moment(value: Any, zone: ZoneInfo) -> datetime | None:
    """Return the instant a value stands for, in UTC; None for null, blanks and `[[null]]`.

    Raise ValueError, saying why, for whatever is no time or none that the ledger can keep.
    """
    if isinstance(value, str) and _USUAL.fullmatch(value):  # nearly all there are
        with suppress(ValueError):  # it may be a leap second
            return _kept(value, value, zone)
    try:
        return _read(value, zone)
    except OverflowError:
        raise ValueError(f"{value!r:.{_SHOWN}} is further away than time reaches") from None


def _read(value: Any, zone: ZoneInfo) -> datetime | None:
    said = from_date_parts(value) if isinstance(value, list) else value
    said = said.strip() if isinstance(said, str) else said
    if said is None or said == "":
        return None
    if isinstance(said, datetime):
        return _in_calendar(said.astimezone(UTC), value)
    if isinstance(said, str) and not (said.isdecimal() and said.isascii()):
        return _from_text(said, zone)
    return _from_number(said, value, zone)


def _from_text(text: str, zone: ZoneInfo) -> datetime:
    if _MONTH.fullmatch(text):
        return _kept(text + "-01", text, zone)
    if found := _ISO.fullmatch(text):
        date, clock, offset = found.group("date", "clock", "zone")
        date, clock, more = _in_days(date, clock or "", text)
        utc = offset in ("Z", "z", "UTC", "GMT")
        written = f"{date}T{clock}{'Z' if utc else offset or ''}" if clock else date
        return _in_calendar(_kept(written, text, zone) + more, text)
    if _NUMBER.fullmatch(text):
        return _since_epoch(float(text), text)
    raise ValueError(f"{text!r:.{_SHOWN}} is no update time: neither ISO nor a number")


def _in_days(date: str, clock: str, text: str) -> tuple[str, str, timedelta]:
    """Return a date and a time that a clock shows, and what is to be added to them."""
    try:
        if _DAY_OF_YEAR.fullmatch(date):
            date = _later(f"{date[:4]}-01-01", int(date[5:]) - 1, date[:4])
        if _DAY_ENDS.fullmatch(clock):
            return _later(date, 1), "00", _NOTHING
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r:.{_SHOWN}} is not in the calendar") from None
    if found := _LEAP_SECOND.match(clock):
        return date, f"{found[1]}59{clock[found.end() :]}", timedelta(seconds=1)
    return date, clock, _NOTHING


def _later(date: str, days: int, year: str = "") -> str:
    """Return the date so many days later; ValueError when it is not in the year it must be in."""
    found = (datetime.fromisoformat(date) + timedelta(days=days)).strftime("%Y-%m-%d")
    if not found.startswith(year):
        raise ValueError(found)
    return found


def _from_number(said: Any, value: Any, zone: ZoneInfo) -> datetime:
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    if not is_number and not isinstance(said, str):
        raise ValueError(f"{value!r:.{_SHOWN}} is no update time but a {type(value).__name__}")
    digits = f"{said:d}" if isinstance(said, int) else str(said)
    pattern = _DIGITS.get(len(digits)) if digits.isdecimal() else None
    if pattern is not None:
        parts = (digits[:4], *(digits[at : at + 2] for at in range(4, 14, 2)))
        return _kept(pattern.format(*parts), value, zone)
    return _since_epoch(int(digits) if isinstance(said, str) else said, value)


def _since_epoch(count: float, value: Any) -> datetime:
    """Read a number of seconds, or of milliseconds; one too small or too large is refused."""
    if not math.isfinite(count) or abs(count) < _LEAST_EPOCH:
        raise ValueError(f"{value!r:.{_SHOWN}} is no update time: neither a date nor since 1970")
    unit = 1000 if abs(count) >= _MILLIS_FROM else 1_000_000
    return _in_calendar(_EPOCH + timedelta(microseconds=round(count * unit)), value)


def _kept(iso: str, value: Any, zone: ZoneInfo) -> datetime:
    try:
        at = datetime.fromisoformat(iso)
        at = (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r:.{_SHOWN}} is not in the calendar: {error}") from None
    return _in_calendar(at, value)


def _in_calendar(at: datetime, value: Any) -> datetime:
    if not _FIRST_YEAR <= at.year < _PAST_YEAR:
        raise ValueError(
            f"{value!r:.{_SHOWN}} is no update time: it is not between the years"
            f" {_FIRST_YEAR} and {_PAST_YEAR}"
        )
    return at
