"""What becomes of a task when its run ends, and the numbers that go with it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from patra_ingest.errors import (
    EndpointHalted,
    IngestError,
    RequestRejected,
    SliceIncomplete,
    SliceMustRestart,
    SourceFails,
    Throttled,
    TransientError,
)

MAX_TASK_RETRIES = 3  # in a row, without a new batch; walks that proved void: in all
_FIRST_PAUSE = timedelta(seconds=30)

_CHANGES = ("inserted", "updated", "unchanged", "stale", "deleted")


@dataclass(frozen=True)
class Failure:
    """How a failed run ends its task: for good, or until `due`."""

    code: str
    message: str
    due: datetime | None = None  # the task goes back to the queue and is due then
    counts_as_retry: bool = True
    halts: bool = False


def judge_failure(error: Exception, retry_count: int, now: datetime) -> Failure:
    """Return what the error of a run means for its task, after so many retries that count."""
    message = str(error) or type(error).__name__
    match error:
        case Throttled(retry_at=retry_at):
            # Waiting was asked for; it is nobody's failure.
            return Failure("THROTTLED", message, retry_at, counts_as_retry=False)
        case SliceMustRestart() if retry_count == 0:
            # What killed the walk is over; begin again at once, but only once.
            return Failure("RESTART", message, now)
        case TransientError() | SliceIncomplete():
            code = "L1" if isinstance(error, TransientError) else "INCOMPLETE"
            if retry_count >= MAX_TASK_RETRIES:
                return Failure(code, f"{message} (after {retry_count} retries of the task)")
            start = max(now, error.retry_at) if isinstance(error, SourceFails) else now
            return Failure(code, message, start + _FIRST_PAUSE * 2**retry_count)
        case RequestRejected():
            return Failure("L2", message)
        case EndpointHalted():
            return Failure("L4", message, halts=True)
        case IngestError():
            return Failure("REFUSED", message)
        case _:
            return Failure("INTERNAL", f"{type(error).__name__}: {message}")


def batch_stats(page: dict[str, Any], quarantined: int, out_of_window: int) -> dict[str, Any]:
    """Return a batch's stats; the parts always add up to the items that were seen."""
    accounted = sum(page[key] for key in _CHANGES) + quarantined + out_of_window
    if accounted != page["itemsCount"]:
        raise AssertionError(f"{page['itemsCount']} items seen, {accounted} accounted for")
    return {
        **page,
        "quarantined": quarantined,
        "outOfWindow": out_of_window,
        "skipped": page["unchanged"] + page["stale"] + out_of_window,
        "failed": quarantined,
    }
