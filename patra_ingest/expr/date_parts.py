"""Dates in pieces: Year, Month and Day elements, Crossref's date-parts, and dates in words.

What is only partly known stays partly known: `2013-07` or `2013`, never a made-up day.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache

from patra_ingest.expr.functions import to_int
from patra_ingest.expr.places import Value
from patra_ingest.expr.xml_tree import XmlNode, child_texts

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_BY_NAME = {
    name[:length]: number
    for number, name in enumerate(_MONTHS, 1)
    for length in range(3, len(name) + 1)
}
_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)", re.ASCII)
_IN_WORDS = re.compile(
    r"(?P<year>\d{4})(?:\s+(?P<month>[A-Za-z]+\.?)(?:\s+(?P<day>\d{1,2}))?)?", re.ASCII
)
_CLOCK = ("hour", "minute", "second")


def partial_date(year: int, month: int | None = None, day: int | None = None) -> str:
    """Write as much of a date as is known; raise ValueError for one not in the calendar."""
    try:
        date(year, 1 if month is None else month, 1 if day is None else day)
    except ValueError as error:
        raise ValueError(f"{year}-{month}-{day} is not in the calendar: {error}") from error
    if month is None:
        return f"{year:04d}"
    return f"{year:04d}-{month:02d}" + ("" if day is None else f"-{day:02d}")


def from_date_parts(value: Value) -> str | None:
    """Read Crossref's `[[2013, 7, 31]]`, or a shorter one; `[[null]]` is null."""
    parts = value[0] if isinstance(value, list) and value and isinstance(value[0], list) else value
    if not isinstance(parts, list) or len(parts) > 3:
        raise ValueError(f"{value!r:.80} is not a list of year, month and day")
    known = _until_null(parts)
    return partial_date(*(to_int(part) for part in known)) if known else None


def from_elements(value: Value) -> str | None:
    """Read the Year, Month and Day below a node, or a date in words, as far as they are known.

    A season, a range of months or any other text keeps its year; without one there is no date.
    """
    parts = _elements(value)
    year = parts.get("year", "")
    if not year.isdecimal():
        return _from_words(year or _words(value, parts))
    month = _month(parts.get("month", ""))
    day = parts.get("day", "") if month is not None else ""
    return partial_date(int(year), month, int(day) if day.isdecimal() else None)


def clock_from_elements(value: Value) -> datetime | None:
    """Read Year, Month, Day and, where given, Hour, Minute and Second as a time without a zone."""
    parts = _elements(value)
    if not parts and not _words(value, parts).strip():
        return None
    month = _month(parts.get("month", ""))
    if "year" not in parts or month is None or "day" not in parts:
        raise ValueError(f"{value!r:.80} is no instant: it needs Year, Month and Day")
    year, day = to_int(parts["year"]), to_int(parts["day"])
    hour, minute, second = (to_int(parts.get(name, "0")) for name in _CLOCK)
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    except ValueError as error:
        raise ValueError(f"{value!r:.80} is not in the calendar: {error}") from error


def _until_null(parts: Sequence[object]) -> list[object]:
    return list(parts[: parts.index(None)] if None in parts else parts)


def _elements(value: Value) -> dict[str, str]:
    """Return the named parts below a node as texts, names in lower case and without a prefix."""
    if isinstance(value, XmlNode):
        texts = child_texts(value.content, value.names)
        return {_plain(name): text.strip() for name, text in texts.items() if text}
    if isinstance(value, Mapping):
        listed = {str(name): _text_of(part) for name, part in value.items()}
    else:
        return {}
    parts = {_plain(name): text.strip() for name, text in listed.items()}
    return {name: text for name, text in parts.items() if text}


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _text_of(part: object) -> str:
    if isinstance(part, Mapping):  # ORCID: {"year": {"value": "2013"}}
        part = part.get("value")
    return str(part) if isinstance(part, str | int) and not isinstance(part, bool) else ""


def _words(value: Value, parts: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, XmlNode) and not parts:
        return value.text
    if isinstance(value, XmlNode | Mapping):
        return parts.get("medlinedate", "")
    raise ValueError(f"{value!r:.80} is neither a node with a Year nor a text")


def _from_words(text: str) -> str | None:
    exact = _IN_WORDS.fullmatch(text.strip())
    month = _month(exact["month"] or "") if exact else None
    if exact and month is not None:
        return partial_date(int(exact["year"]), month, int(exact["day"]) if exact["day"] else None)
    year = _YEAR.search(text)
    return year[1] if year else None


def _month(text: str) -> int | None:
    """Return the number of a month given as number or English name; None for anything else."""
    if text.isdecimal():
        return int(text)
    return _MONTH_BY_NAME.get(text.rstrip(".").lower())
