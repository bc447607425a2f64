"""The steps of a path, read from what jsonpath-ng parsed, and the tests inside its filters."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonpath_ng.ext.filter import And, Expression, Filter, Or
from jsonpath_ng.jsonpath import Child, Descendants, Fields, Index, JSONPath, Root, This, Wildcard

# `.*` and `[*]` are one thing in JSON and two in XML: `.*` is parsed under this name to tell them.
ANY_CHILD = "\ue000*"

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Name:
    """`.name`: a member, or on XML the children of that name, or with `@` an attribute."""

    name: str


@dataclass(frozen=True)
class At:
    """`[n]`: the n-th of a list, or on XML of the nodes one parent gave."""

    index: int


@dataclass(frozen=True)
class Each:
    """`[*]`: every member of a list or a mapping, or on XML every node found so far."""


@dataclass(frozen=True)
class AnyChild:
    """`.*`: the same as `[*]`, but on XML the children of whatever name."""


@dataclass(frozen=True)
class Below:
    """`..`: the steps, taken from here and from everything below."""

    steps: tuple["Step", ...]


@dataclass(frozen=True)
class Has:
    """`@.x`, `!@.x`, `@.x == 'y'`: whether the steps lead anywhere, or to a fitting value."""

    steps: tuple["Step", ...]
    operation: str | None
    literal: object


@dataclass(frozen=True)
class AllOf:
    """Tests joined by `&&`."""

    tests: tuple["Test", ...]


@dataclass(frozen=True)
class AnyOf:
    """Tests joined by `||`."""

    tests: tuple["Test", ...]


@dataclass(frozen=True)
class Where:
    """`[?(…)]`: those members, or on XML those nodes, that pass the test."""

    test: "Test"


Test = Has | AllOf | AnyOf
Step = Name | At | Each | AnyChild | Below | Where


class NotPlain(Exception):
    """A parsed path holds something only jsonpath-ng's own search understands."""


def plain_steps(parsed: JSONPath) -> tuple[Step, ...]:
    """Return the steps of a parsed path; raise NotPlain when it needs a search."""
    match parsed:
        case Child(left=Root(), right=right) | Child(left=This(), right=right):
            return _steps(right)
        case Child(left=left, right=right):
            return plain_steps(left) + _steps(right)
        case Descendants(left=left, right=right):
            return (*plain_steps(left), _below(right))
        case Root():
            return ()
        case _:
            return _steps(parsed)


def _steps(parsed: JSONPath) -> tuple[Step, ...]:
    match parsed:
        case This():
            return ()
        case Fields(fields=(str(name),)):
            return (AnyChild() if name == ANY_CHILD else Name(name),)
        case Index(indices=(int(index),)):
            return (At(index),)
        case Wildcard():
            return (Each(),)
        case Child(left=left, right=right):
            return _steps(left) + _steps(right)
        case Descendants(left=left, right=right):
            return (*_steps(left), _below(right))
        case Filter(expressions=tests):
            return (Where(AllOf(tuple(_test(test) for test in tests))),)
        case _:
            raise NotPlain


def _below(parsed: JSONPath) -> Below:
    steps = _steps(parsed)
    if not steps:  # `..` and no step: everything below, scalars too, which nobody declares
        raise NotPlain
    return Below(steps)


def _test(parsed: JSONPath) -> Test:
    match parsed:
        case Expression(target=target, op=None | "!" as operation):
            return Has(_steps(target), operation, None)
        case Expression(target=target, op=operation, value=None | str() | int() | float() as value):
            if operation not in _COMPARE:
                raise NotPlain
            return Has(_steps(target), operation, value)
        case And(operands=operands):
            return AllOf(tuple(_test(operand) for operand in operands))
        case Or(operands=operands):
            return AnyOf(tuple(_test(operand) for operand in operands))
        case _:
            raise NotPlain


def compile_test(
    test: Test,
    find: Callable[[tuple[Step, ...]], Callable[[Any], list[Any]]],
    read: Callable[[Any, object], Any],
) -> Callable[[Any], bool]:
    """Turn a test into a function; `find` walks a tree, `read` makes a value comparable."""
    if isinstance(test, Has):
        return _compile_has(test, find(test.steps), read)
    tests = [compile_test(one, find, read) for one in test.tests]
    if len(tests) == 1:
        return tests[0]
    judge = all if isinstance(test, AllOf) else any
    return lambda tree: judge(one(tree) for one in tests)


def _compile_has(
    test: Has, find: Callable[[Any], list[Any]], read: Callable[[Any, object], Any]
) -> Callable[[Any], bool]:
    operation, literal = test.operation, test.literal
    if operation is None:
        return lambda tree: bool(find(tree))
    if operation == "!":
        return lambda tree: not find(tree)

    fits = _fits(operation, literal)

    def compares(tree: Any) -> bool:
        found = find(tree)
        for value in found:
            if fits(read(value, literal)):
                return True
        # What is not there differs from everything, also from null.
        return not found and operation == "!="

    return compares


def _fits(operation: str, literal: Any) -> Callable[[Any], bool]:
    """Compare as RFC 9535 does: kinds never mix, and only numbers and texts have an order."""
    kind, compare = _kind(literal), _COMPARE[operation]
    if kind in ("null", "bool") and operation in ("<", ">"):
        return lambda value: False
    if kind in ("null", "bool"):
        return lambda value: (value is literal) is (operation != "!=")
    return lambda value: compare(value, literal) if _kind(value) == kind else operation == "!="


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "tree"


def number_in(text: str) -> int | float | None:
    """Read a text that is nothing but a number; None for any other."""
    trimmed = text.strip()
    if not _NUMBER.fullmatch(trimmed) or len(trimmed) > 400:
        return None
    return int(trimmed) if trimmed.lstrip("+-").isdecimal() else float(trimmed)
