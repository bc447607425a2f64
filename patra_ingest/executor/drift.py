"""What stands where a path leads no more: for the person who has to mend the pack. Pure.

A source that changed its shape has mostly renamed one thing. Who is told the last part of the path
that still leads somewhere, and what is there now, sees which.
"""

import re
from collections.abc import Iterator
from typing import Any

from patra_ingest.expr.path import compile_path
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.transport.redact import redact_text

_LAST_STEP = re.compile(r"""(\$.*?)(?:\.{1,2}[\w:@*-]+|\[(?:[^\[\]'"]|'[^']*'|"[^"]*")*\])""")
_MOST_NAMES = 12
_NAME_CHARS = 40


def found_instead(tree: Any, where: str) -> str:
    """Say what the nearest part of a path that leads somewhere holds: `$.message has a, b`."""
    near, *further = (*_shorter(where), "$")
    for path in (near, *further):
        found = _nodes(tree, path)
        if found:
            return f"{path} {_described(found)}"
    return "the answer is empty"


def _shorter(where: str) -> Iterator[str]:
    """Yield a path and those that it begins with, the longest first; not the bare root."""
    path = where.partition("|")[0].strip()
    while path.startswith("$") and path != "$":
        yield path
        step = _LAST_STEP.fullmatch(path)
        path = step[1] if step else "$"


def _nodes(tree: Any, path: str) -> list[Any]:
    try:
        return compile_path(path).nodes(tree)
    except ValueError:  # a path that cannot be walked here explains nothing
        return []


def _described(found: list[Any]) -> str:
    one = found[0]
    if isinstance(one, XmlNode):
        names = [*(f"@{name}" for name in one.attributes), *(node.name for node in one.children)]
        return f"has {_listed(names)}" if names else f"holds the text {_shown(one.text)}"
    match one:
        case None:
            return "is null"
        case dict():
            return f"has {_listed([*map(str, one)])}" if one else "is an empty object"
        case list():
            return f"is a list of {len(one)}"
        case _:
            return f"holds {_shown(one)}"


def _listed(names: list[str]) -> str:
    each = list(dict.fromkeys(names))
    shown = ", ".join(redact_text(name, _NAME_CHARS) for name in each[:_MOST_NAMES])
    more = len(each) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(value: Any) -> str:
    return redact_text(f"{value!r:.200}", 80)
