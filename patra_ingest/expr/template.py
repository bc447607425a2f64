"""Request templates: text with `${name.path|function(argument)|…}` places to fill.

A template reaches only what it is handed: names are looked up in mappings, never as attributes;
functions come from the whitelist; there are no loops, no nesting and no I/O. `$${` writes `${`.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from patra_ingest.expr.functions import FUNCTIONS, Apply, Function, Value, to_text

MAX_CHARS = 4096
MAX_PARTS = 8  # of a name, and functions in a row: deeper is a mistake, not a request

_NAME = re.compile(r"\s*([A-Za-z_][\w-]*(?:\.[@\w][\w:-]*)*)\s*")
_QUOTED = r"'[^']*'|\"[^\"]*\""
_PLACE = re.compile(rf"\$\{{(?P<body>(?:[^{{}}'\"]|{_QUOTED})*)\}}")
_CALL = re.compile(rf"\|\s*(?P<name>\w+)\s*(?:\((?P<arguments>(?:[^()'\"]|{_QUOTED})*)\))?\s*")
_ARGUMENT = re.compile(rf"(?:[^,'\"]|{_QUOTED})+")


@dataclass(frozen=True)
class _Call:
    """One function of a place, made already unless its arguments are variables."""

    function: Function
    arguments: tuple[str, ...]
    apply: Apply | None


@dataclass(frozen=True)
class _Place:
    """One `${…}`: the name to look up and what to do with it."""

    name: str
    calls: tuple[_Call, ...]

    def names(self) -> set[str]:
        others = (call.arguments for call in self.calls if call.function.takes_names)
        return {self.name}.union(*others)

    def find(self, variables: Mapping[str, object]) -> Value:
        value = _look_up(self.name, variables)
        for call in self.calls:
            if value is None and not call.function.takes_null:
                continue
            apply = call.apply or call.function.make(
                *(_look_up(name, variables) for name in call.arguments)
            )
            value = apply(value)
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
        in a request nobody meant to send, so it is a ValueError unless a default is given.
        """
        filled = [
            part if isinstance(part, str) else self._fill(part, variables) for part in self._parts
        ]
        if filled == [None]:
            return None
        for part, text in zip(self._parts, filled, strict=True):
            if text is None and isinstance(part, _Place):
                raise ValueError(f"{self.text}: {part.name} is null; give it a default('…')")
        return "".join(text for text in filled if text is not None)

    def check(self, known: Set[str]) -> list[str]:
        """Return a problem for every name that is neither in `known` nor below a name that is."""
        return [
            f"${{{name}}} is not known here"
            for name in sorted(self.names)
            if known.isdisjoint(_prefixes(name))
        ]

    def _fill(self, place: _Place, variables: Mapping[str, object]) -> str | None:
        try:
            value = place.find(variables)
            return None if value is None else to_text(value)
        except (ValueError, OverflowError) as error:  # overflow: a time moved out of the calendar
            raise ValueError(f"{self.text}: {place.name}: {error}") from error


@lru_cache(maxsize=1024)
def compile_template(text: str) -> Template:
    """Parse a template once; raise ValueError with the position of what cannot be read."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"a template of {len(text)} characters is longer than {MAX_CHARS}")
    parts: list[str | _Place] = []
    literal, position = "", 0
    while (found := text.find("${", position)) >= 0:
        if found > 0 and text[found - 1] == "$":
            literal += text[position : found - 1] + "${"
            position = found + 2
            continue
        literal += text[position:found]
        place = _PLACE.match(text, found)
        if place is None:
            raise ValueError(f"{text}: the ${{ at {found} has no end; close it or write $${{")
        parts += [literal] if literal else []
        parts.append(_parse_place(text, place.start("body"), place["body"]))
        literal, position = "", place.end()
    literal += text[position:]
    parts += [literal] if literal else []
    names = frozenset[str]().union(*(p.names() for p in parts if isinstance(p, _Place)))
    return Template(text, names, tuple(parts))


def _parse_place(text: str, start: int, body: str) -> _Place:
    name = _NAME.match(body)
    if name is None:
        raise ValueError(f"{text}: a name such as window.from is missing at {start}")
    _require_few(text, "parts in a name", name[1].count(".") + 1)
    calls = []
    position = name.end()
    while position < len(body):
        call = _CALL.match(body, position)
        if call is None:
            raise ValueError(f"{text}: cannot read {body[position:]!r} at {start + position}")
        calls.append(_parse_call(text, start + position, call["name"], call["arguments"]))
        position = call.end()
    _require_few(text, "functions in a row", len(calls))
    return _Place(name[1], tuple(calls))


def _parse_call(text: str, at: int, name: str, listed: str | None) -> _Call:
    function = FUNCTIONS.get(name)
    if function is None:
        known = ", ".join(sorted(FUNCTIONS))
        raise ValueError(f"{text}: there is no function {name} (at {at}); there are: {known}")
    arguments = _arguments(text, at, listed)
    if not function.least <= len(arguments) <= function.most:
        least, most = function.least, function.most
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(f"{text}: {name} takes {wanted} arguments, not {len(arguments)} (at {at})")
    if function.takes_names:
        for argument in arguments:
            if not (read := _NAME.fullmatch(argument)) or read[1] != argument:
                raise ValueError(f"{text}: {name} takes names, {argument!r} is none (at {at})")
            _require_few(text, "parts in a name", argument.count(".") + 1)
        return _Call(function, arguments, None)
    try:
        return _Call(function, arguments, function.make(*arguments))
    except ValueError as error:
        raise ValueError(f"{text}: {error} (at {at})") from error


def _arguments(text: str, at: int, listed: str | None) -> tuple[str, ...]:
    if listed is None or not listed.strip():
        return ()
    arguments = []
    position = -1
    while position < len(listed):
        read = _ARGUMENT.match(listed, position + 1)
        argument = read[0].strip() if read else ""
        is_quoted = argument[:1] in ("'", '"') and argument[0] not in argument[1:-1]
        if not read or not (is_quoted or re.fullmatch(r"[^'\"]+", argument)):
            raise ValueError(f"{text}: cannot read the arguments ({listed}) at {at}")
        arguments.append(argument[1:-1] if is_quoted else argument)
        position = read.end()
    return tuple(arguments)


def _require_few(text: str, what: str, count: int) -> None:
    if count > MAX_PARTS:
        raise ValueError(f"{text}: {count} {what}, more than {MAX_PARTS}")


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
