"""The neutral query of a spec, said in the source's own syntax when the spec is compiled."""

from collections.abc import Mapping
from typing import Any

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_issues import QueryRefused
from patra_ingest.expr.query_render import Rendered, render_query
from patra_ingest.expr.query_rules import QUERY_KEY, ParamRule, QueryBook
from patra_ingest.model.codes import EndpointOperation, EndpointUsage
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.snapshot import QuerySpec
from patra_ingest.spec.subject import Subject


def asked_query(subject: Subject, overrides: Overrides) -> tuple[QuerySpec | None, list[Problem]]:
    """Return what the source is asked beside the window, or why it cannot be asked."""
    asked = _both(subject.shaped.endpoint.query, overrides.query)
    if asked is None:
        return None, []
    book = subject.declaration.book
    if book is None:
        remedy = "give the pack an expressions part, or ask without a query"
        return None, [Problem("expressions", "is missing, so no query can be asked", remedy)]
    try:
        rendered = render_query(
            parse_query(asked),
            _own(subject, book),
            taken=_taken(subject),
            lenient=overrides.lenient,
        )
    except QueryRefused as refused:
        return None, [Problem(f"query.{i.path}".rstrip("."), f"{i.code}: {i.message}", i.remedy)
                      for i in refused.issues]  # fmt: skip
    return _spec(subject, asked, rendered), []


def _both(always: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if always and now:
        return {"and": [dict(always), dict(now)]}
    said = always or now
    return dict(said) if said else None


def _own(subject: Subject, book: QueryBook) -> QueryBook:
    detail = subject.shaped.endpoint.usage == EndpointUsage.DETAIL
    operation = EndpointOperation.DETAIL if detail else EndpointOperation.SEARCH
    own = book.narrowed(operation, subject.declaration.endpoint)
    if not subject.uses("query"):
        return own
    # The request says itself where the text goes; it needs no parameter of its own.
    others = tuple(rule for rule in own.params if rule.key != QUERY_KEY)
    placed = ParamRule(key=QUERY_KEY, name=_PLACED, operation=operation)
    return own.model_copy(update={"params": (*others, placed)})


_PLACED = "${query}"


def _taken(subject: Subject) -> frozenset[str]:
    request = subject.shaped.request
    names = (*(request.query or {}), *(request.first or {}), *(request.form or {}))
    return frozenset(name for name in names if not subject.uses(f"asked.{name}"))


def _spec(subject: Subject, asked: dict[str, Any], rendered: Rendered) -> QuerySpec:
    params = {
        name: (values,) if isinstance(values, str) else tuple(values)
        for name, values in rendered.params.items()
        if name != _PLACED
    }
    placed = {name: values for name, values in params.items() if subject.uses(f"asked.{name}")}
    sent = {name: values for name, values in params.items() if name not in placed}
    locations = {name: rendered.locations[name] for name in sent if name in rendered.locations}
    return QuerySpec(
        asked=asked,
        text=rendered.text,
        params=sent,
        locations=locations,
        placed=placed,
        warnings=tuple(f"{issue.code}: {issue.message}" for issue in rendered.warnings),
    )
