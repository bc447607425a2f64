"""A large XML body as the same tree, with its items packed: memory stays near the body's size.

lxml's tree takes many times the room of the text it was read from. So each item is written back
to text as soon as its end is read, and opened again when somebody looks into it; only the last few
stay open. Whoever walks the tree finds what `read_xml` would have given.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from lxml import etree

from patra_ingest.expr.xml_tree import PARSING, Document, Names, XmlNode, not_xml

OPEN_AT_ONCE = 64  # who goes through items in portions of this size opens each only once
_CHUNK = 256 * 1024

Trail = tuple[str, ...]
_NAMES = re.compile(r"\$((?:\.[^\W\d][\w:-]*)+)(?=\[|$)")


class _Packing:
    """Which elements are items, and how one is closed and opened."""

    def __init__(self, trails: Collection[Trail], names: Names) -> None:
        self.names = names
        self.trails = trails
        self.opened: Callable[[str], XmlNode] = lru_cache(OPEN_AT_ONCE)(self._open)

    def close(self, element: Any) -> None:
        """Turn an item's content into text; its name and attributes stay."""
        ancestors = [self.names.of(above.tag) for above in element.iterancestors()]
        if (*ancestors[::-1], self.names.of(element.tag)) not in self.trails:
            return
        packed = etree.tostring(element, encoding="unicode", with_tail=False)
        del element[:]
        element.text = packed

    def node(self, element: Any, trail: Trail) -> XmlNode:
        """Return the node of an element at a place: packed, above packed ones, or plain."""
        if trail in self.trails:
            return _Packed(element, self)
        if any(item[: len(trail)] == trail for item in self.trails):
            return _Above(element, trail, self)
        return XmlNode(element, self.names)

    def whole(self, element: Any, trail: Trail) -> Any:
        """Return a copy of an element with all its items opened."""
        if trail in self.trails:
            return deepcopy(self.opened(element.text)._element)
        copied = deepcopy(element)
        for number, child in enumerate(element):
            copied[number] = self.whole(child, (*trail, self.names.of(child.tag)))
            copied[number].tail = child.tail
        return copied

    def _open(self, packed: str) -> XmlNode:
        return XmlNode(etree.fromstring(packed, etree.XMLParser(**PARSING)), self.names)


class _Packed(XmlNode):
    """An item: opened when somebody looks into it."""

    __slots__ = ("_packing",)

    def __init__(self, element: Any, packing: _Packing) -> None:
        super().__init__(element, packing.names)
        self._packing = packing

    @property
    def children(self) -> tuple[XmlNode, ...]:
        """The child elements in the order of the document."""
        return self._opened().children

    @property
    def text(self) -> str:
        """All the text below, in order."""
        return self._opened().text

    def named(self, name: str) -> tuple[XmlNode, ...]:
        """Return the children of that name, in order."""
        return self._opened().named(name)

    def to_json(self) -> dict[str, Any]:
        """Write the node as JSON holds it."""
        return self._opened().to_json()

    def to_list(self) -> list[Any]:
        """Write the node as JsonML."""
        return self._opened().to_list()

    def _opened(self) -> XmlNode:
        return self._packing.opened(self._element.text)


class _Above(XmlNode):
    """An element with items somewhere below it."""

    __slots__ = ("_packing", "_trail")

    def __init__(self, element: Any, trail: Trail, packing: _Packing) -> None:
        super().__init__(element, packing.names)
        self._packing = packing
        self._trail = trail

    @property
    def children(self) -> tuple[XmlNode, ...]:
        """The child elements in the order of the document."""
        if self._children is None:
            node, of, trail = self._packing.node, self._names.of, self._trail
            self._children = tuple(
                [node(child, (*trail, of(child.tag))) for child in self._element]
            )
        return self._children

    @property
    def text(self) -> str:
        """All the text below, in order; one item after the other is opened for it."""
        written = [self._element.text or ""]
        for node in self.children:
            written += (node.text, node._element.tail or "")
        return "".join(written)

    def to_json(self) -> dict[str, Any]:
        """Write the node as JSON holds it."""
        return self._whole().to_json()

    def to_list(self) -> list[Any]:
        """Write the node as JsonML."""
        return self._whole().to_list()

    def _whole(self) -> XmlNode:
        return XmlNode(self._packing.whole(self._element, self._trail), self._names)


def find_trails(paths: Collection[str]) -> frozenset[Trail]:
    """Return the names that lead to items, where names alone do; the root itself is no item.

    An item inside another one is left to the outer.
    """
    found = {tuple(names[1].split(".")[1:]) for path in paths if (names := _NAMES.match(path))}
    deep = {trail for trail in found if len(trail) > 1}
    return frozenset(trail for trail in deep if not any(_begins(trail, other) for other in deep))


def stream_xml(
    body: bytes,
    namespaces: Mapping[str, str],
    trails: Collection[Trail],
    chunk: int = _CHUNK,
) -> XmlNode:
    """Read a body as `read_xml` does, and pack the elements at the trails."""
    packing = _Packing(trails, Names(namespaces))
    tags = ["{*}" + trail[-1].rpartition(":")[2] for trail in trails]
    with not_xml():
        parser = etree.XMLPullParser(events=("end",), tag=tags, **PARSING)
        for part in _parts(body, chunk):
            parser.feed(part)
            for _, element in parser.read_events():
                packing.close(element)
        root = parser.close()
    return Document(packing.node(root, (packing.names.of(root.tag),)))


def _parts(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def _begins(trail: Trail, other: Trail) -> bool:
    return other != trail and trail[: len(other)] == other
