"""The localized spec: what a spec asks for one slice, with the slice's bounds filled in."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.model.codes import UpperBound
from patra_ingest.model.window import Window, shift
from patra_ingest.spec.compile import expr_proto
from patra_ingest.spec.snapshot import SpecSnapshot, WindowSpec


def localize(spec: SpecSnapshot, slice_spec: dict[str, Any]) -> dict[str, Any]:
    """Return everything that shapes this slice's requests and the reading of their answers."""
    return {
        "proto": expr_proto(spec),
        "bounds": slice_spec["bounds"],
        "overlapSeconds": spec.window.overlap.total_seconds(),
        "paging": spec.paging.model_dump(mode="json"),
        "response": spec.response.model_dump(mode="json"),
        "fields": [field.model_dump(mode="json") for field in spec.fields],
    }


def query_window(spec: WindowSpec, window: Window) -> Window:
    """Return the window to ask for: the overlap widens the question, never the slice."""
    return Window(shift(window.start, -spec.overlap, ZoneInfo(spec.zone)), window.end)


def window_variables(spec: WindowSpec, window: Window) -> dict[str, datetime]:
    """Return `window.from`, `window.to` and `window.last` for the request templates.

    `window.last` is the last instant the source's granularity can name inside the window. A source
    whose upper bound is inclusive is asked up to it; a slice then never reaches into the next one.
    """
    asked = query_window(spec, window)
    last = asked.end
    if spec.upper_bound == UpperBound.INCLUSIVE:
        # A day of the source's calendar has 23 or 25 hours when its clocks change.
        last = shift(asked.end, -spec.granularity, ZoneInfo(spec.zone))
    return {"from": asked.start, "to": asked.end, "last": max(last, asked.start)}
