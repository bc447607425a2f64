"""A slice that proved too big is cut again, once: its finished part and its children tile it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.db import open_db, read_instant, read_json
from patra_ingest.ledger.plans import get_plan
from patra_ingest.ledger.reslices import NewRequest, add_request
from patra_ingest.model.codes import ResliceReason, TaskStatus
from patra_ingest.model.lineage import Lineage, PlanId, ScheduleInstanceId, SliceId
from patra_ingest.model.window import instant_iso
from patra_ingest.planner.coverage import Cover, cover
from patra_ingest.planner.plan import Planner
from patra_ingest_tests.builders import NOON, START, a_pack, a_trigger, an_endpoint, day, days
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.ledger.planning import (
    a_planner,
    finish,
    plan_row,
    rows,
    slices_of,
    tasks_of,
)

CAPPED = {"cap": {"max": 100}, "window": {"max_span": "4d", "min_span": "12h"}}
SPLIT = {
    "max": 100,
    "then": [{"by": "NUMBER", "clause": "${from}:${to}", "lowest": 1, "highest": 1000}],
}


def a_source(**cap):
    query = {"from": "${window.from|iso}", "to": "${window.last|iso}", "offset": "${page.offset}"}
    if "then" in cap:
        query["part"] = "${split}"
    window = {"safety_lag": "1d", **CAPPED["window"]}
    return a_pack(
        works=an_endpoint(cap=cap or {"max": 100}, window=window, request={"query": query})
    )


def ask(db, plan_id, number, total, brought=False, remaining=None):
    """Leave a request for the n-th slice of a plan, as an executor that ended its task does."""
    one = slices_of(db, plan_id)[number]
    lineage = Lineage(ScheduleInstanceId(1), PlanId(plan_id), SliceId(one["id"]))
    request = NewRequest(lineage, ResliceReason.RESULT_CAP, remaining or {}, {"total": total})
    with db.write() as tx:
        ended = (
            "UPDATE ing_task SET status_code = :s, finished_at = created_at WHERE slice_id = :id"
        )
        tx.execute(text(ended), {"s": "PARTIAL" if brought else "CANCELLED", "id": one["id"]})
        still = "UPDATE ing_plan_slice SET status_code = 'EXECUTING' WHERE id = :id"
        tx.execute(text(still), {"id": one["id"]})
        add_request(tx, request, NOON)
        add_request(tx, request, NOON)
    return one["id"]


def children_of(db, slice_id):
    query = "SELECT * FROM ing_plan_slice WHERE parent_slice_id = :id ORDER BY slice_no"
    return rows(db, query, id=slice_id)


def spans(found):
    return [(read_instant(one["window_from"]), read_instant(one["window_to"])) for one in found]


def cover_of(db, plan_id, window):
    with db.read() as tx:
        facts = list_windows(tx, get_plan(tx, plan_id).namespace, START)
    return [(part.window, part.cover) for part in cover(window, facts)]


def test_a_capped_slice_is_cut_into_as_many_as_its_total_asks_for(db):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(8)))
    parent = ask(db, planned.plan_id, 0, total=290)

    (answer,) = planner.reslice()

    # 290 records at 80 a slice, which is what we aim at below a cap of 100: four slices of a day.
    assert (answer.parent, answer.children, answer.problem) == (parent, 4, None)
    assert spans(children_of(db, parent)) == [(day(n), day(n + 1)) for n in range(4)]
    (old,) = rows(db, "SELECT * FROM ing_plan_slice WHERE id = :id", id=parent)
    assert old["status_code"] == "CANCELLED"
    (note,) = read_json(old["record_remarks"])
    assert note["data"]["children"] == [one["id"] for one in children_of(db, parent)]
    tasks = {task["slice_id"]: task for task in tasks_of(db, planned.plan_id)}
    for child in children_of(db, parent):
        assert tasks[child["id"]]["status_code"] == "QUEUED"
        assert tasks[child["id"]]["priority"] == tasks[parent]["priority"]
    assert plan_row(db, planned.plan_id)["status_code"] == "READY"


def test_each_request_is_answered_exactly_once_whoever_asks(db, db_url):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(8)))
    parent = ask(db, planned.plan_id, 0, total=290)
    start = threading.Barrier(4)

    def answer(_number):
        own = open_db(db_url)
        start.wait()
        try:
            return Planner(own, FakeClock(NOON)).reslice()
        finally:
            own.close()

    with ThreadPoolExecutor(4) as pool:
        answers = [one for found in pool.map(answer, range(4)) for one in found]

    assert len(answers) == 1
    assert len(children_of(db, parent)) == 4
    assert planner.reslice() == []
    (request,) = rows(db, "SELECT * FROM ing_reslice_request")
    assert request["status_code"] == "CONSUMED"
    assert "cut into 4 slices" in read_json(request["record_remarks"])[0]["note"]


def test_what_the_parent_finished_counts_and_its_children_cover_the_rest(db):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(4)))
    rest = {"bounds": {"time": {"from": instant_iso(day(1)), "to": instant_iso(day(4))}}}
    parent = ask(db, planned.plan_id, 0, total=150, brought=True, remaining=rest)

    planner.reslice()

    assert spans(children_of(db, parent)) == [
        (day(1), day(2) + (day(1) - day(0)) / 2),
        (day(2) + (day(1) - day(0)) / 2, day(4)),
    ]
    assert cover_of(db, planned.plan_id, days(0, 4)) == [
        (days(0, 1), Cover.SUCCEEDED),
        (days(1, 4), Cover.LIVE),
    ]
    finish(db, planned.plan_id, 2)
    assert cover_of(db, planned.plan_id, days(0, 4)) == [(days(0, 4), Cover.SUCCEEDED)]
    assert plan_row(db, planned.plan_id)["status_code"] == "COMPLETED"


def test_a_slice_that_waits_to_be_cut_again_is_no_hole_and_keeps_its_plan_open(db):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(4)))
    ask(db, planned.plan_id, 0, total=150)
    finish(db, planned.plan_id, 9)

    assert cover_of(db, planned.plan_id, days(0, 4)) == [(days(0, 4), Cover.LIVE)]
    assert plan_row(db, planned.plan_id)["status_code"] == "READY"


def test_at_the_floor_the_second_dimension_is_cut_and_counts_only_as_a_whole(db):
    planner = a_planner(db, a_source(**SPLIT))
    planned = planner.plan(a_trigger(start=day(0), end=day(0) + (day(1) - day(0)) / 2))
    parent = ask(db, planned.plan_id, 0, total=150)

    planner.reslice()

    parts = [read_json(one["slice_spec"])["split"] for one in children_of(db, parent)]
    assert parts == [[{"rule": 0, "low": 1, "high": 500}], [{"rule": 0, "low": 501, "high": 1000}]]
    window = days(0, 1).split((day(1) - day(0)) / 2).__next__()
    finish(db, planned.plan_id, 1)
    assert cover_of(db, planned.plan_id, window) == [(window, Cover.LIVE)]
    finish(db, planned.plan_id, 1)
    assert cover_of(db, planned.plan_id, window) == [(window, Cover.SUCCEEDED)]


def test_one_failed_part_of_a_second_dimension_makes_the_window_a_hole(db):
    planner = a_planner(db, a_source(**SPLIT))
    planned = planner.plan(a_trigger(start=day(0), end=day(0) + (day(1) - day(0)) / 2))
    ask(db, planned.plan_id, 0, total=150)
    planner.reslice()
    finish(db, planned.plan_id, 1)
    finish(db, planned.plan_id, 1, TaskStatus.FAILED)

    ((_, state),) = cover_of(
        db, planned.plan_id, days(0, 1).split((day(1) - day(0)) / 2).__next__()
    )
    assert state is Cover.FAILED


def test_below_the_floor_with_nothing_left_to_cut_it_fails_loudly(db):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(0) + (day(1) - day(0)) / 2))
    parent = ask(db, planned.plan_id, 0, total=150)

    (answer,) = planner.reslice()

    assert "holds 150 records (RESULT_CAP, the source gives 100 at most)" in answer.problem
    assert "cannot be cut any finer; declare a second dimension" in answer.problem
    with db.read() as tx:
        (fact,) = list_windows(tx, get_plan(tx, planned.plan_id).namespace, START)
    assert fact.slice_id == parent
    (old,) = rows(db, "SELECT * FROM ing_plan_slice WHERE id = :id", id=parent)
    assert (old["status_code"], children_of(db, parent)) == ("FAILED", [])
    (task,) = tasks_of(db, planned.plan_id)
    assert task["last_error_code"] == "RESLICE"
    (request,) = rows(db, "SELECT * FROM ing_reslice_request")
    assert request["status_code"] == "REJECTED"
    assert plan_row(db, planned.plan_id)["status_code"] == "COMPLETED"


@pytest.mark.parametrize("through", ["trigger", "go_on"])
def test_requests_are_answered_by_the_next_trigger_of_the_source(db, through):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(4)))
    parent = ask(db, planned.plan_id, 0, total=150)

    planner.plan(a_trigger()) if through == "trigger" else planner.reslice("example")

    assert len(children_of(db, parent)) == 2


def test_a_slice_that_was_cut_again_is_no_reason_for_a_hole_its_failed_child_is(db):
    planner = a_planner(db, a_source())
    planned = planner.plan(a_trigger(start=day(0), end=day(4)))
    parent = ask(db, planned.plan_id, 0, total=150)
    planner.reslice()
    finish(db, planned.plan_id, 1)
    finish(db, planned.plan_id, 1, TaskStatus.FAILED)

    with db.read() as tx:
        facts = list_windows(tx, get_plan(tx, planned.plan_id).namespace, START)
    (hole,) = [part for part in cover(days(0, 4), facts) if part.cover is Cover.FAILED]
    assert hole.window == days(2, 4)
    assert hole.slices == (children_of(db, parent)[1]["id"],)
