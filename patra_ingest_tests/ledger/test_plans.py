"""Plans, slices and their tasks as rows: the same trigger finds the same ones again."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from patra_ingest.errors import CompileError, NotReady, PlanError, UnknownName
from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.db import open_db, read_instant, read_json
from patra_ingest.ledger.plans import get_plan, mark_plan, try_complete_plan
from patra_ingest.model.codes import Operation, PlanStatus, SliceStatus
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Trigger
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.builders import (
    NOON,
    START,
    a_pack,
    a_trigger,
    an_endpoint,
    day,
    days,
    set_slice,
)
from patra_ingest_tests.fakes import FakeClock

CLOCK = FakeClock(NOON)
SECONDS = {"window": {"max_span": "1m"}}


@pytest.fixture
def planner(db):
    with db.write() as tx:
        apply_pack(tx, a_pack(), START)
    return Planner(db, CLOCK)


def rows(db, table):
    with db.read() as tx:
        return tx.execute(text(f"SELECT * FROM {table} ORDER BY id")).mappings().all()


def test_a_trigger_becomes_one_plan_its_slices_and_a_task_for_each(db, planner):
    planned = planner.plan(a_trigger(start=day(0), end=day(3)))

    (plan,) = rows(db, "ing_plan")
    slices, tasks = rows(db, "ing_plan_slice"), rows(db, "ing_task")
    assert (plan["id"], plan["status_code"]) == (planned.plan_id, "READY")
    assert planned.slices == len(slices) == len(tasks) == 3
    assert [read_instant(row["window_from"]) for row in slices] == [day(0), day(1), day(2)]
    assert [row["slice_id"] for row in tasks] == [row["id"] for row in slices]
    assert {row["status_code"] for row in tasks} == {"QUEUED"}
    assert {row["status_code"] for row in slices} == {"READY"}
    assert {row["schedule_instance_id"] for row in tasks} == {planned.root}
    assert {row["expr_hash"] for row in tasks} == {row["expr_hash"] for row in slices}


def test_a_stored_plan_gives_its_spec_back_whole(db, planner):
    planned = planner.plan(a_trigger(start=day(0), end=day(1), values={"rate": {"burst": 7}}))

    with db.read() as tx:
        plan = get_plan(tx, planned.plan_id)
        declaration = read_declaration(tx, "example", "works", Operation.HARVEST, NOON)
    compiled = compile_spec(declaration, Overrides({"rate": {"burst": 7}}))
    assert plan.spec == compiled.spec
    assert plan.fingerprint == compiled.fingerprint
    assert plan.namespace.key == compiled.proto_hash


def test_what_the_source_cannot_give_is_noted_with_the_plan(db, planner):
    planner.plan(a_trigger(start=day(0), end=day(1)))

    (plan,) = rows(db, "ing_plan")
    notes = [note["note"] for note in read_json(plan["record_remarks"]) if note.get("type")]
    assert notes == list(get_plan_spec(db).warnings)
    assert notes[0].startswith("UNSTABLE_WALK: ")


def get_plan_spec(db):
    with db.read() as tx:
        return get_plan(tx, 1).spec


def test_a_spec_that_this_version_cannot_run_is_refused_and_the_reason_stays(db, planner):
    with db.write() as tx:
        apply_pack(tx, a_pack(works=an_endpoint(paging={"fetch_ahead": 2})), day(1))

    with pytest.raises(NotReady, match=r"example/works compiles, but this .* paging.fetch_ahead"):
        planner.plan(a_trigger(start=day(0), end=day(1)))

    (root,) = rows(db, "ing_schedule_instance")
    assert read_json(root["problems"]) == ["paging.fetch_ahead"]
    assert rows(db, "ing_plan") == []


def test_the_root_row_remembers_who_asked_for_what(db, planner):
    planned = planner.plan(a_trigger(start=day(0), end=day(1), scheduler_job="nightly"))

    (root,) = rows(db, "ing_schedule_instance")
    asked = read_json(root["trigger_params"])
    assert (root["id"], root["scheduler_job_id"]) == (planned.root, "nightly")
    assert (root["provenance_code"], root["endpoint_name"]) == ("example", "works")
    assert read_instant(asked["from"]) == day(0)
    assert root["problems"] is None


def test_the_same_trigger_again_finds_the_same_plan(db, planner):
    first = planner.plan(a_trigger(start=day(0), end=day(3)))
    again = planner.plan(a_trigger(start=day(0), end=day(3)))

    assert (again.plan_id, again.slices, again.queued) == (first.plan_id, 0, 0)
    assert len(rows(db, "ing_plan")) == 1
    assert len(rows(db, "ing_schedule_instance")) == 2, "the trigger itself is remembered"


def test_a_harvest_with_another_question_is_another_namespace(db, planner):
    with db.write() as tx:
        query = {
            "from": "${window.from}/${window.last}",
            "offset": "${page.offset}",
            "q": "${params.topic}",
        }
        apply_pack(tx, a_pack(works=an_endpoint(request={"query": query})), day(1))
    ants = planner.plan(a_trigger(start=day(0), end=day(2), params={"topic": "ants"}))
    bees = planner.plan(a_trigger(start=day(0), end=day(2), params={"topic": "bees"}))
    more = planner.plan(a_trigger(start=day(0), end=day(2), params={"topic": "ants"}))

    assert (ants.slices, bees.slices, more.slices) == (2, 2, 0)
    assert len({row["namespace_key"] for row in rows(db, "ing_plan")}) == 2


def test_another_speed_or_address_is_the_same_namespace(db, planner):
    planner.plan(a_trigger(start=day(0), end=day(2)))
    other = {"rate": {"burst": 3}, "request": {"base_url": "http://127.0.0.1:10"}}

    assert planner.plan(a_trigger(start=day(0), end=day(2), values=other)).slices == 0


@pytest.mark.parametrize(
    ("trigger", "error"),
    [
        (a_trigger(start=day(0), values={"paging": {"page_size": 0}}), CompileError),
        (a_trigger(start=day(400)), PlanError),
        (a_trigger(operation=Operation.METRICS), PlanError),
        (a_trigger(partition="maths", start=day(0)), PlanError),
        (a_trigger("nothing", start=day(0)), UnknownName),
        (a_trigger(start=day(-73_000), end=day(0), values=SECONDS), PlanError),
    ],
    ids=["does not compile", "future", "METRICS", "partition", "no endpoint", "200 years"],
)
def test_why_a_trigger_was_refused_stays_on_its_root_row(db, planner, trigger, error):
    with pytest.raises(error) as caught:
        planner.plan(trigger)

    (root,) = rows(db, "ing_schedule_instance")
    (problem,) = read_json(root["problems"])
    assert problem in str(caught.value)
    assert str(caught.value).count(". ") >= 1, "what is wrong, and what to do"
    for table in ("ing_plan", "ing_plan_slice", "ing_task"):
        assert rows(db, table) == []


def test_a_source_nobody_knows_leaves_its_trigger_and_nothing_else(db, planner):
    with pytest.raises(UnknownName):
        planner.plan(Trigger("nobody", "works"))

    (root,) = rows(db, "ing_schedule_instance")
    assert "nobody" in read_json(root["problems"])[0]
    for table in ("ing_plan", "ing_plan_slice", "ing_task"):
        assert rows(db, table) == []


def test_planners_that_cut_at_once_plan_no_window_twice(db, db_url, planner):
    planners = 4
    start = threading.Barrier(planners)
    hours = {"window": {"max_span": "1h"}, "planning": {"max_queued": 1000}}

    def plan(number):
        own = open_db(db_url)
        start.wait()
        try:
            trigger = a_trigger(start=day(number), end=day(number + 8), values=hours)
            Planner(own, CLOCK).plan(trigger)
        finally:
            own.close()

    with ThreadPoolExecutor(planners) as pool:
        list(pool.map(plan, range(planners)))

    windows = [(row["window_from"], row["window_to"]) for row in rows(db, "ing_plan_slice")]
    assert len(windows) == len(set(windows)) == 11 * 24
    assert len(rows(db, "ing_task")) == 11 * 24


def test_many_slices_are_written_in_groups(db, planner):
    planned = planner.plan(
        a_trigger(
            start=day(0),
            end=day(4),
            values={"window": {"max_span": "10m"}, "planning": {"max_queued": 1000}},
        )
    )

    assert planned.slices == len(rows(db, "ing_task")) == 4 * 144
    numbers = [row["slice_no"] for row in rows(db, "ing_plan_slice")]
    assert numbers == list(range(576))


def test_a_plan_is_completed_when_all_its_tasks_are_final(db, planner):
    planned = planner.plan(a_trigger(start=day(0), end=day(2)))

    def end(status, count):
        with db.write() as tx:
            done = text(
                "UPDATE ing_plan_slice SET status_code = :status"
                " WHERE status_code = 'READY' AND id IN"
                " (SELECT id FROM (SELECT MIN(id) AS id FROM ing_plan_slice"
                " WHERE status_code = 'READY') first)"
            )
            assert tx.execute(done, {"status": status}).rowcount == count
            return try_complete_plan(tx, planned.plan_id, NOON)

    assert end("SUCCEEDED", 1) is False
    assert end("FAILED", 1) is True
    assert end("FAILED", 0) is False
    assert rows(db, "ing_plan")[0]["status_code"] == "COMPLETED"


def test_a_plan_moves_along_its_lifecycle_only(db, planner):
    planned = planner.plan(a_trigger(start=day(0), end=day(1)))

    with db.write() as tx, pytest.raises(ValueError, match="DRAFT cannot become COMPLETED"):
        mark_plan(tx, planned.plan_id, PlanStatus.DRAFT, PlanStatus.COMPLETED, NOON)
    with db.read() as tx, pytest.raises(UnknownName, match="There is no plan 999"):
        get_plan(tx, 999)


def test_the_windows_of_a_namespace_are_those_after_its_cursor_in_order(db, planner):
    first = planner.plan(a_trigger(start=day(4), end=day(6)))
    planner.plan(a_trigger(start=day(1), end=day(5)))
    with db.write() as tx:
        namespace = get_plan(tx, first.plan_id).namespace
        slice_id = rows(db, "ing_plan_slice")[0]["id"]
        set_slice(tx, slice_id, SliceStatus.SUCCEEDED)
        found = list_windows(tx, namespace, day(3))

    assert [item.window for item in found] == [days(3, 4), days(4, 5), days(5, 6)]
    assert [item.status.value for item in found] == ["READY", "SUCCEEDED", "READY"]
