"""What waits in the queue."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, instant_text
from patra_ingest.ledger.tasks import TaskFilter, count_startable
from patra_ingest.model.codes import Operation
from patra_ingest.model.lineage import PlanId, TaskId


def count_due(tx: Connection, operation: Operation, now: datetime, most: int) -> int:
    """Count, up to `most`, what a worker could start now of an operation, silent workers' too."""
    return count_startable(tx, now, TaskFilter(operation=operation), most)


_GROUPS = text("""
    SELECT MIN(id), MAX(id) FROM (
        SELECT id, NTILE(:groups) OVER (ORDER BY id) AS tile FROM ing_task WHERE plan_id = :plan
    ) numbered GROUP BY tile ORDER BY tile
""")


def list_task_groups(tx: Connection, plan_id: PlanId, groups: int) -> list[tuple[TaskId, TaskId]]:
    """Return a plan's tasks as at most `groups` neighbouring ranges of about equal size."""
    found = tx.execute(_GROUPS, {"plan": plan_id, "groups": groups})
    return [(TaskId(first), TaskId(last)) for first, last in found]


_PLANS = text("""
    SELECT DISTINCT t.plan_id FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id
     WHERE r.lease_owner >= :first AND r.lease_owner < :last ORDER BY t.plan_id
""")


def list_plans_of_worker(tx: Connection, worker: str) -> list[PlanId]:
    """Return the plans a worker has had a hand in; its leases begin with its name."""
    found = tx.execute(_PLANS, {"first": f"{worker}/", "last": f"{worker}0"})
    return [PlanId(plan_id) for plan_id in found.scalars()]


_OF_RUN = text("""
    SELECT p.id FROM ing_plan p JOIN ing_schedule_instance s ON s.id = p.schedule_instance_id
     WHERE s.scheduler_code = 'DAGSTER' AND s.scheduler_job_id = :job AND s.scheduler_log_id = :run
""")


def list_plans_of_run(tx: Connection, job: str, run_id: str) -> list[PlanId]:
    """Return the plans that a Dagster run opened; none when it had nothing to plan."""
    found = tx.execute(_OF_RUN, {"job": job, "run": run_id}).scalars()
    return [PlanId(plan_id) for plan_id in found]


@dataclass(frozen=True)
class Rest:
    """What of a plan is still to come: slices without a task, tasks that are due later."""

    waiting: int
    later: int
    next_due: datetime | None


_REST = text("""
    SELECT (SELECT COUNT(*) FROM ing_plan_slice WHERE plan_id = :plan AND status_code = 'PENDING'),
           COUNT(*), MIN(scheduled_at)
      FROM ing_task WHERE plan_id = :plan AND status_code = 'QUEUED' AND scheduled_at > :now
""")


def find_rest(tx: Connection, plan_id: PlanId, now: datetime) -> Rest:
    """Return what of a plan waits at `now`."""
    values = {"plan": plan_id, "now": instant_text(now)}
    waiting, later, due = tx.execute(_REST, values).one()
    return Rest(int(waiting), int(later), find_instant(due))


_LATER = text("""
    SELECT COUNT(*), MIN(scheduled_at) FROM ing_task
     WHERE status_code = 'QUEUED' AND scheduled_at > :now
""")


def find_later(tx: Connection, now: datetime) -> tuple[int, datetime | None]:
    """Return how many queued tasks are due later than `now`, and when the first of them is."""
    count, due = tx.execute(_LATER, {"now": instant_text(now)}).one()
    return int(count), find_instant(due)


def find_newest_plan(tx: Connection) -> PlanId | None:
    """Return the plan that was opened last."""
    found = tx.execute(text("SELECT MAX(id) FROM ing_plan")).scalar()
    return None if found is None else PlanId(found)


_PROGRESS = text("""
    SELECT (SELECT COUNT(*) FROM ing_plan_slice
             WHERE plan_id = :plan AND status_code = 'SUCCEEDED'),
           (SELECT COUNT(*) FROM ing_plan_slice
             WHERE plan_id = :plan AND status_code NOT IN ('PARTIAL', 'CANCELLED')),
           SUM(record_count), COUNT(*)
      FROM ing_task_run_batch WHERE plan_id = :plan AND status_code = 'SUCCEEDED'
""")


def plan_progress(tx: Connection, plan_id: PlanId) -> tuple[int, int, int, int]:
    """Return a plan's slices done and in all, and its records and pages so far."""
    done, slices, records, pages = tx.execute(_PROGRESS, {"plan": plan_id}).one()
    return int(done), int(slices), int(records or 0), int(pages)
