"""What one batch asks: the spec's templates, filled for one page of one slice."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import orjson

from patra_ingest.errors import EndpointHalted, RequestRejected
from patra_ingest.executor.asking import CONTACT, Asking, variables_of
from patra_ingest.executor.paging import Page
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import HttpMethod, InboundLocation
from patra_ingest.model.lineage import CORRELATION, correlation_id
from patra_ingest.spec.paging import UrlPaging
from patra_ingest.spec.parts import Probe
from patra_ingest.spec.places import Param, templates_of
from patra_ingest.spec.snapshot import CallSpec, HttpSpec, QuerySpec, SpecSnapshot
from patra_ingest.transport.messages import Request, Timeouts, options_of

Pairs = list[tuple[str, str]]
_FORM = "application/x-www-form-urlencoded"


def render(spec: SpecSnapshot, asking: Asking) -> Request:
    """Return the request for one page; a parameter whose value is null is left out.

    RequestRejected when a required value is missing or one does not match its pattern: nothing
    is sent that the pack did not mean.
    """
    variables = variables_of(spec, asking)
    if asking.details and spec.detail is not None:
        return _write(spec.detail, None, asking, variables)
    if isinstance(spec.paging, UrlPaging) and asking.page.token is not None:
        return _follow(spec, spec.paging, asking, variables)
    return _write(spec, spec.query, asking, variables)


def find_separators(call: CallSpec, ids: Iterable[str]) -> dict[str, str]:
    """Return the ids that would be two where several are joined in one value, and what at."""
    templates = [compile_template(text) for text in _texts(call.request.model_dump())]
    found = {
        one: next(filter(None, (each.separator_in("ids", one) for each in templates)), None)
        for one in ids
    }
    return {one: separator for one, separator in found.items() if separator}


def _texts(tree: Any) -> Iterator[str]:
    """Yield the templates that speak of ids, wherever they stand."""
    if isinstance(tree, str) and "${ids" in tree:
        yield tree
    elif isinstance(tree, Mapping | list | tuple):
        for value in tree.values() if isinstance(tree, Mapping) else tree:
            yield from _texts(value)


def render_probe(spec: SpecSnapshot, probe: Probe, asking: Asking) -> Request:
    """Return the request that only counts: the first page's, with what the probe sends instead."""
    asked = spec.request
    changed = {
        "query": _present({**asked.query, **(probe.query or {})}),
        "form": _present({**asked.form, **(probe.form or {})}),
        "body": {**(asked.body or {}), **probe.body} if probe.body else asked.body,
    }
    counting = spec.model_copy(update={"request": asked.model_copy(update=changed)})
    return _write(counting, counting.query, asking, variables_of(counting, asking))


def _write(
    call: CallSpec, query: QuerySpec | None, asking: Asking, variables: Mapping[str, object]
) -> Request:
    asked = call.request
    path = _text(asked.path, variables) or ""
    behind = asked.base_url.rstrip("/") + path if path else asked.base_url
    url = path if "://" in path else behind
    params = _params(call, asking)
    pairs = [*_pairs(params, variables), *_of_query(query, InboundLocation.QUERY)]
    request = _request(call, query, asking, variables, url, pairs)
    return _with_body(request, call, query, variables)


def _follow(
    spec: SpecSnapshot, paging: UrlPaging, asking: Asking, variables: Mapping[str, object]
) -> Request:
    """Return the request for the address that the last page handed out, with our own on it."""
    first = _write(spec, spec.query, replace(asking, page=Page()), variables)
    url = urljoin(first.url, asking.page.token or "")
    _require_host(url, first.url, paging.url_hosts)
    carried = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    own = _params(spec, asking) if paging.restore_params else sorted(spec.http.query.items())
    lost = [pair for pair in _pairs(own, variables) if pair[0] not in carried]
    if paging.restore_params:
        placed = _of_query(spec.query, InboundLocation.QUERY)
        lost += [pair for pair in placed if pair[0] not in carried]
    return _request(spec, spec.query, asking, variables, url, lost)


def _require_host(url: str, own: str, others: Sequence[str]) -> None:
    there, here = urlsplit(url), urlsplit(own)
    if there.netloc == here.netloc and there.scheme == here.scheme:
        return
    if there.hostname not in others or (here.scheme == "https" and there.scheme != "https"):
        place = there.netloc.rpartition("@")[2]  # without a password
        raise EndpointHalted(
            f"the next page is said to be at {there.scheme}://{place}, which is not"
            f" {here.scheme}://{here.netloc}; name the host in paging.url_hosts if that is right"
        )


def _params(call: CallSpec, asking: Asking) -> list[tuple[str, str | Param]]:
    asked = call.request
    now_or_later = asked.first if asking.page.number == 1 or asking.details else asked.next
    # By name: MySQL's JSON columns keep no order, and one spec asks one way on every engine.
    return sorted({**call.http.query, **asked.query, **now_or_later}.items())


def _request(
    call: CallSpec,
    query: QuerySpec | None,
    asking: Asking,
    variables: Mapping[str, object],
    url: str,
    pairs: Pairs,
) -> Request:
    sent = _params(call, asking)
    correlation = correlation_id(asking.run_id, asking.batch_no)
    headers = {**_headers(call, query, variables), CORRELATION: correlation}
    key = call.http.idempotency_header
    return Request(
        call.request.method.value,
        url,
        tuple(pairs),
        {**headers, key: correlation} if key else headers,
        None,
        timeouts(call.http),
        {name: param.keep for name, param in sent if isinstance(param, Param) and param.keep},
        options_of(call.http),
    )


def timeouts(http: HttpSpec) -> Timeouts:
    """Return the patience that a spec declares, in seconds."""
    kinds = (http.connect_timeout, http.read_timeout, http.total_timeout)
    return Timeouts(*(kind.total_seconds() for kind in kinds))


def _with_body(
    request: Request,
    call: CallSpec,
    query: QuerySpec | None,
    variables: Mapping[str, object],
) -> Request:
    asked = call.request
    form = [
        *_pairs(sorted(asked.form.items()), variables),
        *_of_query(query, InboundLocation.BODY),
    ]
    if asked.body is not None:
        body = orjson.dumps(_filled_tree(asked.body, variables))
        return request.with_body(asked.method.value, body, "application/json")
    if form:
        return request.with_form(asked.method.value, form, _FORM)
    limit = asked.post_when_longer
    is_long = limit is not None and len(request.full_url) > limit
    if asked.method == HttpMethod.GET and is_long:
        elsewhere = asked.post_path and asked.base_url.rstrip("/") + asked.post_path
        return replace(request.as_form(_FORM), url=elsewhere or request.url)
    return request


def _headers(
    call: CallSpec, query: QuerySpec | None, variables: Mapping[str, object]
) -> dict[str, str]:
    templates = {**call.http.headers, **call.request.headers}
    filled = {name: _text(text, variables) for name, text in templates.items()}
    more = dict(_of_query(query, InboundLocation.HEADER))
    return {**{name: value for name, value in filled.items() if value is not None}, **more}


def _present(params: Mapping[str, str | Param | None]) -> dict[str, str | Param]:
    return {name: value for name, value in params.items() if value is not None}


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
        is_ours = any(CONTACT in text for text in templates_of(param))
        remedy = "; set PATRA_CONTACT to your mail address" if is_ours else ""
        raise RequestRejected(f"the parameter {name} is required and has no value{remedy}")
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


def _text(text: str, variables: Mapping[str, object]) -> str | None:
    try:
        return compile_template(text).render(variables)
    except ValueError as error:
        raise RequestRejected(f"the request cannot be written: {error}") from error
