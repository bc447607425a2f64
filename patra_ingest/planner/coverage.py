"""What a namespace already has, and what it still lacks."""

from collections.abc import Iterable

from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window

# A slice in one of these states stands for its window: it is done, or somebody is on it.
STANDING = frozenset(
    {
        SliceStatus.PENDING,
        SliceStatus.READY,
        SliceStatus.DISPATCHED,
        SliceStatus.EXECUTING,
        SliceStatus.SUCCEEDED,
    }
)


def missing(window: Window, covered: Iterable[CoveredWindow]) -> list[Window]:
    """Return the parts of `window` that no standing slice covers: the holes, in order."""
    return window.minus(item.window for item in covered if item.status in STANDING)


def refilled(window: Window, covered: Iterable[CoveredWindow]) -> list[int]:
    """Return the slices that failed on `window` before: a new slice of it is a second attempt."""
    return sorted(
        item.slice_id
        for item in covered
        if item.status not in STANDING and window.intersect(item.window)
    )
