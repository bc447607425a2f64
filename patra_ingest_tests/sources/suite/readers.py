"""The ids that files hold, read on a way of our own: nothing here knows a pack or its mapping."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lxml import etree

from patra_ingest.sandbox.recordings import Recording


def read_ids(how: Any, served: Iterable[Recording]) -> list[str]:
    """Return the ids that a case expects, in the order of the files, as often as they stand there.

    `how` is the list of them, or tells how to read a file.
    """
    if not isinstance(how, Mapping):
        return [str(one) for one in how]
    wanted = how.get("files")
    files = [one for one in served if (one.name in wanted if wanted else 200 <= one.status < 300)]
    assert files, "no served file could hold an id"
    found = [one for file in files for one in _ids(how, file.body)]
    return [one.lower() for one in found] if how.get("lower") else found


def _ids(how: Mapping[str, Any], body: bytes) -> Iterator[str]:
    if "regex" in how:
        for match in re.finditer(how["regex"], body.decode("utf-8", "replace")):
            yield match[match.re.groups and 1]
    elif "xml" in how:
        yield from _by_xpath(how["xml"], body)
    else:
        for item in _at(json.loads(body), how["json"]) or ():
            yield _written(item, how.get("id", ""))


def _by_xpath(xpath: str, body: bytes) -> Iterator[str]:
    root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    for element in root.iter("*"):
        element.tag = etree.QName(element).localname
    for found in root.xpath(xpath):
        yield str(found if isinstance(found, str) else "".join(found.itertext())).strip()


def _at(tree: Any, path: str) -> Any:
    for step in path.split(".") if path else ():
        if tree is None:
            return None
        tree = tree[int(step)] if isinstance(tree, list) else tree.get(step)
    return tree


def _written(item: Any, form: str) -> str:
    """Return an item's id: at a path, or several written together as in "{source}:{id}"."""
    if "{" not in form:
        return str(_at(item, form))
    return re.sub(r"\{([^}]+)\}", lambda name: str(_at(item, name[1])), form)
