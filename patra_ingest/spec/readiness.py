"""What a spec asks of the executor that this version cannot do yet.

A pack may be written, checked and stored before the engine can run it; planning it would be a
promise that is not kept, so the planner refuses and says what is missing.
"""

from collections.abc import Iterator

from patra_ingest.model.codes import SliceStrategy, UpperBound, WatermarkSource
from patra_ingest.spec.paging import OffsetPaging, TokenPaging
from patra_ingest.spec.platform import PLATFORM
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.spec.words import BodyFormat, Meaning, SizePolicy, Step, StopRule

# What still works as the platform does it, whatever a pack says.
_DEFAULTS = {
    "http": (
        *("redirects", "retry_after", "retry_after_cap", "proxy", "http2", "verify_tls"),
        *("compression", "max_body_mb", "idempotency_header"),
    ),
    "retry": ("backoff", "network_errors", "breaker", "give_up"),
    "rate": ("headers", "min_interval", "cost_path", "park_after", "also"),
}


def find_missing(spec: SpecSnapshot) -> list[str]:
    """Return what the executor lacks for this spec, in words of the pack language."""
    pages = [*_walk(spec), *_page(spec)] if spec.reconcile is None else [*_ids(spec)]
    return [*pages, *_response(spec), *_window(spec), *_policies(spec)]


def _ids(spec: SpecSnapshot) -> Iterator[str]:
    if spec.reconcile and spec.reconcile.positional:
        yield "detail.positional"
    if spec.reconcile and spec.reconcile.aliases:
        yield "detail.aliases"


def _walk(spec: SpecSnapshot) -> Iterator[str]:
    paging = spec.paging
    match paging:
        case OffsetPaging(step=Step.PAGE_SIZE, first_offset=0):
            pass
        case OffsetPaging():
            yield "paging.step"
        case TokenPaging(token_life=None) if paging.next_token.path and not paging.next_token.param:
            pass
        case TokenPaging():
            yield "paging.next_token outside a path, paging.token_life"
        case _:
            yield f"paging.type {paging.type}"


def _page(spec: SpecSnapshot) -> Iterator[str]:
    paging = spec.paging
    if StopRule.NO_MORE in paging.stop:
        yield "paging.has_more"
    for key in ("shrink_on", "shrink_on_timeout", "fetch_ahead"):
        if getattr(paging, key):
            yield f"paging.{key}"
    total = paging.total
    if total and (total.header or total.tolerance or total.is_estimate or total.first_page_only):
        yield "paging.total in full"
    if paging.size_policy in (SizePolicy.CLAMPED, SizePolicy.SERVER):
        yield f"paging.size_policy {paging.size_policy}"


def _response(spec: SpecSnapshot) -> Iterator[str]:
    response = spec.response
    if response.format != BodyFormat.JSON:
        yield f"response.format {response.format}"
    named = (
        "items_order",
        "null_is_empty",
        "single",
        "asked",
        "version",
        "tombstones",
        "retracted",
        "skip",
    )
    for key in (*named, "usable", "require", "expect"):
        if getattr(response, key):
            yield f"response.{key}"
    if response.deleted is not None and not isinstance(response.deleted, str):
        yield "response.deleted as a condition"
    if spec.errors:
        yield "errors"
    if spec.detail:
        yield "detail"


def _window(spec: SpecSnapshot) -> Iterator[str]:
    if spec.planning.strategy is SliceStrategy.PAGE_RANGE or spec.window.meaning is Meaning.NONE:
        yield "slices by pages"
    if spec.window.watermark_source != WatermarkSource.WINDOW_END:
        yield f"window.watermark_source {spec.window.watermark_source}"
    if spec.window.upper_bound == UpperBound.OPEN:
        yield "window.upper_bound OPEN"
    if spec.window.freshness:
        yield "window.freshness"
    if spec.cap.probe:
        yield "cap.probe"


def _policies(spec: SpecSnapshot) -> Iterator[str]:
    if spec.auth.required:
        yield "auth.required"
    if spec.auth.chosen:
        yield "auth.credentials"
    for group, keys in _DEFAULTS.items():
        for key in keys:
            if (getattr(getattr(spec, group), key) or None) != (PLATFORM[group].get(key) or None):
                yield f"{group}.{key}"
