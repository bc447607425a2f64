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
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import Path, Tree, compile_path
from patra_ingest.expr.places import (
    Apply,
    Body,
    Call,
    Function,
    Value,
    end_of_path,
    parse_calls,
    require_few,
    require_short,
    split_places,
)
from patra_ingest.expr.xml_gather import gather, together
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
        if isinstance(tree, XmlNode):
            return self._find_in_xml(tree)
        if not self.all:
            value = self.path.first(tree)
            return _converted(value, self.each) if self.each else value
        values = _all(self.path, tree)
        return _converted([_converted(value, self.each) for value in values], self.all)

    def _find_in_xml(self, node: XmlNode) -> Value:
        walk = self.path.xml
        if self.all:
            found = walk.nodes(node) if self.takes_node else map(_told, walk.texts(node))
            values = [_converted(value, self.each) for value in found] if self.each else [*found]
            return _converted(values, self.all)
        if self.takes_node:
            nodes = walk.nodes(node)
            return _converted(nodes[0], self.each) if nodes else None
        text = walk.first(node)
        value = None if not text or text.isspace() else text
        return _converted(value, self.each) if self.each else value


@dataclass(frozen=True)
class _Text:
    """A template: literal text and places."""

    parts: tuple[str | _Found, ...]

    def find(self, tree: Tree) -> Value:
        written = ""
        for part in self.parts:
            if isinstance(part, str):
                written += part
                continue
            value = part.find(tree)
            if isinstance(value, str):  # nearly always
                written += value
            elif value is not None:
                written += to_text(value)
            elif not part.is_optional:
                return None
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
            value = self._chosen(tree)
            return value if value is None or isinstance(value, str) else _kept(value)
        except ValueError as error:
            raise ValueError(f"{self.text}: {error}") from error

    @cached_property
    def _chosen(self) -> Callable[[Tree], Value]:
        """What finds the value of the first choice that has one."""
        return _first_of([choice.find for choice in self._choices])

    @cached_property
    def trails(self) -> tuple[str, ...]:
        """Where on XML its paths begin."""
        return tuple(compile_path(path).xml.trail for path in self.paths)

    @cached_property
    def of_children(self) -> Callable[[Mapping[str, str | None]], Value] | None:
        """What finds the value by the texts of an element's children; None if they are too few."""
        places = [part for choice in self._choices for part in _places(choice)]
        if any(not one.path.is_name or one.all or one.takes_node for one in places):
            return None
        return _first_of([_by_names(choice) for choice in self._choices])

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
        if others or not isinstance(first, _Found) or first.each or first.all:
            return None
        return first.path if first.path.is_single else None


def _first_of(finds: Sequence[Callable[[Any], Value]]) -> Callable[[Any], Value]:
    """Return what finds the first value that is not null."""
    first, *others = finds

    def find(tree: Any) -> Value:
        value = first(tree)
        if value is None:
            for other in others:
                value = other(tree)
                if value is not None:
                    break
        return value

    return find if others else first


def _by_names(choice: "_Found | _Text") -> Callable[[Mapping[str, str | None]], Value]:
    """Return what finds a choice in a mapping of texts; a template of names alone is filled."""
    places = _places(choice)
    if isinstance(choice, _Found) or any(one.each or one.is_optional for one in places):
        return choice.find
    names = [one.path.xml.trail for one in places]
    form = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for p in choice.parts)

    def find(texts: Mapping[str, str | None]) -> str | None:
        values = tuple(map(texts.get, names))
        return None if None in values else form % values

    return find


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
    trails = together(inner.trails)
    wanted = frozenset(trails)
    of_children = inner.of_children

    def apply(values: Value) -> list[Value] | None:
        listed: list[Any] = values if isinstance(values, list) else [values]
        if not listed or not isinstance(listed[0], XmlNode):
            found = [inner.find(value) for value in listed if value is not None]
        elif of_children is not None:
            found = [of_children(node.child_texts(wanted)) for node in listed]
        else:
            gather(listed, trails)
            found = [inner.find(node) for node in listed]
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
    end = end_of_path(body.text)
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


def _places(choice: _Found | _Text) -> list[_Found]:
    if isinstance(choice, _Found):
        return [choice]
    return [part for part in choice.parts if isinstance(part, _Found)]


def _all(path: Path, tree: Tree) -> list[Value]:
    values = path.all(tree)
    is_list = path.is_single and len(values) == 1 and isinstance(values[0], list)
    return list(values[0]) if is_list else list(values)


def _is_told(node: XmlNode, what: str) -> bool:
    return node.told is not None and what in node.told


def _told(text: str) -> str | None:
    """Return a text of an element, or None if it says nothing."""
    return None if not text or text.isspace() else text


def _converted(value: Value, calls: tuple[Call, ...]) -> Value:
    for call in calls:
        if value is None and not call.function.takes_null:
            continue
        apply = call.apply
        if apply is None:
            raise TypeError(f"{call.name} takes names, and an item has none")
        try:
            if isinstance(value, list) and call.function.takes_each:
                value = [None if one is None else apply(one) for one in value]
            else:
                value = apply(value)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{call.name}: {error}") from error
    return value


def _kept(value: Value) -> Value:
    is_plain = isinstance(value, str | int | float | list | dict)
    if is_plain or (isinstance(value, datetime) and value.tzinfo is not None):
        return value
    raise ValueError(f"a {type(value).__name__} is not a value that can be kept")
