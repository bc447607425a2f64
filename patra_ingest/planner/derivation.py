"""What a slice and its task are made of: pure, so that the same trigger makes the same rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from patra_ingest.model import keys
from patra_ingest.model.codes import (
    Operation,
    Scheduler,
    TaskStatus,
    TriggerType,
    default_priority,
)
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId, SliceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import NewSlice
from patra_ingest.model.window import Window
from patra_ingest.spec.localize import localize
from patra_ingest.spec.slice_spec import time_slice
from patra_ingest.spec.snapshot import SpecSnapshot


@dataclass(frozen=True)
class TaskOrigin:
    """What all tasks of one plan have in common."""

    root: ScheduleInstanceId
    plan_id: PlanId
    namespace: Namespace
    trigger_type: TriggerType
    scheduler: Scheduler


def new_slice(spec: SpecSnapshot, operation: Operation, no: int, window: Window) -> NewSlice:
    """Return the slice of `window`: its bounds, its localized spec, and the hash of both."""
    bounds = time_slice(spec, window, default_priority(operation))
    localized = localize(spec, bounds)
    expr_hash = keys.expr_hash(localized)
    signature = keys.slice_signature(
        provenance=spec.provenance,
        endpoint=spec.endpoint,
        operation=operation,
        expr_hash=expr_hash,
        slice_spec=bounds,
    )
    return NewSlice(no, window, signature, bounds, expr_hash, localized)


def task_row(
    origin: TaskOrigin, new: NewSlice, slice_id: SliceId, refills: Sequence[int]
) -> dict[str, Any]:
    """Return the queued task of a slice.

    `refills` names the slices that failed on this window before: without it the second attempt
    would carry the first one's key and never be queued.
    """
    namespace = origin.namespace
    params = {"refills": list(refills)} if refills else {}
    return {
        "schedule_instance_id": origin.root,
        "plan_id": origin.plan_id,
        "slice_id": slice_id,
        "provenance_code": namespace.provenance,
        "endpoint_name": namespace.endpoint,
        "operation_code": namespace.operation.value,
        "params": params,
        "idempotent_key": keys.task_key(
            slice_signature=new.signature,
            expr_hash=new.expr_hash,
            operation=namespace.operation,
            trigger_type=origin.trigger_type,
            scheduler=origin.scheduler,
            params=params,
        ),
        "expr_hash": new.expr_hash,
        "priority": default_priority(namespace.operation),
        "status_code": TaskStatus.QUEUED.value,
    }
