"""Executing from Dagster: lanes that drain the ledger's queue.

A dynamic step is a group of tasks, never one task: a step costs Dagster about a tenth of a second,
a task inside a step a fraction of a millisecond. There is no RetryPolicy: the ledger resumes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import dagster as dg
from pydantic import Field
from sqlalchemy import Connection

from patra_ingest.clock import Stop
from patra_ingest.defs.materialize import materializations
from patra_ingest.defs.planning import compile_spec, open_plan
from patra_ingest.defs.refusing import refusing, require_number
from patra_ingest.defs.resources import CursorResource, LedgerResource, RateGateResource
from patra_ingest.defs.runs import EXECUTOR, tag_run, trigger_of
from patra_ingest.defs.stopping import run_stoppable
from patra_ingest.executor.work import Drained, Order, Worker
from patra_ingest.ledger.tasks import TaskFilter, count_left, count_open
from patra_ingest.model.codes import Operation
from patra_ingest.model.lineage import PlanId, TaskId
from patra_ingest.planner.trigger import Opened
from patra_ingest.views.overview import list_states
from patra_ingest.views.plan_summary import PlanSummary, summarize_plan
from patra_ingest.views.queue import (
    list_plans_of_run,
    list_plans_of_worker,
    list_task_groups,
)
from patra_ingest.wiring import Ingest

MAX_LANES = 8
MAX_THREADS = 64
MAX_MINUTES = 7 * 24 * 60
TASKS_PER_LANE = 4
_ANY_TIME = timedelta(days=36500)


@dataclass(frozen=True)
class Lane:
    """The share of the queue that one step drains."""

    name: str
    takes: str
    wanted: TaskFilter
    until: datetime | None = None  # no task is begun after this

    def output(self) -> dg.DynamicOutput["Lane"]:
        """Return the lane as one dynamic step."""
        return dg.DynamicOutput(self, mapping_key=self.name, metadata={"takes": self.takes})


class LaneConfig(dg.Config):
    """How hard one step works."""

    threads: int = Field(
        default=4, description=f"Tasks executed at once inside a step, 1 to {MAX_THREADS}."
    )


class DrainConfig(dg.Config):
    """Which part of the queue a run drains."""

    operation: Operation = Field(
        default=Operation.HARVEST, description="Only tasks of this operation."
    )
    lanes: int = Field(
        default=1, description=f"Steps, 1 to {MAX_LANES}; they run one after another."
    )
    max_minutes: int | None = Field(
        default=None, description="End after so many minutes, each thread after its batch."
    )


@dg.op(out=dg.DynamicOut(Lane))
def cut_slices(
    context: dg.OpExecutionContext, opened: list[Opened], ledger: LedgerResource
) -> Iterator[dg.DynamicOutput[Lane]]:
    """Cut the window into slices, share their tasks out to lanes."""
    with ledger.open() as live:
        lanes = _cut(live, opened)
    context.log.info(f"Lanes to drain: {len(lanes)}")
    for lane in lanes:
        yield lane.output()


def _cut(live: Ingest, opened: list[Opened]) -> list[Lane]:
    """Queue the plans' tasks; return what earlier runs left of the endpoint, then the plans."""
    name = opened[0].rooted.namespace
    earlier = TaskFilter(None, None, None, name.provenance, name.endpoint, name.operation)
    with live.db.read() as tx:
        left = count_open(tx, live.db.now(tx) + _ANY_TIME, earlier)
    lanes: list[Lane] = []
    for plan in (part.plan_id for part in opened if part.plan_id is not None):
        queued = live.planner.go_on(plan).queued
        lanes.extend(_lanes(live, plan, queued, len(lanes)))
    if left:
        firsts = [lane.wanted.first_task for lane in lanes if lane.wanted.first_task]
        last = TaskId(min(firsts) - 1) if firsts else None
        takes = f"{left} tasks that earlier runs left"
        lanes.insert(0, Lane("earlier", takes, replace(earlier, last_task=last)))
    return lanes


def _lanes(live: Ingest, plan: PlanId, tasks: int, before: int) -> Iterator[Lane]:
    steps = min(MAX_LANES, max(1, math.ceil(tasks / TASKS_PER_LANE)))
    with live.db.read() as tx:
        groups = list_task_groups(tx, plan, steps)
    for number, (first, last) in enumerate(groups, start=before + 1):
        takes = f"tasks {first} to {last} of plan {plan}"
        yield Lane(f"lane_{number:02d}", takes, TaskFilter(plan, first, last))


@dg.op(name="execute_slice")
def _execute_slice(
    context: dg.OpExecutionContext, config: LaneConfig, lane: Lane, ledger: LedgerResource
) -> dict[str, int]:
    """Execute the slices of one lane until none is left."""
    with ledger.open(context.run_id) as live:
        worker = live.worker(f"{context.run_id}/{lane.name}")
        drained = run_stoppable(lambda stop: _drain(live, worker, lane, config.threads, stop))
        done = _numbers(drained)
        if drained.is_late:
            with live.db.read() as tx:
                done["tasks_left_at_deadline"] = count_left(tx, lane.wanted)
    context.add_output_metadata(done)
    return done


@dg.configured(_execute_slice)
def execute_slice(config: LaneConfig) -> LaneConfig:
    """Refuse a number of threads that is out of its range."""
    with refusing():
        require_number("threads", config.threads, 1, MAX_THREADS)
    return config


def _drain(live: Ingest, worker: Worker, lane: Lane, threads: int, stop: Stop) -> Drained:
    """Execute a lane; then what its plan has more of, now that there is room in the queue."""
    stop.give(live.clock, lane.until - live.clock.now() if lane.until else None)
    order, plan = Order(threads, until_empty=True, wanted=lane.wanted), lane.wanted.plan_id
    done = worker.work(order, stop, lambda _stats: None)
    while plan is not None and not stop.is_set():
        children = sum(answer.children for answer in live.planner.reslice(plan_id=plan))
        if not live.planner.go_on(plan).queued + children:
            break
        more = Order(threads, until_empty=True, wanted=TaskFilter(plan))
        done.add(worker.work(more, stop, lambda _stats: None))
    return done


def _numbers(drained: Drained) -> dict[str, int]:
    """Return what a lane did, in words a person reads."""
    sums = drained.batches
    return {
        **{f"tasks_{end.lower()}": count for end, count in sorted(drained.tasks.items())},
        "pages": sums["pages"],
        "requests": sums["reqCount"],
        "records_seen": sums["itemsCount"],
        "records_inserted": sums["inserted"],
        "records_updated": sums["updated"],
        "records_quarantined": sums["quarantined"],
    }


@dg.op(out=dg.Out(dg.Nothing))
def settle(
    context: dg.OpExecutionContext,
    lanes: list[dict[str, int]],
    ledger: LedgerResource,
    cursors: CursorResource,
    rate_gate: RateGateResource,
) -> Iterator[dg.AssetMaterialization | dg.Output[None]]:
    """Advance the cursors, report what the ledger says was done."""
    cursors.catch_up()
    with ledger.look() as live, live.db.read() as tx:
        own = _own_plans(tx, context.run)
        worked_on = list_plans_of_worker(tx, context.run_id)
        summaries = [summarize_plan(tx, plan) for plan in sorted({*worked_on, *own})]
        records = {(s.provenance, s.endpoint): s.records for s in list_states(tx)}
        events = [
            event
            for one in summaries
            for event in materializations(
                tx, one, records.get((one.provenance, one.endpoint), 0), context.run_id
            )
        ]
    tag_run(context, **_tags(summaries))
    # Yielded, not logged: what is logged in a step that fails is lost.
    yield from events
    problems = [problem for summary in summaries for problem in _problems(summary, own)]
    if problems:
        raise dg.Failure(" ".join(problems))
    rates = {f"rate {key}": allowed for key, allowed in rate_gate.states().items()}
    yield dg.Output(None, metadata={"lanes": len(lanes), **rates})


def _tags(summaries: list[PlanSummary]) -> dict[str, str]:
    """Return what a run has worked on; where its plans differ, all are listed."""
    told = [
        {
            "source": one.provenance,
            "endpoint": one.endpoint,
            "plan": str(one.plan_id),
            "window": str(one.window or ""),
        }
        for one in summaries
    ]
    names = told[0] if told else {}
    return {name: ", ".join(dict.fromkeys(one[name] for one in told))[:200] for name in names}


def _own_plans(tx: Connection, run: dg.DagsterRun) -> set[PlanId]:
    """Return the plans this run must answer for, those of the run that it repeats included.

    Dagster's “from failure” forgets dynamic steps that had not started: the ledger does not.
    """
    runs = {run.run_id, run.parent_run_id, run.root_run_id}
    names = (run_id for run_id in runs if run_id)
    return {plan for name in names for plan in list_plans_of_run(tx, run.job_name, name)}


def _problems(summary: PlanSummary, own: set[PlanId]) -> Iterator[str]:
    """Say what a person must know before he trusts the run."""
    slices = ", ".join(f"{count} {status}" for status, count in summary.slices.items())
    reasons = "; ".join(summary.errors) or "no error was noted"
    if failed := summary.slices.get("FAILED"):
        yield (
            f"Plan {summary.plan_id}: {failed} of {sum(summary.slices.values())} slices failed"
            f" ({reasons}). The cursor waits there; the next plan asks for them again."
        )
    elif summary.plan_id in own and not summary.is_proved:
        yield (
            f"Plan {summary.plan_id} is not finished: its slices are {slices} ({reasons})."
            " They stay queued; `patra status` says if the endpoint is held, execute_job goes on."
        )


@dg.job(executor_def=dg.in_process_executor)
def ingest_job() -> None:
    """Harvest a source: plan one trigger and execute it, all in one run.

    Tasks that an earlier run left in the endpoint's queue are executed first. Run again, it asks
    only for what is new.
    """
    settle(cut_slices(open_plan(compile_spec())).map(execute_slice).collect())


@dg.op(name="open_lanes", out=dg.DynamicOut(Lane))
def _open_lanes(
    context: dg.OpExecutionContext, config: DrainConfig, ledger: LedgerResource
) -> Iterator[dg.DynamicOutput[Lane]]:
    """Open lanes; what they take is decided by the ledger's leases."""
    tag_run(context, operation=config.operation.value, trigger=trigger_of(context.run))
    until = None
    if config.max_minutes is not None:
        with ledger.look() as live:
            until = live.clock.now() + timedelta(minutes=config.max_minutes)
    takes, wanted = f"any {config.operation} task", TaskFilter(operation=config.operation)
    for number in range(1, config.lanes + 1):
        yield Lane(f"lane_{number:02d}", takes, wanted, until).output()


@dg.configured(_open_lanes)
def open_lanes(config: DrainConfig) -> DrainConfig:
    """Refuse numbers that are out of their range."""
    with refusing():
        require_number("lanes", config.lanes, 1, MAX_LANES)
        if config.max_minutes is not None:
            require_number("max_minutes", config.max_minutes, 1, MAX_MINUTES)
    return config


@dg.job(executor_def=dg.in_process_executor, tags=EXECUTOR)
def execute_job() -> None:
    """Lease and execute queued tasks, whoever planned them, until none is left.

    Several runs share the queue: every task is executed by one of them.
    """
    settle(open_lanes().map(execute_slice).collect())
