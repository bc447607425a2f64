"""Which window a trigger means, from the cursor, the safety lag and what the person asked for."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from patra_ingest.errors import PlanError
from patra_ingest.model.window import Window, floor_to, instant_iso
from patra_ingest.spec.snapshot import WindowSpec


@dataclass(frozen=True)
class Asked:
    """The bounds a trigger gives; None leaves them to the cursor and to now."""

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if self.start and self.end and self.start >= self.end:
            raise PlanError(
                f"The window [{instant_iso(self.start)}, {instant_iso(self.end)}) is empty.",
                "Give a start that is earlier than the end.",
            )


@dataclass(frozen=True)
class NothingNew:
    """The window is empty, and why."""

    reason: str


def harvest_window(
    spec: WindowSpec, cursor: datetime | None, asked: Asked, now: datetime
) -> Window | NothingNew:
    """Return `[cursor, now − safety lag)` cut to what was asked, on the source's own grid.

    The upper end is rounded down: what the source may still be writing is left to the next window.
    """
    start = asked.start or cursor or spec.initial_from
    if start is None:
        raise PlanError(
            "This endpoint was never harvested and declares no start.",
            "Say where to begin: --from 2026-01-01, or window_from in Dagster.",
        )
    zone = ZoneInfo(spec.zone)
    safe = now - spec.safety_lag
    end = floor_to(min(asked.end or safe, safe), spec.granularity, zone)
    start = floor_to(start, spec.granularity, zone)
    if start >= end:
        return NothingNew(
            f"everything before {instant_iso(end)} is planned already, and the source is given"
            f" {int(spec.safety_lag.total_seconds())} s to settle"
        )
    return Window(start, end)
