"""The localized spec: what a spec asks for one slice, with the slice's bounds filled in."""

from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.expr.functions import Bound
from patra_ingest.model.codes import UpperBound
from patra_ingest.model.window import Window, shift
from patra_ingest.spec.compile import expr_proto
from patra_ingest.spec.snapshot import DetailSpec, SpecSnapshot, WindowSpec


def localize(spec: SpecSnapshot, slice_spec: dict[str, Any]) -> dict[str, Any]:
    """Return everything that shapes this slice's requests and the reading of their answers."""
    return {
        "proto": expr_proto(spec),
        "bounds": slice_spec["bounds"],
        "overlapSeconds": spec.window.overlap.total_seconds(),
        "paging": spec.paging.model_dump(mode="json"),
        "response": spec.response.model_dump(mode="json"),
        "fields": [field.model_dump(mode="json") for field in spec.fields],
        "detail": None if spec.detail is None else _second_phase(spec.detail),
    }


def _second_phase(detail: DetailSpec) -> dict[str, Any]:
    asked = detail.model_dump(mode="json")
    return {key: asked[key] for key in ("endpoint", "request", "response", "fields")}


def query_window(spec: WindowSpec, window: Window) -> Window:
    """Return the window to ask for: the overlap widens the question, never the slice."""
    return Window(shift(window.start, -spec.overlap, ZoneInfo(spec.zone)), window.end)


def window_variables(spec: WindowSpec, window: Window) -> dict[str, Bound]:
    """Return `window.from`, `window.to` and `window.last` for the request templates.

    They show the clock of the source's own zone. `window.last` is the last instant the source's
    granularity can name inside the window. A source whose upper bound is inclusive is asked up to
    it; a slice then never reaches into the next one. One that counts its lower bound out is asked
    from the grain before.
    """
    asked = query_window(spec, window)
    zone = ZoneInfo(spec.zone)
    first = asked.start
    if spec.lower_bound == "EXCLUSIVE":
        first = shift(first, -spec.granularity, zone)
    last = asked.end
    if spec.upper_bound == UpperBound.INCLUSIVE:
        # A day of the source's calendar has 23 or 25 hours when its clocks change.
        last = shift(asked.end, -spec.granularity, zone)
    bounds = {"from": first, "to": asked.end, "last": max(last, asked.start)}
    return {name: Bound(at.astimezone(zone), spec.format) for name, at in bounds.items()}
