"""Look how far a namespace has come: its cursor, and what has succeeded next to it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from patra_ingest.cursor.frontier import first_gap, frontier
from patra_ingest.ledger.coverage import LAST, find_ends, find_start, list_windows
from patra_ingest.ledger.cursor_events import goes_up
from patra_ingest.ledger.cursors import TimeCursor, find_cursor
from patra_ingest.ledger.records import find_newest_update
from patra_ingest.model.codes import CursorDirection, SliceStatus
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_FIRST_LOOK = timedelta(days=32)
_FORWARD = CursorDirection.FORWARD


@dataclass(frozen=True)
class Reach:
    """Where a cursor is, where it may go, and what it waits for there.

    `direction` is the one it really goes: a BACKFILL of an older version goes up until it has
    come to the top of what was planned, and turns round there. `origin` is None as long as
    nothing was planned.
    """

    cursor: TimeCursor | None
    direction: CursorDirection
    origin: datetime | None = None
    reached: datetime | None = None
    gap: Window | None = None
    observed: datetime | None = None

    @property
    def step(self) -> Window | None:
        """Return what the cursor may pass now; None when that is nothing."""
        if self.origin is None or self.reached is None or self.origin == self.reached:
            return None
        return Window(min(self.origin, self.reached), max(self.origin, self.reached))


def look(
    tx: Connection, namespace: Namespace, direction: CursorDirection, near: Window | None
) -> Reach:
    """Return how far a namespace has come; `near` is the slice that has just finished."""
    cursor = find_cursor(tx, namespace)
    way = _way(tx, namespace, direction, cursor)
    origin = cursor.value if cursor else _origin(tx, namespace, way)
    if origin is None:
        return Reach(None, way)
    reached, gap = _walk(tx, namespace, way, origin, near.duration * 8 if near else _FIRST_LOOK)
    observed = cursor.observed_max if cursor else None
    if reached != origin:
        observed = find_newest_update(tx, namespace.provenance, namespace.endpoint)
    return Reach(cursor, way, origin, reached, gap, observed)


def _way(
    tx: Connection, namespace: Namespace, direction: CursorDirection, cursor: TimeCursor | None
) -> CursorDirection:
    if direction is _FORWARD or cursor is None or not goes_up(tx, namespace):
        return direction
    ends = find_ends(tx, namespace)
    return _FORWARD if ends is not None and ends.end > cursor.value else direction


def _origin(tx: Connection, namespace: Namespace, way: CursorDirection) -> datetime | None:
    if way is _FORWARD:
        return find_start(tx, namespace)
    ends = find_ends(tx, namespace)
    return ends.end if ends else None


def _walk(
    tx: Connection, namespace: Namespace, way: CursorDirection, origin: datetime, span: timedelta
) -> tuple[datetime, Window | None]:
    """Return the frontier and the gap before it; only what lies near is read, and more if needed.

    What lies beyond the first gap does not matter, and may be a hundred thousand slices.
    """
    reached = origin
    while True:
        near = _near(reached, span, way)
        known = list_windows(tx, namespace, near.start, near.end)
        done = [one.window for one in known if one.status is SliceStatus.SUCCEEDED]
        ahead = frontier(reached, done, way)
        if ahead < near.end if way is _FORWARD else ahead > near.start:
            return ahead, first_gap(ahead, known, way)
        reached, span = ahead, span * 4


def _near(reached: datetime, span: timedelta, way: CursorDirection) -> Window:
    if way is _FORWARD:
        return Window(reached, LAST if LAST - reached < span else reached + span)
    return Window(_FIRST if reached - _FIRST < span else reached - span, reached)
