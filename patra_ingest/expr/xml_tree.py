"""XML as a tree of named nodes. Nothing outside the body is read, and no text is guessed at.

External entities and DTDs are never loaded; an entity the body does not define itself is an error,
because leaving it out would change a text in silence. libxml2's limits on depth, text length and
entity expansion stay on.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from lxml import etree

PARSING: Mapping[str, Any] = {
    "resolve_entities": "internal",
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}

_XML = "http://www.w3.org/XML/1998/namespace"
_BLANKS = " \t\r\n"


class Names:
    """What the tags of one document are called: looked up once per tag, then remembered."""

    __slots__ = ("_known", "_prefixes")

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        self._known: dict[str, str] = {}
        self._prefixes = {_XML: "xml"}
        for prefix, uri in namespaces.items():
            self._prefixes.setdefault(uri, prefix)

    def of(self, tag: str) -> str:
        """Return what a tag is called in paths."""
        name = self._known.get(tag)
        if name is None:
            uri, _, local = tag[1:].rpartition("}") if tag[0] == "{" else ("", "", tag)
            prefix = self._prefixes.get(uri)
            name = self._known[tag] = f"{prefix}:{local}" if prefix else local
        return name


class XmlNode:
    """An element: its name, attributes, child elements and text, each worked out when asked for."""

    __slots__ = ("_by_name", "_children", "_element", "_names")

    def __init__(self, element: Any, names: Names) -> None:
        self._element = element
        self._names = names
        self._children: tuple[XmlNode, ...] | None = None
        self._by_name: dict[str, tuple[XmlNode, ...]] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}> {self.text!r:.60}"

    @property
    def name(self) -> str:
        """`prefix:local` in a declared namespace, else the local name."""
        return self._names.of(self._element.tag)

    @property
    def attributes(self) -> dict[str, str]:
        """Attribute texts by name, in the order of the document."""
        of = self._names.of
        return {of(name): text for name, text in self._element.items()}

    @property
    def children(self) -> tuple["XmlNode", ...]:
        """The child elements in the order of the document."""
        if self._children is None:
            names = self._names
            self._children = tuple([XmlNode(child, names) for child in self._element])
        return self._children

    @property
    def text(self) -> str:
        """All the text below, in order: `1.73 m<sup>2</sup>` is “1.73 m2”."""
        element = self._element
        return "".join(element.itertext()) if len(element) else element.text or ""

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute, or None when there is none of that name."""
        return self.attributes.get(name) if self._element.attrib else None

    def named(self, name: str) -> tuple["XmlNode", ...]:
        """Return the children of that name, in order."""
        if self._by_name is None:
            listed: dict[str, list[XmlNode]] = {}
            for child in self.children:
                listed.setdefault(child.name, []).append(child)
            self._by_name = {name: tuple(children) for name, children in listed.items()}
        return self._by_name.get(name, ())

    def to_json(self) -> dict[str, Any]:
        """Write the node as JSON holds it; equal bodies give equal dicts.

        `@name` is an attribute, `#text` all the text of a leaf or of mixed content, and every
        other key a list of children, also when there is one. Blanks between elements are left out.
        """
        return _to_json(self._element, self._names.of)

    def to_list(self) -> list[Any]:
        """Write the node as JsonML: `[name, {attributes}, text or child, …]`, all in its order.

        Left out are an empty mapping of attributes and, where elements have no text beside them,
        the line breaks that indent them. So this is the one form that two differing items never
        share, and that mixed content survives.
        """
        return _to_list(self._element, self._names.of)


class Document(XmlNode):
    """What holds the root element, so that a path begins with the root's name."""

    __slots__ = ()

    def __init__(self, root: XmlNode) -> None:
        super().__init__(root._element, root._names)
        self._children = (root,)

    @property
    def name(self) -> str:
        """The document itself has no name."""
        return ""

    @property
    def attributes(self) -> dict[str, str]:
        """The document itself has no attributes."""
        return {}

    @property
    def text(self) -> str:
        """All the text of the root."""
        return self.children[0].text

    def to_json(self) -> dict[str, Any]:
        """Write the root under its name."""
        (root,) = self.children
        return {root.name: [root.to_json()]}

    def to_list(self) -> list[Any]:
        """Write the root."""
        return self.children[0].to_list()


def read_xml(body: bytes, namespaces: Mapping[str, str]) -> XmlNode:
    """Read a body as a document node whose one child is the root element.

    `namespaces` says which prefix stands for which URI; the body's own prefixes do not matter.
    """
    with not_xml():
        root = etree.fromstring(body, etree.XMLParser(**PARSING))
    return Document(XmlNode(root, Names(namespaces)))


@contextmanager
def not_xml() -> Iterator[None]:
    """Turn what lxml raises into a ValueError that says what is wrong with the body."""
    try:
        yield
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise ValueError(f"the body is not XML: {error}") from error


def _to_json(element: Any, name_of: Callable[[str], str]) -> dict[str, Any]:
    written: dict[str, Any] = {"@" + name_of(name): text for name, text in element.items()}
    text = element.text
    is_mixed = text is not None and not text.isspace()
    children = list(element)
    for child in children:
        written.setdefault(name_of(child.tag), []).append(_to_json(child, name_of))
        tail = child.tail
        is_mixed = is_mixed or (tail is not None and not tail.isspace())
    if is_mixed:
        written["#text"] = "".join(element.itertext()) if children else text
    return written


def _to_list(element: Any, name_of: Callable[[str], str]) -> list[Any]:
    written: list[Any] = [name_of(element.tag)]
    if element.attrib:
        written.append({name_of(name): text for name, text in element.items()})
    children = list(element)
    texts = [element.text, *(child.tail for child in children)]
    is_mixed = any(text and text.strip(_BLANKS) for text in texts)
    for text, child in zip_longest(texts, children):
        if text and (is_mixed or not _is_indent(text)):
            written.append(text)
        if child is not None:
            written.append(_to_list(child, name_of))
    return written


def _is_indent(text: str) -> bool:
    return "\n" in text and not text.strip(_BLANKS)
