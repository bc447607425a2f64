"""One attempt at a task while it lasts, and how it may end."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from patra_ingest.cursor.advance import Evidence
from patra_ingest.errors import NotSent, SourceFails
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Healing, Place, Work
from patra_ingest.executor.run_batch import BatchDone
from patra_ingest.ledger.runs import RunEnd, list_batch_stats
from patra_ingest.model.lineage import BatchId
from patra_ingest.model.run_stats import run_stats


class TaskEnd(StrEnum):
    """How one attempt at a task ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RELEASED = "RELEASED"  # back in the queue, due later
    STOPPED = "STOPPED"  # back in the queue, due now: the worker was asked to stop, or is late
    PAUSED = "PAUSED"  # back in the queue, due now: it has spent the budget of an attempt
    RESLICED = "RESLICED"  # too big: the planner cuts its rest again
    LEASE_LOST = "LEASE_LOST"  # another worker has it


@dataclass
class Attempt:
    """The state of one attempt while it lasts."""

    work: Work
    history: History
    place: Place | None
    retry_count: int
    own: list[dict[str, Any]] = field(default_factory=list)
    last_batch: BatchId | None = None
    begun: int = 0  # how often the slice was begun before, if its walk was given up
    ahead: BatchId | None = None  # the next batch, written down and not asked for yet
    is_void: bool = False  # nothing that was walked counts: the next attempt begins at page 1

    @property
    def has_moved(self) -> bool:
        """Whether the task is further than before: retries are counted from here anew."""
        return bool(self.own) and not self.is_void

    def begin_batch(self) -> None:
        """Forget what was done to get the last batch through."""
        vars(self.work.healing).update(vars(Healing()))

    def add(self, batch_id: BatchId, done: BatchDone) -> None:
        """Take a committed batch in and go on."""
        self.history.add(done.stats)
        self.own.append(done.stats)
        self.place, self.ahead, self.last_batch = done.following, done.ahead, batch_id

    def stats(self, reslice: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the numbers of this run: of its own batches, and of the one that failed."""
        stats = run_stats(self.own)
        healing, unfinished = self.work.healing, len(self.history.attempts)
        if self.history.requests:  # a batch was asked for and not committed
            stats["reqCount"] += self.history.requests
            stats["retryCount"] += unfinished
            stats["429Count"] += healing.times_turned_away
            stats["attempts"] = list(self.history.attempts)
            stats["rateAdjusted"] |= healing.slowed_down
            stats["circuitOpen"] |= healing.circuit_open
        if healing.quota_soft_hits or healing.quota_hard_hits:
            stats["quotaSoftHits"] = healing.quota_soft_hits
            stats["quotaHardHits"] = healing.quota_hard_hits
        if reslice is not None:
            stats["reSliceSuggested"] = reslice
            stats["remarks"] = "online-reslice-suggested:true"
        return stats


def evidence_of(attempt: Attempt) -> Evidence:
    """Return what stands behind an advance of the cursor."""
    work = attempt.work
    return Evidence(work.lineage(attempt.last_batch), work.expr_hash, work.bounds.window)


def cause_of(attempt: Attempt, error: Exception) -> Exception:
    """Return why an attempt really ended: its own failures, if they are why nothing may leave.

    Who merely has to wait because others have failed has not failed.
    """
    last = attempt.work.healing.last_failure
    if not isinstance(error, NotSent) or last is None:
        return error
    return SourceFails(f"{last}; it is left alone until {error.retry_at:%H:%M:%S}Z", error.retry_at)


def with_all_batches(tx: Connection, attempt: Attempt, end: RunEnd) -> RunEnd:
    """Return the end of a run with its true sums: we may not know of our own last commit."""
    committed = list_batch_stats(tx, attempt.work.run.id)
    if len(committed) == len(attempt.own):
        return end
    return replace(end, stats={**end.stats, **run_stats(committed)})


def shown_attempt(no: int, at: datetime, error: str, waited: timedelta) -> dict[str, Any]:
    """Return one try that failed, as the batch lists it."""
    return {
        "no": no,
        "at": at,
        "error": error[:300],
        "waitedMs": round(waited.total_seconds() * 1e3),
    }
