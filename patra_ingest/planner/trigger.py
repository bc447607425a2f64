"""A trigger and what becomes of it, step by step: rooted, opened, planned."""

from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from patra_ingest.model.codes import Operation, Scheduler, TriggerType
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window
from patra_ingest.planner.windowing import Asked
from patra_ingest.spec.compile import Compiled
from patra_ingest.spec.declaration import Overrides


@dataclass(frozen=True)
class Trigger:
    """The request to plan: endpoint, operation, window, overrides, and who asks."""

    provenance: str
    endpoint: str | None = None
    operation: Operation = Operation.HARVEST
    asked: Asked = field(default_factory=Asked)
    overrides: Overrides = field(default_factory=Overrides)
    scheduler: Scheduler = Scheduler.INTERNAL
    trigger_type: TriggerType = TriggerType.MANUAL
    scheduler_job: str | None = None
    scheduler_run_id: str | None = None

    def params(self) -> dict[str, Any]:
        """Return the arguments as the root row keeps them."""
        return {
            "from": self.asked.start,
            "to": self.asked.end,
            "set": to_jsonable_python(self.overrides.values),
            "params": self.overrides.params,
            "query": self.overrides.query,
            "lenient": self.overrides.lenient or None,
        }


@dataclass(frozen=True)
class Rooted:
    """A trigger with its stored root and its compiled spec."""

    trigger: Trigger
    root: ScheduleInstanceId
    compiled: Compiled
    namespace: Namespace


@dataclass(frozen=True)
class Opened:
    """A trigger with its plan, or with the reason why there is nothing to plan."""

    rooted: Rooted
    plan_id: PlanId | None
    window: Window | None
    reason: str | None = None


@dataclass(frozen=True)
class Planned:
    """What a trigger led to."""

    plan_id: PlanId | None
    root: ScheduleInstanceId
    window: Window | None
    slices: int
    reason: str | None
