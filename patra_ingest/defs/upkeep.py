"""Upkeep from Dagster: tell others, and clear away what is over.

The parts of `upkeep_job` do not wait for each other, and each reports what it found.
"""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.replay import Check, check_cursors
from patra_ingest.defs.refusing import refusing, require_number
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.defs.runs import AUTOMATIC, FINISHED, tag_run, trigger_of
from patra_ingest.defs.stopping import run_stoppable
from patra_ingest.executor.publish import PublishOrder, Tally, publish_outbox
from patra_ingest.ledger.cursors import write_value
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.upkeep import close_orphans, drop_quota_windows, list_kept_bodies
from patra_ingest.rawstore.retention import drop_bodies, drop_remains, list_old_bodies
from patra_ingest.transport.sinks import has_secret
from patra_ingest.wiring import read_settings, user_agent

_WINDOWS_KEPT = timedelta(days=35)  # longer than any quota lasts: `patra budget` shows the last
_RUNS_AT_ONCE = 500


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
        """Return the order, or fail with one sentence."""
        if has_secret(self.to):
            raise dg.Failure(
                "`to` holds a secret, and Dagster would keep it with the run: put the address into"
                " a file and give @FILE."
            )
        require_number("limit", self.limit, 0)
        require_number("batch", self.batch, 1, 1000)
        require_number("lease_seconds", self.lease_seconds, 60)
        lease = timedelta(seconds=self.lease_seconds)
        return PublishOrder(self.to, True, self.limit, self.batch, lease)


@dg.op(name="publish_messages")
def _publish_messages(
    context: dg.OpExecutionContext, config: OutboxConfig, ledger: LedgerResource
) -> int:
    """Publish every message that is due; fail when one could not be delivered."""
    tag_run(context, trigger=trigger_of(context.run))
    order = config.order()
    with ledger.open(context.run_id) as live:
        agent = user_agent(live.settings)
        tally: Tally = run_stoppable(
            lambda stop: publish_outbox(live.db, live.clock, live.worker_name, agent, order, stop)
        )
    context.add_output_metadata(tally.as_json())
    if not tally.is_clean:
        reasons = "; ".join(f"{count} × {why}" for why, count in tally.reasons.most_common(5))
        raise dg.Failure(f"{tally.failed} messages failed, {tally.dead} are dead: {reasons}")
    return tally.published


@dg.configured(_publish_messages)
def publish_messages(config: OutboxConfig) -> OutboxConfig:
    """Refuse a secret before Dagster keeps it, and numbers out of their range."""
    with refusing():
        config.order()
    return config


@dg.job(executor_def=dg.in_process_executor)
def publish_outbox_job() -> None:
    """Tell others what changed: publish the outbox to one sink."""
    publish_messages()


@dg.op
def free_leases(context: dg.OpExecutionContext, ledger: LedgerResource) -> int:
    """Return the tasks of silent workers to the queue, end the runs that nobody goes on with."""
    tag_run(context, trigger=trigger_of(context.run))
    with ledger.look() as live, live.db.write() as tx:
        freed, closed = free_silent(tx, live.db.now(tx)), close_orphans(tx, live.db.now(tx))
    given_up, closed = len(freed.failed), closed + len(freed.requeued + freed.failed)
    told = {"tasks freed": len(freed.requeued), "tasks failed": given_up, "runs closed": closed}
    context.add_output_metadata(told)
    return len(freed.requeued) + closed


@dg.op
def drop_quotas(context: dg.OpExecutionContext, ledger: LedgerResource) -> int:
    """Drop quota windows that are long over and hold no reservation."""
    with ledger.look() as live, live.db.write() as tx:
        dropped = drop_quota_windows(tx, live.db.now(tx) - _WINDOWS_KEPT)
    context.add_output_metadata({"windows dropped": dropped})
    return dropped


@dg.op
def verify_cursors(context: dg.OpExecutionContext, ledger: LedgerResource) -> int:
    """Hold every cursor against its events; fail when one differs."""
    with ledger.look() as live:
        checks = list(check_cursors(live.db, live.clock, lambda _: True))
    wrong = [_cursor_problem(check) for check in checks if not check.is_fine]
    if wrong:
        raise dg.Failure(" ".join(wrong), metadata={"cursors": len(checks), "wrong": len(wrong)})
    context.add_output_metadata({"cursors": len(checks), "wrong": 0})
    return len(checks)


def _cursor_problem(check: Check) -> str:
    name = check.known.namespace
    place = f"{name.provenance}/{name.endpoint} {name.operation}"
    if check.is_equal:
        return f"The events of the cursor {place} have gaps: see `patra cursor verify`."
    return (
        f"The cursor {place} stands at {write_value(check.value)}, its events lead to"
        f" {write_value(check.fold.value)}: see `patra cursor verify`, then `patra cursor rebuild`."
    )


class RetentionConfig(dg.Config):
    """How long what sources answered is kept."""

    days: int = Field(default=30, description="Raw bodies are kept so many days; 0: for ever.")
    days_of: dict[str, int] = Field(
        default={}, description="Other days for some sources, as `{pubmed: 90}`; 0: for ever."
    )

    def retentions(self) -> tuple[timedelta | None, dict[str, timedelta | None]]:
        """Return how long bodies are kept, and those of some sources; None: for ever."""
        require_number("days", self.days, 0)
        for source, days in self.days_of.items():
            require_number(f"days_of {source}", days, 0)
        own = {source.lower(): _days(days) for source, days in self.days_of.items()}
        return _days(self.days), own


def _days(number: int) -> timedelta | None:
    return timedelta(days=number) if number else None


@dg.op(name="drop_old_bodies")
def _drop_old_bodies(
    context: dg.OpExecutionContext, config: RetentionConfig, ledger: LedgerResource
) -> int:
    """Drop raw bodies that only batches older than their retention speak of.

    Batches, records and digests stay; such a batch can only be replayed live.
    """
    usual, own = config.retentions()
    spans = [span for span in (usual, *own.values()) if span is not None]
    dropped, size, remains = 0, 0, 0
    if spans:
        with ledger.look() as live:
            now, folder = live.clock.now(), read_settings().raw_folder
            old = list_old_bodies(folder, now - min(spans))
            with live.db.read() as tx:
                kept = list_kept_bodies(tx, old, now, usual, own)
        dropped, size = drop_bodies(folder, old - kept)
        remains = drop_remains(folder, now - timedelta(days=1))
    told = {"bodies dropped": dropped, "bytes freed": size, "unfinished files dropped": remains}
    context.add_output_metadata(told)
    return dropped


@dg.configured(_drop_old_bodies)
def drop_old_bodies(config: RetentionConfig) -> RetentionConfig:
    """Refuse days below zero."""
    with refusing():
        config.retentions()
    return config


class DagsterRunsConfig(dg.Config):
    """How long Dagster's own runs are kept."""

    days: int = Field(
        default=0,
        description="Delete finished runs of Dagster older than so many days, with their logs and"
        " materializations; 0: never. The ledger keeps everything that matters either way.",
    )


@dg.op(name="drop_dagster_runs")
def _drop_dagster_runs(context: dg.OpExecutionContext, config: DagsterRunsConfig) -> int:
    """Delete Dagster's own old runs, if that is asked for."""
    ids: list[str] = []
    if config.days:
        before = SystemClock().now() - timedelta(days=config.days)
        old = dg.RunsFilter(statuses=FINISHED, created_before=before)
        ids = [run.run_id for run in context.instance.get_runs(old, limit=_RUNS_AT_ONCE)]
    for run_id in ids:
        context.instance.delete_run(run_id)
    context.add_output_metadata({"runs deleted": len(ids)})
    return len(ids)


@dg.configured(_drop_dagster_runs)
def drop_dagster_runs(config: DagsterRunsConfig) -> DagsterRunsConfig:
    """Refuse days below zero."""
    with refusing():
        require_number("days", config.days, 0)
    return config


@dg.job(executor_def=dg.in_process_executor)
def upkeep_job() -> None:
    """Clear away what is over: silent workers' leases, quota windows, old bodies; verify cursors.

    Once a day is enough: workers free expired leases by themselves.
    """
    free_leases()
    drop_quotas()
    verify_cursors()
    drop_old_bodies()
    drop_dagster_runs()


upkeep_daily = dg.ScheduleDefinition(
    name="upkeep_daily",
    job=upkeep_job,
    cron_schedule="15 4 * * *",
    tags=AUTOMATIC,
    execution_timezone="UTC",
    description="Clear away what is over, and verify every cursor, once a day.",
)
