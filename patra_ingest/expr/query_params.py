"""From our keys to the provenance's parameters: name, transform, value template, how many."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from patra_ingest.expr.query_functions import TRANSFORMS
from patra_ingest.expr.query_issues import Code, QueryIssue, QueryRefused, suggest
from patra_ingest.expr.query_rules import QUERY_KEY, ParamRule, QueryBook
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import InboundLocation

Params = dict[str, str | list[str]]


@dataclass
class Mapped:
    """The parameters of a request, where each goes, and why some could not be mapped."""

    params: Params = field(default_factory=dict)
    locations: dict[str, InboundLocation] = field(default_factory=dict)
    issues: list[QueryIssue] = field(default_factory=list)


def map_params(
    values: Mapping[str, Sequence[str]],
    book: QueryBook,
    taken: Collection[str],
    withheld: Collection[str] = (),
) -> Mapped:
    """Return the parameters for these values by std key; `taken` names are already in use.

    For a `withheld` key something was asked and let go: its default, which could ask for less,
    is not sent in its place, unless it is the text that matches everything.
    """
    mapped = Mapped()
    used = set(taken)
    for rule in book.params:
        try:
            is_whole = rule.key == QUERY_KEY and rule.default == book.everything
            is_withheld = rule.key in withheld and not is_whole
            sent = _sent(rule, values.get(rule.key, ()), is_withheld)
        except QueryRefused as refused:
            mapped.issues.extend(refused.issues)
            continue
        if not sent:
            continue
        if rule.name in used:
            message = f"the parameter {rule.name} is set already"
            remedy = "let one place set it: the query, or the endpoint's own parameters"
            mapped.issues.append(_issue(Code.QUERY_BRIDGE_DUP, rule, message, remedy))
        used.add(rule.name)
        mapped.params[rule.name] = sent if len(sent) > 1 else sent[0]
        mapped.locations[rule.name] = rule.location
    return mapped


def missing(keys: Collection[str], book: QueryBook, path: str) -> Iterator[QueryIssue]:
    """Yield an issue for every key that no parameter carries."""
    known = {rule.key for rule in book.params}
    for key in keys:
        if key not in known:
            message = f"no parameter carries {key}"
            yield QueryIssue(Code.PARAM_MAP_MISSING, path, message, suggest(key, known))


def unsendable(
    clauses: Mapping[str, Sequence[str]],
    earlier: Mapping[str, Sequence[str]],
    book: QueryBook,
    path: str,
) -> Iterator[QueryIssue]:
    """Yield why one clause cannot be sent beside the earlier ones, for a caller who lets it go.

    A list must not lose items, so a clause that needs its parameter several times goes whole.
    """
    for rule in book.params:
        values = clauses.get(rule.key, ())
        before = earlier.get(rule.key, ())
        if values and not _is_known(rule):
            message, remedy = _no_transform(rule)
            yield QueryIssue(Code.FN_OR_TRANSFORM_NOTFOUND, path, message, remedy)
        elif values and (count := _count(rule, values)) > 1:
            message = f"needs {rule.name} {count} times, which can be sent once"
            remedy = "ask for one value, or in several queries"
            yield QueryIssue(Code.MULTI_REPEAT_NOTSUPPORTED, path, message, remedy)
        elif values and (count := _count(rule, [*before, *values])) > 1:
            message = f"would make {rule.name} stand {count} times, which can be sent once"
            yield QueryIssue(Code.PARAM_COUNT_SKIPPED, path, message, "ask in several queries")


def _count(rule: ParamRule, values: Sequence[str]) -> int:
    """Return how often these values would be sent; 1 when nothing speaks against it."""
    try:
        return 1 if rule.repeat else len(_transformed(rule, values))
    except QueryRefused:  # a wrong value is no matter of counting; map_params refuses it
        return 1


def _sent(rule: ParamRule, values: Sequence[str], is_withheld: bool) -> list[str]:
    if not values:
        return _unasked(rule, is_withheld)
    sent = [_shaped(rule, value) for value in _transformed(rule, values)]
    if len(sent) > 1 and not rule.repeat:
        message = f"{rule.name} can be sent once, not {len(sent)} times"
        _refuse(Code.PARAM_COUNT_LIMIT, rule, message, "ask in several queries")
    return sent


def _unasked(rule: ParamRule, is_withheld: bool) -> list[str]:
    if rule.default is not None and not is_withheld:
        return [rule.default]
    if rule.required:
        message = f"no request may go without {rule.name}"
        remedy = "ask for it, or give it a default"
        if is_withheld:
            message += ", and what was asked of it was let go"
            remedy = "correct what the warnings say"
        _refuse(Code.PARAM_REQUIRED, rule, message, remedy)
    return []


def _is_known(rule: ParamRule) -> bool:
    return (rule.transform or "IDENTITY") in TRANSFORMS


def _no_transform(rule: ParamRule) -> tuple[str, str]:
    return f"there is no transform {rule.transform}", f"there are: {', '.join(TRANSFORMS)}"


def _transformed(rule: ParamRule, values: Sequence[str]) -> list[str]:
    if not _is_known(rule):
        _refuse(Code.TRANSFORM_NOTFOUND, rule, *_no_transform(rule))
    try:
        return TRANSFORMS[rule.transform or "IDENTITY"](values)
    except ValueError as error:
        _refuse(Code.TRANSFORM_VALUE, rule, str(error), "ask in several queries")


def _shaped(rule: ParamRule, value: str) -> str:
    if rule.value is None:
        return value
    try:
        shaped = compile_template(rule.value).render({"value": value})
    except ValueError as error:
        _refuse(Code.TRANSFORM_VALUE, rule, str(error), "correct the value template")
    if shaped is None:
        _refuse(Code.TRANSFORM_VALUE, rule, "came out as nothing", "correct the value template")
    return shaped


def _issue(code: Code, rule: ParamRule, message: str, remedy: str) -> QueryIssue:
    return QueryIssue(code, f"params.{rule.key}", message, remedy)


def _refuse(code: Code, rule: ParamRule, message: str, remedy: str) -> NoReturn:
    raise QueryRefused([_issue(code, rule, message, remedy)])
