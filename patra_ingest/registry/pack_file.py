"""One pack file as plain values, and the line each of them stands on.

YAML is more than people expect, so we read a part of it: the words of the 1.2 core schema, decimal
numbers, text for all the rest (dates, `12:30`, `010`, `NO`). What cannot be meant in a pack is
refused with its line, and a hostile file costs no more than a long one.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from yaml import events

from patra_ingest.errors import PackError

MAX_BYTES: Final = 1_000_000
MAX_NODES: Final = 50_000
MAX_DEPTH: Final = 40

_LOADER: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_MERGE: Final = object()  # the key `<<`, unless it is quoted
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    "<<": _MERGE,
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(
    rf"(?:[-+]?\.[0-9]+|{_INTEGER.pattern}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_LARGEST_INTEGER = 2**63 - 1  # what JSON writers and both databases can hold
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = {"!", f"{_CORE}str", f"{_CORE}map", f"{_CORE}seq"}


@dataclass(frozen=True)
class PackText:
    """What a pack says, and where: `lines` has one entry for each path into `value`.

    What an alias or `<<` repeats has the line where it is written, as that is the one to correct.
    """

    where: str
    value: dict[str, Any]
    lines: Mapping[tuple[str | int, ...], int]

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """Return the line of `path`, or of the nearest thing around it that has one."""
        around = (tuple(path[:length]) for length in range(len(path), -1, -1))
        return next((self.lines[near] for near in around if near in self.lines), None)


def read_pack_file(path: Path) -> PackText:
    """Read one file; PackError says what is wrong, on which line, and the remedy."""
    where = str(path)
    try:
        if path.is_dir():
            raise PackError(f"The pack {where} is a folder.", "Name a file in it.")
        _refuse_large(where, path.stat().st_size)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)  # a device or a growing file has no true size
    except (OSError, ValueError) as error:
        what = f"The pack {where} cannot be read ({getattr(error, 'strerror', None) or error})."
        raise PackError(what, "Check the path.") from error
    _refuse_large(where, len(content))
    return read_pack_text(_decoded(content, where), where)


def read_pack_text(text: str, where: str) -> PackText:
    """Read the text of one pack; `where` names it in messages."""
    _refuse_large(where, len(text.encode("utf-8", "surrogatepass")))
    _refuse_unprintable(text, where)
    root = _compose(text, where)
    if root is None or not isinstance(root.content, dict):
        raise PackError(
            f"{where} holds no mapping.", "A pack starts with `provenance:` and `endpoints:`."
        )
    lines: dict[tuple[str | int, ...], int] = {(): root.line}
    return PackText(where, _build(root, (), lines), lines)


def _refuse_large(where: str, size: int) -> None:
    if size > MAX_BYTES:
        raise PackError(
            f"The pack {where} is larger than {MAX_BYTES:,} bytes.",
            "A pack describes one source in a few hundred lines; check that this is the file.",
        )


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refusal(where, line, "the file is not UTF-8", "Save it as UTF-8.") from error


def _refuse_unprintable(text: str, where: str, line: int | None = None) -> None:
    if found := _UNPRINTABLE.search(text):
        line = line or len(_LINE_END.findall(text, 0, found.start())) + 1
        reason = f"the control character U+{ord(found.group()):04X} is not text"
        raise _refusal(where, line, reason, "Remove it.")


@dataclass(slots=True, eq=False)
class _Node:
    """A value as written, and what it counts for wherever an alias repeats it.

    `content` is text, a number, a bool or None; a list of nodes; or key → (its line, node).
    """

    line: int
    content: Any
    size: int = 1
    height: int = 0


def _compose(text: str, where: str) -> _Node | None:
    composer = _Composer(where)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.take(event)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _malformed(error, where) from error
    return composer.root


def _malformed(error: Exception, where: str) -> PackError:
    # Some escapes, such as %ED%A0%80 in a tag, break PyYAML itself: those errors have no mark.
    mark, begun = (getattr(error, f"{part}_mark", None) for part in ("problem", "context"))
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    since = f" from line {begun.line + 1} on" if begun else ""
    parts = (getattr(error, "context", None), getattr(error, "problem", None))
    reason = f"{since}, ".join(filter(None, parts)) or " ".join(str(error).split())
    return PackError(
        f"{where}{place}: this is not valid YAML ({reason}).",
        "Check the indentation (spaces, no tabs), brackets and quotes there and just above.",
    )


class _Composer:
    """Turns events into one tree. It counts what aliases stand for without ever expanding them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.root: _Node | None = None
        self.open: list[_Node] = []
        self.anchors: dict[str, _Node] = {}
        self.count = 0

    def take(self, event: events.Event) -> None:
        match event:
            case events.ScalarEvent():
                self._add(self._named(event, self._scalar(event)), event)
            case events.SequenceStartEvent() | events.MappingStartEvent():
                node = self._named(event, _Node(_line(event), [], height=1))
                self._add(node, event)
                self.open.append(node)
            case events.SequenceEndEvent() | events.MappingEndEvent():
                self._close(isinstance(event, events.MappingEndEvent))
            case events.AliasEvent():
                self._add(self._repeated(event), event)
            case events.DocumentStartEvent() if self.root is not None:
                reason = "a second document begins"
                raise self._refusal(_line(event), reason, "Write one pack per file.")

    def _add(self, node: _Node, event: events.Event) -> None:
        self.count += node.size
        if self.count > MAX_NODES:
            reason = f"the pack has more than {MAX_NODES:,} values, aliases written out"
            raise self._refusal(_line(event), reason, "Split it, or repeat less with aliases.")
        if len(self.open) + node.height > MAX_DEPTH:
            reason = f"lists and mappings are nested more than {MAX_DEPTH} deep"
            raise self._refusal(_line(event), reason, "Flatten it.")
        if self.open:
            self.open[-1].content.append(node)
        else:
            self.root = node

    def _close(self, is_mapping: bool) -> None:
        node = self.open.pop()
        children: list[_Node] = node.content
        node.size += sum(child.size for child in children)
        node.height += max((child.height for child in children), default=0)
        if is_mapping:
            node.content = self._entries(children)

    def _named(self, event: events.NodeEvent, node: _Node) -> _Node:
        tag: str | None = getattr(event, "tag", None)
        if tag is not None and tag not in _PLAIN_TAGS:
            reason = f"the tag {_shown(tag.replace(_CORE, '!!'))} is not part of the pack language"
            raise self._refusal(node.line, reason, "Remove it; packs hold plain values only.")
        anchor = event.anchor
        if anchor in self.anchors:
            reason = f"the anchor &{_shown(anchor)} is already at line {self.anchors[anchor].line}"
            raise self._refusal(node.line, reason, "Give one of them another name.")
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def _repeated(self, event: events.AliasEvent) -> _Node:
        name = str(event.anchor)
        node = self.anchors.get(name)
        if node is None or node in self.open:
            fault = "has no anchor before it" if node is None else "contains itself"
            reason = f"the alias *{_shown(name)} {fault}"
            raise self._refusal(_line(event), reason, "Write out what is meant.")
        return node

    def _entries(self, children: list[_Node]) -> dict[str, tuple[int, _Node]]:
        lines: dict[Any, int] = {}
        own: dict[str, tuple[int, _Node]] = {}
        merged: dict[str, tuple[int, _Node]] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            name = self._key(key, lines)
            lines[name] = key.line
            if name is _MERGE:
                merged = self._merged(key.line, value)
            else:
                own[name] = (key.line, value)
        return {**merged, **own}

    def _key(self, key: _Node, seen: Mapping[Any, int]) -> Any:
        name = key.content
        if name is not _MERGE and not isinstance(name, str):
            shown = "a list or mapping" if isinstance(name, list | dict) else json.dumps(name)
            reason = f"the key {shown} is not text"
            raise self._refusal(key.line, reason, "A key is text; write it in quotes.")
        if name in seen:
            shown = _shown(name) if isinstance(name, str) else "<<"
            reason = f"the key {shown} is already at line {seen[name]}"
            raise self._refusal(key.line, reason, "Keep one of them.")
        return name

    def _merged(self, line: int, value: _Node) -> dict[str, tuple[int, _Node]]:
        sources = value.content if isinstance(value.content, list) else [value]
        merged: dict[str, tuple[int, _Node]] = {}
        for source in sources:
            if not isinstance(source.content, dict):
                raise self._refusal(line, "<< takes mappings only", "Write `<<: *name`.")
            for name, entry in source.content.items():
                merged.setdefault(name, entry)  # the first in the list wins
        return merged

    def _scalar(self, event: events.ScalarEvent) -> _Node:
        text, line = event.value, _line(event)
        _refuse_unprintable(text, self.where, line)  # it may have been an escape, "\\0"
        is_plain = event.implicit[0] and event.tag is None
        return _Node(line, self._resolved(text, line) if is_plain else text)

    def _resolved(self, text: str, line: int) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        return self._number(text, line) if _NUMBER.fullmatch(text) else text

    def _number(self, text: str, line: int) -> int | float:
        is_whole = _INTEGER.fullmatch(text) is not None
        # 21 characters are too much already; int() would stumble over thousands.
        number = int(text[:21]) if is_whole else float("inf" if text[-1].isalpha() else text)
        if abs(number) > (_LARGEST_INTEGER if is_whole else sys.float_info.max):
            reason = f"the number {_shown(text)} is not finite or has more than 64 bits"
            raise self._refusal(line, reason, "Write it in quotes if it is a name.")
        return number

    def _refusal(self, line: int, reason: str, remedy: str) -> PackError:
        return _refusal(self.where, line, reason, remedy)


def _build(node: _Node, path: tuple[str | int, ...], lines: dict[Any, int]) -> Any:
    match node.content:
        case dict() as entries:
            lines |= {(*path, key): line for key, (line, _) in entries.items()}
            return {key: _build(kept, (*path, key), lines) for key, (_, kept) in entries.items()}
        case list() as items:
            lines |= {(*path, place): item.line for place, item in enumerate(items)}
            return [_build(item, (*path, place), lines) for place, item in enumerate(items)]
        case content:
            return "<<" if content is _MERGE else content


def _refusal(where: str, line: int, reason: str, remedy: str) -> PackError:
    return PackError(f"{where}, line {line}: {reason}.", remedy)


def _line(event: events.Event) -> int:
    return 1 + event.start_mark.line if event.start_mark else 1


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"
