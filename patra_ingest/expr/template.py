"""Request templates: text with `${name.path|function(argument)|…}` places to fill.

A template reaches only what it is handed: names are looked up in mappings, never as attributes;
functions come from the whitelist; there are no loops, no nesting and no I/O. `$${` writes `${`,
and `${name?}` is a place that may be null: it is then empty text.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from patra_ingest.expr.functions import FUNCTIONS, to_text
from patra_ingest.expr.places import NAME, Body, Call, Value, parse_calls, require_few, split_places

_PROTECTING = ("quote", "lucene", "escape", "rewrite")
_OPTIONAL = re.compile(r"\?\s*")


@dataclass(frozen=True)
class _Place:
    """One `${…}`: the name to look up and what to do with it."""

    name: str
    is_optional: bool
    calls: tuple[Call, ...]

    def names(self) -> set[str]:
        others = (call.arguments for call in self.calls if call.function.takes_names)
        return {self.name}.union(*others)

    def separator_in(self, value: str) -> str | None:
        """Return what joins a list of such values here, if this one holds it unprotected."""
        items: Value = [value]
        for call in self.calls:
            if call.name == "join":
                separator = call.arguments[0] if call.arguments else ","
                held = isinstance(items, list) and any(separator in to_text(one) for one in items)
                return separator if held else None
            if call.apply is None or call.name in _PROTECTING:
                return None
            try:
                items = _applied(call, items, {})
            except ValueError:  # it cannot be written at all, which is said when it is
                return None
        return None

    def find(self, variables: Mapping[str, object]) -> Value:
        value = _look_up(self.name, variables)
        for call in self.calls:
            if value is not None or call.function.takes_null:
                value = _applied(call, value, variables)
        return value


@dataclass(frozen=True)
class Template:
    """A compiled template; rendering it twice with equal variables gives equal text."""

    text: str
    names: frozenset[str]
    _parts: tuple[str | _Place, ...] = field(compare=False, repr=False)

    def render(self, variables: Mapping[str, object]) -> str | None:
        """Fill the places; None when the template is one place and its value is null.

        The caller then leaves the parameter out. A null inside a longer text would leave a hole
        in a request nobody meant to send, so it is a ValueError unless the place is optional.
        """
        filled = self._filled(variables)
        if filled == [None]:
            return None
        if (missing := self._missing(filled)) is not None:
            raise ValueError(
                f"{self.text}: {missing.name} is null; give it a default('…'), or write"
                f" ${{{missing.name}?}} where nothing is fine"
            )
        return _joined(filled)

    def render_clause(self, variables: Mapping[str, object]) -> str | None:
        """Fill the places; None when any that is not optional is null: the clause is dropped."""
        filled = self._filled(variables)
        if filled == [None] or self._missing(filled) is not None:
            return None
        return _joined(filled)

    def value(self, variables: Mapping[str, object]) -> Value:
        """Return the value itself when the template is exactly one place, else the text.

        So a JSON body gets a number, a list or a mapping; an instant is always written as text.
        """
        match self._parts:
            case [_Place() as place]:
                value = self._find(place, variables)
                if value is None or isinstance(value, str | int | float | list | dict):
                    return value
                return list(value) if isinstance(value, tuple) else self._written(place, value)
            case _:
                return self.render(variables)

    def separator_in(self, name: str, value: str) -> str | None:
        """Return the separator that would make a value two where a list of such is joined."""
        places = (part for part in self._parts if isinstance(part, _Place) and part.name == name)
        return next((found for place in places if (found := place.separator_in(value))), None)

    def check(self, known: Set[str]) -> list[str]:
        """Return a problem for every name that is neither in `known` nor below a name that is."""
        return [
            f"${{{name}}} is not known here"
            for name in sorted(self.names)
            if known.isdisjoint(_prefixes(name))
        ]

    def _filled(self, variables: Mapping[str, object]) -> list[str | None]:
        return [
            part if isinstance(part, str) else self._written(part, self._find(part, variables))
            for part in self._parts
        ]

    def _missing(self, filled: list[str | None]) -> _Place | None:
        for part, text in zip(self._parts, filled, strict=True):
            if text is None and isinstance(part, _Place) and not part.is_optional:
                return part
        return None

    def _find(self, place: _Place, variables: Mapping[str, object]) -> Value:
        try:
            return place.find(variables)
        except ValueError as error:
            raise ValueError(f"{self.text}: {place.name}: {error}") from error

    def _written(self, place: _Place, value: Value) -> str | None:
        try:
            return None if value is None else to_text(value)
        except ValueError as error:
            raise ValueError(f"{self.text}: {place.name}: {error}") from error


@lru_cache(maxsize=1024)
def compile_template(text: str) -> Template:
    """Parse a template once; raise ValueError with the position of what cannot be read."""
    parts = tuple(
        part if isinstance(part, str) else _parse_place(text, part) for part in split_places(text)
    )
    names = frozenset[str]().union(*(p.names() for p in parts if isinstance(p, _Place)))
    return Template(text, names, parts)


def _parse_place(text: str, body: Body) -> _Place:
    name = NAME.match(body.text)
    if name is None:
        raise ValueError(f"{text}: a name such as window.from is missing at {body.start}")
    require_few(text, "parts in a name", name[1].count(".") + 1)
    optional = _OPTIONAL.match(body.text, name.end())
    end = optional.end() if optional else name.end()
    return _Place(name[1], optional is not None, parse_calls(text, body, end, FUNCTIONS))


def _applied(call: Call, value: Value, variables: Mapping[str, object]) -> Value:
    try:
        if call.apply is not None:
            return call.apply(value)
        others = [_look_up(name, variables) for name in call.arguments]
        return call.function.make(*others)(value)
    except (ValueError, OverflowError) as error:  # overflow: a time moved out of the calendar
        raise ValueError(f"{call.name}: {error}") from error


def _joined(filled: list[str | None]) -> str:
    return "".join(text for text in filled if text is not None)


def _look_up(name: str, variables: Mapping[str, object]) -> Value:
    first, *rest = name.split(".")
    if first not in variables:
        # A misspelt window must not become an omitted filter, which would ask for everything.
        raise ValueError(f"there is no variable {first}")
    value = variables[first]
    for part in rest:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ValueError(f"{part} cannot be looked up in a {type(value).__name__}")
        value = value.get(part)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _prefixes(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[: length + 1]) for length in range(len(parts))}
