"""What the ledger kept of a run and its batches, as replays and black boxes read it. No writes."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import find_instant, instant_text, read_instant, read_json
from patra_ingest.ledger.statements import execute_for_ids
from patra_ingest.model.evidence import CursorStep, KeptBadItem, KeptBatch, KeptRecord, KeptRun
from patra_ingest.model.lineage import (
    BatchId,
    Lineage,
    PlanId,
    RunId,
    ScheduleInstanceId,
    SliceId,
    TaskId,
)
from patra_ingest.model.window import Window

_RUN = text("""
    SELECT r.id, r.attempt_no, r.provenance_code, r.endpoint_name, r.operation_code, r.status_code,
           r.certificate, r.error, r.started_at, r.finished_at, r.task_id,
           t.slice_id, t.plan_id, t.schedule_instance_id
      FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id WHERE r.id = :id
""")


def get_run(tx: Connection, run: int) -> KeptRun:
    """Return a run; UnknownName when there is none."""
    row = tx.execute(_RUN, {"id": run}).one_or_none()
    if row is None:
        raise UnknownName(f"There is no run {run}.", "Those of a task: `patra replay --task ID`.")
    above = (ScheduleInstanceId(row.schedule_instance_id), PlanId(row.plan_id))
    return KeptRun(
        Lineage(*above, SliceId(row.slice_id), TaskId(row.task_id), RunId(row.id)),
        row.attempt_no,
        row.provenance_code,
        row.endpoint_name,
        row.operation_code,
        row.status_code,
        read_json(row.certificate),
        row.error,
        find_instant(row.started_at),
        find_instant(row.finished_at),
    )


_COLUMNS = """
    b.id, b.run_id, b.batch_no, b.status_code, b.page_no, b.page_size, b.before_token,
    b.after_token, b.expr_hash, b.storage_key, b.stats, b.request, b.response, b.committed_at,
    b.error
"""
_WALK = text(f"""
    SELECT {_COLUMNS} FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
     WHERE r.task_id = :task AND r.attempt_no <= :attempt AND b.status_code = 'SUCCEEDED'
     ORDER BY r.attempt_no, b.batch_no
""")
_BATCH = text(
    f"SELECT {_COLUMNS} FROM ing_task_run_batch b WHERE b.run_id = :run AND b.batch_no = :no"
)


def list_walk(tx: Connection, run: KeptRun) -> list[KeptBatch]:
    """Return the succeeded batches of a run and of the task's earlier ones, as they were walked."""
    values = {"task": run.lineage.task_id, "attempt": run.attempt_no}
    return [_batch(row) for row in tx.execute(_WALK, values)]


def get_batch(tx: Connection, run: int, no: int) -> KeptBatch:
    """Return one batch of a run, whatever its status; UnknownName when there is none."""
    row = tx.execute(_BATCH, {"run": run, "no": no}).one_or_none()
    if row is None:
        raise UnknownName(f"Run {run} has no batch {no}.", f"See `patra replay {run}` for its own.")
    return _batch(row)


def _batch(row: Any) -> KeptBatch:
    return KeptBatch(
        BatchId(row.id),
        RunId(row.run_id),
        row.batch_no,
        row.status_code,
        row.page_no or 1,
        row.page_size or 0,
        row.before_token or "",
        row.after_token,
        row.expr_hash or "",
        row.storage_key,
        read_json(row.stats) or {},
        read_json(row.request) or {},
        read_json(row.response) or {},
        find_instant(row.committed_at),
        row.error,
    )


_RECORDS = """
    SELECT r.provider_id, r.source_updated_at, r.content_hash, r.is_deleted, r.batch_id,
           b.run_id, b.batch_no, b.committed_at
      FROM ing_record r LEFT JOIN ing_task_run_batch b ON b.id = r.batch_id
     WHERE r.provenance_code = {0} AND r.endpoint_name = {0} AND r.provider_id IN ({1})
"""
_BROUGHT = text("SELECT provider_id FROM ing_record WHERE batch_id = :batch ORDER BY provider_id")


def list_records(
    tx: Connection, provenance: str, endpoint: str, ids: Sequence[str]
) -> dict[str, KeptRecord]:
    """Return the records with these ids as they are now."""
    found = execute_for_ids(tx, _RECORDS, (provenance, endpoint), ids)
    return {row[0]: _record(row) for rows in found for row in rows}


def list_brought(tx: Connection, batch: BatchId) -> list[str]:
    """Return the ids of the records whose present version this batch has written."""
    return list(tx.execute(_BROUGHT, {"batch": batch}).scalars())


def _record(row: Any) -> KeptRecord:
    by = None if row.run_id is None else f"{row.run_id}/{row.batch_no}"
    return KeptRecord(
        row.provider_id,
        find_instant(row.source_updated_at),
        row.content_hash,
        bool(row.is_deleted),
        None if row.batch_id is None else BatchId(row.batch_id),
        by,
        find_instant(row.committed_at),
    )


_QUARANTINED = text("""
    SELECT kind_code, provider_id, item_no, path, reason, status_code, fragment
      FROM ing_quarantine WHERE batch_id = :batch ORDER BY item_no, provider_id
""")


def list_quarantined(tx: Connection, batch: BatchId) -> list[KeptBadItem]:
    """Return what a batch has put into quarantine."""
    return [KeptBadItem(*row) for row in tx.execute(_QUARANTINED, {"batch": batch})]


_STEPS = text("""
    SELECT id, cursor_key, namespace_scope_code, reason, prev_value, new_value, batch_id, created_at
      FROM ing_cursor_event
     WHERE schedule_instance_id = :schedule_instance_id AND plan_id = :plan_id
       AND slice_id = :slice_id AND task_id = :task_id AND run_id = :run_id
     ORDER BY id
""")


def list_steps(tx: Connection, run: KeptRun) -> list[CursorStep]:
    """Return the events that stand on what a run has done, oldest first."""
    found = tx.execute(_STEPS, run.lineage.columns())
    return [
        CursorStep(
            row.id,
            row.cursor_key,
            row.namespace_scope_code,
            row.reason,
            row.prev_value,
            row.new_value,
            row.batch_id,
            read_instant(row.created_at),
        )
        for row in found
    ]


_OF_TASK = text("SELECT id FROM ing_task_run WHERE task_id = :task ORDER BY attempt_no")
_OF_WINDOW = text("""
    SELECT r.id FROM ing_plan_slice s JOIN ing_task t ON t.slice_id = s.id
      JOIN ing_task_run r ON r.task_id = t.id
     WHERE s.provenance_code = :provenance AND s.endpoint_name = :endpoint
       AND s.window_from >= :start AND s.window_to <= :end
     ORDER BY s.window_from, s.id, r.attempt_no
""")


def list_runs_of_task(tx: Connection, task: int) -> list[RunId]:
    """Return every attempt at a task, in order; UnknownName when it was never executed."""
    found = [RunId(one) for one in tx.execute(_OF_TASK, {"task": task}).scalars()]
    if not found:
        raise UnknownName(f"There is no run of task {task}.", "See `patra status` for what ran.")
    return found


def list_runs_of_window(
    tx: Connection, provenance: str, endpoint: str, window: Window
) -> list[RunId]:
    """Return every run whose slice lies in a window of an endpoint; UnknownName for none."""
    values = {"start": instant_text(window.start), "end": instant_text(window.end)}
    owner = {"provenance": provenance, "endpoint": endpoint}
    found = [RunId(one) for one in tx.execute(_OF_WINDOW, {**owner, **values}).scalars()]
    if not found:
        raise UnknownName(
            f"No slice of {provenance}/{endpoint} that was executed lies in {window}.",
            f"See `patra coverage {provenance}` for what was.",
        )
    return found
