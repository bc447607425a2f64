"""The `ing_task_run_batch` table: one page's worth of a run, the smallest replayable entry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.exc import IntegrityError

from patra_ingest.ledger.db import instant_text, json_text, read_instant, read_json
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.statements import execute
from patra_ingest.ledger.tasks import Lease
from patra_ingest.model import keys
from patra_ingest.model.codes import BatchStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import BatchId, RunId, TaskId


@dataclass(frozen=True)
class BatchStart:
    """Where a batch begins: its number in the run and its position in the slice."""

    run_id: RunId
    no: int
    position: str
    page_no: int
    page_size: int
    expr_hash: str


@dataclass(frozen=True)
class BatchEnd:
    """What a batch brought: counts, digests, and where the next one begins."""

    record_count: int
    after_position: str | None
    storage_key: str
    stats: dict[str, Any]
    request: dict[str, Any]
    response: dict[str, Any]


@dataclass(frozen=True)
class DoneBatch:
    """A batch that succeeded, as a later run needs to know it."""

    id: BatchId
    page_no: int
    after_position: str | None
    stats: dict[str, Any]
    committed_at: datetime
    address: str | None = None  # of the next page, where the position after it hides a part


_COMMITTED = text("""
    SELECT stats FROM ing_task_run_batch WHERE id = :id AND status_code = 'SUCCEEDED'
""")


def find_committed(tx: Connection, batch: BatchId) -> dict[str, Any] | None:
    """Return the stats of a batch that has succeeded already; None while it has not."""
    row = tx.execute(_COMMITTED, {"id": batch}).one_or_none()
    return None if row is None else read_json(row.stats)


def start_batch(
    tx: Connection, lease: Lease, plan: Plan, start: BatchStart, now: datetime
) -> BatchId:
    """Pre-insert the batch as RUNNING; a leftover of the same position is run again in place."""
    key = keys.batch_key(start.run_id, start.position)
    row = {
        "run_id": start.run_id,
        "task_id": lease.task_id,
        "slice_id": lease.slice_id,
        "plan_id": lease.plan_id,
        "expr_hash": start.expr_hash,
        "provenance_code": plan.namespace.provenance,
        "endpoint_name": plan.namespace.endpoint,
        "operation_code": plan.namespace.operation.value,
        "batch_no": start.no,
        "page_no": start.page_no,
        "page_size": start.page_size,
        "before_token": start.position,
        "before_token_hash": keys.position_hash(start.position),
        "idempotent_key": key,
        "status_code": BatchStatus.RUNNING.value,
        "created_at": instant_text(now),
    }
    try:
        return BatchId(int(execute(tx, _insert(tuple(row)), row).lastrowid))
    except IntegrityError:  # of the statement alone: the transaction goes on
        return BatchId(execute(tx, _OF_KEY, {"key": key}).scalar_one())


_OF_KEY = "SELECT id FROM ing_task_run_batch WHERE idempotent_key = :key"


@cache
def _insert(columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO ing_task_run_batch ({', '.join(columns)}) VALUES ({values})"


_FINISH = """
    UPDATE ing_task_run_batch
       SET status_code = 'SUCCEEDED', record_count = :count, after_token = :after,
           after_token_hash = :after_hash, storage_key = :storage_key, stats = :stats,
           request = :request, response = :response, error = NULL,
           committed_at = :now, updated_at = :now
     WHERE id = :id AND status_code = 'RUNNING'
"""


def finish_batch(tx: Connection, batch: BatchId, end: BatchEnd, now: datetime) -> None:
    """Record what a batch brought; part of the transaction that writes its records."""
    ensure_transition(BatchStatus.RUNNING, BatchStatus.SUCCEEDED)
    after = end.after_position
    execute(
        tx,
        _FINISH,
        {
            "id": batch,
            "count": end.record_count,
            "after": after,
            "after_hash": after and keys.position_hash(after),
            "storage_key": end.storage_key,
            "stats": json_text(end.stats),
            "request": json_text(end.request),
            "response": json_text(end.response),
            "now": instant_text(now),
        },
    )


_SKIP = text("""
    UPDATE ing_task_run_batch SET status_code = 'SKIPPED', error = :error, updated_at = :now
     WHERE id = :id AND status_code = 'RUNNING'
""")
_FAIL = text("""
    UPDATE ing_task_run_batch SET status_code = 'FAILED', error = :error, updated_at = :now
     WHERE run_id = :run AND status_code = 'RUNNING'
""")


def close_open_batches(
    tx: Connection, run: RunId, unasked: BatchId | None, error: str, now: datetime
) -> None:
    """Mark what a run leaves unfinished as FAILED, with the reason.

    A batch that was written down ahead and never asked for has not failed: it is SKIPPED.
    """
    ensure_transition(BatchStatus.RUNNING, BatchStatus.FAILED)
    ensure_transition(BatchStatus.RUNNING, BatchStatus.SKIPPED)
    told = {"error": error, "now": instant_text(now)}
    if unasked is not None:
        tx.execute(_SKIP, {"id": unasked, **told})
    tx.execute(_FAIL, {"run": run, **told})


_CLOSE = text("""
    UPDATE ing_task_run_batch
       SET status_code = 'FAILED', error = 'LEASE_LOST: the worker fell silent', updated_at = :now
     WHERE task_id IN :tasks AND status_code = 'RUNNING'
""").bindparams(bindparam("tasks", expanding=True))


def close_lost_batches(tx: Connection, tasks: Sequence[TaskId], now: datetime) -> None:
    """End the open batches of tasks whose worker fell silent."""
    ensure_transition(BatchStatus.RUNNING, BatchStatus.FAILED)
    if tasks:
        tx.execute(_CLOSE, {"tasks": list(tasks), "now": instant_text(now)})


_BEGUN = text("""
    SELECT COUNT(*) FROM ing_task_run_batch
     WHERE task_id = :task AND page_no = 1 AND status_code = 'SUCCEEDED'
       AND before_token NOT LIKE '%|ids:%'
""")


def count_beginnings(tx: Connection, task: TaskId) -> int:
    """Count how often the first page of a task's slice was committed, over all its runs."""
    return int(tx.execute(_BEGUN, {"task": task}).scalar_one())


_DONE = text("""
    SELECT b.id, b.page_no, b.after_token, b.stats, b.committed_at, r.checkpoint
      FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
     WHERE b.task_id = :task AND b.status_code = 'SUCCEEDED' AND b.expr_hash = :expr_hash
       AND r.attempt_no > (SELECT COALESCE(MAX(x.attempt_no), 0) FROM ing_task_run x
                            WHERE x.task_id = :task AND x.status_code <> 'SUCCEEDED'
                              AND x.certificate IS NOT NULL)
     ORDER BY r.attempt_no, b.batch_no
""")


def list_done(tx: Connection, task: TaskId, expr_hash: str) -> list[DoneBatch]:
    """Return the task's succeeded batches over all its runs, in the order they were walked.

    A run that reached the end without its certificate does not count, nor does anything before:
    the slice is walked again from its first page.
    """
    found = tx.execute(_DONE, {"task": task, "expr_hash": expr_hash}).all()
    done = [
        DoneBatch(
            BatchId(row.id),
            row.page_no,
            row.after_token,
            read_json(row.stats),
            read_instant(row.committed_at),
        )
        for row in found
    ]
    if done and found[-1].checkpoint is not None:
        done[-1] = replace(done[-1], address=read_json(found[-1].checkpoint).get("address"))
    return done
