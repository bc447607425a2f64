"""XML as a tree of named nodes. Nothing outside the body is read, and no text is guessed at.

External entities and DTDs are never loaded; an entity the body does not define itself is an error,
because leaving it out would change a text in silence. libxml2's limits on depth, text length and
entity expansion stay on.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import orjson
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
_MOST_TAGS = 10_000  # that are remembered; nobody has so many
_BLANKS = " \t\r\n"
_INDENTED = re.compile(r">[ \t\r\n]*\n[ \t\r\n]*<")


class Names(dict[str, str]):
    """What the tags of one document are called in paths: worked out once per tag."""

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        super().__init__()
        self.namespaces = tuple(namespaces.items())
        self._prefixes = {_XML: "xml"}
        for prefix, uri in namespaces.items():
            self._prefixes.setdefault(uri, prefix)

    def __missing__(self, tag: str) -> str:
        uri, _, local = tag[1:].rpartition("}") if tag[0] == "{" else ("", "", tag)
        prefix = self._prefixes.get(uri)
        name = f"{prefix}:{local}" if prefix else local
        if len(self) < _MOST_TAGS:
            self[tag] = name
        return name


class XmlNode:
    """An element: its name, attributes, child elements and text, each worked out when asked for.

    `found` is what a walk over several paths at once has met below it (`xml_gather`), `told` what
    was looked for in it beforehand (`xml_stream`).
    """

    __slots__ = ("element", "found", "names", "told")

    def __init__(self, element: Any, names: Names) -> None:
        self.element = element
        self.names = names
        self.found: Mapping[str, Sequence[Any]] | None = None
        self.told: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}> {self.text!r:.60}"

    @property
    def name(self) -> str:
        """`prefix:local` in a declared namespace, else the local name."""
        return self.names[self.element.tag]

    @property
    def content(self) -> Any:
        """The element with all that is below it."""
        return self.element

    @property
    def attributes(self) -> dict[str, str]:
        """Attribute texts by name, in the order of the document."""
        names = self.names
        return {names[name]: text for name, text in self.element.items()}

    @property
    def children(self) -> Sequence["XmlNode"]:
        """The child elements in the order of the document."""
        names = self.names
        return [XmlNode(child, names) for child in self.element]

    @property
    def text(self) -> str:
        """All the text below, in order: `1.73 m<sup>2</sup>` is “1.73 m2”."""
        return text_of(self.element)

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute, or None when there is none of that name."""
        return attribute_of(self.element, name, self.names)

    def named(self, name: str) -> Sequence["XmlNode"]:
        """Return the children of that name, in order."""
        names = self.names
        return [XmlNode(child, names) for child in self.element if names[child.tag] == name]

    def to_text(self) -> str:
        """Write the node as XML, without the line breaks that indent elements.

        Two differing items never have the same text, and mixed content survives.
        """
        return written(self.element)

    def to_json(self) -> bytes:
        """Write the same text as JSON."""
        return written_as_json(self.element)


class Document(XmlNode):
    """What holds the root element, so that a path begins with the root's name."""

    __slots__ = ("_root",)

    def __init__(self, root: XmlNode) -> None:
        super().__init__(root.element, root.names)
        self._root = root

    @property
    def name(self) -> str:
        """The document itself has no name."""
        return ""

    @property
    def attributes(self) -> dict[str, str]:
        """The document itself has no attributes."""
        return {}

    @property
    def children(self) -> Sequence[XmlNode]:
        """The root."""
        return (self._root,)

    @property
    def text(self) -> str:
        """All the text of the root."""
        return self._root.text

    def attribute(self, name: str) -> str | None:
        """Return None: the document itself has no attributes."""
        return None

    def named(self, name: str) -> Sequence[XmlNode]:
        """Return the root, if that is its name."""
        return (self._root,) if self._root.name == name else ()

    def to_text(self) -> str:
        """Write the root."""
        return self._root.to_text()

    def to_json(self) -> bytes:
        """Write the same text as JSON."""
        return self._root.to_json()


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


def text_of(element: Any) -> str:
    """Return all the text below an element, in order."""
    return "".join(element.itertext()) if len(element) else element.text or ""


def child_texts(
    element: Any, names: Names, wanted: Container[str] | None = None
) -> dict[str, str | None]:
    """Return the texts of an element's children by name, the first of each; blank ones are None.

    `wanted` are the names that matter; none: all of them.
    """
    found: dict[str, str | None] = {}
    for child in element:
        name = names[child.tag]
        if (wanted is None or name in wanted) and name not in found:
            text = "".join(child.itertext()) if len(child) else child.text
            found[name] = None if not text or text.isspace() else text
    return found


def attribute_of(element: Any, name: str, names: Names) -> str | None:
    """Return the text of an attribute by its name in paths."""
    text: str | None = element.get(name) if ":" not in name else None
    if text is not None or not element.attrib:
        return text
    # One in a namespace is known by its prefix, or by its local name.
    found = (one for key, one in element.items() if key[0] == "{" and names[key] == name)
    return next(found, None)


def raw_text(element: Any) -> str:
    """Write an element as it stands in its document."""
    text: str = etree.tostring(element, encoding="unicode", with_tail=False)
    return text


def is_plain(element: Any, text: str) -> bool:
    """Whether an element's text as it stands is also the one that `written` gives."""
    return not element.nsmap and ("\n" not in text or not _INDENTED.search(text))


def written(element: Any, opened: Any = None) -> str:
    """Write an element as XML: without what indents it, in one form wherever it was found.

    With namespaces that is canonical XML, because others may be declared around it. `opened` is the
    element with its content, where that is somewhere else.
    """
    content = element if opened is None else opened
    text = raw_text(content)
    if is_plain(element, text):
        return text
    copied = deepcopy(content)
    copied.tail = None
    for one in copied.iter():
        _unindent(one)
    return _canonical(copied) if element.nsmap else raw_text(copied)


def written_as_json(element: Any) -> bytes:
    """Write what `written` gives as JSON, without a detour over text where that is possible."""
    if not element.nsmap:
        xml: bytes = etree.tostring(element, encoding="utf-8", with_tail=False)
        # Of what JSON escapes XML may hold these; with line breaks it may be indented.
        if b"\n" not in xml and b"\r" not in xml and b"\t" not in xml:
            xml = xml.replace(b"\\", b"\\\\") if b"\\" in xml else xml
            return b'"' + xml.replace(b'"', b'\\"') + b'"'
    return orjson.dumps(written(element))


def _canonical(element: Any) -> str:
    try:
        written: bytes = etree.tostring(element, method="c14n", exclusive=True)
        return written.decode()
    except etree.C14NError:  # a namespace that is no address: canonical XML forbids it
        etree.cleanup_namespaces(element)
        return raw_text(element)


def _unindent(element: Any) -> None:
    """Take the line breaks away between children that have no text beside them."""
    children = list(element)
    texts = [element.text, *(child.tail for child in children)]
    if any(text and text.strip(_BLANKS) for text in texts):
        return
    if _is_indent(element.text):
        element.text = None
    for child in children:
        if _is_indent(child.tail):
            child.tail = None


def _is_indent(text: str | None) -> bool:
    return text is not None and "\n" in text
