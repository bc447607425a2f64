"""A path's steps on what orjson reads: dictionary and list accesses, nothing else.

Written for speed: a page asks for a handful of paths on each of its thousand items.
"""

from collections.abc import Callable, Iterable
from typing import Any

from patra_ingest.expr.path_steps import At, Below, Name, Step, Where, compile_test

Walk = Callable[[list[Any]], list[Any]]
Key = str | int


def walk_json(steps: tuple[Step, ...]) -> Callable[[Any], list[Any]]:
    """Return a function that gives every value the steps lead to."""
    keys = leading_keys(steps)
    walks = [_walk(step) for step in steps[len(keys) :]]

    def find_all(tree: Any) -> list[Any]:
        for key in keys:
            if isinstance(tree, dict):
                if key not in tree:
                    return []
            elif not (
                isinstance(tree, list) and isinstance(key, int) and -len(tree) <= key < len(tree)
            ):
                return []
            tree = tree[key]
        found = [tree]
        for walk in walks:
            found = walk(found)
        return found

    return find_all


def is_straight(steps: tuple[Step, ...]) -> bool:
    """Say whether the steps lead to one value at most, and to some member at least."""
    return 0 < len(steps) == len(leading_keys(steps))


def leading_keys(steps: tuple[Step, ...]) -> list[Key]:
    """Return the names and indexes that the steps begin with."""
    keys: list[Key] = []
    for step in steps:
        if not isinstance(step, Name | At):
            break
        keys.append(step.name if isinstance(step, Name) else step.index)
    return keys


def _walk(step: Step) -> Walk:
    match step:
        case Name(name):
            return lambda trees: [
                tree[name] for tree in trees if isinstance(tree, dict) and name in tree
            ]
        case At(index):
            return lambda trees: [
                tree[index]
                for tree in trees
                if isinstance(tree, list) and -len(tree) <= index < len(tree)
            ]
        case Below(steps):
            return _below(walk_json(steps))
        case Where(test):
            passes = compile_test(test, walk_json, lambda value, literal: value)
            return lambda trees: [
                child for tree in trees for child in _children(tree) if passes(child)
            ]
        case _:
            return _each


def _each(trees: list[Any]) -> list[Any]:
    found: list[Any] = []
    for tree in trees:
        found += _children(tree)
    return found


def _below(find_all: Callable[[Any], list[Any]]) -> Walk:
    def walk(trees: list[Any]) -> list[Any]:
        found = []
        stack = trees[::-1]
        while stack:
            tree = stack.pop()
            if isinstance(tree, dict):
                found += find_all(tree)
                stack.extend(reversed(tree.values()))
            elif isinstance(tree, list):
                found += find_all(tree)
                stack.extend(reversed(tree))
        return found

    return walk


def _children(tree: Any) -> Iterable[Any]:
    if isinstance(tree, dict):
        return tree.values()
    return tree if isinstance(tree, list) else ()
