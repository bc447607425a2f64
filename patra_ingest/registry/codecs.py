"""How one value of the pack language is kept in columns, and read back exactly as it was.

A codec writes the JSON form of a value into its columns and finds it there again. Where a column
cannot hold a value exactly (half a second in whole seconds), the codec leaves it to `extra`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from patra_ingest.ledger.db import instant_text, json_text, read_instant, read_json
from patra_ingest.model.window import parse_duration, parse_instant
from patra_ingest.spec.words import duration_text, shown_instant

Row = Mapping[str, Any]
Columns = dict[str, Any]

_UNITS = (
    ("DAY", timedelta(days=1)),
    ("HOUR", timedelta(hours=1)),
    ("MINUTE", timedelta(minutes=1)),
    ("SECOND", timedelta(seconds=1)),
)


class JsonText(str):
    """The text of a JSON column; the same tree may be stored in another order."""


def as_json(value: object) -> JsonText:
    """Return what a JSON column is given."""
    return JsonText(json_text(value))


@dataclass(frozen=True)
class Codec:
    """One key of a part and its columns; `fill` stands in the columns when it is not said."""

    key: str
    columns: tuple[str, ...]
    write: Callable[[Any], tuple[Any, ...] | None]
    read: Callable[..., Any]
    fill: tuple[Any, ...] | None = None


def plain(key: str, column: str, fill: Any = None) -> Codec:
    """Return the codec of a text, code or whole number."""
    return Codec(key, (column,), lambda value: (value,), lambda stored: stored, _filled(fill))


def short(key: str, column: str) -> Codec:
    """Return the codec of a place that is written short, as its path; in full it is `extra`."""
    return Codec(
        key, (column,), lambda value: (value,) if isinstance(value, str) else None, lambda it: it
    )


def attempts(key: str, column: str) -> Codec:
    """Return the codec of a number of attempts in a column that counts repetitions."""
    return Codec(key, (column,), lambda value: (value - 1,), lambda stored: stored + 1)


def number(key: str, column: str) -> Codec:
    """Return the codec of a decimal column with six places; finer values go to `extra`."""

    def write(value: float) -> tuple[Any, ...] | None:
        return (value,) if round(value, 6) == value else None

    def read(stored: Any) -> Any:
        value = float(stored)
        return int(value) if value.is_integer() else value

    return Codec(key, (column,), write, read)


def flag(key: str, column: str, fill: bool | None = None) -> Codec:
    """Return the codec of a yes or no."""
    filled = None if fill is None else (int(fill),)
    return Codec(key, (column,), lambda value: (int(value),), bool, filled)


def tree(key: str, column: str) -> Codec:
    """Return the codec of a JSON column."""
    return Codec(key, (column,), lambda value: (as_json(value),), read_json)


def code(key: str, column: str, codes: Mapping[str, str], fill: str | None = None) -> Codec:
    """Return the codec of a word that the dictionary calls by another name."""
    words = {stored: word for word, stored in codes.items()}
    return Codec(
        key,
        (column,),
        lambda value: (codes.get(value, value),),
        lambda stored: words.get(stored, stored),
        _filled(fill),
    )


def instant(key: str, column: str) -> Codec:
    """Return the codec of an instant."""
    return Codec(
        key,
        (column,),
        lambda value: (instant_text(parse_instant(value)),),
        lambda stored: shown_instant(read_instant(stored)),
    )


def whole(key: str, column: str, unit: timedelta) -> Codec:
    """Return the codec of a duration in whole units of a column."""

    def write(value: str) -> tuple[Any, ...] | None:
        count, rest = divmod(parse_duration(value), unit)
        return None if rest else (count,)

    return Codec(key, (column,), write, lambda stored: duration_text(int(stored) * unit))


def span(key: str, column: str, unit_column: str) -> Codec:
    """Return the codec of a duration that names its unit in a second column."""

    def write(value: str) -> tuple[Any, ...] | None:
        duration = parse_duration(value)
        for name, unit in _UNITS:
            if duration % unit == timedelta(0):
                return (duration // unit, name)
        return None

    def read(stored: Any, unit: str) -> str:
        return duration_text(int(stored) * dict(_UNITS)[unit])

    return Codec(key, (column, unit_column), write, read)


def _filled(fill: Any) -> tuple[Any, ...] | None:
    return None if fill is None else (fill,)


@dataclass(frozen=True)
class Layout:
    """How one part is kept in one table: its codecs, and `extra` for all the rest.

    `extra` also names the keys that were not said although their column cannot be empty.
    """

    table: str
    codecs: tuple[Codec, ...]
    extra: str
    derived: Callable[[Mapping[str, Any]], Columns] = field(default=lambda _values: {})

    def write(self, values: Mapping[str, Any]) -> Columns:
        """Return the columns of a part, given in its JSON form."""
        rest = dict(values)
        columns: Columns = {}
        unsaid = []
        for codec in self.codecs:
            said = rest.get(codec.key)
            written = None if said is None else codec.write(said)
            if written is not None:
                rest.pop(codec.key, None)
            elif said is None and codec.fill is not None:
                unsaid.append(codec.key)
            filled = written or codec.fill or (None,) * len(codec.columns)
            columns.update(zip(codec.columns, filled, strict=True))
        if unsaid:
            rest["unsaid"] = unsaid
        return {**columns, **self.derived(values), self.extra: as_json(rest) if rest else None}

    def read(self, row: Row) -> dict[str, Any]:
        """Return the JSON form of the part that a row holds."""
        rest = read_json(row[self.extra]) or {}
        unsaid = set(rest.pop("unsaid", ()))
        values = {
            codec.key: codec.read(*(row[column] for column in codec.columns))
            for codec in self.codecs
            if codec.key not in unsaid
            and codec.key not in rest
            and row[codec.columns[0]] is not None
        }
        return {**values, **rest}


def same_value(stored: Any, wanted: Any) -> bool:
    """Return whether a column holds what would be written, whatever the driver makes of it."""
    if stored is None or wanted is None:
        return stored is wanted
    if isinstance(wanted, JsonText):
        return bool(read_json(stored) == read_json(str(wanted)))
    match stored:
        case datetime():
            return bool(instant_text(read_instant(stored)) == wanted)
        case date():
            return bool(stored.isoformat() == wanted)
        case Decimal() | int() | float() if isinstance(wanted, str):
            return Decimal(str(stored)) == Decimal(wanted)
        case Decimal():
            return bool(float(stored) == wanted)
        case _:
            return bool(stored == wanted)
