"""How a source writes a time: `yyyy/MM/dd HH:mm` and the like, to write with and to read with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

_UNITS: Mapping[str, tuple[str, int]] = {  # clock part → which number of a time, how many digits
    "yyyy": ("year", 4),
    "MM": ("month", 2),
    "dd": ("day", 2),
    "HH": ("hour", 2),
    "mm": ("minute", 2),
    "ss": ("second", 2),
    "SSSSSS": ("microsecond", 6),
    "SSS": ("microsecond", 3),
}
# A letter that is no clock part is refused: `YYYY` or `DD` would otherwise be sent as such.
_PART = re.compile(r"(?P<clock>yyyy|MM|dd|HH|mm|ss|SSSSSS|SSS)|(?P<literal>[TZ]|[^A-Za-z])")


@dataclass(frozen=True)
class TimePattern:
    """A pattern taken apart; writing a time and reading it back gives the same parts."""

    text: str
    _parts: tuple[str, ...] = field(compare=False, repr=False)

    def write(self, at: datetime) -> str:
        """Write the clock of `at` as it stands in its own zone."""
        return "".join(_written(part, at) if part in _UNITS else part for part in self._parts)

    def read(self, text: str) -> datetime:
        """Read a clock time without a zone; what the pattern does not name is its first value."""
        found = self._reader().fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r:.80} is not written as {self.text!r}")
        numbers = {"month": 1, "day": 1}
        for part, digits in zip(self._clock(), found.groups(), strict=True):
            unit, width = _UNITS[part]
            numbers[unit] = int(digits) * (1000 if width == 3 else 1)
        try:
            return datetime(**numbers)  # type: ignore[arg-type]  # noqa: DTZ001
        except ValueError as error:
            raise ValueError(f"{text!r:.80} is not in the calendar: {error}") from error

    def require_readable(self) -> "TimePattern":
        """Return the pattern; raise ValueError when a time read by it would be ambiguous."""
        units = [_UNITS[part][0] for part in self._clock()]
        if "year" not in units or len(units) != len(set(units)):
            raise ValueError(f"{self.text!r} cannot be read by: it needs yyyy, and each part once")
        return self

    def _clock(self) -> list[str]:
        return [part for part in self._parts if part in _UNITS]

    def _reader(self) -> re.Pattern[str]:
        return _reader(self._parts)


@lru_cache(maxsize=256)
def time_pattern(text: str) -> TimePattern:
    """Take a pattern apart; raise ValueError for a letter that is no part of a time."""
    parts = []
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(
                f"{text[position]!r} at {position} of {text!r} is no part of a time;"
                " use yyyy MM dd HH mm ss SSS SSSSSS, T, Z and punctuation"
            )
        parts.append(part[0])
        position = part.end()
    return TimePattern(text, tuple(parts))


@lru_cache(maxsize=256)
def _reader(parts: tuple[str, ...]) -> re.Pattern[str]:
    pattern = ""
    for index, part in enumerate(parts):
        beside = [*parts[max(index - 1, 0) : index], *parts[index + 1 : index + 2]]
        if part not in _UNITS:
            pattern += re.escape(part)
        elif _UNITS[part][1] == 2 and not any(other in _UNITS for other in beside):
            pattern += r"(\d{1,2})"  # 2024/1/5: only digits that stand alone may be short
        else:
            pattern += rf"(\d{{{_UNITS[part][1]}}})"
    return re.compile(pattern, re.ASCII)


def _written(part: str, at: datetime) -> str:
    unit, width = _UNITS[part]
    number: int = getattr(at, unit)
    return f"{number // 1000 if width == 3 else number:0{width}d}"
