"""What is looked for in an item: by its mapping, by conditions, by whoever reconciles ids.

An element is read quickest when all of this is known beforehand: its paths are walked together, and
a large answer is looked into while it is being read.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from patra_ingest.expr.path import Path, compile_path
from patra_ingest.expr.value import compile_value
from patra_ingest.expr.xml_gather import together
from patra_ingest.expr.xml_stream import Looks
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.spec.places import FieldSpec, When
from patra_ingest.spec.snapshot import CallSpec


def looks_of(call: CallSpec) -> Looks:
    """Return all that a call looks for in its items."""
    said = call.response
    fields = (field.path for field in fields_of(call))
    expressions = (said.id, said.asked, said.updated_at, *fields)
    values = [compile_value(one) for one in expressions if one]
    paths = [compile_path(one) for one in _conditions(call)]
    trails = [trail for value in values for trail in value.trails]
    trails += [path.xml.trail for path in paths]
    if isinstance(said.deleted, str):
        values.append(compile_value(said.deleted))
    by_name = {value.text: value.column for value in values}
    by_name |= {_all_at(path.text): partial(_find_all, path) for path in paths}
    return Looks(by_name, together(trails))


def fields_of(call: CallSpec) -> Iterator[FieldSpec]:
    """Yield the declared fields, and the version unless a field is called so already."""
    yield from call.fields
    version = call.response.version
    if version and all(field.name != "version" for field in call.fields):
        yield FieldSpec(name="version", path=version)


def find_texts(path: Path, item: Any) -> list[Any]:
    """Return every value that a path leads to in an item; an element may have been asked before."""
    if isinstance(item, XmlNode) and item.told is not None:
        told: list[Any] | None = item.told.get(_all_at(path.text))
        if told is not None:
            return told
    return path.all(item)


def _conditions(call: CallSpec) -> Iterator[str]:
    said = call.response
    for when in (said.deleted, said.skip, said.usable, said.retracted):
        if isinstance(when, When) and when.path:
            yield when.path


def _all_at(path: str) -> str:
    return f"all {path}"  # no value expression begins so


def _find_all(path: Path, nodes: list[XmlNode]) -> list[Any]:
    return [path.all(node) for node in nodes]
