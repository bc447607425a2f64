"""What several paths lead to below an element, found in one walk: each child is looked at once.

A path's leading names are its trail, `MedlineCitation/Article/Journal`; what follows them (an
index, a filter, an attribute) is left to the path itself. A node that is gathered remembers the
elements at every trail, so that the paths of a mapping need not walk one after the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from patra_ingest.expr.xml_tree import Names, XmlNode

_MOST_TAGS = 10_000  # that are remembered; nobody has so many
_END = ""  # no element has this name


class _Steps(dict[str, "tuple[int | None, _Steps | None] | None"]):
    """By tag: the place of a trail that ends there, and the steps below; None: no trail."""

    def __init__(self, growing: Mapping[str, Any], names: Names) -> None:
        super().__init__()
        self._names = names
        self._named = {
            name: (below.get(_END), _Steps(below, names) if below.keys() - {_END} else None)
            for name, below in growing.items()
            if name != _END
        }

    def __missing__(self, tag: str) -> "tuple[int | None, _Steps | None] | None":
        step = self._named.get(self._names[tag])
        if len(self) < _MOST_TAGS:
            self[tag] = step
        return step


class Gatherer:
    """The trails that are walked together."""

    def __init__(self, trails: tuple[str, ...], names: Names) -> None:
        self._trails = trails
        growing: dict[str, Any] = {}
        for place, trail in enumerate(trails):
            below = growing
            for name in trail.split("/"):
                below = below.setdefault(name, {})
            below[_END] = place
        self._steps = _Steps(growing, names)

    def gather(self, node: XmlNode) -> None:
        """Let a node remember the elements at every trail, in the order of the document."""
        found: list[list[Any]] = [[] for _ in self._trails]
        _descend(node.content, self._steps, found)
        node.found = dict(zip(self._trails, found, strict=True))


def _descend(element: Any, steps: _Steps, found: list[list[Any]]) -> None:
    for child in element:
        step = steps[child.tag]
        if step is not None:
            place, below = step
            if place is not None:
                found[place].append(child)
            if below is not None:
                _descend(child, below, found)


@lru_cache(maxsize=256)
def _gatherer(trails: tuple[str, ...], namespaces: tuple[tuple[str, str], ...]) -> Gatherer:
    return Gatherer(trails, Names(dict(namespaces)))


def gather(items: Sequence[Any], trails: tuple[str, ...]) -> None:
    """Let every node among the items of a page remember what is at these trails."""
    if not items or not isinstance(items[0], XmlNode):  # a page is of one kind
        return
    walk = _gatherer(trails, items[0].names.namespaces)
    for item in items:
        walk.gather(item)


def together(trails: Iterable[str]) -> tuple[str, ...]:
    """Return trails as they are walked: each once."""
    return tuple(sorted({trail for trail in trails if trail}))
