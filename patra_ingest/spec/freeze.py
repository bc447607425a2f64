"""A checked declaration becomes the frozen models of a snapshot. Nothing is decided here any more.

Every value that the models need has passed the checks; one that is missing after all is a
ValidationError, which the compiler reports like any other problem.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from patra_ingest.model.window import parse_instant
from patra_ingest.spec.declaration import NamedCredential, said
from patra_ingest.spec.paging import Paging
from patra_ingest.spec.parts import PagingPart, RequestPart, WindowPart
from patra_ingest.spec.places import Param, templates_of
from patra_ingest.spec.platform import UNITS
from patra_ingest.spec.shapes import Shaped
from patra_ingest.spec.words import PagingType, ValueText

_PAGING: TypeAdapter[Paging] = TypeAdapter(Paging)
_COMMON = ("type", "page_size", "size_policy", "max_pages", "total", "has_more", "stop")
_WALK = ("shrink_on", "shrink_on_timeout", "fetch_ahead", "consistency", "order_by", "order")
_ALWAYS = (*_COMMON, *_WALK)
_OWN: Mapping[PagingType, tuple[str, ...]] = {
    PagingType.NONE: (),
    PagingType.OFFSET: ("first_offset", "step", "step_path"),
    PagingType.PAGE: ("first_page",),
    PagingType.TOKEN: (
        *("initial_token", "next_token", "token_life", "token_stays", "keep_token", "probe_tail"),
    ),
    PagingType.URL: ("next_url", "url_hosts", "restore_params", "token_life", "probe_tail"),
    PagingType.TIME: (),
}
PLACED = (
    ("size_param", "${page.size}"),
    ("offset_param", "${page.offset}"),
    ("page_param", "${page.number}"),
    ("token_param", "${page.token}"),
)


def frozen_call(
    shaped: Shaped, credentials: tuple[NamedCredential, ...], chosen: str | None
) -> dict[str, Any]:
    """Return what every callable has: request, http, auth, response, mapping and limits."""
    return {
        "request": frozen_request(shaped),
        "http": _maps(said(shaped.http), "headers", "query"),
        "auth": {
            "required": shaped.auth.required,
            "chosen": chosen,
            "rotation": shaped.auth.rotation,
            "credentials": [{"name": c.name, "credential": c.credential} for c in credentials],
        },
        "response": _response(shaped),
        "fields": shaped.endpoint.fields,
        "changed": shaped.endpoint.changed,
        "errors": shaped.endpoint.errors or (),
        "batching": _only(
            said(shaped.batching),
            *("ids_per_request", "ids_param", "join", "max_url", "parallel"),
            *("two_phase_from", "combine_below", "compress", "per_host", "pool", "backpressure"),
        ),
        "retry": said(shaped.retry),
        "rate": {k: v for k, v in said(shaped.rate).items() if k != "vendor"},
    }


def frozen_paging(paging: PagingPart) -> Paging:
    """Return the paging of its kind; what other kinds would say is left behind."""
    if paging.type is None:
        raise ValueError("paging has no type")
    keys = (*_ALWAYS, *_OWN[paging.type])
    return _PAGING.validate_python(_only(said(paging), *keys))


def frozen_window(window: WindowPart) -> dict[str, Any]:
    """Return the window with its grain as a length of time."""
    values = said(window)
    grain = UNITS[values["granularity"]]
    values.pop("publication_delay", None)
    initial = values.get("initial_from")
    return {
        **values,
        "granularity": grain,
        "min_span": max(values.get("min_span", grain), grain),
        "initial_from": None if initial is None else parse_instant(initial),
    }


def frozen_request(shaped: Shaped) -> dict[str, Any]:
    """Return the request template with everything placed that parts named: sizes, tokens, ids."""
    request = shaped.request
    values = {
        **_only(said(request), "method", "base_url", "path", "body"),
        **_only(said(request), "post_when_longer", "post_path"),
        **{key: _present(getattr(request, key)) for key in ("query", "first", "next", "form")},
        "headers": _present(request.headers),
    }
    if request.accept:
        values["headers"].setdefault("Accept", request.accept)
    if request.select:
        values["query"][request.select.param] = request.select.join.join(request.select.fields)
    for name, template in placed_params(shaped):
        values["query"].setdefault(name, template)
    return values


def placed_params(shaped: Shaped) -> list[tuple[str, str | Param]]:
    """Return the parameters that a name alone asks for: page, size, token and ids."""
    named = [(getattr(shaped.paging, key), template) for key, template in PLACED]
    placed: list[tuple[str, str | Param]] = [(name, text) for name, text in named if name]
    used = used_texts(shaped.request)
    if shaped.batching.ids_param and not any("${ids" in text for text in used):
        joined = (shaped.batching.join or ",").replace("'", "")
        placed.append((shaped.batching.ids_param, f"${{ids|join('{joined}')}}"))
    return placed


def used_texts(request: RequestPart) -> list[str]:
    """Return every template of a request, wherever it stands."""
    texts = [request.path or "", *(text for text in (request.headers or {}).values() if text)]
    for params in (request.query, request.first, request.next, request.form):
        for param in (params or {}).values():
            texts.extend(() if param is None else templates_of(param))
    return [*texts, *body_texts(request.body)]


def body_texts(body: Any) -> list[str]:
    """Return every text of a JSON body."""
    if isinstance(body, str):
        return [body]
    children = body.values() if isinstance(body, Mapping) else body
    if not isinstance(body, Mapping | list | tuple):
        return []
    return [text for child in children for text in body_texts(child)]


def _response(shaped: Shaped) -> dict[str, Any]:
    values = said(shaped.response)
    values.pop("default_fields", None)
    for key in ("items", "id", "asked", "version", "updated_at"):
        if key in values:
            values[key] = paths_of(values[key])
    return values


def paths_of(said_value: ValueText) -> tuple[str, ...]:
    """Return a value's alternatives; one alone is a list of one."""
    return (said_value,) if isinstance(said_value, str) else tuple(said_value)


def _present(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _maps(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {**values, **{key: _present(values.get(key)) for key in keys}}


def _only(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}
