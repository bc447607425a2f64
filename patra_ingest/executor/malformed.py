"""A body of JSON with a character or a number that JSON does not have, read all the same. Pure.

Whoever reads strictly comes first; this is for the page that one such value would stop. The value
becomes `Malformed`, a text that can be shown, and the item that holds it a `MalformedItem`.
"""

import json
import re
from collections.abc import Iterator
from math import isinf
from typing import Any

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_AT = 0xDC00  # where raw control characters are put aside: bytes are from 0xDC80 on
_LARGEST, _SMALLEST = 2**64 - 1, -(2**63)


class Malformed(str):
    """A value that JSON does not have, as it can be shown, and what is wrong with it."""

    reason: str

    def __new__(cls, shown: str, reason: str) -> "Malformed":
        """Return what is shown of the value."""
        one = super().__new__(cls, shown)
        one.reason = reason
        return one


class MalformedObject(dict[str, Any]):
    """A body that is an object and holds malformed values somewhere."""


class MalformedList(list[Any]):
    """A body that is a list and holds malformed values somewhere."""


class MalformedItem(dict[str, Any]):
    """What is sound in an item, the item as a whole, and the first malformed value in it."""

    def __init__(self, item: Any) -> None:
        sound = _sound(item)
        super().__init__(sound if isinstance(sound, dict) else {})
        self.whole = item
        self.path, self.value = next(_find(item, "$"))


Body = MalformedObject | MalformedList


def read_malformed(body: bytes) -> Body:
    """Return a body with its malformed values marked; ValueError if there are none, or no JSON."""
    text = _STRING.sub(_put_aside, body.decode("utf-8", "surrogateescape"))
    try:
        tree = json.loads(text, parse_constant=_constant, parse_int=_int, parse_float=_float)
        tree = _marked(tree)
        if not count_malformed(tree):
            raise ValueError("nothing in it is malformed")
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    match tree:
        case dict():
            return MalformedObject(tree)
        case list():
            return MalformedList(tree)
        case _:
            raise ValueError("it is one value and no more")


def count_malformed(tree: Any) -> int:
    """Count the malformed values in a tree."""
    return sum(1 for _ in _find(tree, "$"))


def set_aside(items: list[Any]) -> list[Any]:
    """Return the items, those that hold malformed values as such."""
    return [MalformedItem(item) if any(_find(item, "$")) else item for item in items]


def _put_aside(string: re.Match[str]) -> str:
    """Make raw control characters of a string something else than escaped ones."""
    return _CONTROL.sub(lambda found: chr(_CONTROL_AT + ord(found[0])), string[0])


def _constant(name: str) -> Malformed:
    return Malformed(name, f"{name} is not JSON")


def _int(digits: str) -> Any:
    """Read a whole number as the strict reading does: a very large one is no longer exact."""
    value = int(digits)
    return value if _SMALLEST <= value <= _LARGEST else _float(digits)


def _float(digits: str) -> Any:
    value = float(digits)
    return Malformed(digits[:40], "the number is too large") if isinf(value) else value


def _marked(tree: Any) -> Any:
    match tree:
        case str():
            return _marked_text(tree)
        case list():
            return [_marked(one) for one in tree]
        case dict():
            return dict(_marked_pair(name, value) for name, value in tree.items())
        case _:
            return tree


def _marked_pair(name: str, value: Any) -> tuple[str, Any]:
    marked = _marked_text(name)
    return str(marked), _marked(value) if marked is name else marked


def _marked_text(text: str) -> str:
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is None:
        return text
    control = ord(found[0]) - _CONTROL_AT
    is_control = 0 <= control < 0x20
    bad = (
        f"the raw control character U+{control:04X}"
        if is_control
        else "a character that is not Unicode"
    )
    return Malformed(_SURROGATE.sub("�", text), f"holds {bad}")


def _find(tree: Any, path: str) -> Iterator[tuple[str, Malformed]]:
    match tree:
        case Malformed():
            yield path, tree
        case list():
            for number, one in enumerate(tree):
                yield from _find(one, f"{path}[{number}]")
        case dict():
            for name, one in tree.items():
                yield from _find(one, f"{path}.{name}")


def _sound(tree: Any) -> Any:
    match tree:
        case Malformed():
            return None
        case list():
            return [_sound(one) for one in tree]
        case dict():
            return {name: _sound(one) for name, one in tree.items()}
        case _:
            return tree
