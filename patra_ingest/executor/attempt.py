"""One attempt at a task while it lasts, and how it may end."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from patra_ingest.cursor.advance import Evidence
from patra_ingest.errors import RequestRejected
from patra_ingest.executor.history import History
from patra_ingest.executor.paging import Page
from patra_ingest.executor.run_batch import Work
from patra_ingest.ledger.slices import Slice
from patra_ingest.model.lineage import BatchId, Lineage
from patra_ingest.model.window import Window


class TaskEnd(StrEnum):
    """How one attempt at a task ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RELEASED = "RELEASED"  # back in the queue, due later
    STOPPED = "STOPPED"  # back in the queue, due now: the worker was asked to stop
    RESLICED = "RESLICED"  # too big: the planner cuts its rest again
    LEASE_LOST = "LEASE_LOST"  # another worker has it


@dataclass
class Attempt:
    """The state of one attempt while it lasts."""

    work: Work
    history: History
    page: Page | None
    retry_count: int
    own: list[dict[str, Any]]
    last_batch: BatchId | None = None


def window_of(one: Slice) -> Window:
    """Return the window of a slice; raise for one that is cut by something else."""
    if one.window is None:
        raise RequestRejected(f"this version cannot execute slices cut by {one.spec['dimension']}")
    return one.window


def evidence_of(attempt: Attempt) -> Evidence:
    """Return what stands behind an advance of the cursor."""
    work, lease = attempt.work, attempt.work.lease
    lineage = Lineage(
        lease.schedule_instance_id,
        lease.plan_id,
        lease.slice_id,
        lease.task_id,
        work.run.id,
        attempt.last_batch,
    )
    return Evidence(lineage, work.expr_hash)
