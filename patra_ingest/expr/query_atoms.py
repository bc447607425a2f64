"""Writing one atom: the rule that fits it best, its placeholders, its clauses.

Placeholders are `{{v}}`, `{{quoted}}`, `{{from}}`, `{{to}}`, `{{item}}`, `{{items}}`, `{{kind}}`,
`{{field}}` and what the rule's function gives. They are filled in one pass, so a value that looks
like a placeholder stays a value.
"""

import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from patra_ingest.expr.query import Atom
from patra_ingest.expr.query_bounds import INFINITY, bound_text, read_bound, typed_text
from patra_ingest.expr.query_compose import LOOSE, Piece
from patra_ingest.expr.query_escape import quoted, written
from patra_ingest.expr.query_functions import RULE_FUNCTIONS
from patra_ingest.expr.query_issues import Code, QueryIssue, QueryRefused
from patra_ingest.expr.query_rules import QueryBook, RenderRule, Syntax
from patra_ingest.model.codes import EmitType, ExprOp, ValueType

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_BOOLEAN = re.compile(r"\b(AND|OR|NOT)\b")
_PARENTHESES = re.compile(r"\([^()]*\)")
_OF_ITEM = frozenset({"item", "quoted"})


def placeholders(text: str) -> frozenset[str]:
    """Return the names a template asks for."""
    return frozenset(_PLACE.findall(text))


def clauses_of(rule: RenderRule) -> dict[str, tuple[str, ...]]:
    """Return the rule's templates by std key; those of the query itself are under no key."""
    if rule.emit is EmitType.QUERY:
        whole = "{{items}}" if rule.op is ExprOp.IN and rule.template is None else rule.template
        return {"": (whole,)} if whole is not None else {}
    return {key: (c,) if isinstance(c, str) else c for key, c in rule.params.items()}


def find_rule(book: QueryBook, atom: Atom, negated: bool, nested: bool) -> RenderRule | None:
    """Return the rule for an atom: exact match, negation and value type before any.

    Inside OR and NOT a rule that writes query text is preferred, because parameters cannot nest.
    """
    value_type = value_type_of(book, atom)
    fitting = [
        rule
        for rule in book.rules
        if (rule.field, rule.op) == (atom.field, atom.op)
        and rule.match in (None, atom.match)
        and rule.negated in (None, negated)
        and rule.value_type in (None, value_type)
    ]
    return max(fitting, key=lambda rule: _closeness(rule, negated, nested), default=None)


def _closeness(rule: RenderRule, negated: bool, nested: bool) -> tuple[bool, ...]:
    named = (rule.match, rule.negated, rule.value_type)
    return (can_stand(rule, negated, nested), *(key is not None for key in named))


def can_stand(rule: RenderRule, negated: bool, nested: bool) -> bool:
    """Return whether what the rule writes can stand there: no OR or NOT holds a parameter."""
    return rule.emit is EmitType.QUERY or not (nested or (negated and not rule.negated))


def value_type_of(book: QueryBook, atom: Atom) -> ValueType:
    """Return what a render rule calls the atom's value."""
    if atom.op is ExprOp.RANGE:
        return ValueType(book.capabilities[atom.field].range)
    return book.fields[atom.field].value_type


def write_atom(atom: Atom, rule: RenderRule, book: QueryBook) -> dict[str, list[str]]:
    """Return the atom's clauses by std key (no key: query text); QueryRefused with the reason.

    The atom has passed the check, and the rule has no problem of its own.
    """
    clauses = clauses_of(rule)
    wanted = frozenset[str]().union(*(placeholders(c) for cs in clauses.values() for c in cs))
    places = _places(atom, rule, book, wanted)
    return {
        key: [
            text
            for clause in listed
            for text in _filled_each(clause, places, atom, rule, book)
            if text is not None
        ]
        for key, listed in clauses.items()
    }


def as_piece(atom: Atom, rule: RenderRule, text: str) -> Piece:
    """Return the query text of an atom, with what is known about how it holds together."""
    if rule.wrap_group:
        return Piece(f"({text})")
    is_list = atom.op is ExprOp.IN and len(atom.values) > 1
    return Piece(text, LOOSE if is_list or is_loose(rule.template or "") else "")


def is_loose(template: str) -> bool:
    """Return whether a template holds an operator outside any parentheses of its own."""
    bare = _PLACE.sub("", template)
    while (inner := _PARENTHESES.sub("", bare)) != bare:
        bare = inner
    return _BOOLEAN.search(bare) is not None


Places = Mapping[str, str | None]


def _filled_each(
    clause: str, places: Places, atom: Atom, rule: RenderRule, book: QueryBook
) -> list[str | None]:
    if atom.op is not ExprOp.IN or not placeholders(clause) & _OF_ITEM:
        return [_filled(clause, places, atom)]
    return [_filled(clause, each, atom) for each in _each_item(atom, book, rule, clause)]


def _filled(clause: str, places: Places, atom: Atom) -> str | None:
    """Fill one clause; None when all it speaks of is an open bound, so that it is left out."""
    names = placeholders(clause)
    is_open = {name for name in names if places[name] is None}
    if is_open and is_open != names:
        message = f"the rule cannot leave {' and '.join(sorted(is_open))} open in {clause!r}"
        remedy = "give both bounds, or give the rule open_from and open_to"
        _refuse(atom, Code.RANGE_OPEN, message, remedy)
    if is_open:
        return None
    return _PLACE.sub(lambda place: places[place[1]] or "", clause)


def _places(
    atom: Atom, rule: RenderRule, book: QueryBook, wanted: frozenset[str]
) -> dict[str, str | None]:
    places: dict[str, str | None] = {"field": atom.field}
    if atom.op is ExprOp.RANGE:
        places |= _bounds(atom, rule, book)
    elif atom.op is ExprOp.IN:
        places |= {"items": _items(atom, rule, book)} if "items" in wanted else {}
    else:
        places |= _of_value(atom, book, rule, atom.values[0] if atom.values else None, wanted)
    if "kind" in wanted and atom.kind is not None:
        places["kind"] = _say(written, book.escape_of(rule), atom.kind, atom)
    if rule.function is not None and atom.op is not ExprOp.RANGE:
        places |= _called(atom, rule.function, places)
    return places


def _bounds(atom: Atom, rule: RenderRule, book: QueryBook) -> dict[str, str | None]:
    kind = book.capabilities[atom.field].range
    read = [
        None if text in (None, INFINITY) else bound_text(read_bound(kind, str(text)))
        for text in atom.values
    ]
    places: dict[str, str | None] = {"from": read[0], "to": read[1]}
    if rule.function is not None:
        places |= _called(atom, rule.function, places)
    for name, stand_in in (("from", rule.open_from), ("to", rule.open_to)):
        places[name] = stand_in if places[name] is None else places[name]
    return places


def _called(atom: Atom, function: str, places: Places) -> Places:
    try:
        return RULE_FUNCTIONS[function].apply(atom.field, places)
    except ValueError as error:
        _refuse(atom, Code.FN_VALUE, str(error), "correct the rule or the value")


def _items(atom: Atom, rule: RenderRule, book: QueryBook) -> str:
    template = rule.item_template or "{{quoted}}"
    joiner = rule.joiner or (" OR " if rule.emit is EmitType.QUERY else ",")
    each = _each_item(atom, book, rule, template)
    return joiner.join(_filled(template, places, atom) or "" for places in each)


def _each_item(
    atom: Atom, book: QueryBook, rule: RenderRule, template: str
) -> list[dict[str, str | None]]:
    wanted = placeholders(template)
    return [
        {**_of_value(atom, book, rule, value, wanted), "field": atom.field} for value in atom.values
    ]


def _of_value(
    atom: Atom, book: QueryBook, rule: RenderRule, value: str | None, wanted: frozenset[str]
) -> dict[str, str | None]:
    if value is None:
        return {}
    syntax = book.escape_of(rule)
    text = value if atom.op is ExprOp.TOKEN else typed_text(book.fields[atom.field].type, value)
    places: dict[str, str | None] = {}
    for name in wanted & {"v", "item"}:
        places[name] = _say(written, syntax, text, atom)
    if "quoted" in wanted:
        places["quoted"] = _say(quoted, syntax, text, atom)
    return places


def _say(how: Callable[[Syntax, str], str], syntax: Syntax, text: str, atom: Atom) -> str:
    try:
        return how(syntax, text)
    except ValueError as error:
        message = f"{text[:40]!r} cannot be written in {syntax}: {error}"
        _refuse(atom, Code.VALUE_NOT_EXPRESSIBLE, message, "ask for another value")


def _refuse(atom: Atom, code: Code, message: str, remedy: str) -> NoReturn:
    raise QueryRefused([QueryIssue(code, atom.path, message, remedy)])
