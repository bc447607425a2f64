"""What value expressions are made of: paths with conversions in a row, and templates over them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import Path, Tree
from patra_ingest.expr.places import Call, Value
from patra_ingest.expr.xml_tree import Names, XmlNode, child_texts

Texts = Mapping[str, str | None]
OverChildren = Callable[[Any, Names], Value]


@dataclass(frozen=True)
class Found:
    """A path and what is done with what it leads to."""

    path: Path
    each: tuple[Call, ...]  # for one value, or for every value when there are calls for all
    all: tuple[Call, ...]  # from the first call that takes all values on
    is_optional: bool
    takes_node: bool
    over: OverChildren | None = None  # what `each` finds by the children of an element

    def find(self, tree: Tree) -> Value:
        """Return the value in an item, converted; None where there is none."""
        if isinstance(tree, XmlNode):
            return self._find_in_xml(tree)
        if not self.all:
            value = self.path.first(tree)
            return _converted(value, self.each) if self.each else value
        values = _all(self.path, tree)
        return _converted([_converted(value, self.each) for value in values], self.all)

    def _find_in_xml(self, node: XmlNode) -> Value:
        walk = self.path.xml
        if self.over is not None:
            found = [self.over(one, node.names) for one in walk.members(node)]
            return _converted([one for one in found if one is not None] or None, self.all[1:])
        if self.all:
            values = walk.nodes(node) if self.takes_node else [*map(_told, walk.texts(node))]
            each = self.each
            return _converted([_converted(v, each) for v in values] if each else values, self.all)
        if self.takes_node:
            nodes = walk.nodes(node)
            return _converted(nodes[0], self.each) if nodes else None
        text = walk.first(node)
        value = None if not text or text.isspace() else text
        return _converted(value, self.each) if self.each else value


@dataclass(frozen=True)
class Text:
    """A template: literal text and places."""

    parts: tuple[str | Found, ...]

    def find(self, tree: Tree) -> Value:
        """Return the text that is written for an item; None where a place has no value."""
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


def places_of(choice: Found | Text) -> list[Found]:
    """Return the paths of a choice."""
    if isinstance(choice, Found):
        return [choice]
    return [part for part in choice.parts if isinstance(part, Found)]


def first_of(finds: Sequence[Callable[[Any], Value]]) -> Callable[[Any], Value]:
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


def over_children(choices: Sequence[Found | Text]) -> OverChildren | None:
    """Return what finds a value by the texts of an element's children alone; None if it needs more.

    So the name of an author is written out of its parts with one look at each of them.
    """
    places = [place for choice in choices for place in places_of(choice)]
    if any(not one.path.is_name or one.all or one.takes_node for one in places):
        return None
    find = first_of([_by_names(choice) for choice in choices])
    wanted = frozenset(one.path.xml.trail for one in places)

    def found(member: Any, names: Names) -> Value:
        if isinstance(member, str):  # an attribute has no children
            return None
        element = member.content if isinstance(member, XmlNode) else member
        return find(child_texts(element, names, wanted))

    return found


def _by_names(choice: Found | Text) -> Callable[[Texts], Value]:
    """Return what finds a choice in a mapping of texts; a template of names alone is filled."""
    places = places_of(choice)
    if isinstance(choice, Found) or any(one.each or one.is_optional for one in places):
        return choice.find
    names = [one.path.xml.trail for one in places]
    form = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for p in choice.parts)

    def find(texts: Texts) -> str | None:
        values = tuple(map(texts.get, names))
        return None if None in values else form % values

    return find


def _all(path: Path, tree: Tree) -> list[Value]:
    values = path.all(tree)
    is_list = path.is_single and len(values) == 1 and isinstance(values[0], list)
    return list(values[0]) if is_list else list(values)


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
