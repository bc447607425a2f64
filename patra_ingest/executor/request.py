"""What one batch asks: the spec's templates, filled for one page of one slice."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson

from patra_ingest.errors import RequestRejected
from patra_ingest.executor.paging import Page
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import HttpMethod, InboundLocation
from patra_ingest.model.lineage import RunId, correlation_id
from patra_ingest.model.window import Window
from patra_ingest.spec.localize import window_variables
from patra_ingest.spec.places import Param
from patra_ingest.spec.snapshot import HttpSpec, QuerySpec, SpecSnapshot
from patra_ingest.transport.messages import Request, Timeouts
from patra_ingest.transport.redact import redact_headers

Pairs = list[tuple[str, str]]
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Asking:
    """One batch about to be asked: its slice, its page, and who asks when."""

    window: Window | None  # None: the slice is cut by ids
    page: Page
    run_id: RunId
    batch_no: int
    contact: str
    now: datetime
    lookback: timedelta = timedelta(0)
    split: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()


def render(spec: SpecSnapshot, asking: Asking) -> Request:
    """Return the request for one page; a parameter whose value is null is left out.

    RequestRejected when a required value is missing or one does not match its pattern: nothing
    is sent that the pack did not mean.
    """
    variables = _variables(spec, asking)
    asked = spec.request
    now_or_later = asked.first if asking.page.number == 1 else asked.next
    # By name: MySQL's JSON columns keep no order, and one spec asks one way on every engine.
    sent = sorted({**spec.http.query, **asked.query, **now_or_later}.items())
    query = [*_pairs(sent, variables), *_of_query(spec.query, InboundLocation.QUERY)]
    headers = _headers(spec, variables)
    path = _text(asked.path, variables) or ""
    url = path if "://" in path else asked.base_url.rstrip("/") + path
    request = Request(
        asked.method.value,
        url,
        tuple(query),
        {**headers, "X-Ingest-Correlation-Id": correlation_id(asking.run_id, asking.batch_no)},
        None,
        timeouts(spec.http),
        {name: param.keep for name, param in sent if isinstance(param, Param) and param.keep},
    )
    return _with_body(request, spec, variables)


def timeouts(http: HttpSpec) -> Timeouts:
    """Return the patience that a spec declares, in seconds."""
    kinds = (http.connect_timeout, http.read_timeout, http.total_timeout)
    return Timeouts(*(kind.total_seconds() for kind in kinds))


def digest_of(request: Request) -> dict[str, Any]:
    """Return what the ledger keeps of a request, without secrets."""
    return {
        "method": request.method,
        "url": request.shown_url,
        "headers": redact_headers(request.headers),
    }


def _with_body(request: Request, spec: SpecSnapshot, variables: Mapping[str, object]) -> Request:
    asked = spec.request
    form = [
        *_pairs(sorted(asked.form.items()), variables),
        *_of_query(spec.query, InboundLocation.BODY),
    ]
    if asked.body is not None:
        body = orjson.dumps(_filled_tree(asked.body, variables))
        return request.with_body(asked.method.value, body, "application/json")
    if form:
        return request.with_form(asked.method.value, form, _FORM)
    limit = asked.post_when_longer
    is_long = limit is not None and len(request.full_url) > limit
    if asked.method == HttpMethod.GET and is_long:
        return request.as_form(_FORM)
    return request


def _headers(spec: SpecSnapshot, variables: Mapping[str, object]) -> dict[str, str]:
    templates = {**spec.http.headers, **spec.request.headers}
    filled = {name: _text(text, variables) for name, text in templates.items()}
    more = dict(_of_query(spec.query, InboundLocation.HEADER))
    return {**{name: value for name, value in filled.items() if value is not None}, **more}


def _of_query(query: QuerySpec | None, location: InboundLocation) -> Iterator[tuple[str, str]]:
    for name, values in sorted(query.params.items()) if query else ():
        if query and query.locations.get(name, InboundLocation.QUERY) == location:
            yield from ((name, value) for value in values)


def _pairs(params: Iterable[tuple[str, str | Param]], variables: Mapping[str, object]) -> Pairs:
    pairs: Pairs = []
    for name, param in params:
        for value in _values(name, param, variables):
            pairs.append((name, value))
    return pairs


def _values(name: str, param: str | Param, variables: Mapping[str, object]) -> list[str]:
    if isinstance(param, str):
        value = _text(param, variables)
        return [] if value is None else [value]
    values = _in_full(param, variables)
    if param.required and not values:
        raise RequestRejected(f"the parameter {name} is required and has no value")
    for value in values:
        if param.pattern is not None and not re.fullmatch(param.pattern, value):
            raise RequestRejected(
                f"the parameter {name} is {value!r:.120}, which does not match {param.pattern}"
            )
    return values


def _in_full(param: Param, variables: Mapping[str, object]) -> list[str]:
    if param.clauses is not None:
        filled = [compile_template(text).render_clause(variables) for text in param.clauses]
        kept = [text for text in filled if text]
        return [param.join.join(kept)] if kept else []
    if param.repeat:
        value = compile_template(param.value or "").value(variables)
        several = value if isinstance(value, list | tuple) else [value]
        return [to_text(one) for one in several if one is not None]
    text = _text(param.value or "", variables)
    return [] if text is None else [text]


def _filled_tree(tree: Any, variables: Mapping[str, object]) -> Any:
    """Fill a JSON body; what is null is left out, a place alone keeps its kind."""
    if isinstance(tree, str):
        return compile_template(tree).value(variables)
    if isinstance(tree, Mapping):
        filled = {name: _filled_tree(value, variables) for name, value in tree.items()}
        return {name: value for name, value in filled.items() if value is not None}
    if isinstance(tree, list | tuple):
        filled_items = [_filled_tree(value, variables) for value in tree]
        kept = [value for value in filled_items if value is not None]
        return kept if kept or not tree else None
    return tree


def _variables(spec: SpecSnapshot, asking: Asking) -> Mapping[str, object]:
    page, window = asking.page, asking.window
    return {
        "window": window_variables(spec.window, window, asking.lookback) if window else {},
        "ids": list(asking.ids) or None,
        "page": {
            "size": spec.paging.page_size,
            "offset": page.offset,
            "number": page.number,
            "token": page.token,
        },
        "params": dict(spec.params),
        "identity": {"contact": asking.contact or None},
        "query": spec.query.text if spec.query else None,
        "asked": {name: ",".join(v) for name, v in spec.query.placed.items()} if spec.query else {},
        "split": asking.split,
        "partition": dict(asking.partition),
        "now": asking.now,
    }


def _text(text: str, variables: Mapping[str, object]) -> str | None:
    try:
        return compile_template(text).render(variables)
    except ValueError as error:
        raise RequestRejected(f"the request cannot be written: {error}") from error
