"""The whitelist of conversions: how a value found in an item becomes the value that is kept.

A conversion never sees null (except `default`). One for a single text, given a list, converts each
item. A value that does not fit is a ValueError, so the record is quarantined and not guessed at.
"""

import base64
import binascii
import html
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from patra_ingest.expr.date_parts import clock_from_elements, from_date_parts, from_elements
from patra_ingest.expr.functions import default, null_if, require_text, to_int, to_text, zone_named
from patra_ingest.expr.path_steps import number_in
from patra_ingest.expr.places import Apply, Function, Value
from patra_ingest.expr.safe_regex import safe_regex
from patra_ingest.expr.time_pattern import time_pattern
from patra_ingest.model.window import parse_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_WORDS = 100_000
_ZONELESS = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?", re.ASCII)
# Only what is written like a tag is one: `P<0.001` and `a<b and c>d` stay.
_TAG = re.compile(
    r"</?(?P<name>[A-Za-z][\w:.-]*)(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*\s*/?>"
)
_INLINE = {"a", "abbr", "b", "bold", "em", "font", "i", "italic", "mark", "s", "sc", "small"}
_INLINE |= {"span", "strike", "strong", "sub", "sup", "tt", "u", "underline"}
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Crossref's own advice for DOIs, without the old ones that hold spaces.
_DOI = re.compile(
    r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.ASCII | re.IGNORECASE
)
_ASCII_BLANKS = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"
_YES_NO = {"y": True, "yes": True, "true": True, "1": True}
_YES_NO |= {"n": False, "no": False, "false": False, "0": False}


def _collapse(value: Value) -> str:
    text = require_text(value)
    return text if _is_collapsed(text) else " ".join(text.split())


def _is_collapsed(text: str) -> bool:
    """Whether a text has single plain blanks between its words, as most have."""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    if text.isascii():
        return not any(blank in text for blank in _ASCII_BLANKS)
    return text.isprintable()  # of all blanks only the plain one can be printed


def _strip_tags(value: Value) -> str:
    """Drop tags; one that ends a paragraph or the like leaves a blank between the words."""

    def blank(tag: re.Match[str]) -> str:
        return "" if tag["name"].rpartition(":")[2].lower() in _INLINE else " "

    return _TAG.sub(blank, require_text(value)).strip()


def _unescape(value: Value) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), require_text(value))


def _before(text: str) -> Apply:
    return lambda value: require_text(value).partition(text)[0] if text else value


def _regex(pattern: str) -> Apply:
    found = safe_regex(pattern)
    return lambda value: found.first_group(require_text(value))


def _doi(value: Value) -> str | None:
    """Write a DOI as everybody can compare it; null for a text that is none."""
    found = _DOI.fullmatch(require_text(value).strip())
    return found[1].lower() if found else None


def _exists(values: Value) -> bool:
    several = values if isinstance(values, list) else [values]
    return any(value is not None and value not in ("", [], {}) for value in several)


def _split(separator: str) -> Apply:
    if not separator:
        raise ValueError("a text is split at something, for example split(';')")

    def apply(value: Value) -> list[str]:
        parts = (part.strip() for part in require_text(value).split(separator))
        return [part for part in parts if part]

    return apply


def _join(separator: str = "; ") -> Apply:
    def apply(values: Value) -> str | None:
        texts = [to_text(value) for value in _present(values)]
        return separator.join(texts) if texts else None

    return apply


def _listed(values: Value) -> Value:
    several = values if isinstance(values, list) else [values]
    return several if any(value is not None for value in several) else None


def _unique(values: Value) -> list[Value] | None:
    """Keep each value once, where it came first; nulls are none."""
    try:
        return list(dict.fromkeys(_present(values))) or None
    except TypeError:
        raise ValueError("only plain values can be told apart") from None


def _list(values: Value) -> list[Value]:
    return list(values) if isinstance(values, list) else [values]


def _present(values: Value) -> list[Value]:
    if isinstance(values, list):
        return [value for value in values if value is not None]
    return [] if values is None else [values]


def _number(value: Value) -> int | float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = number_in(value) if isinstance(value, str) else value if is_number else None
    if not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"{value!r:.80} is not a number")
    return number


def _yes_no(value: Value) -> bool:
    is_single = isinstance(value, str | int)
    answer = _YES_NO.get(to_text(value).strip().lower()) if is_single else None
    if answer is None:
        raise ValueError(f"{value!r:.80} is neither yes nor no")
    return answer


def _base64(value: Value) -> str:
    text = require_text(value).strip().replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{value!r:.80} is not text in base64: {error}") from error


def _inverted_index(value: Value) -> str | None:
    """Turn OpenAlex's `{"word": [0, 7], …}` into the text it was made from."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.80} is not an inverted index")
    words: dict[int, str] = {}
    for word, places in value.items():
        for place in _list(places):
            words[to_int(place)] = word
    if len(words) > _MAX_WORDS:
        raise ValueError(f"an inverted index of {len(words)} words is more than {_MAX_WORDS}")
    return " ".join(words[place] for place in sorted(words)) or None


def _time(zone: str | None = None, pattern: str | None = None) -> Apply:
    if zone is None:
        return lambda value: parse_instant(require_text(value).strip())
    place = zone_named(zone)
    read = time_pattern(pattern).require_readable().read if pattern is not None else None

    def apply(value: Value) -> datetime:
        text = require_text(value).strip()
        if read is not None:
            return _utc(text, read(text).replace(tzinfo=place))
        if not _ZONELESS.fullmatch(text):
            return parse_instant(text)
        # The instant of the same clock in UTC: parse_instant has then checked the calendar.
        clock = parse_instant(text if len(text) == len("2026-01-31") else text + "Z")
        return _utc(text, clock.replace(tzinfo=place))

    return apply


def _utc(said: object, at: datetime) -> datetime:
    try:
        return parse_instant(at.astimezone(UTC).isoformat())
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{said!r:.80} is not an instant we can keep: {error}") from error


def _epoch(per_second: int) -> Callable[[], Apply]:
    def apply(value: Value) -> datetime:
        count = _number(value)
        try:
            at = _EPOCH + timedelta(microseconds=round(count * 1_000_000 / per_second))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{value!r:.80} is not an instant: {error}") from error
        return _utc(value, at)

    return lambda: apply


def _ymd_time(zone: str) -> Apply:
    place = zone_named(zone)

    def apply(value: Value) -> datetime | None:
        clock = clock_from_elements(value)
        return None if clock is None else _utc(value, clock.replace(tzinfo=place))

    return apply


def _of_text(change: Callable[[str], Value]) -> Function:
    return Function(lambda: lambda value: change(require_text(value)), takes_each=True)


CONVERSIONS: Mapping[str, Function] = {
    "text": Function(lambda: to_text, takes_each=True),
    "collapse": Function(lambda: _collapse, takes_each=True),
    "stripTags": Function(lambda: _strip_tags, takes_each=True),
    "unescape": Function(lambda: _unescape, takes_each=True),
    "lower": _of_text(str.lower),
    "upper": _of_text(str.upper),
    "trim": _of_text(str.strip),
    "after": Function(
        lambda text: lambda value: require_text(value).removeprefix(text), 1, 1, takes_each=True
    ),
    "before": Function(_before, least=1, most=1, takes_each=True),
    "regex": Function(_regex, least=1, most=1, takes_each=True),
    "doi": Function(lambda: _doi, takes_each=True),
    "split": Function(_split, least=1, most=1),
    "join": Function(_join, most=1, takes_all=True),
    "list": Function(lambda: _listed, takes_all=True),
    "unique": Function(lambda: _unique, takes_all=True),
    "count": Function(lambda: lambda values: len(_present(values)), takes_all=True),
    "exists": Function(lambda: _exists, takes_all=True),
    "first": Function(lambda: lambda values: next(iter(_present(values)), None), takes_all=True),
    "int": Function(lambda: to_int, takes_each=True),
    "number": Function(lambda: _number, takes_each=True),
    "yesNo": Function(lambda: _yes_no, takes_each=True),
    "nullIf": Function(null_if, least=1, most=8, takes_each=True),
    "default": Function(default, least=1, most=1, takes_null=True),
    "base64": Function(lambda: _base64, takes_each=True),
    "invertedIndex": Function(lambda: _inverted_index),
    "time": Function(_time, most=2),
    "epoch": Function(_epoch(1)),
    "epochMillis": Function(_epoch(1000)),
    "dateParts": Function(lambda: from_date_parts),
    "ymd": Function(lambda: from_elements, takes_node=True),
    "ymdTime": Function(_ymd_time, least=1, most=1, takes_node=True),
}
