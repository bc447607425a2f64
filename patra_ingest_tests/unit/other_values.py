"""Every value of a pack as it is written, and other ways to write it."""

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from zoneinfo import available_timezones

import yaml

from patra_ingest.model import codes

ZONES = available_timezones()


def leaves(node, path=(), seen=None) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Yield every value as it is written: of an alias once, of a list one for each of its lines."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield ".".join(path), node
    elif isinstance(node, yaml.SequenceNode):
        lines = {value.start_mark.line: item for item, value in enumerate(node.value)}
        for item in lines.values():
            yield from leaves(node.value[item], (*path, str(item)), seen)
    else:
        for key, value in node.value:
            yield from leaves(value, (*path, key.value), seen)


def choices_at(pack, path) -> list[str]:
    """Return the codes that could stand at a place of a pack, if it is one of codes."""
    found = pack
    for step in path.split("."):
        if isinstance(found, tuple) and step.isdigit():
            found = found[int(step)]
        elif isinstance(found, dict):
            items = list(found)  # of fields, which are a list here and a mapping in the text
            found = found.get(step) or (items[int(step)] if step.isdigit() and items else None)
        else:
            found = getattr(found, step, None)
    return [str(code) for code in type(found)] if isinstance(found, StrEnum) else []


def changes(path, node, pack) -> Iterator[str]:
    """Yield other ways to write a value, likely ones first; some may not fit the lines around."""
    if choices := choices_at(pack, path):
        yield from map(json.dumps, choices)
        return
    if node.style is None:
        yield from plain_changes(node.value)
    yield from map(json.dumps, text_changes(node.value))
    if path[-1].isdigit():
        yield f"{json.dumps(node.value)}, {json.dumps(node.value + 'x')}"  # one more in the list


def plain_changes(value):
    if value in ("true", "false"):
        yield "false" if value == "true" else "true"
    elif re.fullmatch(r"\d+", value):
        yield from (str(int(value) + 1), str(int(value) - 1))
    elif re.fullmatch(r"\d+\.\d+", value):
        yield f"{value}1"


def text_changes(value):
    if found := re.fullmatch(r"(\d+)(ms|s|m|h|d)", value):
        yield from (f"{int(found[1]) + 1}{found[2]}", f"{int(found[1]) - 1}{found[2]}")
    elif value in list(codes.Transform):
        yield from codes.Transform
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        yield f"{int(value[:4]) + 1}{value[4:]}"
    elif value in ZONES:
        yield "Europe/Berlin"
    else:
        yield f"{value}x"
        yield from path_changes(value)


def path_changes(value):
    yield from (value.replace("[0]", "[1]"), value.replace(":00-", ":30-"))
    yield re.sub(r"^(\$[^|]*)", r"\1.x", value)
    yield from (f"{value}|trim", value.replace("}", "|lower}"))
    yield value.partition("|")[0]
    yield value.translate(str.maketrans("-/", "/-"))  # another way to write days
