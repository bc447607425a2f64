"""A large XML body as the same tree, with its items packed: memory stays near the body's size.

lxml's tree takes many times the room of the text it was read from. So each item is written back
to text as soon as its end is read, and opened again when somebody looks into it; only the last few
stay open. What is known beforehand to be looked for is read while the item is open. Whoever walks
the tree finds what `read_xml` would have given.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

import orjson
from lxml import etree

from patra_ingest.expr.xml_gather import gather
from patra_ingest.expr.xml_tree import (
    PARSING,
    Document,
    Names,
    XmlNode,
    is_plain,
    not_xml,
    raw_text,
    written,
)

OPEN_AT_ONCE = 64  # who goes through items in portions of this size opens each only once
_CHUNK = 256 * 1024

Trail = tuple[str, ...]
Look = Callable[[list[XmlNode]], list[Any]]  # what is looked for in every item of a portion
_NAMES = re.compile(r"\$((?:\.[^\W\d][\w:-]*)+)(?=\[|$)")


class Looks:
    """What will be looked for in the items: by name, and where on the way to it."""

    def __init__(self, by_name: Mapping[str, Look], trails: tuple[str, ...]) -> None:
        self._by_name = by_name
        self._trails = trails

    def prepare(self, nodes: list[XmlNode]) -> None:
        """Let nodes find what is on the way to it, all at once; those that were told need not."""
        if nodes[0].told is None:
            gather(nodes, self._trails)

    def tell(self, nodes: list[XmlNode]) -> Iterator[dict[str, Any]]:
        """Yield for every node what is found in it, by name."""
        gather(nodes, self._trails)
        columns = [look(nodes) for look in self._by_name.values()]
        names = list(self._by_name)
        return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


NO_LOOKS = Looks({}, ())


class _Packing:
    """Which elements are items, how they are closed, and how one is opened."""

    def __init__(self, trails: Collection[Trail], names: Names, looks: Looks) -> None:
        self.names = names
        self.trails = trails
        self.texts: list[str] = []
        self.told: list[Mapping[str, Any]] = []
        self.opened: Callable[[int], XmlNode] = lru_cache(OPEN_AT_ONCE)(self._open)
        self._looks = looks
        self._waiting: list[Any] = []

    def close(self, element: Any) -> None:
        """Note an item that has been read to its end; a portion of them is packed at once."""
        ancestors = [self.names[above.tag] for above in element.iterancestors()]
        if (*ancestors[::-1], self.names[element.tag]) in self.trails:
            self._waiting.append(element)
            if len(self._waiting) >= OPEN_AT_ONCE:
                self.pack()

    def pack(self) -> None:
        """Turn the content of the items that wait into text; names and attributes stay."""
        nodes = [XmlNode(element, self.names) for element in self._waiting]
        self.told += self._looks.tell(nodes) if nodes else ()
        for element in self._waiting:
            self.texts.append(raw_text(element))
            del element[:]
            element.text = str(len(self.texts) - 1)  # where its text is now
        self._waiting.clear()

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
            return deepcopy(self.opened(int(element.text)).element)
        copied = deepcopy(element)
        for number, child in enumerate(element):
            copied[number] = self.whole(child, (*trail, self.names[child.tag]))
            copied[number].tail = child.tail
        return copied

    def _open(self, place: int) -> XmlNode:
        parser = etree.XMLParser(**PARSING)
        return XmlNode(etree.fromstring(self.texts[place], parser), self.names)


class _Packed(XmlNode):
    """An item: opened when somebody looks into it for what nobody has looked for before."""

    __slots__ = ("_packing", "_place")

    def __init__(self, element: Any, packing: _Packing) -> None:
        super().__init__(element, packing.names)
        self._packing = packing
        self._place = int(element.text)
        self.told = packing.told[self._place] if packing.told else None

    @property
    def children(self) -> Sequence[XmlNode]:
        """The child elements in the order of the document."""
        return self._opened().children

    @property
    def text(self) -> str:
        """All the text below, in order."""
        return self._opened().text

    def named(self, name: str) -> Sequence[XmlNode]:
        """Return the children of that name, in order."""
        return self._opened().named(name)

    @property
    def content(self) -> Any:
        """The element with all that is below it."""
        return self._opened().element

    def to_text(self) -> str:
        """Write the node as XML."""
        text = self._packing.texts[self._place]
        return text if is_plain(self.element, text) else self._opened().to_text()

    def to_json(self) -> bytes:
        """Write the same text as JSON."""
        return orjson.dumps(self.to_text())

    def _opened(self) -> XmlNode:
        return self._packing.opened(self._place)


class _Above(XmlNode):
    """An element with items somewhere below it."""

    __slots__ = ("_children", "_packing", "_trail")

    def __init__(self, element: Any, trail: Trail, packing: _Packing) -> None:
        super().__init__(element, packing.names)
        self._packing = packing
        self._trail = trail
        self._children: Sequence[XmlNode] | None = None

    @property
    def children(self) -> Sequence[XmlNode]:
        """The child elements in the order of the document."""
        if self._children is None:
            node, names, trail = self._packing.node, self.names, self._trail
            self._children = [node(child, (*trail, names[child.tag])) for child in self.element]
        return self._children

    @property
    def text(self) -> str:
        """All the text below, in order; one item after the other is opened for it."""
        texts = [self.element.text or ""]
        for node in self.children:
            texts += (node.text, node.element.tail or "")
        return "".join(texts)

    def named(self, name: str) -> Sequence[XmlNode]:
        """Return the children of that name, in order."""
        return [child for child in self.children if child.name == name]

    def to_text(self) -> str:
        """Write the node as XML."""
        return written(self.element, self._whole().element)

    def to_json(self) -> bytes:
        """Write the same text as JSON."""
        return orjson.dumps(self.to_text())

    def _whole(self) -> XmlNode:
        return XmlNode(self._packing.whole(self.element, self._trail), self.names)


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
    looks: Looks = NO_LOOKS,
) -> XmlNode:
    """Read a body as `read_xml` does, and pack the elements at the trails."""
    packing = _Packing(trails, Names(namespaces), looks)
    tags = ["{*}" + trail[-1].rpartition(":")[2] for trail in trails]
    with not_xml():
        parser = etree.XMLPullParser(events=("end",), tag=tags, **PARSING)
        for part in _parts(body, chunk):
            parser.feed(part)
            for _, element in parser.read_events():
                packing.close(element)
        root = parser.close()
        packing.pack()
    return Document(packing.node(root, (packing.names[root.tag],)))


def _parts(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def _begins(trail: Trail, other: Trail) -> bool:
    return other != trail and trail[: len(other)] == other
