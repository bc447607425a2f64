"""What one batch asks: the spec's templates, filled for one page of one slice."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from patra_ingest.executor.paging import Page
from patra_ingest.expr.template import Template, compile_template
from patra_ingest.model.lineage import RunId, correlation_id
from patra_ingest.model.window import Window
from patra_ingest.spec.localize import window_variables
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.messages import Request, Timeouts
from patra_ingest.transport.redact import redact_headers


def render(
    spec: SpecSnapshot, window: Window, page: Page, run_id: RunId, batch_no: int, contact: str
) -> Request:
    """Return the request for `page`; a parameter whose value is null is left out."""
    variables = _variables(spec, window, page, contact)
    # By name: MySQL's JSON columns keep no order, and one spec asks one way on every engine.
    templates = sorted(spec.request.query.items())
    query = [(name, _filled(text, variables)) for name, text in templates]
    headers = {name: _filled(text, variables) for name, text in spec.request.headers.items()}
    sent = {name: value for name, value in headers.items() if value is not None}
    path = _filled(spec.request.path, variables) or ""
    return Request(
        spec.request.method.value,
        spec.request.base_url.rstrip("/") + path,
        tuple((name, value) for name, value in query if value is not None),
        {**sent, "X-Ingest-Correlation-Id": correlation_id(run_id, batch_no)},
        None,
        Timeouts(
            spec.http.connect_timeout_ms / 1000,
            spec.http.read_timeout_ms / 1000,
            spec.http.total_timeout_ms / 1000,
        ),
    )


def digest_of(request: Request) -> dict[str, Any]:
    """Return what the ledger keeps of a request, without secrets."""
    return {
        "method": request.method,
        "url": request.shown_url,
        "headers": redact_headers(request.headers),
    }


def _variables(
    spec: SpecSnapshot, window: Window, page: Page, contact: str
) -> Mapping[str, object]:
    return {
        "window": window_variables(spec.window, window),
        "page": {
            "size": spec.paging.page_size,
            "offset": page.offset,
            "number": page.number,
            "token": page.token,
        },
        "params": dict(spec.params),
        "identity": {"contact": contact or None},
    }


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Template:
    return compile_template(text)


def _filled(text: str, variables: Mapping[str, object]) -> str | None:
    return _compiled(text).render(variables)
