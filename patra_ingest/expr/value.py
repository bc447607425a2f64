"""Value expressions: how a value is found in an item, JSON or XML.

    $.a.b[0]                    a path
    $.a.b|lower|after('x')      a path, then conversions in a row
    ${$.source}:${$.id|lower}   a template over paths; null when any place is null
    [$.a, $.b]                  the first that is not null

A path gives its first value; with a conversion for all values (`list`, `unique`, `join`, `count` …)
in the row it gives them all, and those before it convert each. An element without text is null.
`each('${$.family}, ${$.given}', '$.name')` is an expression over every value of a list, here the
names of authors, written out of their parts; of several the first that is not null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from patra_ingest.expr.conversions import CONVERSIONS
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import Path, Tree, compile_path
from patra_ingest.expr.places import (
    Apply,
    Body,
    Call,
    Function,
    Value,
    parse_calls,
    require_few,
    require_short,
    split_places,
)
from patra_ingest.expr.xml_tree import XmlNode


@dataclass(frozen=True)
class _Found:
    """A path and what is done with what it leads to."""

    path: Path
    each: tuple[Call, ...]  # for one value, or for every value when there are calls for all
    all: tuple[Call, ...]  # from the first call that takes all values on
    is_optional: bool
    takes_node: bool

    def find(self, tree: Tree) -> Value:
        if not self.all:
            value = _first(self.path, tree, self.takes_node)
            return _converted(value, self.each) if self.each else value
        values = _all(self.path, tree, self.takes_node)
        return _converted([_converted(value, self.each) for value in values], self.all)


@dataclass(frozen=True)
class _Text:
    """A template: literal text and places."""

    parts: tuple[str | _Found, ...]

    def find(self, tree: Tree) -> Value:
        written = ""
        for part in self.parts:
            value = part if isinstance(part, str) else part.find(tree)
            if value is None and isinstance(part, _Found) and not part.is_optional:
                return None
            written += "" if value is None else to_text(value)
        return written


@dataclass(frozen=True)
class ValueExpr:
    """A compiled value expression. Equal texts are equal expressions."""

    text: str
    paths: tuple[str, ...] = field(compare=False)
    _choices: tuple[_Found | _Text, ...] = field(compare=False, repr=False)

    def find(self, tree: Tree) -> Value:
        """Return the value in an item: None, text, number, bool, list, dict or aware datetime."""
        try:
            for choice in self._choices:
                value = choice.find(tree)
                if value is not None:
                    return _kept(value)
        except ValueError as error:
            raise ValueError(f"{self.text}: {error}") from error
        return None

    def column(self, trees: list[Tree]) -> list[Value | ValueError]:
        """Return the value in every item of a page; in the place of one that fails, its error."""
        path = self._plain_path()
        if path and not any(isinstance(tree, XmlNode) for tree in trees):
            return path.column(trees)
        return [self._tried(tree) for tree in trees]

    def _plain_path(self) -> Path | None:
        """Return the path that is all of this expression, if that is so."""
        first, *others = self._choices
        if others or not isinstance(first, _Found) or first.each or first.all:
            return None
        return first.path if first.path.is_single else None

    def _tried(self, tree: Tree) -> Value | ValueError:
        try:
            return self.find(tree)
        except ValueError as error:
            return error


def compile_value(said: str | Sequence[str]) -> ValueExpr:
    """Compile a value expression; raise ValueError with the position of what cannot be read."""
    choices = (said,) if isinstance(said, str) else tuple(said)
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise ValueError(f"{said!r:.80} is neither a value expression nor a list of some")
    return _compiled(choices)


@lru_cache(maxsize=4096)
def _compiled(texts: tuple[str, ...]) -> ValueExpr:
    text = " or ".join(texts)
    require_few(text, "alternatives", len(texts))
    choices = tuple(_parse(text) for text in texts)
    places = [part for choice in choices for part in _places(choice)]
    return ValueExpr(text, tuple(dict.fromkeys(place.path.text for place in places)), choices)


def _each(*said: str) -> Apply:
    inner = compile_value(said)

    def apply(values: Value) -> list[Value] | None:
        listed = values if isinstance(values, list) else [values]
        found = [inner.find(value) for value in listed if value is not None]
        return [value for value in found if value is not None] or None

    return apply


VALUE_CALLS: Mapping[str, Function] = {
    **CONVERSIONS,
    "each": Function(_each, least=1, most=4, takes_all=True, takes_node=True),
}


def _parse(text: str) -> _Found | _Text:
    require_short(text)
    if text[:1] == "$" and text[1:2] in ("", ".", "[", "|"):
        return _parse_found(text, Body(0, text), may_be_optional=False)
    parts = split_places(text)
    if not any(isinstance(part, Body) for part in parts):
        raise ValueError(
            f"{text}: a value begins with a path such as $.id, or has ${{$.id}} in it (at 0)"
        )
    return _Text(
        tuple(part if isinstance(part, str) else _parse_found(text, part, True) for part in parts)
    )


def _parse_found(text: str, body: Body, may_be_optional: bool) -> _Found:
    end = _end_of_path(body.text)
    said = body.text[:end].strip()
    is_optional = may_be_optional and said.endswith("?")
    said = said.removesuffix("?").rstrip() if is_optional else said
    if not said.startswith("$"):
        raise ValueError(f"{text}: a path such as $.id is missing at {body.start}")
    try:
        path = compile_path(said)
    except ValueError as error:
        raise ValueError(f"{text}: at {body.start}: {error}") from error
    calls = parse_calls(text, body, end, VALUE_CALLS)
    at = next((i for i, call in enumerate(calls) if call.function.takes_all), len(calls))
    takes_node = bool(calls) and calls[0].function.takes_node
    return _Found(path, calls[:at], calls[at:], is_optional, takes_node)


def _end_of_path(text: str) -> int:
    """Return where the first `|` outside brackets and quotes is, or the end."""
    depth, quote = 0, ""
    for at, character in enumerate(text):
        if quote:
            is_escaped = text[at - 1] == "\\"
            quote = "" if character == quote and not is_escaped else quote
        elif character in "'\"":
            quote = character
        elif character in "[]":
            depth += 1 if character == "[" else -1
        elif character == "|" and depth == 0:
            return at
    return len(text)


def _places(choice: _Found | _Text) -> list[_Found]:
    if isinstance(choice, _Found):
        return [choice]
    return [part for part in choice.parts if isinstance(part, _Found)]


def _first(path: Path, tree: Tree, takes_node: bool) -> Value:
    if not isinstance(tree, XmlNode):
        return path.first(tree)
    found = path.nodes(tree)
    return _plain(found[0], takes_node) if found else None


def _all(path: Path, tree: Tree, takes_node: bool) -> list[Value]:
    if isinstance(tree, XmlNode):
        return [_plain(found, takes_node) for found in path.nodes(tree)]
    values = path.all(tree)
    is_list = path.is_single and len(values) == 1 and isinstance(values[0], list)
    return list(values[0]) if is_list else list(values)


def _plain(found: XmlNode | str, takes_node: bool) -> Value:
    if takes_node or isinstance(found, str):
        return found
    text = found.text
    return None if not text or text.isspace() else text


def _converted(value: Value, calls: tuple[Call, ...]) -> Value:
    for call in calls:
        if value is not None or call.function.takes_null:
            value = _applied(call, value)
    return value


def _applied(call: Call, value: Value) -> Value:
    if call.apply is None:
        raise TypeError(f"{call.name} takes names, and an item has none")
    try:
        if call.function.takes_each and isinstance(value, list):
            apply = call.apply
            return [None if one is None else apply(one) for one in value]
        return call.apply(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{call.name}: {error}") from error


def _kept(value: Value) -> Value:
    is_plain = isinstance(value, str | int | float | list | dict)
    if is_plain or (isinstance(value, datetime) and value.tzinfo is not None):
        return value
    raise ValueError(f"a {type(value).__name__} is not a value that can be kept")
