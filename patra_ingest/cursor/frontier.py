"""How far a forward cursor may move when slices finish out of order."""

from collections.abc import Iterable
from datetime import datetime

from patra_ingest.model.window import Window


def frontier(origin: datetime, succeeded: Iterable[Window]) -> datetime:
    """Return the end of the unbroken run of `succeeded` windows that begins at `origin`.

    A later slice that finished early does not count until the gap before it is closed:
    the cursor never moves back, so a gap it skipped would be lost for good.
    """
    reached = origin
    for window in sorted(succeeded):
        if window.start > reached:
            break
        reached = max(reached, window.end)
    return reached
