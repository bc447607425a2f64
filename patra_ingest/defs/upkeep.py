"""Upkeep from Dagster: go on with plans that wait, cut again what proved too big, tell others."""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from patra_ingest.defs.resources import LedgerResource
from patra_ingest.defs.stopping import run_stoppable
from patra_ingest.executor.publish import PublishOrder, Tally, publish_outbox
from patra_ingest.transport.sinks import has_secret
from patra_ingest.views.waiting import list_waiting
from patra_ingest.wiring import user_agent


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


class OutboxConfig(dg.Config):
    """Where the outbox goes, and how much of it at once."""

    to: str = Field(
        description="jsonl:PATH, http(s)://HOST/PATH, redis://HOST:PORT/DB?stream=NAME; or @FILE:"
        " a file that holds one of them, for addresses with a secret. Dagster keeps what is here."
    )
    limit: int = Field(default=0, description="End after so many messages; 0: when none is due.")
    batch: int = Field(default=100, description="Messages sent at once, 1 to 1000.")
    lease_seconds: int = Field(
        default=60, description="When another publisher takes over, 60 or more."
    )

    def order(self) -> PublishOrder:
        """Return the order, or fail the step with one sentence."""
        if has_secret(self.to):
            raise dg.Failure(
                "`to` holds a secret, and Dagster keeps it with the run: change that secret, put"
                " the address into a file and give @FILE."
            )
        if self.limit < 0 or not 1 <= self.batch <= 1000 or self.lease_seconds < 60:
            raise dg.Failure("limit, batch or lease_seconds is out of its range.")
        lease = timedelta(seconds=self.lease_seconds)
        return PublishOrder(self.to, True, self.limit, self.batch, lease)


@dg.op
def publish_messages(
    context: dg.OpExecutionContext, config: OutboxConfig, ledger: LedgerResource
) -> int:
    """Publish every message that is due; fail when one could not be delivered."""
    order = config.order()
    with ledger.open(context.run_id) as live:
        agent = user_agent(live.settings.contact)
        tally: Tally = run_stoppable(
            lambda stop: publish_outbox(live.db, live.clock, live.worker_name, agent, order, stop)
        )
    context.add_output_metadata(tally.as_json())
    if not tally.is_clean:
        reasons = "; ".join(f"{count} × {why}" for why, count in tally.reasons.most_common(5))
        raise dg.Failure(f"{tally.failed} messages failed, {tally.dead} are dead: {reasons}")
    return tally.published


@dg.job(executor_def=dg.in_process_executor)
def publish_job() -> None:
    """Tell others what changed: publish the outbox to one sink."""
    publish_messages()
