"""From our keys to the provenance's parameters: name, transform, value template, how many."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from patra_ingest.expr.query_functions import TRANSFORMS
from patra_ingest.expr.query_issues import Code, QueryIssue, QueryRefused, suggest
from patra_ingest.expr.query_rules import ParamRule, QueryBook
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
    values: Mapping[str, Sequence[str]], book: QueryBook, taken: Collection[str]
) -> Mapped:
    """Return the parameters for these values by std key; `taken` names are already in use."""
    mapped = Mapped()
    used = set(taken)
    for rule in book.params:
        try:
            sent = _sent(rule, values.get(rule.key, ()))
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


def _sent(rule: ParamRule, values: Sequence[str]) -> list[str]:
    if not values:
        if rule.default is None and rule.required:
            message = f"no request may go without {rule.name}"
            _refuse(Code.PARAM_REQUIRED, rule, message, "ask for it, or give it a default")
        return [] if rule.default is None else [rule.default]
    sent = [_shaped(rule, value) for value in _transformed(rule, values)]
    if len(sent) > 1 and not rule.repeat:
        message = f"{rule.name} can be sent once, not {len(sent)} times"
        _refuse(Code.PARAM_COUNT_LIMIT, rule, message, "ask in several queries")
    return sent


def _transformed(rule: ParamRule, values: Sequence[str]) -> list[str]:
    transform = TRANSFORMS.get(rule.transform or "IDENTITY")
    if transform is None:
        remedy = f"there are: {', '.join(TRANSFORMS)}"
        _refuse(Code.TRANSFORM_NOTFOUND, rule, f"there is no transform {rule.transform}", remedy)
    try:
        return transform(values)
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
