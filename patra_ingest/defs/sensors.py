"""The sensors: each looks at the ledger and starts what is missing.

They look at levels, not at edges: a tick that is missed, or a daemon that is started anew, loses
nothing. None gives a run_key: Dagster never runs a used one again. What is active is counted
instead, and should two runs meet after all, the ledger's leases keep them apart. Runs whose process
is gone are ended first, so that nobody waits for them.
"""

import json
import math
from datetime import datetime, timedelta

import dagster as dg

from patra_ingest.defs.execution import DrainConfig, execute_job
from patra_ingest.defs.planning import UpdateConfig, reslice_job, update_candidates_job
from patra_ingest.defs.processes import end_lost_runs
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.defs.runs import AUTOMATIC, EXECUTOR, PRIORITY, count_active, named
from patra_ingest.model.codes import Operation
from patra_ingest.views.alerts import list_signalled
from patra_ingest.views.queue import count_due
from patra_ingest.views.waiting import list_waiting

TASKS_PER_RUN = 200
MAX_RUNS = 2  # executor runs of one operation at once
ENOUGH = MAX_RUNS * TASKS_PER_RUN  # due tasks; nobody needs to know of more
AGAIN_AFTER = timedelta(minutes=15)

Looked = dg.SensorResult | dg.SkipReason


def _queued(operation: Operation) -> dg.SensorDefinition:
    tags = {
        **EXECUTOR,
        **named(operation=operation.value),
        **AUTOMATIC,
        "dagster/priority": PRIORITY[operation],
    }

    def look(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> Looked:
        with ledger.look() as live, live.db.read() as tx:
            due = count_due(tx, operation, live.db.now(tx), ENOUGH)
        end_lost_runs(context.instance)
        active = count_active(context.instance, "execute_job", named(operation=operation.value))
        missing = min(MAX_RUNS, math.ceil(due / TASKS_PER_RUN)) - active
        if missing <= 0:
            count = f"{due} or more" if due == ENOUGH else str(due)
            return dg.SkipReason(f"{count} tasks are due, {active} executor runs are active")
        config = dg.RunConfig(ops={"open_lanes": DrainConfig(operation=operation)})
        return dg.SensorResult(
            [dg.RunRequest(run_config=config, tags=tags) for _ in range(missing)]
        )

    sensor = dg.sensor(
        name=f"queued_{operation.value.lower()}",
        job=execute_job,
        minimum_interval_seconds=1,  # Dagster looks every 5 s; who asks for 5 misses every other
        description=f"Start executors while {operation.value} tasks are due, {MAX_RUNS} at most.",
    )
    return sensor(look)


queued_harvest = _queued(Operation.HARVEST)
queued_update = _queued(Operation.UPDATE)
queued_backfill = _queued(Operation.BACKFILL)


@dg.sensor(
    job=reslice_job,
    minimum_interval_seconds=30,
    description="Start reslice_job when a slice is to be cut again, or a waiting plan has room.",
)
def reslice_requests(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> Looked:
    """Look for plans that wait and could go on."""
    with ledger.look() as live, live.db.read() as tx:
        waiting = list_waiting(tx)
    if not waiting:
        return dg.SkipReason("no plan waits that could go on")
    end_lost_runs(context.instance)
    if count_active(context.instance, "reslice_job", {}):
        return dg.SkipReason(f"{len(waiting)} wait, and reslice_job is at it")
    tags = {**named(waiting=", ".join(waiting)[:200]), **AUTOMATIC}
    return dg.SensorResult([dg.RunRequest(tags=tags)])


@dg.sensor(
    job=update_candidates_job,
    minimum_interval_seconds=30,
    description="Plan an UPDATE of every source for which signals wait.",
)
def signals_waiting(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> Looked:
    """Plan an UPDATE of a source for which signals wait.

    Signals that no UPDATE takes up (their endpoint is held, or takes no ids) are tried again every
    15 minutes; the cursor keeps which were seen, and when.
    """
    with ledger.look() as live:
        with live.db.read() as tx:
            newest = list_signalled(tx)
        now = live.clock.now()
    seen: dict[str, list[str]] = json.loads(context.cursor or "{}")
    wanted = [
        source for source, last in newest.items() if _is_news(seen.get(source), str(last), now)
    ]
    end_lost_runs(context.instance)
    idle = [
        source
        for source in wanted
        if not count_active(context.instance, "update_candidates_job", named(source=source))
    ]
    if not idle:
        return dg.SkipReason(f"signals of {len(newest)} sources wait, none of them is new")
    seen |= {source: [str(newest[source]), now.isoformat()] for source in idle}
    kept = {source: told for source, told in seen.items() if source in newest}
    return dg.SensorResult([_update_of(source) for source in idle], cursor=json.dumps(kept))


def _is_news(seen: list[str] | None, newest: str, now: datetime) -> bool:
    return seen is None or seen[0] != newest or now - datetime.fromisoformat(seen[1]) >= AGAIN_AFTER


def _update_of(source: str) -> dg.RunRequest:
    config = dg.RunConfig(ops={"plan_updates": UpdateConfig(provenance=source)})
    tags = {**named(source=source, operation=Operation.UPDATE.value), **AUTOMATIC}
    return dg.RunRequest(run_config=config, tags=tags)
