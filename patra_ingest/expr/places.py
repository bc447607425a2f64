"""The notation of `${…}` places and of functions in a row, for requests and for items alike.

`$${` writes `${`. A function is made from its arguments once, when the text is compiled, so a wrong
pattern, zone or duration is found there; the made function turns one value into another.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Value = object  # whatever a variable or an item holds; each function asks for the type it needs
Apply = Callable[[Value], Value]

MAX_CHARS = 4096
MAX_PARTS = 8  # of a name, and functions in a row: deeper is a mistake, not a request

QUOTED = r"'[^']*'|\"[^\"]*\""
NAME = re.compile(r"\s*([A-Za-z_][\w-]*(?:\.[@\w][\w:-]*)*)\s*")
_PLACE = re.compile(rf"\$\{{(?P<body>(?:[^{{}}'\"]|{QUOTED})*)\}}")
_CALL = re.compile(rf"\|\s*(?P<name>\w+)\s*(?:\((?P<arguments>(?:[^()'\"]|{QUOTED})*)\))?\s*")
_ARGUMENT = re.compile(rf"(?:[^,'\"]|{QUOTED})+")


@dataclass(frozen=True)
class Function:
    """How a function is made, how many arguments that takes, and what it is applied to."""

    make: Callable[..., Apply]
    least: int = 0
    most: int = 0
    takes_null: bool = False
    takes_names: bool = False  # arguments are variables of the template, not text
    takes_all: bool = False  # every value the path leads to, as one list
    takes_node: bool = False  # an XML element as a node, not as its text
    takes_each: bool = False  # a list is turned into the list of its items' results


@dataclass(frozen=True)
class Call:
    """One function of a row, made already unless its arguments are variables."""

    name: str
    function: Function
    arguments: tuple[str, ...]
    apply: Apply | None


@dataclass(frozen=True)
class Body:
    """What stands between `${` and `}`, and where."""

    start: int
    text: str


def split_places(text: str) -> list[str | Body]:
    """Cut a text into literal parts and places; raise ValueError for a place without an end."""
    require_short(text)
    parts: list[str | Body] = []
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
        parts.append(Body(place.start("body"), place["body"]))
        literal, position = "", place.end()
    literal += text[position:]
    return [*parts, literal] if literal else parts


def parse_calls(
    text: str, body: Body, position: int, functions: Mapping[str, Function]
) -> tuple[Call, ...]:
    """Read the `|function(…)` row of a body from `position` to its end."""
    calls = []
    while position < len(body.text):
        call = _CALL.match(body.text, position)
        if call is None:
            unread = body.text[position:]
            raise ValueError(f"{text}: cannot read {unread!r} at {body.start + position}")
        calls.append(_parse_call(text, body.start + position, call, functions))
        position = call.end()
    require_few(text, "functions in a row", len(calls))
    return tuple(calls)


def require_few(text: str, what: str, count: int) -> None:
    """Raise ValueError when there are more than MAX_PARTS of something."""
    if count > MAX_PARTS:
        raise ValueError(f"{text}: {count} {what}, more than {MAX_PARTS}")


def require_short(text: str) -> None:
    """Raise ValueError when a text is longer than anyone would write by hand."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"a template of {len(text)} characters is longer than {MAX_CHARS}")


def _parse_call(text: str, at: int, call: re.Match[str], functions: Mapping[str, Function]) -> Call:
    name = call["name"]
    function = functions.get(name)
    if function is None:
        known = ", ".join(sorted(functions))
        raise ValueError(f"{text}: there is no function {name} (at {at}); there are: {known}")
    arguments = _arguments(text, at, call["arguments"])
    if not function.least <= len(arguments) <= function.most:
        least, most = function.least, function.most
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(f"{text}: {name} takes {wanted} arguments, not {len(arguments)} (at {at})")
    if function.takes_names:
        _require_names(text, at, name, arguments)
        return Call(name, function, arguments, None)
    try:
        return Call(name, function, arguments, function.make(*arguments))
    except ValueError as error:
        raise ValueError(f"{text}: {name}: {error} (at {at})") from error


def _require_names(text: str, at: int, function: str, arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        if not (read := NAME.fullmatch(argument)) or read[1] != argument:
            raise ValueError(f"{text}: {function} takes names, {argument!r} is none (at {at})")
        require_few(text, "parts in a name", argument.count(".") + 1)


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
