"""How far a cursor may move when slices finish out of order, in either direction of time."""

from collections.abc import Iterable
from datetime import datetime

from patra_ingest.model.codes import CursorDirection, SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window

FORWARD = CursorDirection.FORWARD


def frontier(
    origin: datetime, succeeded: Iterable[Window], direction: CursorDirection = FORWARD
) -> datetime:
    """Return the far end of the unbroken run of `succeeded` windows that begins at `origin`.

    FORWARD it goes up from the origin, BACKFILL down from it. A slice beyond a gap that finished
    early does not count until the gap is closed: the cursor never moves back, so a gap it skipped
    would be lost for good.
    """
    if direction is FORWARD:
        return _up(origin, succeeded)
    return _down(origin, succeeded)


def _up(origin: datetime, succeeded: Iterable[Window]) -> datetime:
    reached = origin
    for window in sorted(succeeded):
        if window.start > reached:
            break
        reached = max(reached, window.end)
    return reached


def _down(origin: datetime, succeeded: Iterable[Window]) -> datetime:
    reached = origin
    for window in sorted(succeeded, key=lambda one: one.end, reverse=True):
        if window.end < reached:
            break
        reached = min(reached, window.start)
    return reached


def first_gap(
    reached: datetime, known: Iterable[CoveredWindow], direction: CursorDirection = FORWARD
) -> Window | None:
    """Return the window that a cursor at `reached` waits for; None when nothing lies beyond it.

    It is the rest of the slice that stands there unfinished, or what nobody has planned.
    """
    windows = [(one.window, one.status is SliceStatus.SUCCEEDED) for one in known]
    if direction is FORWARD:
        there = [w.end for w, done in windows if not done and w.start <= reached < w.end]
        ends = there or [w.start for w, _ in windows if w.start > reached]
        return Window(reached, min(ends)) if ends else None
    there = [w.start for w, done in windows if not done and w.start < reached <= w.end]
    starts = there or [w.end for w, _ in windows if w.end < reached]
    return Window(max(starts), reached) if starts else None
