"""Whether a condition of a pack holds for a response, or for one item.

Null and absent are the same here, as everywhere in a pack: `exists` wants a value, and what is not
there is `empty`. Where a path leads to several values, or to a list, one that fits is enough.
Values are compared as they are written: XML and headers know only text, and sources change between
`1` and `"1"` without telling.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from patra_ingest.errors import IngestError
from patra_ingest.executor.looks import find_texts
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.safe_regex import SafeRegex, safe_regex
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.spec.places import When
from patra_ingest.transport.messages import Response


def holds(when: When, response: Response, read_tree: Callable[[], Any]) -> bool:
    """Whether everything that the condition says is true of the response.

    The body is read only for a path, and only when the rest holds. A path into a body that cannot
    be read does not hold, not even `exists: false`: reading the page will say what is wrong.
    """
    if when.status is not None and response.status not in _statuses(when):
        return False
    if when.text is not None and when.text.encode() not in response.body:
        return False
    if when.header is not None:
        return _test(when).passes((response.headers.get(when.header.lower()),))
    if when.path is None:
        return True
    try:
        tree = read_tree()
    except (IngestError, ValueError):
        return False
    return holds_for(when, tree)


def holds_for(when: When, item: Any) -> bool:
    """Whether a condition on an item holds; only its path is looked at."""
    return _test(when).passes(_found(when, item))


def column(when: When, items: Sequence[Any]) -> list[bool]:
    """Return `holds_for` of every item of a page, faster than one by one."""
    path, passes = compile_path(_path(when)), _test(when).passes
    if path.is_single and not any(isinstance(item, XmlNode) for item in items):
        of_nothing = passes(())
        values = path.column(list(items))
        return [of_nothing if value is None else passes((value,)) for value in values]
    return [passes(_found(when, item)) for item in items]


@dataclass(frozen=True)
class _Test:
    """What a condition asks of the values that were found."""

    exists: bool | None
    empty: bool | None
    wanted: frozenset[str] | None
    pattern: SafeRegex | None

    def passes(self, values: Iterable[Any]) -> bool:
        found = [value for value in values if value is not None]
        if self.exists is not None and self.exists is not bool(found):
            return False
        if self.empty is not None and self.empty is not all(map(_is_empty, found)):
            return False
        if self.wanted is None and self.pattern is None:
            return True
        for value in found:
            for text in _texts(value):
                if self._fits(text):
                    return True
        return False

    def _fits(self, text: str) -> bool:
        if self.wanted is not None and text not in self.wanted:
            return False
        # A text longer than the pattern may be tried on in reasonable time is tried on its start.
        pattern = self.pattern
        return pattern is None or bool(pattern.pattern.search(text[: pattern.longest]))


def _test(when: When) -> _Test:
    wanted = None if when.one_of is None else frozenset(map(_written, when.one_of))
    if when.equals is not None:
        exact = frozenset((_written(when.equals),))
        wanted = exact if wanted is None else exact & wanted
    pattern = None if when.matches is None else _pattern(when.matches)
    return _Test(when.exists, when.empty, wanted, pattern)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> SafeRegex:
    return safe_regex(text, needs_group=False)


def _statuses(when: When) -> tuple[int, ...]:
    return when.status if isinstance(when.status, tuple) else (when.status or 0,)


def _path(when: When) -> str:
    if when.path is None:
        raise ValueError(f"a condition on an item looks at a path of it, this one does not: {when}")
    return when.path


def _found(when: When, tree: Any) -> list[Any]:
    path = compile_path(_path(when))
    try:
        return find_texts(path, tree)
    except ValueError:  # an operator that cannot work on this value: it leads nowhere
        return []


def _is_empty(value: Any) -> bool:
    return not value.strip() if isinstance(value, str) else value in ([], {})


def _texts(value: Any) -> Sequence[str]:
    """Return a value as text, and a list's members one by one; an object has no text."""
    if isinstance(value, str):  # nearly always
        return (value.strip(),)
    members = value if isinstance(value, list) else (value,)
    return [_written(one) for one in members if isinstance(one, str | int | float)]


def _written(value: str | int | float) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if value == value // 1 else str(value)
