"""Paths into responses, one notation for JSON and XML, parsed once and compiled to plain lookups.

jsonpath-ng reads the text and so decides what it means. Names, indexes, `[*]`, filters and
descendants become dictionary, list and node accesses; the rest that jsonpath-ng understands
(slices, unions of names, arithmetic …) stays its own, slower search, for JSON only. On JSON both
give the same values.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

from jsonpath_ng.ext.parser import ExtendedJsonPathParser
from jsonpath_ng.jsonpath import JSONPath

from patra_ingest.expr.json_code import quick_all, quick_column, quick_first
from patra_ingest.expr.json_walk import is_straight, leading_keys, walk_json
from patra_ingest.expr.path_steps import ANY_CHILD, Name, NotPlain, Step, plain_steps
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.expr.xml_walk import XmlWalk, walk_xml

Tree = Any  # an XmlNode, or what orjson reads: dict, list, str, int, float, bool or None
Find = Callable[[Tree], list[Any]]

_PARSER = ExtendedJsonPathParser()  # making one costs more than parsing a path
_ONE_AT_A_TIME = Lock()

MAX_CHARS = 400  # jsonpath-ng's search calls itself once per step

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`"""
_ANY_QUOTED = re.compile(_QUOTED)
# Bare names are quoted before parsing, so that hyphens, colons, letters of any language, digits
# and the word `where` are just names. Quoted text and the decimals of a filter pass untouched.
_DECIMAL = r"(?<![\w.:@'\"\]-])-?\d+\.\d+"
_BARE_NAME = re.compile(rf"{_QUOTED}|{_DECIMAL}|(?<=\.)(?P<name>[\w@](?:[\w:@-]*\w)?)")
_DOT_STAR = re.compile(rf"(?P<quoted>{_QUOTED})|(?<=\.)\*")
# jsonpath-ng still reads a union, an intersection and an unquoted word, but will drop them.
_OUTDATED = re.compile(
    r"(?<!\|)\|(?!\|)|(?<!&)&(?!&)|[=<>~]\s*(?!(?:true|false|null)(?!\w))[A-Za-z_]"
)
_WHY_OUTDATED = (
    "no |, no &, and words to compare with in quotes; functions belong to values, not to paths"
)
_POSITION = re.compile(r"(?:line 1, col |at 1:)(\d+)")


@dataclass(frozen=True)
class Path:
    """Where values are in a tree. Equal texts are equal paths.

    `all` gives every value the path leads to, nulls included, and nothing when it leads nowhere;
    `first` the first of them, or None when it is null or there is none. An XML element's value is
    its text; `nodes` gives the same as `all`, but elements as nodes. `column` gives the `first` of
    every tree of a page. They are functions held in fields, not methods, because a page asks them
    thousands of times.
    """

    text: str
    is_name: bool = field(compare=False, repr=False)  # one name and no more
    xml: XmlWalk = field(compare=False, repr=False)
    is_single: bool = field(compare=False, repr=False)  # on JSON: one value at most
    nodes: Find = field(compare=False, repr=False)
    all: Find = field(compare=False, repr=False)
    first: Callable[[Tree], Any] = field(compare=False, repr=False)
    column: Callable[[list[Tree]], list[Any]] = field(compare=False, repr=False)


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Path:
    """Compile a path; raise ValueError with the position of what cannot be read."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"a path of {len(text)} characters is longer than {MAX_CHARS}")
    unquoted = _ANY_QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    if outdated := _OUTDATED.search(unquoted):
        raise _unreadable(
            text,
            outdated.start(),
            _WHY_OUTDATED,
        )
    parsed = _parse(text)
    try:
        steps = _plain_steps(text, parsed)
    except NotPlain:
        return _path(text, (), _searched(text, parsed), _refused_on_xml(text))
    return _path(text, steps, walk_json(steps), walk_xml(steps))


def _path(text: str, steps: tuple[Step, ...], in_json: Find, in_xml: XmlWalk) -> Path:
    def nodes(tree: Tree) -> list[Any]:
        return in_xml.nodes(tree) if isinstance(tree, XmlNode) else in_json(tree)

    def find_all(tree: Tree) -> list[Any]:
        return in_xml.texts(tree) if isinstance(tree, XmlNode) else in_json(tree)

    first = _first_of(find_all)
    quick = (steps and quick_all(steps, find_all)) or find_all
    if not is_straight(steps):
        first = _first_of(quick)
        column = _column_of(first)
        return Path(text, False, in_xml, False, nodes, quick, first, column)
    keys = leading_keys(steps)
    column = quick_column(keys, first)
    is_name = steps == (Name(in_xml.trail),)
    return Path(text, is_name, in_xml, True, nodes, quick, quick_first(keys, first), column)


def _column_of(first: Callable[[Tree], Any]) -> Callable[[list[Tree]], list[Any]]:
    return lambda trees: [first(tree) for tree in trees]


def _first_of(find_all: Find) -> Callable[[Tree], Any]:
    def first(tree: Tree) -> Any:
        found = find_all(tree)
        return found[0] if found else None

    return first


def _plain_steps(text: str, parsed: JSONPath) -> tuple[Step, ...]:
    starred = _DOT_STAR.sub(lambda found: found["quoted"] or f"'{ANY_CHILD}'", text)
    return plain_steps(parsed if starred == text else _parse(starred))


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
        with _ONE_AT_A_TIME:
            return _PARSER.parse(quoted)
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


def _searched(text: str, parsed: JSONPath) -> Find:
    def find_all(tree: Tree) -> list[Any]:
        _require_json(text, tree)
        try:
            return [match.value for match in parsed.find(tree)]
        except Exception as error:  # operators fail as their values do: no common type
            raise ValueError(f"the path {text!r} fails on this response: {error}") from error

    return find_all


def _require_json(text: str, tree: Tree) -> None:
    """Keep jsonpath-ng, which looks into whatever has a `get`, away from other objects."""
    stack = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
        elif part is not None and not isinstance(part, str | int | float):
            raise ValueError(f"the path {text!r} searches JSON, and met a {type(part).__name__}")


def _refused_on_xml(text: str) -> XmlWalk:
    def refuse(tree: Tree) -> Any:
        raise ValueError(
            f"the path {text!r} works on JSON only; on XML use names, @attributes, [n], [*], .*,"
            " .. and filters such as [?(@.@type == 'a')]"
        )

    return XmlWalk("", refuse, refuse, refuse, refuse)
