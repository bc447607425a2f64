"""The quick way through JSON: a path's steps written out as Python, one function per path.

Only what nearly every path is made of is written out: names and indexes, then `[*]`, filters and
more names. Whatever is not a plain `dict` or `list` on the way is left to `slow`, the same steps
taken one by one, which also knows XML. Nothing but `repr` of names and numbers enters the code.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Any

from patra_ingest.expr.json_walk import Key, leading_keys, walk_json
from patra_ingest.expr.path_steps import At, Each, Name, Step, Where, compile_test

Find = Callable[[Any], Any]


def quick_first(keys: list[Key], slow: Find) -> Find:
    """Return a function that gives the one value that straight steps lead to, or None."""
    return _function([*_straight(keys, "None"), "return at"], {"slow": slow})


def quick_column(keys: list[Key], first: Find) -> Find:
    """Return a function that gives the first value of every tree of a page, step by step."""
    lines = ["at = trees", "try:"]
    for key in keys:
        if isinstance(key, str):
            found = f"one[{key!r}] if one is not None and {key!r} in one else None"
        else:
            found = f"one[{key}] if type(one) is list and {_within(key, 'one')} else None"
        lines += [f"    at = [{found} for one in at]"]
    lines += ["except TypeError:", "    return [first(tree) for tree in trees]", "return at"]
    return _function(lines, {"first": first}, "trees")


def quick_all(steps: tuple[Step, ...], slow: Find) -> Find | None:
    """Return a function that gives every value the steps lead to; None if it is not worth it."""
    keys = leading_keys(steps)
    lines, names = _straight(keys, "[]"), {"slow": slow}
    rest = steps[len(keys) :]
    if not rest:
        return _function([*lines, "return [at]"], names)
    if keys and isinstance(keys[0], str):  # lists are often absent, and a failed try is slow
        absent = f"if {keys[0]!r} not in tree: return []"
        lines = ["if type(tree) is not dict: return slow(tree)", absent, *lines]
    lines += ["if type(at) is not list: return slow(tree)"]
    match rest[0]:
        case Each():
            lines += ["at = list(at)"] if len(rest) == 1 else []
        case Where(test):
            names["test"] = compile_test(test, walk_json, lambda value, _: value)
            lines += ["at = [one for one in at if test(one)]"]
        case _:
            return None
    for step in rest[1:]:
        if not isinstance(step, Name | At):
            return None
        lines += _of_each(step)
    return _function([*lines, "return at"], names)


def _straight(keys: list[Key], nothing: str) -> list[str]:
    """Follow names and indexes. A name is simply tried; an index asks what it is used on first,
    because a text has one, too.
    """
    lines = [] if keys and isinstance(keys[0], str) else ["at = tree"]
    at = "tree"
    for is_name, group in groupby(keys, lambda key: isinstance(key, str)):
        if is_name:
            lines += [f"try: at = {at}{''.join(f'[{key!r}]' for key in group)}"]
            lines += [f"except KeyError: return {nothing}"]
            lines += ["except TypeError: return slow(tree)"]
        else:
            for key in group:
                lines += ["if type(at) is not list: return slow(tree)"]
                lines += [f"if not {_within(int(key), 'at')}: return {nothing}", f"at = at[{key}]"]
        at = "at"
    return lines


def _of_each(step: Name | At) -> list[str]:
    if isinstance(step, At):
        chosen = f"type(one) is list and {_within(step.index, 'one')}"
        return [f"at = [one[{step.index}] for one in at if {chosen}]"]
    name = repr(step.name)
    return [
        f"try: at = [one[{name}] for one in at]",
        "except (KeyError, TypeError):",
        f"    at = [one[{name}] for one in at if type(one) is dict and {name} in one]",
    ]


def _within(index: int, name: str) -> str:
    return f"{-index} <= len({name})" if index < 0 else f"{index} < len({name})"


def _function(lines: list[str], names: dict[str, Any], argument: str = "tree") -> Find:
    head = f"def find({argument}, type=type, dict=dict, list=list, len=len):\n"
    source = head + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<path>", "exec"), names)
    find: Find = names["find"]
    return find
