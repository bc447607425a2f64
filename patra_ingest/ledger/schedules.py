"""The `ing_schedule_instance` table: the stored trigger, root of every lineage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert, instant_text, json_text
from patra_ingest.model.codes import Operation, Scheduler, TriggerType
from patra_ingest.model.lineage import ScheduleInstanceId


@dataclass(frozen=True)
class TriggerRow:
    """Who asked for what, and when."""

    provenance: str
    endpoint: str | None
    operation: Operation
    triggered_at: datetime
    scheduler: Scheduler = Scheduler.INTERNAL
    trigger_type: TriggerType = TriggerType.MANUAL
    scheduler_job: str | None = None
    scheduler_run_id: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def add_schedule_instance(tx: Connection, trigger: TriggerRow) -> ScheduleInstanceId:
    """Store the trigger before anything is decided about it."""
    row = {
        "scheduler_code": trigger.scheduler.value,
        "scheduler_job_id": trigger.scheduler_job,
        "scheduler_log_id": trigger.scheduler_run_id,
        "trigger_type_code": trigger.trigger_type.value,
        "triggered_at": instant_text(trigger.triggered_at),
        "trigger_params": json_text(trigger.params),
        "provenance_code": trigger.provenance.lower(),
        "endpoint_name": trigger.endpoint,
        "operation_code": trigger.operation.value,
    }
    return ScheduleInstanceId(insert(tx, "ing_schedule_instance", row))


_COMPLETE = text("""
    UPDATE ing_schedule_instance SET endpoint_name = :endpoint, trigger_params = :params
     WHERE id = :id
""")


def complete_trigger(
    tx: Connection, root: ScheduleInstanceId, endpoint: str, params: Mapping[str, Any]
) -> None:
    """Write down what a trigger that compiles has asked for, in full."""
    tx.execute(_COMPLETE, {"id": root, "endpoint": endpoint, "params": json_text(params)})


_PROBLEMS = text("UPDATE ing_schedule_instance SET problems = :problems WHERE id = :id")


def note_problems(tx: Connection, root: ScheduleInstanceId, problems: Sequence[str]) -> None:
    """Keep the reasons why this trigger led to no plan."""
    tx.execute(_PROBLEMS, {"problems": json_text(list(problems)), "id": root})
