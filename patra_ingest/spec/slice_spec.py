"""The boundary of one slice, in the one shape that planner, executor and people share."""

from typing import Any

from patra_ingest.model.window import Window, instant_iso, parse_instant
from patra_ingest.spec.snapshot import SpecSnapshot


def time_slice(spec: SpecSnapshot, window: Window, priority: int) -> dict[str, Any]:
    """Return the slice_spec of a window in time. Budget and telemetry never enter its signature."""
    return {
        "dimension": "TIME",
        "bounds": {"time": {"from": instant_iso(window.start), "to": instant_iso(window.end)}},
        "pagination": {"type": spec.paging.type},
        "window": {
            "safetyLag": f"PT{int(spec.window.safety_lag.total_seconds())}S",
            "watermarkKey": spec.window.watermark_key,
        },
        "budget": {"priority": priority},
    }


def window_of(slice_spec: dict[str, Any]) -> Window:
    """Return the window a time slice covers."""
    bounds = slice_spec["bounds"]["time"]
    return Window(parse_instant(bounds["from"]), parse_instant(bounds["to"]))
