"""The whitelist: every function a template may apply to a value, and nothing else.

A function is made from its arguments once, when the template is compiled, so a wrong pattern, zone
or duration is found there; the made function turns one value into another and never sees null
(except `default` and `coalesce`, which exist for it). A value of the wrong type is a ValueError.

Times are UTC until `zone(…)` moves them; `date`, `isoSeconds` and `format` then show the local
clock, while `iso` always means UTC.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from patra_ingest.model.window import instant_iso, parse_duration, parse_instant, shift

Value = object  # whatever a variable holds; each function asks for the type it needs
Apply = Callable[[Value], Value]

_UTC = ZoneInfo("UTC")
_CLOCK: Mapping[str, Callable[[datetime], str]] = {
    "yyyy": lambda at: f"{at.year:04d}",
    "MM": lambda at: f"{at.month:02d}",
    "dd": lambda at: f"{at.day:02d}",
    "HH": lambda at: f"{at.hour:02d}",
    "mm": lambda at: f"{at.minute:02d}",
    "ss": lambda at: f"{at.second:02d}",
}
# A letter that is no clock part is refused: `YYYY` or `DD` would otherwise be sent as such.
_FORMAT_PART = re.compile(r"(?P<clock>yyyy|MM|dd|HH|mm|ss)|(?P<literal>[TZ]|[^A-Za-z])")


@dataclass(frozen=True)
class Function:
    """How a function is made, and how many arguments that takes."""

    make: Callable[..., Apply]
    least: int = 0
    most: int = 0
    takes_null: bool = False
    takes_names: bool = False  # arguments are variables of the template, not text


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
        case _:
            raise ValueError(f"a {type(value).__name__} is not one value; use join or name a part")


def _instant(value: Value) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if isinstance(value, str):
        return parse_instant(value)
    raise ValueError(f"{value!r:.80} is not an instant")


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is not text")
    return str(value)


def _iso(value: Value) -> str:
    return _iso_seconds(_instant(value).astimezone(UTC)) + "Z"


def _iso_seconds(value: Value) -> str:
    return _instant(value).replace(tzinfo=None, microsecond=0).isoformat()


def _format(pattern: str) -> Apply:
    parts = []
    position = 0
    while position < len(pattern):
        part = _FORMAT_PART.match(pattern, position)
        if part is None:
            raise ValueError(
                f"format: {pattern[position]!r} at {position} of {pattern!r} is no part of a time;"
                " use yyyy MM dd HH mm ss, T, Z and punctuation"
            )
        parts.append(part)
        position = part.end()

    def apply(value: Value) -> str:
        at = _instant(value)
        return "".join(_CLOCK[part[0]](at) if part["clock"] else part[0] for part in parts)

    return apply


def _zone(name: str) -> Apply:
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"zone: there is no time zone {name!r}") from error
    return lambda value: _instant(value).astimezone(zone)


def _plus(duration: str) -> Apply:
    return _shifted(parse_duration(duration))


def _minus(duration: str) -> Apply:
    return _shifted(-parse_duration(duration))


def _shifted(by: timedelta) -> Apply:
    def apply(value: Value) -> datetime:
        at = _instant(value)
        zone = at.tzinfo if isinstance(at.tzinfo, ZoneInfo) else _UTC
        return shift(at, by, zone).astimezone(zone)

    return apply


def _join(separator: str = ",") -> Apply:
    def apply(value: Value) -> str:
        if not isinstance(value, list | tuple):
            raise ValueError(f"join: {value!r:.80} is not a list")
        return separator.join(to_text(item) for item in value)

    return apply


def _quote(value: Value) -> str:
    escaped = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _default(text: str) -> Apply:
    return lambda value: text if value is None else value


def _coalesce(*others: Value) -> Apply:
    return lambda value: next((found for found in (value, *others) if found is not None), None)


FUNCTIONS: Mapping[str, Function] = {
    "iso": Function(lambda: _iso),
    "isoSeconds": Function(lambda: _iso_seconds),
    "date": Function(lambda: lambda value: _instant(value).date().isoformat()),
    "format": Function(_format, least=1, most=1),
    "zone": Function(_zone, least=1, most=1),
    "minus": Function(_minus, least=1, most=1),
    "plus": Function(_plus, least=1, most=1),
    "lower": Function(lambda: lambda value: _text(value).lower()),
    "upper": Function(lambda: lambda value: _text(value).upper()),
    "trim": Function(lambda: lambda value: _text(value).strip()),
    "join": Function(_join, most=1),
    "quote": Function(lambda: _quote),
    "default": Function(_default, least=1, most=1, takes_null=True),
    "coalesce": Function(_coalesce, least=1, most=8, takes_null=True, takes_names=True),
}
