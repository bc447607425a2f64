"""The items of an answer: lists, elements, one item alone, a group, an object keyed by id. Pure.

A list that is not there is a ValueError, never zero items.
"""

import re
from dataclasses import dataclass
from typing import Any

from patra_ingest.executor.drift import found_instead
from patra_ingest.executor.places import ids_at, shown
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.spec.snapshot import ResponseSpec

_EACH = "[*]"
_FILTERED = re.compile(r"(.+)\[\?(?:(?!\[\?).)*\]")
# The path of an element, the step that leads to it, and what picks among its like.
_LAST_STEP = re.compile(
    r"""(\$.*?)(?:\.{1,2}[\w:@*-]+|\[(?:'[^']*'|"[^"]*")\])(?:\[[^'"\]][^\]]*\])*"""
)


@dataclass(frozen=True)
class Items:
    """The items in their order and, where they are kept by id, the ids they stand for."""

    found: list[Any]
    places: tuple[str, ...] | None = None


def find_items(tree: Any, spec: ResponseSpec, total: int | None) -> Items:
    """Return the items of every declared place, in order.

    Where `null_is_empty` is declared, null means none, and so does a missing list beside a total
    of 0; without that promise, something else may have been answered.
    """
    if spec.items_order is not None:
        return _keyed(tree, spec, total)
    if isinstance(tree, XmlNode):
        return Items(_elements(tree, spec, total))
    found: list[Any] = []
    for where in spec.items:
        listed = _one(tree, where) if spec.single else _listed(tree, where)
        if listed is None:
            _require_none(tree, where, spec, total)
        found += listed or ()
    return Items(found)


def group_items(items: Items, ids: object) -> Items:
    """Return the one item that everything together is: the answer about the id asked for."""
    if not isinstance(ids, list) or len(ids) != 1:
        raise ValueError("items are grouped under the one id that was asked for, and here is none")
    return Items([{"asked": ids[0], "items": items.found}])


def _listed(tree: Any, where: str) -> list[Any] | None:
    """Return the list at a path, or all of them when it leads to several; None without a list."""
    filtered = _FILTERED.fullmatch(where)
    lists = compile_path(filtered[1] if filtered else where.removesuffix(_EACH)).all(tree)
    if not lists or not all(isinstance(one, list) for one in lists):
        return None
    return compile_path(where).all(tree) if filtered else [item for one in lists for item in one]


def _one(tree: Any, where: str) -> list[Any] | None:
    found = compile_path(where).first(tree)
    return None if found is None or isinstance(found, list) else [found]


def _elements(tree: XmlNode, spec: ResponseSpec, total: int | None) -> list[Any]:
    """Return the elements at every place. None at all are zero items where their parent is."""
    found = [node for where in spec.items for node in compile_path(where).nodes(tree)]
    if found or (not spec.single and any(_has_parent(tree, where) for where in spec.items)):
        return found
    _require_none(tree, spec.items[0], spec, total)
    return []


def _has_parent(tree: XmlNode, where: str) -> bool:
    step = _LAST_STEP.fullmatch(where)
    # The document itself is no parent: another root is another kind of answer.
    return step is not None and step[1] != "$" and bool(compile_path(step[1]).nodes(tree))


def _keyed(tree: Any, spec: ResponseSpec, total: int | None) -> Items:
    """Return the members of objects in the order of the list of ids; null for one that lacks."""
    order = spec.items_order or ""
    ids = ids_at(tree, order)
    if ids is None:
        _require_none(tree, order, spec, total)
        return Items([], ())
    objects = [compile_path(where).first(tree) for where in spec.items]
    if ids and not any(isinstance(one, dict) for one in objects):
        raise ValueError(f"there is no object at {_named(spec)}, but {shown(objects[0])}")
    held = [one for one in objects if isinstance(one, dict)]
    members = [next((one[key] for one in held if key in one), None) for key in ids]
    return Items(members, tuple(ids))


def _require_none(tree: Any, where: str, spec: ResponseSpec, total: int | None) -> None:
    """Raise unless the answer says that there are no items."""
    values = compile_path(where.removesuffix(_EACH)).all(tree)
    is_null = bool(values) and all(value is None for value in values)
    if spec.null_is_empty and (is_null or (not values and total == 0)):
        return
    kind = "item" if spec.single else "list"
    named = _named(spec) if where in spec.items else where
    raise ValueError(f"there is no {kind} at {named}: {found_instead(tree, where)}")


def _named(spec: ResponseSpec) -> str:
    return " or ".join(spec.items)
