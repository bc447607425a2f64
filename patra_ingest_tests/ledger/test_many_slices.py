"""Questions that are asked all the time do not become dear with the number of slices or tasks.

SQLite counts its own steps for us: that is the same on every machine, however busy.
"""

from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.ledger.coverage import find_ends, find_start
from patra_ingest.ledger.tasks import TaskFilter, count_startable
from patra_ingest.model.codes import Operation
from patra_ingest.model.namespace import Namespace
from patra_ingest.views.plan_summary import summarize_plan
from patra_ingest_tests.builders import NOON, a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.ledger.planning import a_planner, plan_row, slices_of

HOURLY = a_pack(works=an_endpoint(window={"max_span": "1h"}, planning={"max_queued": 10_000}))
FEW, MANY = timedelta(hours=100), timedelta(hours=800)


def planned(db, end):
    return a_planner(db, HOURLY).plan(a_trigger(start=day(-40), end=day(-40) + end)).plan_id


def steps_of(db, ask):
    """Return how many hundreds of steps SQLite's machine takes for a question."""
    count = 0

    def note():
        nonlocal count
        count += 1

    with db.read() as tx:
        raw = tx.connection.driver_connection
        raw.set_progress_handler(note, 100)
        ask(tx)
        raw.set_progress_handler(None, 0)
    return count


def namespace_of(db, plan):
    return Namespace.of(plan_row(db, plan))


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        pytest.param(
            lambda tx, plan, _: summarize_plan(tx, plan), 12, id="the summary of a plan grows"
        ),
        pytest.param(
            lambda tx, _, namespace: find_start(tx, namespace), 2, id="the first start does not"
        ),
        pytest.param(
            lambda tx, *_: count_startable(tx, NOON, TaskFilter(operation=Operation.HARVEST), 50),
            2,
            id="nor what is due, up to fifty",
        ),
    ],
)
def test_eight_times_the_slices_cost_at_most(sqlite_db, ask, most):
    taken = []
    for hours in (FEW, MANY):
        plan = planned(sqlite_db, hours)
        namespace = namespace_of(sqlite_db, plan)
        taken.append(steps_of(sqlite_db, lambda tx: ask(tx, plan, namespace)))  # noqa: B023
        with sqlite_db.write() as tx:
            for table in ("ing_task", "ing_plan_slice", "ing_plan", "ing_schedule_instance"):
                tx.execute(text(f"DELETE FROM {table}"))

    assert taken[1] <= most * max(1, taken[0]), taken


def test_counting_what_can_be_started_ends_where_it_is_told_to(db):
    planned(db, timedelta(hours=7))

    with db.read() as tx:
        assert [count_startable(tx, NOON, most=most) for most in (1, 6, 7, 8)] == [1, 6, 7, 7]
        assert count_startable(tx, NOON) == 7


def test_a_namespace_starts_where_its_first_window_does(db):
    plan = planned(db, timedelta(hours=3))
    namespace = namespace_of(db, plan)
    with db.read() as tx:
        assert find_start(tx, namespace) == find_ends(tx, namespace).start == day(-40)

    earlier = a_planner(db, HOURLY).plan(a_trigger(start=day(-41), end=day(-40))).plan_id
    with db.write() as tx:  # as if somebody were cutting it
        gone = slices_of(db, earlier)[0]["id"]
        tx.execute(text(f"DELETE FROM ing_plan_slice WHERE id = {gone}"))
    with db.read() as tx:
        assert find_start(tx, namespace) == find_ends(tx, namespace).start
        assert find_start(tx, namespace) == day(-41) + timedelta(hours=1)

    with db.write() as tx:
        tx.execute(text(f"UPDATE ing_plan SET status_code = 'SLICING' WHERE id = {earlier}"))
    with db.read() as tx:
        assert find_start(tx, namespace) == find_ends(tx, namespace).start == day(-41)


def test_nothing_planned_starts_nowhere(db):
    namespace = namespace_of(db, planned(db, timedelta(hours=1)))
    with db.write() as tx:
        tx.execute(text("DELETE FROM ing_plan_slice"))

    with db.read() as tx:
        assert find_start(tx, namespace) is None
        assert find_ends(tx, namespace) is None
