"""The six ids that lead from a trigger to one batch, and what they look like to people."""

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NewType

ScheduleInstanceId = NewType("ScheduleInstanceId", int)
PlanId = NewType("PlanId", int)
SliceId = NewType("SliceId", int)
TaskId = NewType("TaskId", int)
RunId = NewType("RunId", int)
BatchId = NewType("BatchId", int)

CORRELATION = "X-Ingest-Correlation-Id"  # the header of every request to a source


@dataclass(frozen=True)
class Lineage:
    """Where something happened, as far down as is known: nothing has a task without a slice."""

    schedule_instance_id: ScheduleInstanceId | None = None
    plan_id: PlanId | None = None
    slice_id: SliceId | None = None
    task_id: TaskId | None = None
    run_id: RunId | None = None
    batch_id: BatchId | None = None

    def __post_init__(self) -> None:
        for (above, parent), (below, child) in pairwise(self.columns().items()):
            if parent is None and child is not None:
                raise ValueError(f"{below} {child} without its {above}")

    def columns(self) -> dict[str, int | None]:
        """Return the six lineage columns in order; what is not known is None."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        known = {name: value for name, value in self.columns().items() if value is not None}
        shown = [f"{_spoken(name)} {value}" for name, value in known.items()]
        return " › ".join(shown) or "no lineage"


def _spoken(column: str) -> str:
    return column.removesuffix("_id").removesuffix("_instance")


def correlation_id(run_id: RunId, batch_no: int) -> str:
    """Return the id that a request carries upstream, so that both sides' logs can be matched."""
    return f"ing-{run_id}-{batch_no}"
