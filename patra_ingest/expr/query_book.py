"""The self-check of a query book: what would go wrong before anybody asks.

`rule_problems` looks at one rule and is repeated whenever the rule is used; `book_problems` looks
at how fields, capabilities, rules and parameters fit together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from patra_ingest.expr.query import Atom
from patra_ingest.expr.query_atoms import (
    can_stand,
    clauses_of,
    find_rule,
    is_loose,
    placeholders,
)
from patra_ingest.expr.query_functions import RULE_FUNCTIONS, TRANSFORMS
from patra_ingest.expr.query_issues import Code, QueryIssue, suggest
from patra_ingest.expr.query_rules import (
    QUERY_KEY,
    Capability,
    ParamRule,
    QueryBook,
    RenderRule,
    Syntax,
)
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import EmitType, ExprOp, MatchType, RangeKind

_SAFE_IN_QUERY = (Syntax.PUBMED, Syntax.LUCENE)
_HAND_QUOTED = re.compile(r'"\{\{\s*(v|item)\s*\}\}"')
_MINUS_A_DAY = "TO_EXCLUSIVE_MINUS_1D"
_KNOWN = {
    ExprOp.TERM: frozenset({"v", "quoted", "field"}),
    ExprOp.IN: frozenset({"items", "field"}),
    ExprOp.RANGE: frozenset({"from", "to", "field"}),
    ExprOp.EXISTS: frozenset({"field"}),
    ExprOp.TOKEN: frozenset({"v", "quoted", "kind", "field"}),
}
_OF_ITEM = frozenset({"item", "quoted", "field"})
_OF_VALUE = frozenset({"v", "quoted", "item", "items"})


def book_problems(book: QueryBook) -> list[QueryIssue]:
    """Return everything that is wrong with a book; an empty list means it can be used."""
    return [issue for check in _CHECKS for issue in check(book)]


def rule_problems(rule: RenderRule, book: QueryBook, path: str = "rules") -> Iterator[QueryIssue]:
    """Yield what is wrong with one rule by itself."""
    texts = [clause for listed in clauses_of(rule).values() for clause in listed]
    if not texts:
        yield QueryIssue(Code.TEMPLATE, path, "writes nothing", "give it a template or params")
        return
    if rule.function is not None and rule.function not in RULE_FUNCTIONS:
        message = f"there is no function {rule.function}"
        yield QueryIssue(Code.FN_NOTFOUND, path, message, suggest(rule.function, RULE_FUNCTIONS))
    has_value = rule.op not in (ExprOp.RANGE, ExprOp.EXISTS)
    if rule.emit is EmitType.QUERY and has_value and book.escape_of(rule) not in _SAFE_IN_QUERY:
        message = f"{book.escape_of(rule)} does not keep a value inside its clause of a query"
        yield QueryIssue(Code.ESCAPE_UNSAFE, path, message, "use PUBMED or LUCENE")
    yield from _templates(rule, texts, path)


def _templates(rule: RenderRule, texts: list[str], path: str) -> Iterator[QueryIssue]:
    yield from _unknown_places(texts, _known_in(rule), rule, path)
    used = _asked(texts)
    # A rule that forgets the value would ask for more than the query does.
    if rule.op is ExprOp.RANGE and not {"from", "to"} <= used:
        yield QueryIssue(Code.TEMPLATE, path, "leaves a bound out", "use {{from}} and {{to}}")
    elif rule.op not in (ExprOp.RANGE, ExprOp.EXISTS) and not used & _OF_VALUE:
        yield QueryIssue(Code.TEMPLATE, path, "leaves the value out", "use {{quoted}} or {{v}}")
    items = [rule.item_template] if rule.op is ExprOp.IN and rule.item_template else []
    yield from _item_template(items, rule, path)
    if any(_HAND_QUOTED.search(text) for text in [*texts, *items]):
        message = "puts its own quotes round a value that is escaped to stand bare"
        yield QueryIssue(Code.TEMPLATE, path, message, "use {{quoted}}")


def _item_template(items: list[str], rule: RenderRule, path: str) -> Iterator[QueryIssue]:
    yield from _unknown_places(items, _OF_ITEM, rule, path)
    if items and not _asked(items) & _OF_VALUE:
        yield QueryIssue(Code.TEMPLATE, path, "leaves the item out", "use {{quoted}} or {{item}}")
    if any(map(is_loose, items)):
        message = "joins inside an item without parentheses"
        yield QueryIssue(Code.TEMPLATE, path, message, "put the item in parentheses")


def _unknown_places(
    texts: list[str], known: frozenset[str], rule: RenderRule, path: str
) -> Iterator[QueryIssue]:
    for name in sorted(_asked(texts) - known):
        message = f"{{{{{name}}}}} is no placeholder there, in a rule for {rule.op}"
        yield QueryIssue(Code.TEMPLATE, path, message, suggest(name, known))


def _known_in(rule: RenderRule) -> frozenset[str]:
    function = RULE_FUNCTIONS.get(rule.function or "")
    known = _KNOWN[rule.op] | (function.gives if function else frozenset())
    is_each = rule.op is ExprOp.IN and rule.emit is EmitType.PARAMS
    return known | _OF_ITEM if is_each else known


def _asked(texts: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(placeholders, texts))


def _fields_are_in_the_dictionary(book: QueryBook) -> Iterator[QueryIssue]:
    places = {name: f"capabilities.{name}" for name in book.capabilities}
    places |= {rule.field: f"rules[{index}].field" for index, rule in enumerate(book.rules)}
    for name, path in places.items():
        if name not in book.fields:
            message = f"{name} is not in the dictionary of fields"
            yield QueryIssue(Code.FIELD_NOT_FOUND, path, message, suggest(name, book.fields))


def _rules_make_sense(book: QueryBook) -> Iterator[QueryIssue]:
    for index, rule in enumerate(book.rules):
        path = f"rules[{index}]"
        yield from rule_problems(rule, book, path)
        can = book.capabilities.get(rule.field)
        if can is None or rule.op not in can.ops:
            message = f"no capability allows {rule.op} on {rule.field}"
            yield QueryIssue(Code.BOOK, path, message, "give it a capability, or drop the rule")


def _rules_are_told_apart(book: QueryBook) -> Iterator[QueryIssue]:
    keys = Counter(_rule_key(rule) for rule in book.rules)
    for index, rule in enumerate(book.rules):
        if keys[_rule_key(rule)] > 1:
            message = "another rule is for the very same atoms"
            yield QueryIssue(Code.BOOK, f"rules[{index}]", message, "keep one of them")


def _rule_key(rule: RenderRule) -> tuple[object, ...]:
    return (rule.field, rule.op, rule.match, rule.negated, rule.value_type, rule.emit)


def _capabilities_make_sense(book: QueryBook) -> Iterator[QueryIssue]:
    for name, can in book.capabilities.items():
        path = f"capabilities.{name}"
        if ExprOp.RANGE in can.ops and can.range is RangeKind.NONE:
            yield QueryIssue(Code.BOOK, path, "allows RANGE over nothing", "say range: DATE, …")
        if ExprOp.EXISTS in can.ops and not can.exists:
            yield QueryIssue(Code.BOOK, path, "lists EXISTS, but exists: false", "make them agree")


def _what_is_allowed_can_be_written(book: QueryBook) -> Iterator[QueryIssue]:
    for name, can in book.capabilities.items():
        if name not in book.fields:
            continue
        for op in can.ops:
            if op is not ExprOp.RANGE or can.range is not RangeKind.NONE:
                yield from _unwritten(book, name, can, op)


def _unwritten(book: QueryBook, name: str, can: Capability, op: ExprOp) -> Iterator[QueryIssue]:
    path = f"capabilities.{name}.ops"
    matches = (can.matches or tuple(MatchType)) if op is ExprOp.TERM else (None,)
    for match in matches:
        atom = Atom(op, path, name, match=match)
        for negated in (False, True) if can.negates(op) else (False,):
            rule = find_rule(book, atom, negated, nested=False)
            said = " ".join(filter(None, ("NOT" if negated else None, op, match)))
            if rule is None:
                message = f"no rule writes {said}"
                yield QueryIssue(Code.RENDER_RULE_MISSING, path, message, "add one, or forbid it")
            elif not can_stand(rule, negated, nested=False):
                message = f"{said} would have to negate a parameter"
                yield QueryIssue(Code.NOT_UNSUPPORTED, path, message, "say supports_not: false")


def _rules_use_our_keys(book: QueryBook) -> Iterator[QueryIssue]:
    keys = {param.key for param in book.params}
    names = {param.name for param in book.params}
    for index, rule in enumerate(book.rules):
        wanted = clauses_of(rule) if rule.emit is EmitType.PARAMS else {QUERY_KEY: ()}
        for key in wanted:
            if key not in keys:
                what = "is the provenance's own name" if key in names else "is mapped nowhere"
                yield QueryIssue(
                    Code.PARAM_MAP_MISSING, f"rules[{index}]", f"{key} {what}", suggest(key, keys)
                )


def _a_day_is_taken_off_once(book: QueryBook) -> Iterator[QueryIssue]:
    shortened = {param.key for param in book.params if param.transform == _MINUS_A_DAY}
    for index, rule in enumerate(book.rules):
        if rule.function == _MINUS_A_DAY and shortened & rule.params.keys():
            message = f"{_MINUS_A_DAY} is applied by the rule and by the parameter"
            yield QueryIssue(Code.BOOK, f"rules[{index}]", message, "keep one of them")


def _filters_of_one_list_stay_together(book: QueryBook) -> Iterator[QueryIssue]:
    filters = {param.key for param in book.params if param.transform == "FILTER_JOIN"}
    for index, rule in enumerate(book.rules):
        for key, clauses in clauses_of(rule).items():
            if rule.op is ExprOp.IN and key in filters and _asked(clauses) & {"item", "quoted"}:
                message = f"writes each item as a {key} of its own, which no AND can join"
                remedy = "use item_template and {{items}}"
                yield QueryIssue(Code.BOOK, f"rules[{index}]", message, remedy)


def _params_make_sense(book: QueryBook) -> Iterator[QueryIssue]:
    rows = Counter((param.operation, param.endpoint, param.key) for param in book.params)
    for param in book.params:
        path = f"params.{param.key}"
        if rows[param.operation, param.endpoint, param.key] > 1:
            yield QueryIssue(Code.BOOK, path, "is mapped twice", "keep one of them")
        if param.transform is not None and param.transform not in TRANSFORMS:
            message = f"there is no transform {param.transform}"
            remedy = suggest(param.transform, TRANSFORMS)
            yield QueryIssue(Code.TRANSFORM_NOTFOUND, path, message, remedy)
        yield from _value_template(param, path)


def _value_template(param: ParamRule, path: str) -> Iterator[QueryIssue]:
    if param.value is None:
        return
    try:
        template = compile_template(param.value)
        problems = template.check({"value"}) or ([] if template.names else ["leaves the value out"])
    except ValueError as error:
        problems = [str(error)]
    for reason in problems:
        yield QueryIssue(Code.TEMPLATE, path, reason, "write for example ${value|upper}")


_CHECKS: tuple[Callable[[QueryBook], Iterator[QueryIssue]], ...] = (
    _fields_are_in_the_dictionary,
    _capabilities_make_sense,
    _what_is_allowed_can_be_written,
    _rules_make_sense,
    _rules_are_told_apart,
    _rules_use_our_keys,
    _a_day_is_taken_off_once,
    _filters_of_one_list_stay_together,
    _params_make_sense,
)
