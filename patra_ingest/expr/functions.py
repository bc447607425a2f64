"""The whitelist: every function a request template may apply to a value, and nothing else.

A function never sees null (except `default` and `coalesce`, which exist for it). A value of the
wrong type is a ValueError.

Times are UTC until `zone(…)` moves them; `date`, `isoSeconds` and `format` then show the local
clock, while `iso` always means UTC. A Bound keeps its own zone and its own way to be written.
"""

import math
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from patra_ingest.expr.path import compile_path
from patra_ingest.expr.places import Apply, Function, Value
from patra_ingest.expr.safe_regex import safe_regex
from patra_ingest.expr.time_pattern import time_pattern
from patra_ingest.model.window import instant_iso, parse_duration, parse_instant, shift

_UTC = ZoneInfo("UTC")
_INTEGER = re.compile(r"\s*[+-]?\d{1,30}\s*", re.ASCII)
# Every character Lucene or its offspring give a meaning, and the words they read as operators.
_LUCENE = re.compile(r'[-+=&|><!(){}\[\]^"~*?:\\/]|\b(?:AND|OR|NOT|TO)\b')

_GROUP = re.compile(r"\\([1-9])")


@dataclass(frozen=True)
class Bound:
    """One end of a window: an instant in the source's zone, and how the source wants it written.

    Without a pattern it is written as any instant: UTC, six digits, `Z`.
    """

    at: datetime
    pattern: str | None = None

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError(f"{self.at.isoformat()} has no time zone; say which, best UTC")
        if self.pattern is not None:
            time_pattern(self.pattern)

    def written(self) -> str:
        """Write the bound as a request carries it."""
        if self.pattern is None:
            return instant_iso(self.at)
        return time_pattern(self.pattern).write(self.at)


def to_text(value: Value) -> str:
    """Write a single value as a request carries it; lists and mappings must be joined first."""
    match value:
        case str():
            return str(value)
        case bool():
            return "true" if value else "false"
        case int() | float() if math.isfinite(value):
            return repr(value + 0)  # + 0: also for enums and other kinds of int
        case Decimal():
            return format(value, "f")
        case datetime():
            return instant_iso(value)
        case Bound():
            return value.written()
        case _:
            raise ValueError(f"a {type(value).__name__} is not one value; use join or name a part")


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of that name; raise ValueError when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error


def to_int(value: Value) -> int:
    """Read a whole number, also one written as text; never guess at anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise ValueError(f"{value!r:.80} is not a whole number")


def require_text(value: Value) -> str:
    """Return a text; raise ValueError for any other value."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is not text")
    return str(value)


def null_if(*texts: str) -> Apply:
    """Make the function that turns these texts, and numbers written so, into null."""

    def apply(value: Value) -> Value:
        is_single = isinstance(value, str | int | float)
        return None if is_single and to_text(value) in texts else value

    return apply


def default(text: str) -> Apply:
    """Make the function that puts a text in the place of null."""
    return lambda value: text if value is None else value


def each(change: Callable[[Value], Value]) -> Apply:
    """Apply `change` to a value, or to every item of a list."""

    def apply(value: Value) -> Value:
        if isinstance(value, list | tuple):
            return [change(item) for item in value]
        return change(value)

    return apply


def _instant(value: Value) -> datetime:
    if isinstance(value, Bound):
        return value.at
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if isinstance(value, str):
        return parse_instant(value)
    raise ValueError(f"{value!r:.80} is not an instant")


def _moved(value: Value, at: datetime) -> Value:
    return replace(value, at=at) if isinstance(value, Bound) else at


def _iso(value: Value) -> str:
    return _iso_seconds(_instant(value).astimezone(UTC)) + "Z"


def _iso_seconds(value: Value) -> str:
    return _instant(value).replace(tzinfo=None, microsecond=0).isoformat()


def _format(pattern: str) -> Apply:
    write = time_pattern(pattern).write
    return lambda value: write(_instant(value))


def _zone(name: str) -> Apply:
    zone = zone_named(name)
    return lambda value: _moved(value, _instant(value).astimezone(zone))


def _plus(duration: str) -> Apply:
    return _shifted(parse_duration(duration))


def _minus(duration: str) -> Apply:
    return _shifted(-parse_duration(duration))


def _shifted(by: timedelta) -> Apply:
    def apply(value: Value) -> Value:
        at = _instant(value)
        zone = at.tzinfo if isinstance(at.tzinfo, ZoneInfo) else _UTC
        return _moved(value, shift(at, by, zone).astimezone(at.tzinfo))

    return apply


def _join(separator: str = ",") -> Apply:
    def apply(value: Value) -> str:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r:.80} is not a list")
        return separator.join(to_text(item) for item in value)

    return apply


def _quote(value: Value) -> str:
    escaped = require_text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _lucene(value: Value) -> str:
    return _LUCENE.sub(lambda special: "\\" + special[0], require_text(value))


def _wrap(before: str, after: str) -> Apply:
    return each(lambda value: before + to_text(value) + after)


def _escape(characters: str) -> Apply:
    table = str.maketrans({character: "\\" + character for character in characters})
    return each(lambda value: to_text(value).translate(table))


def _without(characters: str) -> Apply:
    table = str.maketrans("", "", characters)
    return each(lambda value: to_text(value).translate(table))


def _rewrite(pattern: str, written: str) -> Apply:
    """Make the function that writes a text anew out of the groups of a pattern it must match."""
    read = safe_regex(pattern)
    numbers = [int(number) for number in _GROUP.findall(written)]
    if not numbers or max(numbers) > read.pattern.groups:
        raise ValueError(f"{written!r} must speak of the groups of {pattern!r}, as \\1")

    def change(value: Value) -> str:
        text = to_text(value)
        found = read.pattern.fullmatch(text) if len(text) <= read.longest else None
        if found is None:
            raise ValueError(f"{text!r:.80} does not match {pattern!r}")
        return _GROUP.sub(lambda group: found[int(group[1])] or "", written)

    return each(change)


def _segment(value: Value) -> str:
    text = to_text(value)
    if text in ("", ".", ".."):  # these would ask for another resource, often for a whole list
        raise ValueError(f"{text!r} is not a segment of a path")
    return urllib.parse.quote(text, safe="")


def _json_path(text: str) -> Apply:
    path = compile_path(text)

    def apply(value: Value) -> Value:
        if not isinstance(value, dict | list):
            raise ValueError(f"{value!r:.80} is neither a mapping nor a list")
        return path.first(value)

    return apply


def _coalesce(*others: Value) -> Apply:
    return lambda value: next((found for found in (value, *others) if found is not None), None)


def _concat(*others: Value) -> Apply:
    if any(other is None for other in others):
        return lambda value: None
    return lambda value: "".join(to_text(part) for part in (value, *others))


FUNCTIONS: Mapping[str, Function] = {
    "iso": Function(lambda: _iso),
    "isoSeconds": Function(lambda: _iso_seconds),
    "date": Function(lambda: lambda value: _instant(value).date().isoformat()),
    "format": Function(_format, least=1, most=1),
    "formatDateTime": Function(_format, least=1, most=1),
    "zone": Function(_zone, least=1, most=1),
    "minus": Function(_minus, least=1, most=1),
    "plus": Function(_plus, least=1, most=1),
    "lower": Function(lambda: lambda value: require_text(value).lower()),
    "upper": Function(lambda: lambda value: require_text(value).upper()),
    "trim": Function(lambda: lambda value: require_text(value).strip()),
    "int": Function(lambda: each(to_int)),
    "join": Function(_join, most=1),
    "wrap": Function(_wrap, least=2, most=2),
    "prefix": Function(lambda text: _wrap(text, ""), least=1, most=1),
    "suffix": Function(lambda text: _wrap("", text), least=1, most=1),
    "quote": Function(lambda: each(_quote)),
    "lucene": Function(lambda: each(_lucene)),
    "escape": Function(_escape, least=1, most=1),
    "without": Function(_without, least=1, most=1),
    "rewrite": Function(_rewrite, least=2, most=2),
    "segment": Function(lambda: _segment),
    "jsonPath": Function(_json_path, least=1, most=1),
    "nullIf": Function(null_if, least=1, most=8),
    "default": Function(default, least=1, most=1, takes_null=True),
    "coalesce": Function(_coalesce, least=1, most=8, takes_null=True, takes_names=True),
    "concat": Function(_concat, least=1, most=8, takes_names=True),
}
