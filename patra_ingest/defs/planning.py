"""Planning from Dagster: the config people fill in, the plan job, and the harvest schedule."""

from collections.abc import Iterator
from datetime import datetime

import dagster as dg
from pydantic import Field

from patra_ingest.defs.resources import LedgerResource, RegistryResource
from patra_ingest.errors import PlanError
from patra_ingest.model.codes import Operation, Scheduler, TriggerType
from patra_ingest.model.window import parse_instant
from patra_ingest.planner.trigger import Opened, Rooted, Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.spec.declaration import Overrides
from patra_ingest.transport.redact import redact_url


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

    def trigger(self, run: dg.DagsterRun) -> Trigger:
        """Return the trigger these fields ask for."""
        scheduled = "dagster/schedule_name" in run.tags
        request = {"request": {"base_url": self.base_url}} if self.base_url else {}
        return Trigger(
            self.provenance,
            self.endpoint or None,
            self.operation,
            Asked(_instant("window_from", self.window_from), _instant("window_to", self.window_to)),
            Overrides(request),
            Scheduler.DAGSTER,
            TriggerType.SCHEDULE if scheduled else TriggerType.MANUAL,
            run.job_name,
            run.run_id,
            self.campaign or None,
        )


def _instant(field: str, text: str) -> datetime | None:
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise PlanError(f"{field}: {error}.", "Correct it in the Launchpad.") from None


def tag_run(context: dg.OpExecutionContext, **tags: object) -> None:
    """Tag this run with what it works on, so that it can be found by it."""
    named = {f"patra/{name}": str(value) for name, value in tags.items()}
    context.instance.add_run_tags(context.run_id, named)


@dg.op
def compile_spec(
    context: dg.OpExecutionContext, config: TriggerConfig, ledger: LedgerResource
) -> Rooted:
    """Store the trigger, read the Registry, freeze the spec."""
    with ledger.open() as live:
        rooted = live.planner.compile(config.trigger(context.run))
    name = rooted.namespace
    tag_run(context, source=name.provenance, endpoint=name.endpoint, operation=name.operation)
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


@dg.schedule(
    job=plan_job, cron_schedule="*/15 * * * *", execution_timezone="UTC", name="harvest_schedule"
)
def harvest_schedule(
    context: dg.ScheduleEvaluationContext, registry: RegistryResource
) -> Iterator[dg.RunRequest]:
    """Plan a HARVEST of every endpoint that declares it; the sensor starts the executors."""
    tick = context.scheduled_execution_time.isoformat()
    for name in registry.endpoints(Operation.HARVEST):
        config = TriggerConfig(provenance=name.provenance, endpoint=name.endpoint)
        yield dg.RunRequest(
            run_key=f"{name.provenance}/{name.endpoint}/{tick}",
            run_config=dg.RunConfig(ops={"compile_spec": config}),
            tags={
                "patra/operation": name.operation.value,
                "patra/source": name.provenance,
                "patra/endpoint": name.endpoint,
            },
        )
