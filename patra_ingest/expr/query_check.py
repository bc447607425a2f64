"""The capability check: whether the provenance can be asked this, before anything is written.

Every function looks at one atom and answers with issues; all are reported at once.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

from patra_ingest.expr.query import And, Atom, Node, Not, Or
from patra_ingest.expr.query_bounds import INFINITY, Bound, read_bound, typed_text
from patra_ingest.expr.query_issues import Code, QueryIssue, shown, suggest
from patra_ingest.expr.query_rules import Capability, QueryBook, QueryField
from patra_ingest.model.codes import ExprOp, RangeKind

_DAY = timedelta(days=1)


def check_query(node: Node, book: QueryBook, negated: bool = False) -> list[QueryIssue]:
    """Return every reason why the book's endpoint cannot be asked this."""
    match node:
        case And(children) | Or(children):
            return [issue for child in children for issue in check_query(child, book, negated)]
        case Not(child):
            return check_query(child, book, negated=True)
        case Atom():
            return list(_check_atom(node, book, negated))
        case _:
            return []


def _check_atom(atom: Atom, book: QueryBook, negated: bool) -> Iterator[QueryIssue]:
    known = book.fields.get(atom.field)
    can = book.capabilities.get(atom.field)
    if known is None or can is None or not known.exposable:
        usable = {name for name in book.capabilities if name in book.fields}
        yield QueryIssue(
            Code.FIELD_NOT_FOUND,
            f"{atom.path}.field",
            f"{shown(atom.field)} cannot be asked here",
            suggest(atom.field, {name for name in usable if book.fields[name].exposable}),
        )
        return
    if atom.op not in can.ops or (atom.op is ExprOp.EXISTS and not can.exists):
        allowed = ", ".join(can.ops)
        message = f"{atom.field} does not take {atom.op}"
        yield QueryIssue(Code.OP_NOT_ALLOWED, atom.path, message, f"it takes: {allowed}")
        return
    if negated and not can.negates(atom.op):
        message = f"{atom.op} on {atom.field} cannot be negated"
        yield QueryIssue(Code.NOT_UNSUPPORTED, atom.path, message, "ask without NOT")
    yield from _CHECKS[atom.op](atom, can, known)


def _term(atom: Atom, can: Capability, known: QueryField) -> Iterator[QueryIssue]:
    if can.matches is not None and atom.match not in can.matches:
        message = f"{atom.match} is no match of {atom.field}"
        remedy = f"it matches: {', '.join(can.matches)}"
        yield QueryIssue(Code.MATCH_NOT_ALLOWED, f"{atom.path}.match", message, remedy)
    if atom.case_sensitive and not can.case_sensitive:
        yield _case(atom)
    yield from _value(atom.values[0] or "", f"{atom.path}.value", can, known)


def _in(atom: Atom, can: Capability, known: QueryField) -> Iterator[QueryIssue]:
    path = f"{atom.path}.values"
    if not atom.values:
        yield QueryIssue(Code.IN_EMPTY, path, "lists nothing", "list at least one value")
    if can.in_max and len(atom.values) > can.in_max:
        message = f"lists {len(atom.values)} values"
        yield QueryIssue(Code.IN_SIZE, path, message, f"at most {can.in_max} are allowed")
    if atom.case_sensitive and not can.in_case_sensitive:
        yield _case(atom)
    for index, value in enumerate(atom.values):
        yield from _value(value or "", f"{path}[{index}]", can, known)


def _case(atom: Atom) -> QueryIssue:
    message = f"{atom.field} is not compared by case"
    return QueryIssue(Code.CASE_NOT_ALLOWED, f"{atom.path}.case_sensitive", message, "leave it out")


def _value(value: str, path: str, can: Capability, known: QueryField) -> Iterator[QueryIssue]:
    if not value.strip() and not can.allow_blank:
        yield QueryIssue(Code.TERM_BLANK, path, "is blank", "give a value")
        return
    if len(value) < can.min_length:
        message = f"has {len(value)} characters"
        yield QueryIssue(Code.TERM_LEN_MIN, path, message, f"at least {can.min_length}")
    if can.max_length and len(value) > can.max_length:
        message = f"has {len(value)} characters"
        yield QueryIssue(Code.TERM_LEN_MAX, path, message, f"at most {can.max_length}")
    elif can.pattern is not None and not re.fullmatch(can.pattern, value):
        message = f"{shown(value)} does not fit"
        yield QueryIssue(Code.TERM_PATTERN, path, message, f"the pattern is {can.pattern}")
    try:
        typed_text(known.type, value)
    except ValueError as error:
        yield QueryIssue(Code.TERM_TYPE, path, str(error), f"the field holds {known.type}")


def _range(atom: Atom, can: Capability, _known: QueryField) -> Iterator[QueryIssue]:
    if can.range is RangeKind.NONE:
        message = f"{atom.field} has no order"
        yield QueryIssue(Code.RANGE_KIND, atom.path, message, "use term or in")
        return
    yield from _open(atom, can)
    bounds: list[Bound | None] = []
    for key, text in zip(("from", "to"), atom.values, strict=True):
        bounds.append(None)
        if text is None or text == INFINITY:
            continue
        try:
            bounds[-1] = read_bound(can.range, text)
        except ValueError as error:
            yield QueryIssue(
                Code.RANGE_KIND, f"{atom.path}.{key}", str(error), f"a {can.range} is wanted"
            )
    yield from _within(atom, can, bounds)
    yield from _ordered(atom, bounds)


def _open(atom: Atom, can: Capability) -> Iterator[QueryIssue]:
    start, end = atom.values
    if {start, end} <= {None, INFINITY}:
        message = "has no bound at all"
        yield QueryIssue(Code.RANGE_OPEN, atom.path, message, "give from, to or both")
        return
    for key, text, allowed in (("from", start, can.open_start), ("to", end, can.open_end)):
        if text is None and not allowed:
            yield QueryIssue(Code.RANGE_OPEN, f"{atom.path}.{key}", "is missing", "give it")
        if text == INFINITY and not can.closed_at_infinity:
            message = "cannot be infinity here"
            yield QueryIssue(Code.RANGE_OPEN, f"{atom.path}.{key}", message, "leave it out")


def _within(atom: Atom, can: Capability, bounds: list[Bound | None]) -> Iterator[QueryIssue]:
    for key, bound in zip(("from", "to"), bounds, strict=True):
        if bound is None:
            continue
        path = f"{atom.path}.{key}"
        if can.min is not None and _less(bound, read_bound(can.range, can.min)):
            yield QueryIssue(Code.RANGE_MIN, path, "is too small", f"at least {can.min}")
        # The end is exclusive: the day after the last day is still within.
        last = bound if key == "from" else _last(bound)
        if can.max is not None and _less(read_bound(can.range, can.max), last):
            yield QueryIssue(Code.RANGE_MAX, path, "is too large", f"at most {can.max}")


def _ordered(atom: Atom, bounds: list[Bound | None]) -> Iterator[QueryIssue]:
    start, end = bounds
    if start is not None and end is not None and not _less(start, end):
        message = "is not after from; the end is not part of a range"
        yield QueryIssue(Code.RANGE_ORDER, f"{atom.path}.to", message, "give a later one")


def _last(end: Bound) -> Bound:
    is_day = isinstance(end, date) and not isinstance(end, datetime) and end > date.min
    return end - _DAY if is_day else end  # type: ignore[operator]


def _less(one: Bound, other: Bound) -> bool:
    return one < other  # type: ignore[operator]


def _exists(_atom: Atom, _can: Capability, _known: QueryField) -> Iterator[QueryIssue]:
    yield from ()


def _token(atom: Atom, can: Capability, _known: QueryField) -> Iterator[QueryIssue]:
    kind, value = atom.kind or "", atom.values[0] or ""
    if can.token_kinds is not None and kind not in can.token_kinds:
        message = f"{shown(kind)} is no kind of {atom.field}"
        remedy = suggest(kind, can.token_kinds)
        yield QueryIssue(Code.TOKEN_KIND, f"{atom.path}.kind", message, remedy)
    if not value.strip():
        yield QueryIssue(Code.TERM_BLANK, f"{atom.path}.value", "is blank", "give a value")
    elif can.token_pattern is not None and not re.fullmatch(can.token_pattern, value):
        message = f"{shown(value)} does not fit"
        remedy = f"the pattern is {can.token_pattern}"
        yield QueryIssue(Code.TOKEN_PATTERN, f"{atom.path}.value", message, remedy)


_Check = Callable[[Atom, Capability, QueryField], Iterator[QueryIssue]]
_CHECKS: dict[ExprOp, _Check] = {
    ExprOp.TERM: _term,
    ExprOp.IN: _in,
    ExprOp.RANGE: _range,
    ExprOp.EXISTS: _exists,
    ExprOp.TOKEN: _token,
}
