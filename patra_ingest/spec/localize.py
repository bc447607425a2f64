"""The localized spec: what a spec asks for one slice, with the slice's bounds filled in."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.expr.functions import Bound
from patra_ingest.model import keys
from patra_ingest.model.codes import UpperBound
from patra_ingest.model.window import Window, shift
from patra_ingest.spec.compile import expr_proto
from patra_ingest.spec.snapshot import SpecSnapshot, WindowSpec

_BOUNDARY = ("dimension", "bounds", "split", "partition")


def reading_of(spec: SpecSnapshot) -> dict[str, str]:
    """Return the hashes of everything but the bounds that shapes a slice's requests and records.

    The plan keeps the spec itself; a hash of it in every slice proves that both belong together.
    """
    asked: dict[str, Any] = {
        "paging": spec.paging.model_dump(mode="json"),
        "response": spec.response.model_dump(mode="json"),
        "fields": [field.model_dump(mode="json") for field in spec.fields],
    }
    if spec.detail is not None:
        detail = spec.detail.model_dump(mode="json")
        asked["detail"] = {k: detail[k] for k in ("endpoint", "request", "response", "fields")}
    return {"proto": keys.expr_proto_hash(expr_proto(spec)), "reading": keys.digest(asked)}


def localize(reading: Mapping[str, str], slice_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a slice asks: its plan's question with its own bounds filled in."""
    return {**reading, **{key: slice_spec[key] for key in _BOUNDARY if key in slice_spec}}


def query_window(spec: WindowSpec, window: Window, lookback: timedelta = timedelta(0)) -> Window:
    """Return the window to ask for: overlap and lookback widen the question, never the slice."""
    back = max(spec.overlap, lookback)
    return Window(shift(window.start, -back, ZoneInfo(spec.zone)), window.end)


def window_variables(
    spec: WindowSpec, window: Window, lookback: timedelta = timedelta(0)
) -> dict[str, Bound]:
    """Return `window.from`, `window.to` and `window.last` for the request templates.

    They show the clock of the source's own zone. `window.last` is the last instant the source's
    granularity can name inside the window. A source whose upper bound is inclusive is asked up to
    it; a slice then never reaches into the next one. One that counts its lower bound out is asked
    from the grain before.
    """
    asked = query_window(spec, window, lookback)
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
