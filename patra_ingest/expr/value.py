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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from patra_ingest.expr.conversions import CONVERSIONS
from patra_ingest.expr.path import Path, Tree, compile_path
from patra_ingest.expr.places import (
    Apply,
    Body,
    Function,
    Value,
    parse_calls,
    require_few,
    require_short,
    split_places,
)
from patra_ingest.expr.value_parts import (
    Found,
    OverChildren,
    Text,
    first_of,
    over_children,
    places_of,
)
from patra_ingest.expr.xml_gather import gather, together
from patra_ingest.expr.xml_tree import XmlNode


@dataclass(frozen=True)
class ValueExpr:
    """A compiled value expression. Equal texts are equal expressions."""

    text: str
    paths: tuple[str, ...] = field(compare=False)
    _choices: tuple[Found | Text, ...] = field(compare=False, repr=False)

    def find(self, tree: Tree) -> Value:
        """Return the value in an item: None, text, number, bool, list, dict or aware datetime."""
        try:
            value = self._chosen(tree)
            return value if value is None or isinstance(value, str) else _kept(value)
        except ValueError as error:
            raise ValueError(f"{self.text}: {error}") from error

    @cached_property
    def _chosen(self) -> Callable[[Tree], Value]:
        """What finds the value of the first choice that has one."""
        return first_of([choice.find for choice in self._choices])

    @cached_property
    def trails(self) -> tuple[str, ...]:
        """Where on XML its paths begin."""
        return tuple(compile_path(path).xml.trail for path in self.paths)

    @cached_property
    def over(self) -> OverChildren | None:
        """What finds the value by the texts of an element's children, if they are enough."""
        return over_children(self._choices)

    def column(self, trees: list[Tree]) -> list[Value | ValueError]:
        """Return the value in every item of a page; in the place of one that fails, its error."""
        if trees and isinstance(trees[0], XmlNode) and _is_told(trees[0], self.text):
            return [tree.told[self.text] for tree in trees]
        path = self._plain_path()
        if path and not any(isinstance(tree, XmlNode) for tree in trees):
            return path.column(trees)
        find, found = self._chosen, list[Value | ValueError]()
        for tree in trees:
            try:
                value = find(tree)
                found.append(value if value is None or isinstance(value, str) else _kept(value))
            except ValueError as error:
                found.append(ValueError(f"{self.text}: {error}"))
        return found

    def _plain_path(self) -> Path | None:
        """Return the path that is all of this expression, if that is so."""
        first, *others = self._choices
        if others or not isinstance(first, Found) or first.each or first.all:
            return None
        return first.path if first.path.is_single else None


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
    places = [part for choice in choices for part in places_of(choice)]
    return ValueExpr(text, tuple(dict.fromkeys(place.path.text for place in places)), choices)


def _each(*said: str) -> Apply:
    inner = compile_value(said)
    trails = together(inner.trails)

    def apply(values: Value) -> list[Value] | None:
        listed: list[Any] = values if isinstance(values, list) else [values]
        gather(listed, trails)
        found = [inner.find(value) for value in listed if value is not None]
        return [value for value in found if value is not None] or None

    return apply


VALUE_CALLS: Mapping[str, Function] = {
    **CONVERSIONS,
    "each": Function(_each, least=1, most=4, takes_all=True, takes_node=True),
}


def _parse(text: str) -> Found | Text:
    require_short(text)
    if text[:1] == "$" and text[1:2] in ("", ".", "[", "|"):
        return _parse_found(text, Body(0, text), may_be_optional=False)
    parts = split_places(text)
    if not any(isinstance(part, Body) for part in parts):
        raise ValueError(
            f"{text}: a value begins with a path such as $.id, or has ${{$.id}} in it (at 0)"
        )
    return Text(
        tuple(part if isinstance(part, str) else _parse_found(text, part, True) for part in parts)
    )


def _parse_found(text: str, body: Body, may_be_optional: bool) -> Found:
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
    is_each = bool(calls) and calls[0].name == "each"
    over = compile_value(calls[0].arguments).over if is_each else None
    return Found(path, calls[:at], calls[at:], is_optional, takes_node, over)


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


def _is_told(node: XmlNode, what: str) -> bool:
    return node.told is not None and what in node.told


def _kept(value: Value) -> Value:
    is_plain = isinstance(value, str | int | float | list | dict)
    if is_plain or (isinstance(value, datetime) and value.tzinfo is not None):
        return value
    raise ValueError(f"a {type(value).__name__} is not a value that can be kept")
