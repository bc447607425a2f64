"""One attempt at a task while it lasts, and how it may end."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from patra_ingest.cursor.advance import Evidence
from patra_ingest.errors import RequestRejected
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Work
from patra_ingest.executor.paging import Page
from patra_ingest.ledger.slices import Slice
from patra_ingest.model.bounds import Bounds, read_bounds
from patra_ingest.model.lineage import BatchId


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


def executable(one: Slice) -> Bounds:
    """Return what a slice asks for; raise for a range of pages, which nobody can walk yet."""
    bounds = read_bounds(one.spec)
    if bounds.pages is not None:
        raise RequestRejected("this version cannot execute slices cut by pages")
    return bounds


def evidence_of(attempt: Attempt) -> Evidence:
    """Return what stands behind an advance of the cursor."""
    return Evidence(attempt.work.lineage(attempt.last_batch), attempt.work.expr_hash)
