"""Plans on a real ledger: a planner for whatever compiles, and a look at what it wrote."""

from datetime import datetime
from typing import Any

from sqlalchemy import text

from patra_ingest.ledger.db import Db, read_instant
from patra_ingest.ledger.plans import try_complete_plan
from patra_ingest.model.codes import SliceStatus, TaskStatus
from patra_ingest.model.lineage import PlanId
from patra_ingest.planner.plan import Planner
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import Pack
from patra_ingest_tests.builders import NOON, START, a_pack
from patra_ingest_tests.fakes import FakeClock


def a_planner(db: Db, pack: Pack | None = None, at: datetime = NOON) -> Planner:
    """Return a planner over a Registry that holds `pack`; whatever compiles can be planned."""
    with db.write() as tx:
        apply_pack(tx, pack or a_pack(), START)
    return Planner(db, FakeClock(at), lacking=lambda _spec: ())


def rows(db: Db, query: str, **values: Any) -> list[Any]:
    """Return what a query finds."""
    with db.read() as tx:
        return list(tx.execute(text(query), values).mappings().all())


def plan_row(db: Db, plan_id: int) -> Any:
    """Return the row of a plan."""
    (row,) = rows(db, "SELECT * FROM ing_plan WHERE id = :id", id=plan_id)
    return row


def slices_of(db: Db, plan_id: int) -> list[Any]:
    """Return the slices of a plan, in order of their number."""
    query = "SELECT * FROM ing_plan_slice WHERE plan_id = :id ORDER BY slice_no"
    return rows(db, query, id=plan_id)


def windows_of(db: Db, plan_id: int) -> list[tuple[datetime, datetime]]:
    """Return the windows of a plan's slices, in order of their number."""
    found = slices_of(db, plan_id)
    return [(read_instant(row["window_from"]), read_instant(row["window_to"])) for row in found]


def tasks_of(db: Db, plan_id: int) -> list[Any]:
    """Return the tasks of a plan in the order they were queued."""
    return rows(db, "SELECT * FROM ing_task WHERE plan_id = :id ORDER BY id", id=plan_id)


def finish(db: Db, plan_id: int, count: int, status: TaskStatus = TaskStatus.SUCCEEDED) -> None:
    """Let the first `count` queued tasks of a plan have ended, whatever the lifecycle says."""
    ended = [task for task in tasks_of(db, plan_id) if task["status_code"] == "QUEUED"][:count]
    with db.write() as tx:
        for task in ended:
            done = "UPDATE ing_task SET status_code = :s, finished_at = created_at WHERE id = :id"
            tx.execute(text(done), {"s": status.value, "id": task["id"]})
            follow = "UPDATE ing_plan_slice SET status_code = :s WHERE id = :id"
            values = {"s": SliceStatus(status.value).value, "id": task["slice_id"]}
            tx.execute(text(follow), values)
        try_complete_plan(tx, PlanId(plan_id), NOON)
