"""What becomes of a task, its slice, its plan and its endpoint when an attempt has ended.

The caller has required the lease and owns the transaction.
"""

import logging
from datetime import datetime

from sqlalchemy import Connection

from patra_ingest.executor.attempt import Attempt, TaskEnd
from patra_ingest.executor.outcome import Failure
from patra_ingest.ledger.holds import place_hold
from patra_ingest.ledger.plans import try_complete_plan
from patra_ingest.ledger.quotas import free
from patra_ingest.ledger.runs import forget_addresses
from patra_ingest.ledger.slices import follow_task
from patra_ingest.ledger.tasks import Lease, finish_task, release_task
from patra_ingest.model.codes import SliceStatus, TaskStatus

_log = logging.getLogger(__name__)


def settle(tx: Connection, attempt: Attempt, failure: Failure, now: datetime) -> TaskEnd:
    """Give the task of a failed attempt back to the queue, or end it."""
    lease, namespace = attempt.work.lease, attempt.work.plan.namespace
    if failure.due is not None:
        give_back(tx, attempt, now, failure)
        return TaskEnd.RELEASED
    fail_task(tx, lease, failure, now)
    if failure.halts:
        _log.error(
            "%s/%s is held until a person resumes it: %s",
            namespace.provenance,
            namespace.endpoint,
            failure.message,
        )
        place_hold(
            tx,
            namespace.provenance,
            namespace.endpoint,
            "L4",
            failure.message,
            lease.owner,
            now,
        )
    return TaskEnd.FAILED


def give_back(
    tx: Connection, attempt: Attempt, now: datetime, failure: Failure | None = None
) -> None:
    """Return the task to the queue, due now or when its failure says."""
    lease, due, error = attempt.work.lease, None, None
    if failure is not None:
        due = failure.due
        error = (failure.code, failure.message) if failure.counts_as_retry else None
    release_task(tx, lease, now, due, error, attempt.has_moved)
    follow_task(tx, lease.slice_id, SliceStatus.READY, now)


def fail_task(tx: Connection, lease: Lease, failure: Failure, now: datetime) -> None:
    """End a task for good: its slice is a hole, its plan may be complete, its quota is free."""
    end_task(tx, lease, TaskStatus.FAILED, now, (failure.code, failure.message))
    follow_task(tx, lease.slice_id, SliceStatus.FAILED, now)
    try_complete_plan(tx, lease.plan_id, now)
    free(tx, [lease.slice_id], now)


def end_task(
    tx: Connection, lease: Lease, status: TaskStatus, now: datetime, error: tuple[str, str] | None
) -> None:
    """End a task, in whatever way; an address that its source has signed is not kept any longer."""
    finish_task(tx, lease, status, now, error)
    forget_addresses(tx, [lease.task_id])
