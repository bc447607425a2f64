"""Half-open UTC windows `[start, end)`: the only way this package talks about a span of time.

A source cuts time on its own grid (days in New York, seconds in UTC). The grid of a granularity
and a zone is every local midnight, or every n-th one, or the steps counted from each midnight;
it is a set of instants, so windows cut on it tile exactly on days of 23, 24 and 25 hours alike.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from patra_ingest.model.registry_codes import CalendarAlign

_DAY = timedelta(days=1)
_NOTHING = timedelta(0)
_FIRST_YEAR = 1000  # MySQL's DATETIME; also refuses 0001-01-01, which some APIs send for "unknown"

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_SHORT_DURATION = re.compile(
    r"(?=\d)(?:(?P<weeks>\d+)w)?(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?"
    r"(?:(?P<seconds>\d+)s)?(?:(?P<milliseconds>\d+)ms)?",
    re.ASCII,
)
_ISO_DURATION = re.compile(
    r"P(?=[\dT])(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, order=True)
class Window:
    """A span that owns its `start` and not its `end`, so neighbours never share a record."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if {self.start.utcoffset(), self.end.utcoffset()} != {_NOTHING}:
            raise ValueError(f"a window is always UTC, not [{self.start}, {self.end})")
        # A zone that happens to stand at +00:00 today would still count in local days.
        object.__setattr__(self, "start", self.start.astimezone(UTC))
        object.__setattr__(self, "end", self.end.astimezone(UTC))
        if self.start >= self.end:
            raise ValueError(f"empty window [{self.start}, {self.end})")

    def __str__(self) -> str:
        return f"[{_shown(self.start)}, {_shown(self.end)})"

    @property
    def duration(self) -> timedelta:
        """How much time passes inside the window."""
        return self.end - self.start

    def contains(self, instant: datetime) -> bool:
        """Say whether `instant` belongs to this window and not to the next one."""
        return self.start <= instant < self.end

    def split(self, width: timedelta) -> Iterator["Window"]:
        """Yield adjacent windows of at most `width` that tile this one exactly."""
        _require_positive("width", width)
        start = self.start
        while start < self.end:
            end = self.end if self.end - start <= width else start + width
            yield Window(start, end)
            start = end

    def split_aligned(
        self, width: timedelta, granularity: timedelta, zone: ZoneInfo
    ) -> Iterator["Window"]:
        """Yield windows that tile this one and meet only on the source's grid.

        Each spans at most `width`, counted in the zone's calendar days; but a grid cell is never
        cut, because a source that filters by day would answer both halves with the whole day.
        """
        _require_positive("width", width)
        start = self.start
        while start < self.end:
            end = floor_to(shift(start, width, zone), granularity, zone)
            if end <= start:
                end = _edge_after(start, granularity, zone)
            end = min(end, self.end)
            yield Window(start, end)
            start = end

    def align_outward(self, granularity: timedelta, zone: ZoneInfo) -> "Window":
        """Return the smallest window on the source's grid that covers this one."""
        return Window(floor_to(self.start, granularity, zone), ceil_to(self.end, granularity, zone))

    def intersect(self, other: "Window") -> "Window | None":
        """Return the part both windows cover, or None when they share no instant."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Window(start, end) if start < end else None

    def minus(self, windows: Iterable["Window"]) -> list["Window"]:
        """Return the parts of this window that none of `windows` covers, in order."""
        rest = []
        reached = self.start
        for covered in merge(windows):
            if covered.end <= reached:
                continue
            if covered.start >= self.end:
                break
            if covered.start > reached:
                rest.append(Window(reached, covered.start))
            reached = covered.end
        if reached < self.end:
            rest.append(Window(reached, self.end))
        return rest


def merge(windows: Iterable[Window]) -> list[Window]:
    """Return the same instants as the fewest windows: touching or overlapping ones become one."""
    merged: list[Window] = []
    for window in sorted(windows):
        if merged and window.start <= merged[-1].end:
            last = merged.pop()
            window = Window(last.start, max(last.end, window.end))
        merged.append(window)
    return merged


def floor_to(instant: datetime, granularity: timedelta, zone: ZoneInfo) -> datetime:
    """Return the last point of the source's grid that is not after `instant`."""
    instant, days = _utc(instant), _grid_days(granularity)
    ordinal = instant.astimezone(zone).toordinal() + 1
    ordinal -= ordinal % days
    # A zone may repeat an hour around midnight and so return to yesterday's date:
    # the instants decide, not the date.
    while (midnight := _midnight(ordinal, zone)) > instant:
        ordinal -= days
    if granularity >= _DAY:
        return midnight
    return midnight + (instant - midnight) // granularity * granularity


def floor_calendar(instant: datetime, align: CalendarAlign, zone: ZoneInfo) -> datetime:
    """Return the beginning of the hour, day, week (Monday) or month around `instant` in `zone`."""
    if align is CalendarAlign.HOUR:
        return floor_to(instant, timedelta(hours=1), zone)
    day = floor_to(instant, _DAY, zone)
    local = day.astimezone(zone)
    back = {CalendarAlign.WEEK: local.weekday(), CalendarAlign.MONTH: local.day - 1}.get(align, 0)
    return _midnight(local.toordinal() - back, zone)


def ceil_to(instant: datetime, granularity: timedelta, zone: ZoneInfo) -> datetime:
    """Return the first point of the source's grid that is not before `instant`."""
    instant = _utc(instant)
    floor = floor_to(instant, granularity, zone)
    return floor if floor == instant else _edge_after(instant, granularity, zone)


def shift(instant: datetime, by: timedelta, zone: ZoneInfo) -> datetime:
    """Move an instant: whole days are calendar days of `zone`, the rest is time that passes.

    One day after a New York midnight is the next New York midnight, also when it is 23 hours away.
    """
    sign = -1 if by < _NOTHING else 1
    days, rest = divmod(abs(by), _DAY)
    if not days:  # no calendar needed, and an hour that comes twice would be taken for the first
        return _utc(instant) + by
    local = _utc(instant).astimezone(zone) + sign * days * _DAY
    return local.astimezone(UTC) + sign * rest


def _edge_after(instant: datetime, granularity: timedelta, zone: ZoneInfo) -> datetime:
    days = _grid_days(granularity)
    ordinal = instant.astimezone(zone).toordinal() - 1
    ordinal -= ordinal % days
    while (midnight := _midnight(ordinal, zone)) <= instant:
        ordinal += days
    if granularity >= _DAY:
        return midnight
    # The last step of a day may be short: the next midnight always begins a new one.
    return min(midnight, floor_to(instant, granularity, zone) + granularity)


def _grid_days(granularity: timedelta) -> int:
    _require_positive("granularity", granularity)
    days, rest = divmod(granularity, _DAY)
    if days and rest:
        raise ValueError(f"granularity {granularity} is neither whole days nor less than a day")
    return max(days, 1)


def _midnight(ordinal: int, zone: ZoneInfo) -> datetime:
    # fold=0 makes this the first midnight where there are two, and the end of the gap where there
    # is none.
    return datetime.combine(date.fromordinal(ordinal), time.min, zone).astimezone(UTC)


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no time zone; say which, best UTC")
    return instant.astimezone(UTC)


def _require_positive(name: str, value: timedelta) -> None:
    if value <= _NOTHING:
        raise ValueError(f"{name} {value} is not more than zero")


def _shown(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def instant_iso(instant: datetime) -> str:
    """Write an instant in its canonical form: UTC, six digits, `Z`."""
    utc = instant if instant.tzinfo is UTC else _utc(instant)
    return f"{utc.isoformat(timespec='microseconds')[:26]}Z"


def parse_instant(text: str) -> datetime:
    """Read an ISO date (its midnight in UTC) or a date-time with `Z` or an offset.

    Digits beyond the microsecond are cut, as the ledger would cut them.
    """
    if _DATE.fullmatch(text):
        return _from_iso(text, text + "T00:00:00Z")
    read = _DATE_TIME.fullmatch(text)
    if read is None:
        raise ValueError(f"{text!r} is not an instant; write 2026-01-31 or 2026-01-31T12:00:00Z")
    if read["zone"] is None:
        raise ValueError(f"{text!r} has no time zone; add Z for UTC or an offset such as +01:00")
    return _from_iso(text, text)


def _from_iso(text: str, iso: str) -> datetime:
    try:
        instant = datetime.fromisoformat(iso).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not in the calendar: {error}") from error
    if instant.year < _FIRST_YEAR:
        raise ValueError(f"{text!r} is before the year {_FIRST_YEAR}, where the ledger begins")
    return instant


def parse_duration(text: str) -> timedelta:
    """Read `1d`, `36h`, `10m`, `90s`, `100ms`, `1d12h`, or ISO `PT10M`, `P1D`, `P2W`."""
    read = _SHORT_DURATION.fullmatch(text) or _ISO_DURATION.fullmatch(text)
    if read is None:
        raise ValueError(
            f"{text!r} is not a duration; write 1d, 36h, 10m, 90s or PT10M"
            " (a month or a year has no fixed length)"
        )
    parts = {name: float(n) if "." in n else int(n) for name, n in read.groupdict("0").items()}
    try:
        return timedelta(**parts)
    except OverflowError as error:
        raise ValueError(f"{text!r} is longer than time itself can be counted") from error


def duration_iso(duration: timedelta) -> str:
    """Write a duration in its canonical ISO form, such as `P1DT12H`; parse_duration reads it."""
    if duration < _NOTHING:
        raise ValueError(f"a duration is never negative, not {duration}")
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{duration.microseconds:06d}".rstrip("0") if duration.microseconds else ""
    parts = [(hours, "H"), (minutes, "M")]
    clock = "".join(f"{n}{unit}" for n, unit in parts if n)
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    days = f"{duration.days}D" if duration.days else ""
    return f"P{days}{'T' + clock if clock else ''}" if days or clock else "PT0S"
