"""A path's steps on XML. A name leads to a group: the children of that name of one parent.

So `[n]` picks per parent, a filter keeps the group's order, and the next name fans out from every
node of every group. What is found in the end is nodes and, for attributes, texts.
"""

from collections.abc import Callable
from typing import Any

from patra_ingest.expr.path_steps import (
    AnyChild,
    At,
    Below,
    Each,
    Name,
    Step,
    Where,
    compile_test,
    number_in,
)
from patra_ingest.expr.xml_tree import XmlNode

Group = tuple[XmlNode, ...]
Walk = Callable[[list[Group | str]], list[Group | str]]


def walk_xml(steps: tuple[Step, ...]) -> Callable[[XmlNode], list[Any]]:
    """Return a function that gives every node, or attribute's text, the steps lead to."""
    walks = [_walk(step) for step in steps]

    def find_all(node: XmlNode) -> list[Any]:
        found: list[Group | str] = [(node,)]
        for walk in walks:
            found = walk(found)
        return [one for group in found for one in _members(group)]

    return find_all


def plain(found: XmlNode | str) -> str:
    """Return what was found as text."""
    return found if isinstance(found, str) else found.text


def _members(group: Group | str) -> Group | tuple[str]:
    return (group,) if isinstance(group, str) else group


def _nodes(groups: list[Group | str]) -> list[XmlNode]:
    return [node for group in groups if not isinstance(group, str) for node in group]


def _walk(step: Step) -> Walk:
    match step:
        case Name(name) if name.startswith("@"):
            return _attribute(name[1:])
        case Name(name):
            return lambda groups: [named for node in _nodes(groups) if (named := node.named(name))]
        case At(index):
            return _at(index)
        case Each():
            return lambda groups: [(node,) for node in _nodes(groups)]
        case AnyChild():
            return lambda groups: [node.children for node in _nodes(groups) if node.children]
        case Below(steps):
            return _below([_walk(step) for step in steps])
        case Where(test):
            return _where(compile_test(test, walk_xml, _read))


def _attribute(name: str) -> Walk:
    def walk(groups: list[Group | str]) -> list[Group | str]:
        texts = (node.attribute(name) for node in _nodes(groups))
        return [text for text in texts if text is not None]

    return walk


def _at(index: int) -> Walk:
    return lambda groups: [
        (group[index],)
        for group in groups
        if not isinstance(group, str) and -len(group) <= index < len(group)
    ]


def _where(passes: Callable[[XmlNode], bool]) -> Walk:
    def walk(groups: list[Group | str]) -> list[Group | str]:
        kept = (tuple(filter(passes, group)) for group in groups if not isinstance(group, str))
        return [group for group in kept if group]

    return walk


def _below(walks: list[Walk]) -> Walk:
    def walk(groups: list[Group | str]) -> list[Group | str]:
        found: list[Group | str] = []
        stack = _nodes(groups)[::-1]
        while stack:
            node = stack.pop()
            stack.extend(node.children[::-1])
            reached: list[Group | str] = [(node,)]
            for step in walks:
                reached = step(reached)
            found += reached
        return found

    return walk


def _read(found: XmlNode | str, literal: object) -> object:
    text = plain(found)
    # XML has only text: a number to compare with asks for the number in it.
    is_number = isinstance(literal, int | float) and not isinstance(literal, bool)
    number = number_in(text) if is_number else None
    return text if number is None else number
