"""The values of a page, one column per thing that is looked for. Pure.

A page is read column by column, because that is quicker than item by item. What cannot be found in
an item stands as an error in its place, and is raised when that item's turn comes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.errors import BadRecord
from patra_ingest.executor.conditions import column
from patra_ingest.executor.moments import find_moment
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.value import compile_value
from patra_ingest.spec.places import FieldSpec, When

_MAX_ID_CHARS = 512
_DEEPEST, _LONGEST_NAME = 100, 65_535  # what JSON on MySQL can be
_NO = frozenset({"", "false", "no", "n", "0"})


class Unfit(BadRecord):
    """A value of an item that cannot be kept, and where it stands."""

    def __init__(self, path: str, reason: str, value: Any = None) -> None:
        super().__init__(path, reason)
        self.value = value


class _Column:
    """One value expression and what it finds in every item."""

    def __init__(self, said: str | Sequence[str], items: list[Any]) -> None:
        found = compile_value(said)
        self._text = found.text
        self._paths = found.paths
        self._items = items
        self._values = found.column(items)

    def _unfit(self, number: int, reason: str) -> Unfit:
        """Make the error that names the path, the reason, and the value as the item has it."""
        value = self._values[number]
        if isinstance(value, ValueError):
            value = self._find_raw(self._items[number])
        return Unfit(self._text, reason, value)

    def _find_raw(self, item: Any) -> Any:
        for path in self._paths:
            try:
                found = compile_path(path).first(item)
            except ValueError:  # the path itself fails on this item
                continue
            if found is not None:
                return found
        return None


class IdColumn(_Column):
    """The ids of a page: text or whole numbers, without blanks around them."""

    def id_of(self, number: int) -> str:
        """Return the id of an item; raise Unfit when it has none that can be kept."""
        value = self._values[number]
        flaw = find_id_flaw(value)
        if flaw is not None:
            raise self._unfit(number, flaw)
        return id_text(value)


class TimeColumn(_Column):
    """The update times of a page."""

    def __init__(self, said: Sequence[str], items: list[Any], zone: ZoneInfo) -> None:
        super().__init__(said, items)
        self._zone = zone

    def time_of(self, number: int, may_lack: bool) -> datetime | None:
        """Return the update time of an item in UTC; raise Unfit when it has none."""
        value = self._values[number]
        if isinstance(value, ValueError):
            raise self._unfit(number, str(value))
        try:
            found = find_moment(value, self._zone)
        except ValueError as error:
            raise self._unfit(number, str(error)) from error
        if found is None and not may_lack:  # a deletion often says no more than its id
            raise self._unfit(number, "the update time is missing")
        return found


class FieldColumn(_Column):
    """One output field of a page."""

    def __init__(self, field: FieldSpec, items: list[Any]) -> None:
        super().__init__(field.path, items)
        self.name = field.name
        self._is_required = field.required
        one_of = field.one_of
        self._allowed = None if one_of is None else frozenset(to_text(one) for one in one_of)

    def all_values(self) -> list[Any] | None:
        """Return the values of all items, if every one of them may be kept as it is."""
        is_free = not self._is_required and self._allowed is None
        return self._values if is_free and ValueError not in map(type, self._values) else None

    def value_of(self, number: int, is_deleted: bool) -> Any:
        """Return the value in an item; one that is deleted need not have any that fits."""
        value = self._values[number]
        if value is None:
            flaw = self._missing() if self._is_required else None
        elif isinstance(value, ValueError):
            flaw = str(value)
        else:
            flaw = self._find_foreign(value) if self._allowed is not None else None
        if flaw is None:
            return value
        if is_deleted:
            return None
        raise self._unfit(number, flaw)

    def _missing(self) -> str:
        return f"the required field {self.name} is missing"

    def _find_foreign(self, value: Any) -> str | None:
        """Say which value is none of those allowed; they are compared as text, as XML has them."""
        allowed = self._allowed or frozenset()
        for one in value if isinstance(value, list) else [value]:
            is_single = isinstance(one, str | int | float)
            if one is not None and not (is_single and to_text(one) in allowed):
                return f"{one!r:.80} is none of {', '.join(sorted(allowed))}"
        return None


def find_id_flaw(value: Any) -> str | None:
    """Say why a value cannot be an id; None when it can."""
    if isinstance(value, ValueError):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return f"no id here but {value!r:.80}"
    length = len(id_text(value))
    if 0 < length <= _MAX_ID_CHARS:
        return None
    return f"an id has 1 to {_MAX_ID_CHARS} characters, this one {length}"


def id_text(value: object) -> str:
    """Return an id as it is kept. MySQL takes `a` and `a ` for one id, hence without blanks."""
    return str(value).strip()


def require_storable(fields: dict[str, Any], written: bytes) -> None:
    """Raise Unfit for a field that MySQL's JSON cannot hold: nested too deep, or a name too long.

    Nearly all are short, and have too few brackets to be worth a closer look.
    """
    if len(written) <= _DEEPEST or (
        len(written) <= _LONGEST_NAME and written.count(b"[") + written.count(b"{") < _DEEPEST
    ):
        return
    for name, value in fields.items():
        if flaw := _find_flaw(value, 2):
            raise Unfit(name, flaw)


def _find_flaw(value: Any, depth: int) -> str | None:
    if isinstance(value, dict):
        if any(len(name.encode()) > _LONGEST_NAME for name in value):
            return f"a name in it is longer than {_LONGEST_NAME} bytes"
        value = list(value.values())
    if not isinstance(value, list):
        return None
    if depth > _DEEPEST:
        return f"it is nested more than {_DEEPEST} levels deep"
    return next((flaw for one in value if (flaw := _find_flaw(one, depth + 1))), None)


def flags(when: When | None, items: list[Any]) -> list[bool] | None:
    """Return for which items a condition holds; None when nothing is declared."""
    return None if when is None else column(when, items)


def deleted_flags(said: str | When | None, items: list[Any]) -> list[bool] | None:
    """Return which items are deletions; a path that fails on an item leads nowhere."""
    if not isinstance(said, str):
        return flags(said, items)
    return [_means_yes(found) for found in compile_value(said).column(items)]


def _means_yes(found: Any) -> bool:
    """Whether a flag is set. It may be text: `false`, `N` and `0` mean no, `deleted` means yes."""
    if isinstance(found, str):
        return found.strip().lower() not in _NO
    return bool(found) and not isinstance(found, ValueError)
