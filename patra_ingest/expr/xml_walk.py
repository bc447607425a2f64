"""A path's steps on XML. A name leads to a group: the children of that name of one parent.

So `[n]` picks per parent, a filter keeps the group's order, and the next name fans out from every
member of every group. What is found in the end is nodes and, for attributes, texts.

Between the steps, members are lxml's own elements: a node is made only of what is found. A node of
another kind (a document, an item that is packed) stays a node, and is asked for its children.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from patra_ingest.expr.path_steps import (
    AllOf,
    AnyChild,
    At,
    Below,
    Each,
    Has,
    Name,
    Step,
    Test,
    Where,
    compile_test,
    number_in,
)
from patra_ingest.expr.xml_tree import Names, XmlNode, attribute_of, text_of

Group = Sequence[Any]  # elements, or nodes of another kind; an attribute's text is no group
Walk = Callable[[list[Group | str], Names], list[Group | str]]


@dataclass(frozen=True)
class XmlWalk:
    """The steps of one path: what they lead to below a node."""

    trail: str  # the names at its beginning, which may be gathered with those of other paths
    members: Callable[[XmlNode], Sequence[Any]]  # elements, or texts of attributes
    nodes: Callable[[XmlNode], list[Any]]  # the same, elements as nodes
    texts: Callable[[XmlNode], list[str]]  # … each as its text
    first: Callable[[XmlNode], str | None]  # the text of the first of them


def walk_xml(steps: tuple[Step, ...]) -> XmlWalk:
    """Return the functions that give what the steps lead to."""
    names = _leading_names(steps)
    trail, rest = "/".join(names), steps[len(names) :]
    walk = _members_of(steps, trail, rest)

    def nodes(node: XmlNode) -> list[Any]:
        return _as_nodes(walk(node), node) if steps else [node]

    def texts(node: XmlNode) -> list[str]:
        return [plain(one) for one in walk(node)]

    def first(node: XmlNode) -> str | None:
        found = walk(node)
        return plain(found[0]) if found else None

    if rest:
        return XmlWalk(trail, walk, nodes, texts, first)

    def quick_texts(node: XmlNode) -> list[str]:
        gathered = node.found.get(trail) if node.found is not None else None
        return texts(node) if gathered is None else [text_of(element) for element in gathered]

    def quick_first(node: XmlNode) -> str | None:
        gathered = node.found.get(trail) if node.found is not None else None
        if gathered is None:
            return first(node)
        return text_of(gathered[0]) if gathered else None

    return XmlWalk(trail, walk, nodes, quick_texts, quick_first)


def _members_of(
    steps: tuple[Step, ...], trail: str, rest: tuple[Step, ...]
) -> Callable[[XmlNode], Sequence[Any]]:
    """Return what goes the whole way, or only the rest from what was gathered at the trail."""
    whole, remaining = [_walk(step) for step in steps], [_walk(step) for step in rest]
    is_counted = any(isinstance(step, At) for step in rest)

    def members(node: XmlNode) -> Sequence[Any]:
        gathered = node.found.get(trail) if node.found is not None else None
        if gathered is None:
            return _taken(whole, [(_unwrapped(node),)], node.names)
        if not rest:
            return gathered
        groups: list[Group | str] = [gathered]
        if is_counted:  # from the first of each parent on
            groups = [list(group) for _, group in groupby(gathered, _parent)]
        return _taken(remaining, groups, node.names)

    return members


def _taken(walks: list[Walk], groups: list[Group | str], names: Names) -> list[Any]:
    for walk in walks:
        groups = walk(groups, names)
    return [one for group in groups for one in ((group,) if isinstance(group, str) else group)]


def plain(found: Any) -> str:
    """Return what was found as text."""
    if isinstance(found, str):
        return found
    return found.text if isinstance(found, XmlNode) else text_of(found)


def _as_nodes(members: Sequence[Any], node: XmlNode) -> list[Any]:
    names = node.names
    return [one if isinstance(one, str | XmlNode) else XmlNode(one, names) for one in members]


def _unwrapped(node: XmlNode) -> Any:
    return node.element if type(node) is XmlNode else node


def _parent(element: Any) -> Any:
    return element.getparent()


def _leading_names(steps: tuple[Step, ...]) -> list[str]:
    names = []
    for step in steps:
        if not isinstance(step, Name) or step.name.startswith("@") or "/" in step.name:
            break
        names.append(step.name)
    return names


def _members(groups: list[Group | str]) -> list[Any]:
    return [one for group in groups if not isinstance(group, str) for one in group]


def _walk(step: Step) -> Walk:
    match step:
        case Name(name):
            return _attribute(name[1:]) if name.startswith("@") else _child(name)
        case At(index):
            return _at(index)
        case Each():
            return lambda groups, _: [(one,) for one in _members(groups)]
        case AnyChild():
            return lambda groups, _: [
                found for one in _members(groups) if (found := _children(one))
            ]
        case Below(steps):
            return _below(steps)
        case Where(test):
            return _where(_has_attribute(test) or _passes(test))


def _child(name: str) -> Walk:
    return lambda groups, names: [
        found for one in _members(groups) if (found := _named(one, name, names))
    ]


def _node(member: Any, names: Names) -> XmlNode:
    return member if isinstance(member, XmlNode) else XmlNode(member, names)


def _children(member: Any) -> Group:
    if isinstance(member, XmlNode):
        return [_unwrapped(child) for child in member.children]
    return list(member)


def _named(member: Any, name: str, names: Names) -> Group:
    if isinstance(member, XmlNode):
        return [_unwrapped(child) for child in member.named(name)]
    return [child for child in member if names[child.tag] == name]


def _attribute_of(member: Any, name: str, names: Names) -> str | None:
    if isinstance(member, XmlNode):
        return member.attribute(name)
    return attribute_of(member, name, names)


def _attribute(name: str) -> Walk:
    def walk(groups: list[Group | str], names: Names) -> list[Group | str]:
        texts = (_attribute_of(one, name, names) for one in _members(groups))
        return [text for text in texts if text is not None]

    return walk


def _at(index: int) -> Walk:
    return lambda groups, _: [
        (group[index],)
        for group in groups
        if not isinstance(group, str) and -len(group) <= index < len(group)
    ]


def _passes(test: Test) -> Callable[[Any, Names], bool]:
    passes = compile_test(test, lambda steps: walk_xml(steps).nodes, _read)
    return lambda one, names: passes(_node(one, names))


def _has_attribute(test: Test) -> Callable[[Any, Names], bool] | None:
    """Return a quick test for an attribute of some text, if that is all that is asked for."""
    match test:
        case AllOf((Has((Name(at),), "==", str() as wanted),)) if at.startswith("@"):
            name = at[1:]
        case _:
            return None

    def passes(member: Any, names: Names) -> bool:
        text = None if isinstance(member, XmlNode) else member.get(name)
        # In a namespace it has another name there.
        return (_attribute_of(member, name, names) if text is None else text) == wanted

    return passes


def _where(passes: Callable[[Any, Names], bool]) -> Walk:
    def walk(groups: list[Group | str], names: Names) -> list[Group | str]:
        kept = (
            [one for one in group if passes(one, names)]
            for group in groups
            if not isinstance(group, str)
        )
        return [group for group in kept if group]

    return walk


def _below(steps: tuple[Step, ...]) -> Walk:
    walks = [_walk(step) for step in steps]

    def step_by_step(groups: list[Group | str], names: Names) -> list[Group | str]:
        found: list[Group | str] = []
        stack = _members(groups)[::-1]
        while stack:
            one = stack.pop()
            stack.extend(_children(one)[::-1])
            reached: list[Group | str] = [(one,)]
            for walk in walks:
                reached = walk(reached, names)
            found += reached
        return found

    match steps[0]:
        case Name(name) if not name.startswith("@"):
            return _named_below(name, walks[1:], step_by_step)
        case _:
            return step_by_step


def _named_below(name: str, walks: list[Walk], step_by_step: Walk) -> Walk:
    """Go to the elements of a name anywhere below: lxml finds them faster than we do."""
    tag = "{*}" + name.rpartition(":")[2]

    def walk(groups: list[Group | str], names: Names) -> list[Group | str]:
        reached: list[Group | str] = []
        for one in _members(groups):
            if isinstance(one, XmlNode):
                return step_by_step(groups, names)
            found = [e for e in one.iter(tag) if e is not one and names[e.tag] == name]
            by_parent = [list(group) for _, group in groupby(found, _parent)]
            if len(by_parent) > 1:  # those of an outer parent come first
                return step_by_step(groups, names)
            reached += by_parent
        for following in walks:
            reached = following(reached, names)
        return reached

    return walk


def _read(found: XmlNode | str, literal: object) -> object:
    text = plain(found)
    # XML has only text: a number to compare with asks for the number in it.
    is_number = isinstance(literal, int | float) and not isinstance(literal, bool)
    number = number_in(text) if is_number else None
    return text if number is None else number
