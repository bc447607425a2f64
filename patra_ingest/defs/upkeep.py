"""Upkeep from Dagster: go on with plans that wait for room, and cut again what proved too big."""

import dagster as dg

from patra_ingest.defs.resources import LedgerResource
from patra_ingest.views.waiting import list_waiting


@dg.op
def go_on(context: dg.OpExecutionContext, ledger: LedgerResource) -> int:
    """Answer re-slice requests, queue what waits in plans as far as there is room."""
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
def go_on_job() -> None:
    """Go on with every plan that waits: for room in the queue, for a quota, or to be cut again."""
    go_on()


@dg.sensor(job=go_on_job, minimum_interval_seconds=30)
def waiting_plans(ledger: LedgerResource) -> dg.SensorResult | dg.SkipReason:
    """Start the upkeep when a plan waits and its queue has room, or a slice is to be cut again."""
    with ledger.open() as live, live.db.read() as tx:
        waiting = list_waiting(tx)
    if not waiting:
        return dg.SkipReason("no plan waits that could go on")
    return dg.SensorResult([dg.RunRequest(tags={"patra/waiting": ", ".join(waiting)[:200]})])
