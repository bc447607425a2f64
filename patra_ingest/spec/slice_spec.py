"""The slice_spec: one slice with its budget, in the shape that planner, executor and people share.

The signature is made of what it asks for. What it may spend, what was expected of it and how far
its question reaches back are no part of it: they do not change which slice it is.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from patra_ingest.expr.template import compile_template
from patra_ingest.model.bounds import Bounds, SplitPart
from patra_ingest.spec.snapshot import SpecSnapshot


@dataclass(frozen=True)
class Expected:
    """What a slice is expected to hold and to cost, and where that number comes from."""

    records: int | None = None
    requests: int | None = None
    basis: str | None = None


def slice_spec(
    spec: SpecSnapshot,
    bounds: Bounds,
    priority: int,
    expected: Expected | None = None,
    lookback: timedelta = timedelta(0),
) -> dict[str, Any]:
    """Return the slice_spec of a boundary; `lookback` widens its question, not the slice."""
    written: dict[str, Any] = {
        **bounds.as_json(),
        "pagination": {"type": spec.paging.type},
        "window": {
            "safetyLag": f"PT{int(spec.window.safety_lag.total_seconds())}S",
            "watermarkKey": spec.window.watermark_key,
        },
        "budget": {"priority": priority},
    }
    if expected is not None and expected.basis is not None:
        written["budget"]["expectedRequests"] = expected.requests
        written["telemetry"] = {"totalEstimated": expected.records, "basis": expected.basis}
    if lookback:
        written["widened"] = {"lookbackSeconds": lookback.total_seconds()}
    return written


def lookback_of(written: dict[str, Any]) -> timedelta:
    """Return how much further back than its own window a slice asks."""
    return timedelta(seconds=written.get("widened", {}).get("lookbackSeconds", 0))


def requests_of(written: dict[str, Any]) -> int | None:
    """Return how many requests a slice was expected to take; None if nobody could know."""
    found: int | None = written["budget"].get("expectedRequests")
    return found


def records_of(written: dict[str, Any]) -> int | None:
    """Return how many records a slice was expected to hold; None if nobody could know."""
    found: int | None = written.get("telemetry", {}).get("totalEstimated")
    return found


def split_text(spec: SpecSnapshot, bounds: Bounds) -> str | None:
    """Return the clauses of a slice's second dimension, for `${split}`; None if it has none."""
    clauses = [_clause(spec, part) for part in bounds.splits]
    return " AND ".join(clauses) or None


def _clause(spec: SpecSnapshot, part: SplitPart) -> str:
    named = {"from": part.low, "to": part.high, "value": part.value}
    text = compile_template(spec.cap.then[part.rule].clause).render(named)
    if text is None:
        raise ValueError(f"the clause of split {part.rule} came out empty")
    return text


def partition_values(spec: SpecSnapshot, bounds: Bounds) -> dict[str, str]:
    """Return what `${partition.…}` says for a slice."""
    values = spec.partitions.get(bounds.partition or "", {})
    return {name: value for name, value in values.items() if value is not None}
