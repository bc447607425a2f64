"""A trigger and what becomes of it, step by step: rooted, opened, planned."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from patra_ingest.model.codes import Operation, Scheduler, TriggerType
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId, SliceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window
from patra_ingest.planner.windowing import Asked
from patra_ingest.spec.compile import Compiled
from patra_ingest.spec.declaration import Overrides


@dataclass(frozen=True)
class Trigger:
    """The request to plan: endpoint, operation, window, overrides, and who asks.

    `campaign` names an intended re-run: it has a namespace of its own, where nothing is covered.
    `at` is the instant a schedule meant; who evaluates it twice means the same window twice.
    """

    provenance: str
    endpoint: str | None = None
    operation: Operation = Operation.HARVEST
    asked: Asked = field(default_factory=Asked)
    overrides: Overrides = field(default_factory=Overrides)
    scheduler: Scheduler = Scheduler.INTERNAL
    trigger_type: TriggerType = TriggerType.MANUAL
    scheduler_job: str | None = None
    scheduler_run_id: str | None = None
    campaign: str | None = None
    partition: str | None = None
    at: datetime | None = None

    def params(self) -> dict[str, Any]:
        """Return the arguments as the root row keeps them."""
        return {
            "from": self.asked.start,
            "to": self.asked.end,
            "set": to_jsonable_python(self.overrides.values),
            "params": self.overrides.params,
            "query": self.overrides.query,
            "lenient": self.overrides.lenient or None,
            "campaign": self.campaign,
            "partition": self.partition,
            "at": self.at,
        }


@dataclass(frozen=True)
class Part:
    """One partition of what is planned (None: the source has none) and its namespace."""

    partition: str | None
    namespace: Namespace


@dataclass(frozen=True)
class Rooted:
    """A trigger with its stored root and its compiled spec."""

    trigger: Trigger
    root: ScheduleInstanceId
    compiled: Compiled
    parts: tuple[Part, ...]

    @property
    def namespace(self) -> Namespace:
        """The namespace of its first part; provenance, endpoint and operation are those of all."""
        return self.parts[0].namespace


@dataclass(frozen=True)
class Progress:
    """How far a plan is after a planner went on with it."""

    status: str
    new_slices: int = 0
    queued: int = 0  # tasks queued by this call
    waiting: int = 0  # slices that have no task yet
    reason: str | None = None  # why they wait
    dues: tuple[datetime, ...] = ()  # when those tasks of this call may start that may not at once

    def after(self, before: "Progress | None") -> "Progress":
        """Return what both calls did together."""
        if before is None:
            return self
        slices, queued = self.new_slices + before.new_slices, self.queued + before.queued
        return replace(self, new_slices=slices, queued=queued, dues=(*before.dues, *self.dues))


@dataclass(frozen=True)
class Resliced:
    """What became of one re-slice request: the parent and its children; none if none can be cut."""

    plan_id: PlanId
    parent: SliceId
    children: int
    problem: str | None = None


@dataclass(frozen=True)
class Opened:
    """One part of a trigger with its plan, or with the reason why there is nothing to plan.

    `before` is how far the plan came when it was gone on with as one that an earlier trigger left.
    """

    rooted: Rooted
    plan_id: PlanId | None
    window: Window | None
    reason: str | None = None
    partition: str | None = None
    before: Progress | None = None
    cuts: tuple[str, ...] = ()  # what made the window another than the one asked for
    resliced: tuple[Resliced, ...] = ()  # what executors had asked for and this trigger answered
    earlier: tuple[tuple[PlanId, Progress], ...] = ()  # plans that it went on with before its own


@dataclass(frozen=True)
class PlannedPart:
    """What one part of a trigger led to."""

    plan_id: PlanId | None
    partition: str | None
    window: Window | None
    reason: str | None
    progress: Progress | None
    cuts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """What a trigger led to: a plan for each part; most sources have one part."""

    root: ScheduleInstanceId
    parts: tuple[PlannedPart, ...]
    resliced: tuple[Resliced, ...] = ()
    earlier: tuple[tuple[PlanId, Progress], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts: the whole, and each part."""
        return {
            "root": self.root,
            "plan_id": self.plan_id,
            "window": self.window,
            "slices": self.slices,
            "queued": self.queued,
            "reason": self.reason,
            "parts": self.parts,
            "resliced": self.resliced,
            "earlier": dict(self.earlier),
        }

    @property
    def problems(self) -> list[str]:
        """What a person must know although the trigger itself went well."""
        return [one.problem for one in self.resliced if one.problem is not None]

    @property
    def plan_ids(self) -> list[PlanId]:
        """The plans of all parts that have one."""
        return [part.plan_id for part in self.parts if part.plan_id is not None]

    @property
    def plan_id(self) -> PlanId | None:
        """The first plan; None when there was nothing to plan."""
        return next(iter(self.plan_ids), None)

    @property
    def window(self) -> Window | None:
        """The window of the first part that has one."""
        return next((part.window for part in self.parts if part.window is not None), None)

    @property
    def slices(self) -> int:
        """How many slices were cut."""
        return sum(part.progress.new_slices for part in self.parts if part.progress)

    @property
    def queued(self) -> int:
        """How many tasks were queued."""
        return sum(part.progress.queued for part in self.parts if part.progress)

    @property
    def reason(self) -> str | None:
        """Why there is nothing to plan, or nothing new."""
        return next((part.reason for part in self.parts if part.reason is not None), None)
