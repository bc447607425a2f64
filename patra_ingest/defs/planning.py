"""Planning from Dagster: the config people fill in; jobs that plan, refresh and cut again."""

from dataclasses import dataclass
from datetime import datetime

import dagster as dg
from pydantic import Field

from patra_ingest.defs.refusing import refusing
from patra_ingest.defs.resources import LedgerResource, RegistryResource
from patra_ingest.defs.runs import table, tag_run, trigger_of
from patra_ingest.errors import IngestError, PlanError
from patra_ingest.model.codes import Operation, Scheduler, TriggerType
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.window import parse_instant
from patra_ingest.planner.trigger import Opened, Rooted, Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.read import EndpointName, require_endpoint
from patra_ingest.spec.declaration import Overrides
from patra_ingest.transport.redact import redact_url
from patra_ingest.wiring import Ingest


class TriggerConfig(dg.Config):
    """What to harvest. Empty fields are decided by the Registry and the cursor."""

    provenance: str = Field(description="Source code, for example `sandbox`.")
    endpoint: str = Field(default="", description="Endpoint name; empty: the source's first.")
    window_from: str = Field(
        default="",
        description="Start, `2026-01-31` or `2026-01-31T12:00Z`; empty: where the cursor is.",
    )
    window_to: str = Field(
        default="", description="End, exclusive; empty: now minus the source's safety lag."
    )
    operation: Operation = Field(
        default=Operation.HARVEST, description="HARVEST new, BACKFILL past, UPDATE known records."
    )
    campaign: str = Field(
        default="", description="Name an intended re-run; nothing counts as done in it."
    )
    base_url: str = Field(default="", description="Ask this address instead, for this run only.")

    def asked(self) -> Asked:
        """Return the bounds of the window, as far as they are given."""
        ends = ("window_from", self.window_from), ("window_to", self.window_to)
        return Asked(*(read_field(name, text) for name, text in ends))

    def trigger(self, run: dg.DagsterRun) -> Trigger:
        """Return the trigger these fields ask for."""
        scheduled = "dagster/schedule_name" in run.tags
        request = {"request": {"base_url": self.base_url}} if self.base_url else {}
        return Trigger(
            self.provenance,
            self.endpoint or None,
            self.operation,
            self.asked(),
            Overrides(request),
            Scheduler.DAGSTER,
            TriggerType.SCHEDULE if scheduled else TriggerType.MANUAL,
            run.job_name,
            run.run_id,
            self.campaign or None,
        )


def read_field(field: str, text: str) -> datetime | None:
    """Return the instant in a field; None when it is empty."""
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise PlanError(f"{field}: {error}.", "Correct it in the Launchpad.") from None


@dg.op(name="compile_spec")
def _compile_spec(
    context: dg.OpExecutionContext, config: TriggerConfig, ledger: LedgerResource
) -> Rooted:
    """Store the trigger, read the Registry, freeze the spec."""
    with ledger.open() as live:
        rooted = live.planner.compile(config.trigger(context.run))
    name = rooted.namespace
    who = trigger_of(context.run)
    where = {"source": name.provenance, "endpoint": name.endpoint}
    tag_run(context, **where, operation=name.operation, trigger=who)
    for warning in rooted.compiled.spec.warnings:
        context.log.warning(warning)
    context.add_output_metadata(
        {
            "endpoint": f"{name.provenance}/{name.endpoint}",
            "base_url": dg.MetadataValue.url(redact_url(rooted.compiled.spec.request.base_url)),
            "spec_fingerprint": rooted.compiled.fingerprint,
            "trigger": str(rooted.root),
        }
    )
    return rooted


@dg.configured(_compile_spec)
def compile_spec(config: TriggerConfig) -> TriggerConfig:
    """Refuse an endpoint that the Registry does not have, and a window that is none."""
    with refusing():
        config.asked()
        name = EndpointName(config.provenance, config.endpoint, config.operation)
        with LedgerResource().look() as live, live.db.read() as tx:
            require_endpoint(tx, name, live.clock.now())
    return config


@dg.op
def open_plan(
    context: dg.OpExecutionContext, rooted: Rooted, ledger: LedgerResource
) -> list[Opened]:
    """Decide the window, open its plan; one for each partition of the source."""
    with ledger.open() as live:
        parts = live.planner.open_plans(rooted)
    for opened in parts:
        if opened.plan_id is None:
            context.log.info(f"Nothing to plan: {opened.reason}.")
    plans = [opened for opened in parts if opened.plan_id is not None]
    if plans:
        tag_run(context, plan=plans[0].plan_id, window=plans[0].window)
    context.add_output_metadata(
        {
            "plan": ", ".join(str(opened.plan_id) for opened in plans) or "none",
            "window": str(next((o.window for o in parts if o.window), "none")),
            "note": "; ".join(sorted({o.reason for o in parts if o.reason})) or "planned",
        }
    )
    return parts


@dg.op
def queue_slices(
    context: dg.OpExecutionContext, opened: list[Opened], ledger: LedgerResource
) -> int:
    """Cut the slices, queue one task each, as far as queue and quotas bear it."""
    with ledger.open() as live:
        done = [live.planner.go_on(one.plan_id) for one in opened if one.plan_id is not None]
    for progress in done:
        if progress.reason:
            context.log.warning(f"{progress.waiting} slices wait: {progress.reason}.")
    slices, queued = sum(p.new_slices for p in done), sum(p.queued for p in done)
    waiting = sum(p.waiting for p in done)
    context.add_output_metadata({"slices": slices, "queued": queued, "waiting": waiting})
    problems = [r.problem for one in opened for r in one.resliced if r.problem]
    if problems:
        raise dg.Failure(" ".join(problems))
    return slices


@dg.job(executor_def=dg.in_process_executor)
def plan_job() -> None:
    """Plan one trigger: cut the window into slices and queue a task for each, execute none.

    Any worker takes over from the ledger: `execute_job`, or `patra work` on any machine.
    """
    queue_slices(open_plan(compile_spec()))


class UpdateConfig(dg.Config):
    """Whose records are looked at again."""

    provenance: str = Field(default="", description="Only this source; empty: every source.")
    endpoint: str = Field(default="", description="Only this endpoint of it; empty: all of them.")

    def wants(self, name: EndpointName) -> bool:
        """Return whether an endpoint is meant."""
        source, endpoint = self.provenance.lower(), self.endpoint.lower()
        return source in ("", name.provenance) and endpoint in ("", name.endpoint)

    def trigger(self, name: EndpointName, run: dg.DagsterRun) -> Trigger:
        """Return the trigger of one endpoint's UPDATE."""
        asked = TriggerConfig(
            provenance=name.provenance, endpoint=name.endpoint, operation=Operation.UPDATE
        )
        return asked.trigger(run)


@dg.op
def plan_updates(
    context: dg.OpExecutionContext,
    config: UpdateConfig,
    ledger: LedgerResource,
    registry: RegistryResource,
) -> int:
    """Plan an UPDATE of every endpoint that can: signalled, quarantined, outdated, stale."""
    names = [name for name in registry.endpoints(Operation.UPDATE) if config.wants(name)]
    if not names and config.provenance:
        place = "/".join(filter(None, (config.provenance, config.endpoint)))
        raise dg.Failure(f"{place} has no endpoint that can be run as UPDATE.")
    tag_run(
        context,
        source=config.provenance,
        endpoint=config.endpoint,
        operation=Operation.UPDATE.value,
        trigger=trigger_of(context.run),
    )
    with ledger.open() as live:
        done = [_plan_update(live, config.trigger(name, context.run), name) for name in names]
    plans = [plan for one in done for plan in one.plans]
    tag_run(context, plan=", ".join(map(str, plans))[:200])
    context.add_output_metadata({"planned": _updates_table(done), "plans": len(plans)})
    problems = [f"{one.place}: {one.problem}" for one in done if one.problem]
    if problems:
        raise dg.Failure(" ".join(problems))
    return sum(one.queued for one in done)


@dataclass(frozen=True)
class _Update:
    """What became of one endpoint's UPDATE."""

    place: str
    plans: tuple[PlanId, ...] = ()
    slices: int = 0
    queued: int = 0
    reason: str = ""
    problem: str = ""


def _plan_update(live: Ingest, trigger: Trigger, name: EndpointName) -> _Update:
    place = f"{name.provenance}/{name.endpoint}"
    try:
        planned = live.planner.plan(trigger)
    except IngestError as error:  # one source in trouble keeps no other waiting
        return _Update(place, problem=str(error))
    said = "; ".join(planned.problems)
    counts = planned.slices, planned.queued
    return _Update(place, tuple(planned.plan_ids), *counts, planned.reason or "", said)


def _updates_table(done: list[_Update]) -> dg.TableMetadataValue:
    columns = ("endpoint", "plan", "slices", "queued", "note")
    rows = [
        (
            one.place,
            ", ".join(map(str, one.plans)),
            str(one.slices),
            str(one.queued),
            one.problem or one.reason,
        )
        for one in done
    ]
    return table(columns, rows)


@dg.job(executor_def=dg.in_process_executor)
def update_candidates_job() -> None:
    """Plan an UPDATE for the records that are due: signalled, quarantined, outdated or stale."""
    plan_updates()


@dg.op
def go_on(context: dg.OpExecutionContext, ledger: LedgerResource) -> int:
    """Answer re-slice requests, queue what waits in plans as far as there is room."""
    tag_run(context, trigger=trigger_of(context.run))
    with ledger.open() as live:
        answers = live.planner.reslice()
        plans = live.planner.go_on_all()
    for plan_id, progress in plans:
        context.log.info(f"Plan {plan_id}: {progress.queued} queued, {progress.waiting} wait.")
    queued = sum(progress.queued for _, progress in plans)
    children = sum(answer.children for answer in answers)
    context.add_output_metadata({"queued": queued, "cut again": len(answers), "children": children})
    problems = [answer.problem for answer in answers if answer.problem]
    if problems:
        raise dg.Failure(" ".join(problems))
    return queued + children


@dg.job(executor_def=dg.in_process_executor)
def reslice_job() -> None:
    """Cut again what proved too big, and go on with every plan that waits for room or a quota."""
    go_on()
