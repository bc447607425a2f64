"""As many tasks as the queue and the quotas bear; the rest waits in its plan, and goes on."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from patra_ingest.errors import PlanError
from patra_ingest.ledger.cancel import cancel_plan
from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.ledger.holds import place_hold, resume
from patra_ingest.ledger.plans import get_plan
from patra_ingest.model.codes import Operation, SliceStatus, TaskStatus, TriggerType
from patra_ingest.model.lineage import PlanId
from patra_ingest.planner.cut_plan import cut_plan
from patra_ingest.planner.plan import Planner
from patra_ingest_tests.builders import NOON, a_pack, a_trigger, an_endpoint, day, days
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.ledger.planning import (
    a_planner,
    finish,
    plan_row,
    rows,
    slices_of,
    tasks_of,
)

FEW = {"planning": {"max_queued": 3}}


def backfill(first=0, past=10, **more):
    return a_trigger(start=day(first), end=day(past), operation=Operation.BACKFILL, **more)


def notes(db, plan_id):
    remarks = read_json(plan_row(db, plan_id)["record_remarks"])
    return [(note.get("type"), note["note"]) for note in remarks if note["by"] == "planner"]


def test_a_full_queue_leaves_the_plan_partial_and_the_next_trigger_goes_on(db):
    planner = a_planner(db)
    first = planner.plan(a_trigger(start=day(0), end=day(10), values=FEW))

    (part,) = first.parts
    assert (first.slices, first.queued, part.progress.waiting) == (10, 3, 7)
    assert part.progress.reason == "BACKPRESSURE: 3 tasks are queued, at most 3 may be"
    assert plan_row(db, first.plan_id)["status_code"] == "PARTIAL"
    assert notes(db, first.plan_id)[-1] == (
        "BACKPRESSURE",
        "7 slices wait: 3 tasks are queued, at most 3 may be",
    )

    finish(db, first.plan_id, 2)
    again = planner.plan(a_trigger(start=day(0), end=day(10), values=FEW))

    assert (again.plan_id, again.slices, again.queued) == (first.plan_id, 0, 2)
    derived = [task["slice_id"] for task in tasks_of(db, first.plan_id)]
    assert derived == [one["id"] for one in slices_of(db, first.plan_id)][:5]


def test_a_plan_that_waits_is_finished_before_a_longer_one_is_opened(db):
    planner = a_planner(db)
    first = planner.plan(a_trigger(start=day(0), end=day(5), values=FEW))

    later = planner.plan(a_trigger(values=FEW))

    assert (later.plan_id, later.reason) == (first.plan_id, "plan 1 still waits")
    assert len(rows(db, "SELECT id FROM ing_plan")) == 1

    while plan_row(db, 1)["status_code"] == "PARTIAL":
        finish(db, 1, 3)
        planner.go_on(1)
    assert planner.plan(a_trigger(values=FEW)).plan_id == 2


def test_the_threshold_holds_for_each_operation_alone(db):
    planner = a_planner(db)
    planner.plan(a_trigger(start=day(5), end=day(10), values=FEW))

    assert planner.plan(backfill(past=5, values=FEW)).queued == 3


def test_a_plan_is_ready_when_all_is_queued_and_completed_when_all_has_ended(db):
    planner = a_planner(db)
    planned = planner.plan(a_trigger(start=day(0), end=day(5), values=FEW))
    statuses = [plan_row(db, planned.plan_id)["status_code"]]
    while statuses[-1] != "COMPLETED":
        finish(db, planned.plan_id, 3, TaskStatus.SUCCEEDED)
        planner.go_on(planned.plan_id)
        statuses.append(plan_row(db, planned.plan_id)["status_code"])
        assert len(statuses) < 6

    assert statuses == ["PARTIAL", "READY", "COMPLETED"]
    assert len(tasks_of(db, planned.plan_id)) == 5


def test_a_backfill_is_queued_newest_first(db):
    planned = a_planner(db).plan(backfill(values=FEW))

    starts = [read_instant(one["window_from"]) for one in slices_of(db, planned.plan_id)]
    assert starts == [day(n) for n in range(9, -1, -1)]
    assert {task["priority"] for task in tasks_of(db, planned.plan_id)} == {7}


def test_nothing_is_planned_or_queued_while_an_endpoint_is_held(db):
    planner = a_planner(db)
    waiting = planner.plan(a_trigger(start=day(0), end=day(5), values=FEW))
    with db.write() as tx:
        place_hold(tx, "example", "works", "OPERATOR", "they asked us to", "ann", NOON)
    finish(db, waiting.plan_id, 3)

    scheduled = a_trigger(start=day(0), end=day(9), values=FEW, trigger_type=TriggerType.SCHEDULE)
    held = planner.plan(scheduled)
    with pytest.raises(PlanError, match=r"held by ann: they asked us to.* `patra resume"):
        planner.plan(a_trigger(start=day(0), end=day(9), values=FEW))
    progress = planner.go_on(waiting.plan_id)

    assert (held.plan_id, held.reason) == (None, "held by ann: they asked us to")
    assert (progress.queued, progress.reason) == (0, "HELD: held by ann: they asked us to")
    assert len(rows(db, "SELECT id FROM ing_schedule_instance")) == 3, "all are remembered"

    with db.write() as tx:
        resume(tx, "example", "works", "ann", NOON)
    assert planner.go_on(waiting.plan_id).queued == 2


QUOTA = {"rate": {"quotas": [{"limit": 100, "per": "1d"}]}}


def dues(db, plan_id):
    found = [task["scheduled_at"] for task in tasks_of(db, plan_id)]
    return [None if due is None else read_instant(due) for due in found]


def test_a_backfill_that_does_not_fit_today_is_scheduled_into_the_next_quota_windows(db):
    # 100 a day, a tenth kept back, BACKFILL fills at most 60 % of the rest: 54. A slice nobody can
    # estimate counts for ten requests, so five of them fit into a day.
    planned = a_planner(db).plan(backfill(past=12, values=QUOTA))

    midnight = datetime(2025, 9, 21, tzinfo=UTC)
    tomorrow, after = midnight, midnight + timedelta(days=1)
    assert dues(db, planned.plan_id) == [None] * 5 + [tomorrow] * 5 + [after] * 2
    reserved = rows(db, "SELECT * FROM ing_quota_window WHERE reserved_amount > 0 ORDER BY id")
    assert sorted(float(row["reserved_amount"]) for row in reserved) == [20, 50, 50]


def test_harvest_still_finds_room_where_backfill_had_to_wait(db):
    planner = a_planner(db)
    past = planner.plan(backfill(past=12, values=QUOTA))
    new = planner.plan(a_trigger(start=day(12), end=day(16), values=QUOTA))

    assert dues(db, new.plan_id) == [None] * 4, "50 + 40 of the 90 that may be planned"
    more = planner.plan(a_trigger(start=day(16), end=day(18), values=QUOTA))
    assert dues(db, more.plan_id) == [dues(db, past.plan_id)[5]] * 2, "not even HARVEST oversells"


def test_what_a_slice_spoke_for_is_free_when_it_is_cancelled(db):
    planner = a_planner(db)
    past = planner.plan(backfill(past=5, values=QUOTA))
    with db.write() as tx:
        cancel_plan(tx, past.plan_id, "ann", "not now", NOON)

    held = rows(db, "SELECT SUM(reserved_amount) AS n FROM ing_quota_window")
    assert float(held[0]["n"]) == 0
    again = planner.plan(backfill(past=5, values=QUOTA))
    assert dues(db, again.plan_id) == [None] * 5


NIGHTS = {"zone": "America/New_York", "hours": "21:00-05:00", "weekends": True}


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param("2025-09-17T16:00", "2025-09-18T01:00", id="Wednesday noon: tonight"),
        pytest.param("2025-09-18T05:00", None, id="night"),
        pytest.param("2025-09-20T12:00", None, id="Saturday"),
    ],
)
def test_a_large_backfill_keeps_the_courtesy_hours_and_a_small_one_need_not(db, now, due):
    at = datetime.fromisoformat(now).replace(tzinfo=UTC)
    endpoint = an_endpoint(planning={"courtesy": {**NIGHTS, "from_requests": 100}})
    planner = a_planner(db, a_pack(works=endpoint), at)
    large = planner.plan(backfill(-30, -10))
    small = planner.plan(backfill(-50, -45))
    harvest = planner.plan(a_trigger(start=day(0), end=day(2)))

    wanted = datetime.fromisoformat(due).replace(tzinfo=UTC) if due else None
    assert set(dues(db, large.plan_id)) == {wanted}
    assert set(dues(db, small.plan_id)) == set(dues(db, harvest.plan_id)) == {None}


def test_a_planner_that_died_between_slices_and_tasks_is_replaced_by_the_next_trigger(db):
    planner = a_planner(db)
    (opened,) = planner.open_plans(planner.compile(a_trigger(start=day(0), end=day(6))))
    with db.read() as tx:
        plan = get_plan(tx, opened.plan_id)
    cut_plan(db, FakeClock(NOON), plan)
    assert tasks_of(db, plan.id) == []

    other = Planner(db, FakeClock(NOON + timedelta(minutes=15)), lacking=lambda _spec: ())
    planned = other.plan(a_trigger())

    assert len(tasks_of(db, plan.id)) == 6
    assert plan_row(db, plan.id)["status_code"] == "READY"
    assert planned.plan_id != plan.id
    covered = rows(db, "SELECT window_from, COUNT(*) AS n FROM ing_plan_slice GROUP BY window_from")
    assert {row["n"] for row in covered} == {1}


def test_an_open_plan_stands_for_its_window_before_it_has_slices(db):
    planner = a_planner(db)
    (opened,) = planner.open_plans(planner.compile(a_trigger(start=day(0), end=day(6))))

    with db.read() as tx:
        namespace = get_plan(tx, opened.plan_id).namespace
        (claim,) = list_windows(tx, namespace, day(0))
        before = list_windows(tx, namespace, day(6))

    assert (claim.slice_id, claim.window, claim.status) == (None, days(0, 6), SliceStatus.PENDING)
    assert before == []


def test_a_plan_that_was_opened_and_never_cut_claims_its_window(db):
    planner = a_planner(db)
    planner.open_plans(planner.compile(a_trigger(start=day(0), end=day(6))))

    with db.write() as tx:
        tx.execute(text("UPDATE ing_plan SET plan_key = 'lost'"))
    planned = planner.plan(a_trigger(start=day(2), end=day(8)))

    assert len(slices_of(db, 1)) == 6, "the first plan is completed before the second is opened"
    starts = [read_instant(one["window_from"]) for one in slices_of(db, planned.plan_id)]
    assert starts == [day(6), day(7)]


def test_a_plan_that_was_cancelled_before_it_was_cut_does_not_block_its_window(db):
    planner = a_planner(db)
    planner.open_plans(planner.compile(a_trigger(start=day(0), end=day(3))))
    with db.write() as tx:
        cancel_plan(tx, PlanId(1), "ann", "a mistake", NOON)

    again = planner.plan(a_trigger(start=day(0), end=day(3)))

    assert (again.plan_id, again.queued) == (2, 3)


def test_a_plan_that_an_earlier_version_left_uncut_is_given_up_and_its_window_planned(db):
    planner = a_planner(db)
    planner.open_plans(planner.compile(a_trigger(start=day(0), end=day(3))))
    with db.write() as tx:
        tx.execute(text("UPDATE ing_plan SET slice_params = '{}'"))

    planned = planner.plan(a_trigger(start=day(0), end=day(3)))

    assert (plan_row(db, 1)["status_code"], planned.plan_id, planned.queued) == ("FAILED", 2, 3)
