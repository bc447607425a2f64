"""A worker whose task is cancelled under its hands writes nothing more and goes on with others."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from patra_ingest.executor.work import Order
from patra_ingest.ledger.cancel import cancel_plan, cancel_slice, cancel_task
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.fakes import upstream, wait_until
from patra_ingest_tests.pipeline.harness import Home, end_state, work_off

CANCEL = {"plan": cancel_plan, "slice": cancel_slice, "task": cancel_task}
OPEN = "('PENDING', 'READY', 'QUEUED', 'DISPATCHED', 'EXECUTING', 'PLANNED', 'RUNNING')"
MINE = "SELECT * FROM {} WHERE {} = 1 ORDER BY id"


class SlowSource:
    """Twenty-five works a day; the second page of the first day takes as long as it is told to."""

    def __init__(self):
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, asked):
        offset = int(asked["offset"])
        if asked["from"].startswith("2025-09-01") and offset == 10:
            self.asked.set()
            self.go_on.wait(60)
        items = [
            {"id": f"{asked['from']}-{n}", "updated": asked["from"], "title": f"On {n}"}
            for n in range(offset, min(offset + 10, 25))
        ]
        return 200, {"items": items, "total": 25}


def cancel(home, thing, number=1):
    with home.db.write() as tx:
        return CANCEL[thing](tx, number, "ada", "wrong window", home.db.now(tx))


def written(home):
    """Return every row that the cancelled task has written, and the task itself."""
    owned = {"ing_task": "id", "ing_plan_slice": "id"}
    owned |= {t: "task_id" for t in ("ing_task_run", "ing_task_run_batch", "ing_record")}
    owned |= {"ing_cursor_event": "task_id"}
    return {table: home.rows(MINE.format(table, column)) for table, column in owned.items()}


def count(home, table, status):
    query = f"SELECT COUNT(*) FROM {table} WHERE status_code IN {status}"
    return home.one(query)


@pytest.mark.parametrize(
    ("thing", "others", "cancelled"), [("task", 3, 1), ("slice", 3, 1), ("plan", 2, 2)]
)
def test_a_task_cancelled_in_the_middle_of_its_slice(
    db, db_url, tmp_path, thing, others, cancelled
):
    home, answer = Home(db, db_url, tmp_path / "home"), SlowSource()
    with upstream(answer) as source, home.live() as live, ThreadPoolExecutor(1) as pool:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(2)))
        home.plan(a_trigger(start=day(2), end=day(4)))
        working = pool.submit(live.worker().work, Order(1, True), threading.Event(), lambda _: None)
        try:
            assert answer.asked.wait(60)
            cancel(home, thing)
            before = written(home)
        finally:
            answer.go_on.set()
        drained = working.result(60)

        assert written(home) == before
        assert len(before["ing_record"]) == 10, "the page that was committed stays"
        assert drained.tasks == {"LEASE_LOST": 1, "SUCCEEDED": others}
        assert count(home, "ing_task", "('CANCELLED')") == cancelled
        assert count(home, "ing_task_run", "('RUNNING')") == 0
        assert home.one("SELECT COUNT(*) FROM ing_record") == 10 + 25 * others

        home.plan(a_trigger(start=day(0), end=day(4)))
        home.work()

        ended = end_state(home, "example")
        assert ended.cursor == day(4), "the hole was filled, and the cursor went over it"
        assert len(ended.records) == 100


@pytest.mark.parametrize("pages", [1, 9])
def test_a_plan_cancelled_under_four_lanes_leaves_nothing_open(db, db_url, tmp_path, pages):
    home, answer = Home(db, db_url, tmp_path / "home"), SlowSource()
    answer.go_on.set()
    works = an_endpoint(window={"max_span": "2h"})
    with upstream(answer) as source, home.live() as live, ThreadPoolExecutor(1) as pool:
        home.apply(a_pack(source.url, works=works))
        home.plan(a_trigger(start=day(0), end=day(3)))
        home.plan(a_trigger(start=day(3), end=day(3.25)))
        working = pool.submit(work_off, live, 4)
        wait_until(lambda: home.pages_done() >= pages)
        done = cancel(home, "plan")
        drained = working.result(120)

    assert done.plans == 1
    assert (done.tasks, done.slices, done.tasks + done.already_final) == (
        done.slices,
        done.tasks,
        36,
    )
    assert drained.tasks["SUCCEEDED"] == done.already_final + 3
    assert drained.tasks["LEASE_LOST"] + drained.tasks["SUCCEEDED"] == drained.tasks.total()
    for table in ("ing_task", "ing_plan_slice", "ing_task_run", "ing_task_run_batch"):
        assert count(home, table, OPEN) == 0, table
    plans = home.rows("SELECT status_code FROM ing_plan ORDER BY id")
    assert [status for (status,) in plans] == ["CANCELLED", "COMPLETED"]
    torn = "SELECT COUNT(*) FROM ing_task t JOIN ing_plan_slice s ON s.id = t.slice_id"
    assert home.one(f"{torn} WHERE s.status_code <> t.status_code") == 0
