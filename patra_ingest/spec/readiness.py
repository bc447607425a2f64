"""What a spec asks of the executor that this version cannot do yet.

A pack may be written, checked and stored before the engine can run it; planning it would be a
promise that is not kept, so the planner refuses and says what is missing.
"""

from collections.abc import Iterator

from patra_ingest.model.codes import (
    BackpressureStrategy,
    PayloadCompressStrategy,
    UpperBound,
    WatermarkSource,
)
from patra_ingest.spec.paging import TimePaging
from patra_ingest.spec.platform import PLATFORM
from patra_ingest.spec.snapshot import SpecSnapshot

# What still works as the platform does it, whatever a pack says.
_DEFAULTS = {
    "http": ("http2",),
}
# How batches are made and sent today; a pack that wants it otherwise cannot be run.
_USUAL = {
    "parallel": 1,
    "compress": PayloadCompressStrategy.NONE,
    "backpressure": BackpressureStrategy.BLOCK,
    "per_host": None,
    "pool": None,
    "two_phase_from": None,
    "combine_below": None,
}


def find_missing(spec: SpecSnapshot) -> list[str]:
    """Return what the executor lacks for this spec, in words of the pack language."""
    return [*_page(spec), *_window(spec), *_batching(spec), *_policies(spec)]


def _page(spec: SpecSnapshot) -> Iterator[str]:
    if spec.paging.fetch_ahead:
        yield "paging.fetch_ahead"


def _window(spec: SpecSnapshot) -> Iterator[str]:
    if spec.window.watermark_source != WatermarkSource.WINDOW_END:
        yield f"window.watermark_source {spec.window.watermark_source}"
    if spec.window.upper_bound == UpperBound.OPEN and not spec.response.client_window:
        yield "window.upper_bound OPEN without response.client_window"
    if spec.window.upper_bound == UpperBound.OPEN and isinstance(spec.paging, TimePaging):
        # Behind the window no record tells the time at which the walk would go on.
        yield "window.upper_bound OPEN with paging.type TIME"
    if spec.window.freshness:
        yield "window.freshness"


def _batching(spec: SpecSnapshot) -> Iterator[str]:
    asked = [spec.batching, *([spec.detail.batching] if spec.detail else [])]
    for key, usual in _USUAL.items():
        if any(getattr(batching, key) not in (None, usual) for batching in asked):
            yield f"batching.{key}"


def _policies(spec: SpecSnapshot) -> Iterator[str]:
    for group, keys in _DEFAULTS.items():
        for key in keys:
            if (getattr(getattr(spec, group), key) or None) != (PLATFORM[group].get(key) or None):
                yield f"{group}.{key}"
