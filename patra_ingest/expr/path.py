"""JSONPath, parsed once and compiled to plain lookups wherever that is possible.

jsonpath-ng reads the text and so decides what it means. Names, indexes and `[*]`, which is what
nearly all declarations use, become a few dictionary and list accesses; filters, slices and
descendants stay with jsonpath-ng's own, slower search. Both give the same values.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath, Root, Wildcard

Tree = Any  # what orjson reads: dict, list, str, int, float, bool or None

MAX_CHARS = 400  # jsonpath-ng's search calls itself once per step

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`"""
_ANY_QUOTED = re.compile(_QUOTED)
# Bare names are quoted before parsing, so that hyphens, colons, letters of any language, digits
# and the word `where` are just names. Quoted text and the decimals of a filter pass untouched.
_DECIMAL = r"(?<![\w.:@'\"\]-])-?\d+\.\d+"
_BARE_NAME = re.compile(rf"{_QUOTED}|{_DECIMAL}|(?<=\.)(?P<name>[\w@](?:[\w:@-]*\w)?)")
# jsonpath-ng still reads a union, an intersection and an unquoted word, but will drop them.
_OUTDATED = re.compile(
    r"(?<!\|)\|(?!\|)|(?<!&)&(?!&)|[=<>~]\s*(?!(?:true|false|null)(?!\w))[A-Za-z_]"
)
_POSITION = re.compile(r"(?:line 1, col |at 1:)(\d+)")


class _Each(Enum):
    """The step `[*]`: every member of a list or a mapping."""

    EACH = "*"


_Step = str | int | _Each


@dataclass(frozen=True)
class Path:
    """Where values are in a tree. Equal texts are equal paths."""

    text: str
    _find_all: Callable[[Tree], list[Any]] = field(compare=False, repr=False)
    _find_first: Callable[[Tree], Any] = field(compare=False, repr=False)

    def all(self, tree: Tree) -> list[Any]:
        """Return every value the path leads to, nulls included; empty when it leads nowhere."""
        return self._find_all(tree)

    def first(self, tree: Tree) -> Any:
        """Return the first value, or None when it is null or there is none."""
        return self._find_first(tree)


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Path:
    """Compile a JSONPath; raise ValueError with the position of what cannot be read."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"a path of {len(text)} characters is longer than {MAX_CHARS}")
    unquoted = _ANY_QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    if outdated := _OUTDATED.search(unquoted):
        raise _unreadable(text, outdated.start(), "no |, no &, and words to compare with in quotes")
    parsed = _parse(text)
    steps = _steps(parsed)
    if steps is None:
        find_all = _searched(text, parsed)
        return Path(text, find_all, _first_of(find_all))
    find_all = _walked(steps)
    is_straight = _Each.EACH not in steps
    return Path(text, find_all, _straight(steps) if is_straight else _first_of(find_all))


def _parse(text: str) -> JSONPath:
    inserted: list[int] = []  # where quotes were added, to give positions in the text as written

    def quote(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        moved = len(inserted)
        inserted.extend((found.start() + moved, found.end() + moved + 1))
        return f"'{found[0]}'"

    quoted = _BARE_NAME.sub(quote, text)
    try:
        return parse(quoted)
    except Exception as error:  # jsonpath-ng and its operators raise several unrelated types
        at = _POSITION.search(str(error))
        column = int(at[1]) if at else len(quoted)
        before = sum(position < column for position in inserted)
        raise _unreadable(text, column - before, "this is not JSONPath") from error


def _unreadable(text: str, at: int, why: str) -> ValueError:
    near = f"near {text[at : at + 12]!r}" if at < len(text) else "its end"
    return ValueError(
        f"the path {text!r} cannot be read at {at} ({near}): {why};"
        " write for example $.message.items[*] or $['odd name'].id"
    )


def _steps(parsed: JSONPath, leading: bool = True) -> tuple[_Step, ...] | None:
    """Return the plain steps of a parsed path, or None when it needs a search."""
    match parsed:
        case Root() if leading:
            return ()
        case Fields(fields=(str(name),)):
            return (name,)
        case Index(indices=(int(index),)):
            return (index,)
        case Wildcard():
            return (_Each.EACH,)
        case Child(left=left, right=right):
            before, after = _steps(left, leading), _steps(right, leading=False)
            return None if before is None or after is None else before + after
        case _:
            return None


def _straight(steps: tuple[_Step, ...]) -> Callable[[Tree], Any]:
    def first(tree: Tree) -> Any:
        for step in steps:
            if isinstance(tree, dict):
                tree = tree.get(step)
            elif isinstance(tree, list) and isinstance(step, int):
                tree = tree[step] if -len(tree) <= step < len(tree) else None
            else:
                return None
        return tree

    return first


def _walked(steps: tuple[_Step, ...]) -> Callable[[Tree], list[Any]]:
    def find_all(tree: Tree) -> list[Any]:
        found = [tree]
        for step in steps:
            found = _step(step, found)
        return found

    return find_all


def _step(step: _Step, trees: list[Any]) -> list[Any]:
    match step:
        case str():
            return [tree[step] for tree in trees if isinstance(tree, dict) and step in tree]
        case int():
            lists = (tree for tree in trees if isinstance(tree, list))
            return [tree[step] for tree in lists if -len(tree) <= step < len(tree)]
        case _Each.EACH:
            return [child for tree in trees for child in _children(tree)]


def _children(tree: Tree) -> Any:
    if isinstance(tree, dict):
        return tree.values()
    return tree if isinstance(tree, list) else ()


def _searched(text: str, parsed: JSONPath) -> Callable[[Tree], list[Any]]:
    def find_all(tree: Tree) -> list[Any]:
        try:
            return [match.value for match in parsed.find(tree)]
        except Exception as error:  # operators fail as their values do: no common type
            raise ValueError(f"the path {text!r} fails on this response: {error}") from error

    return find_all


def _first_of(find_all: Callable[[Tree], list[Any]]) -> Callable[[Tree], Any]:
    def first(tree: Tree) -> Any:
        found = find_all(tree)
        return found[0] if found else None

    return first
