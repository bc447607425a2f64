"""The `ing_task_run` table: one attempt at a task. No function here commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import insert, instant_text, json_text, read_json
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.statements import execute
from patra_ingest.ledger.tasks import Lease
from patra_ingest.model.codes import RunStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import RunId, TaskId
from patra_ingest.model.run_stats import run_stats
from patra_ingest.model.window import Window, parse_instant


@dataclass(frozen=True)
class Run:
    """One attempt: the run row of a leased task."""

    id: RunId
    attempt_no: int


def start_run(
    tx: Connection, lease: Lease, plan: Plan, window: Window | None, now: datetime
) -> Run:
    """Open the next attempt at a task and move it to RUNNING in the same transaction."""
    last = tx.execute(
        text("SELECT COALESCE(MAX(attempt_no), 0) FROM ing_task_run WHERE task_id = :id"),
        {"id": lease.task_id},
    ).scalar_one()
    attempt = int(last) + 1
    ensure_transition(RunStatus.PLANNED, RunStatus.RUNNING)
    row = {
        "task_id": lease.task_id,
        "attempt_no": attempt,
        "provenance_code": plan.namespace.provenance,
        "endpoint_name": plan.namespace.endpoint,
        "operation_code": plan.namespace.operation.value,
        "status_code": RunStatus.RUNNING.value,
        "window_from": window and instant_text(window.start),
        "window_to": window and instant_text(window.end),
        "started_at": instant_text(now),
        "last_heartbeat": instant_text(now),
        "lease_owner": lease.owner,
    }
    return Run(RunId(insert(tx, "ing_task_run", row)), attempt)


_CHECKPOINT = """
    UPDATE ing_task_run SET checkpoint = :checkpoint, last_heartbeat = :now, updated_at = :now
     WHERE id = :id
"""


def save_checkpoint(tx: Connection, run: RunId, checkpoint: dict[str, Any], now: datetime) -> None:
    """Say where the run goes on; part of the batch's transaction."""
    values = {"id": run, "checkpoint": json_text(checkpoint), "now": instant_text(now)}
    execute(tx, _CHECKPOINT, values)


_FORGET = text("""
    UPDATE ing_task_run SET checkpoint = JSON_REMOVE(checkpoint, '$.address')
     WHERE task_id IN :tasks AND JSON_EXTRACT(checkpoint, '$.address') IS NOT NULL
""").bindparams(bindparam("tasks", expanding=True))


def forget_addresses(tx: Connection, tasks: Sequence[TaskId]) -> None:
    """Let go of the signed addresses that ended tasks would have gone on at."""
    tx.execute(_FORGET, {"tasks": list(tasks)})


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: its status, its numbers, its proof, or its error."""

    status: RunStatus
    stats: dict[str, Any]
    certificate: dict[str, Any] | None = None
    error: str | None = None


_FINISH = text("""
    UPDATE ing_task_run
       SET status_code = :status, stats = :stats, certificate = :certificate, error = :error,
           finished_at = :now, updated_at = :now
     WHERE id = :id AND status_code = 'RUNNING'
""")


def finish_run(tx: Connection, run: RunId, end: RunEnd, now: datetime) -> None:
    """Close a run in a final status."""
    ensure_transition(RunStatus.RUNNING, end.status)
    tx.execute(
        _FINISH,
        {
            "id": run,
            "status": end.status.value,
            "stats": json_text(end.stats),
            "certificate": end.certificate and json_text(end.certificate),
            "error": end.error,
            "now": instant_text(now),
        },
    )


_VOID = text("""
    UPDATE ing_task_run SET certificate = :certificate, updated_at = :now
     WHERE task_id = :task AND status_code NOT IN ('SUCCEEDED', 'RUNNING') AND certificate IS NULL
""")


def void_walk(tx: Connection, task: TaskId, why: str, now: datetime) -> None:
    """Give up what earlier runs of a task have walked: the next one begins at the first page."""
    certificate = {"verdict": "INCOMPLETE", "stop_rule": why}
    tx.execute(
        _VOID, {"task": task, "certificate": json_text(certificate), "now": instant_text(now)}
    )


_VOID_WALKS = text("""
    SELECT COUNT(*) FROM ing_task_run
     WHERE task_id = :task AND status_code = 'FAILED'
       AND (error LIKE 'INCOMPLETE:%' OR error LIKE 'RESTART:%')
""")


def count_void_walks(tx: Connection, task: TaskId) -> int:
    """Count the attempts at a task after which its slice had to begin again at its first page."""
    return int(tx.execute(_VOID_WALKS, {"task": task}).scalar_one())


_OPEN = text("""
    SELECT id FROM ing_task_run
     WHERE task_id IN :tasks AND status_code IN ('PLANNED', 'RUNNING')
""").bindparams(bindparam("tasks", expanding=True))

_BATCHES = text("""
    SELECT stats FROM ing_task_run_batch
     WHERE run_id = :run AND status_code = 'SUCCEEDED' AND stats IS NOT NULL ORDER BY batch_no
""")

_SUMS = text("UPDATE ing_task_run SET stats = :stats WHERE id = :run")

_CLOSE = text("""
    UPDATE ing_task_run
       SET status_code = 'FAILED', error = 'LEASE_LOST: the worker fell silent',
           finished_at = :now, updated_at = :now
     WHERE task_id IN :tasks AND status_code IN ('PLANNED', 'RUNNING')
""").bindparams(bindparam("tasks", expanding=True))


def list_batch_stats(tx: Connection, run: RunId) -> list[dict[str, Any]]:
    """Return the numbers of a run's committed batches, in their order."""
    return [read_json(stats) for stats in tx.execute(_BATCHES, {"run": run}).scalars()]


def save_sums(tx: Connection, tasks: Sequence[TaskId]) -> None:
    """Give the open runs of some tasks the sums of what they have committed."""
    for run in tx.execute(_OPEN, {"tasks": list(tasks)}).scalars().all():
        stats = run_stats(list_batch_stats(tx, run))
        tx.execute(_SUMS, {"run": run, "stats": json_text(stats)})


def close_lost_runs(tx: Connection, tasks: Sequence[TaskId], now: datetime) -> None:
    """End the open runs of tasks whose worker fell silent, with the sums of what they committed."""
    for status in (RunStatus.PLANNED, RunStatus.RUNNING):
        ensure_transition(status, RunStatus.FAILED)
    if tasks:
        save_sums(tx, tasks)
        tx.execute(_CLOSE, {"tasks": list(tasks), "now": instant_text(now)})


_FRESHNESS = text("""
    SELECT JSON_EXTRACT(stats, '$.freshUntil') FROM ing_task_run
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
       AND status_code = 'SUCCEEDED' AND JSON_EXTRACT(stats, '$.freshUntil') IS NOT NULL
     ORDER BY id DESC LIMIT 1
""")


def find_freshness(tx: Connection, provenance: str, endpoint: str) -> datetime | None:
    """Return up to when the source last said that it is complete; None if it never did."""
    values = {"provenance": provenance, "endpoint": endpoint}
    found = tx.execute(_FRESHNESS, values).scalar()
    return None if found is None else parse_instant(str(found).strip('"'))
