"""An endpoint whose health is judged: rows as workers leave them."""

from datetime import datetime

from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.ledger.db import Db, insert, instant_text, json_text
from patra_ingest.model.codes import TaskStatus
from patra_ingest.views.health import Finding, Thresholds, judge_health
from patra_ingest_tests.builders import NOON, a_trigger, day
from patra_ingest_tests.ledger.planning import a_planner, finish, tasks_of

USUAL = Thresholds()


def judged(db: Db, check: str, now: datetime = NOON, lines: Thresholds = USUAL) -> Finding:
    """Return what one check says of the endpoint of `a_pack`."""
    with db.read() as tx:
        (finding,) = judge_health(tx, now, lines, "example", "works", [check])
    assert (finding.check, finding.subject) == (check, "example/works")
    return finding


def harvested(db: Db, failed: int = 0, pack=None, start=None, **asked) -> int:
    """Plan everything up to now, let it succeed but for the last `failed` slices; proved."""
    planner = a_planner(db, pack, asked.pop("at", NOON))
    plan = planner.plan(a_trigger(start=start or day(0), **asked)).plan_id
    tasks = tasks_of(db, plan)
    finish(db, plan, len(tasks) - failed)
    finish(db, plan, failed, TaskStatus.FAILED)
    for task in tasks[: len(tasks) - failed]:
        add_run(db, task["id"])
    CursorManager(db, SystemClock()).catch_up()
    return plan


def add_run(db: Db, task: int, verdict: str | None = "COMPLETE") -> None:
    """Let a run of a task have succeeded."""
    with db.write() as tx:
        insert(
            tx,
            "ing_task_run",
            {
                "task_id": task,
                "provenance_code": "example",
                "endpoint_name": "works",
                "operation_code": "HARVEST",
                "status_code": "SUCCEEDED",
                "certificate": verdict and json_text({"verdict": verdict}),
                "finished_at": instant_text(NOON),
            },
        )


def add_batches(db: Db, count: int, at: datetime, error: str | None = None, **stats: int) -> None:
    """Write batches that ended at `at`; the first of them carries these numbers."""
    with db.write() as tx:
        before = tx.execute(text("SELECT COUNT(*) FROM ing_task_run_batch")).scalar_one()
        for number in range(before, before + count):
            told = {"itemsCount": 10, **(stats if number == before else {})}
            insert(tx, "ing_task_run_batch", _batch(number, at, error, told))


def _batch(number: int, at: datetime, error: str | None, stats: dict[str, int]):
    usual = {"retryCount": 0, "429Count": 0, "quarantined": 0}
    named = {key.replace("throttled", "429Count"): value for key, value in stats.items()}
    return {
        "run_id": 1,
        "batch_no": number,
        "provenance_code": "example",
        "endpoint_name": "works",
        "operation_code": "HARVEST",
        "before_token_hash": f"{number:064d}",
        "idempotent_key": f"{number:064d}",
        "status_code": "FAILED" if error else "SUCCEEDED",
        "error": error,
        "stats": None if error else json_text({**usual, **named}),
        "committed_at": None if error else instant_text(at),
        "updated_at": instant_text(at),
    }
