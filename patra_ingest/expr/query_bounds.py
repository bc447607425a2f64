"""The values a range, a typed term or a limit holds: dates, instants and numbers, read strictly.

Their text is canonical, so it is made of digits, letters and `-:.` only and needs no escaping.
"""

import re
from datetime import date, datetime
from decimal import Decimal

from patra_ingest.expr.functions import to_text
from patra_ingest.model.codes import DataType, RangeKind
from patra_ingest.model.window import parse_instant

Bound = date | datetime | Decimal

INFINITY = "*"  # how a query writes a bound that is closed at infinity

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
_KINDS = {
    DataType.DATE: RangeKind.DATE,
    DataType.DATETIME: RangeKind.DATETIME,
    DataType.NUMBER: RangeKind.NUMBER,
}


def read_bound(kind: RangeKind, text: str) -> Bound:
    """Read a bound of this kind; raise ValueError when the text is no such thing."""
    if kind is RangeKind.DATETIME:
        return parse_instant(text)
    if kind is RangeKind.NUMBER and _NUMBER.fullmatch(text):
        return Decimal(text)
    if kind is RangeKind.DATE and _DATE.fullmatch(text):
        return date.fromisoformat(text)
    wanted = {RangeKind.DATE: "date such as 2026-01-31", RangeKind.NUMBER: "number such as 2.5"}
    raise ValueError(f"{text[:40]!r} is no {wanted.get(kind, 'bound')}")


def bound_text(bound: Bound) -> str:
    """Write a bound in its canonical form; `read_bound` reads it again."""
    if isinstance(bound, datetime):
        return bound.isoformat().replace("+00:00", "Z")
    return bound.isoformat() if isinstance(bound, date) else to_text(bound)


def typed_text(kind: DataType, text: str) -> str:
    """Return the canonical text of a term on a field of this kind; ValueError when it is none."""
    if kind in _KINDS:
        return bound_text(read_bound(_KINDS[kind], text))
    if kind is DataType.BOOLEAN and text not in ("true", "false"):
        raise ValueError(f"{text[:40]!r} is neither true nor false")
    return text


def plain_text(value: object) -> object:
    """Turn what YAML reads as a date, an instant, a number or a yes into the text it stands for."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("has no time zone; write it with Z or an offset")
    if isinstance(value, bool | int | float | datetime):
        return to_text(value)
    return value.isoformat() if isinstance(value, date) else value
