"""Every way to cut a plan, from the pack to the rows."""

import pytest
from sqlalchemy import text

from patra_ingest.ledger.db import instant_text, json_text, read_json
from patra_ingest.model.codes import Operation
from patra_ingest.views.overview import list_states
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.ledger.planning import (
    a_planner,
    finish,
    plan_row,
    slices_of,
    tasks_of,
    windows_of,
)


def a_whole(strategy, **planning):
    """Return a source that filters by no date."""
    works = an_endpoint(
        operations=["BACKFILL"],
        window={"meaning": "NONE"},
        paging={"consistency": "STABLE_SORT"},
        planning={"strategy": strategy, **planning},
    )
    works["request"]["query"] = {"offset": "${page.offset}"}
    return a_pack(works=works)


def backfill(past=10):
    return a_trigger(start=day(0), end=day(past), operation=Operation.BACKFILL)


def bounds_of(db, plan_id):
    return [read_json(one["slice_spec"])["bounds"] for one in slices_of(db, plan_id)]


def test_pages_are_cut_by_the_declared_size_and_the_last_range_is_open(db):
    pack = a_whole("PAGE_RANGE", total_records=950, pages_per_slice=40)
    planned = a_planner(db, pack).plan(backfill())

    assert plan_row(db, planned.plan_id)["slice_strategy_code"] == "PAGE_RANGE"
    pages = [bounds["page"] for bounds in bounds_of(db, planned.plan_id)]
    assert pages == [{"from": 1, "past": 41}, {"from": 41, "past": 81}, {"from": 81}]
    assert {one["window_from"] for one in slices_of(db, planned.plan_id)} == {None}
    assert len(tasks_of(db, planned.plan_id)) == 3


def test_a_plan_of_pages_covers_its_window_only_as_a_whole(db):
    planner = a_planner(db, a_whole("PAGE_RANGE", total_records=950, pages_per_slice=40))
    planned = planner.plan(backfill())
    finish(db, planned.plan_id, 2)
    assert planner.plan(backfill()).plan_id == planned.plan_id

    finish(db, planned.plan_id, 1)
    again = planner.plan(backfill())

    assert (again.plan_id, again.queued) == (None, 0)
    assert "is covered already" in again.reason


def test_a_source_that_cannot_be_cut_is_one_slice(db):
    planned = a_planner(db, a_whole("SINGLE")).plan(backfill())

    assert windows_of(db, planned.plan_id) == [(day(0), day(10))]


def harvested(db, planner, *landed, stats=None):
    """Let one day after another have held so many records."""
    planned = planner.plan(a_trigger(start=day(0), end=day(len(landed))))
    with db.write() as tx:
        for task, count in zip(tasks_of(db, planned.plan_id), landed, strict=True):
            values = {
                "task": task["id"],
                "proof": json_text({"landed": count}),
                "at": instant_text(day(9)),
                "stats": json_text(stats or {}),
            }
            run = (
                "INSERT INTO ing_task_run (task_id, attempt_no, provenance_code, endpoint_name,"
                " operation_code, status_code, certificate, finished_at, stats)"
                " VALUES (:task, 1, 'example', 'works', 'HARVEST', 'SUCCEEDED',"
                " :proof, :at, :stats)"
            )
            tx.execute(text(run), values)
    finish(db, planned.plan_id, len(landed))


@pytest.mark.parametrize("strategy", ["VOLUME_BUDGET", "TIME"])
def test_history_decides_how_large_slices_are(db, strategy):
    works = an_endpoint(
        planning={"strategy": strategy, "records_per_slice": 50},
        window={"max_span": "10d", "granularity": "HOUR"},
    )
    planner = a_planner(db, a_pack(works=works))
    harvested(db, planner, 200)
    later = planner.plan(a_trigger(start=day(1), end=day(3)))

    spans = [end - start for start, end in windows_of(db, later.plan_id)]
    assert len(spans) == 8, "400 records are expected in two days, 50 for each slice"
    assert max(spans) == min(spans) == (day(1) - day(0)) / 4
    told = read_json(slices_of(db, later.plan_id)[0]["slice_spec"])
    assert told["telemetry"] == {"totalEstimated": 50, "basis": "HISTORY"}
    assert told["budget"]["expectedRequests"] == 6


def test_a_declared_density_is_used_before_there_is_history(db):
    works = an_endpoint(
        planning={"records_per_slice": 50, "records_per_day": 100.0}, window={"max_span": "1d"}
    )
    planned = a_planner(db, a_pack(works=works)).plan(a_trigger(start=day(0), end=day(2)))

    assert planned.slices == 4
    basis = [read_json(one["slice_spec"])["telemetry"] for one in slices_of(db, planned.plan_id)]
    assert basis == [{"totalEstimated": 50, "basis": "DECLARED"}] * 4


def test_a_harvest_ends_where_the_source_last_said_that_it_is_complete(db):
    fresh = {"endpoint": "health", "path": "$.until"}
    health = {
        "usage": "HEALTH",
        "operations": [],
        "request": {"path": "/health"},
        "response": {"items": "$", "id": "$.id"},
    }
    pack = a_pack(works=an_endpoint(window={"freshness": fresh}), health=health)
    planner = a_planner(db, pack)
    told = {"freshUntil": "2025-09-06T12:00:00.000000Z"}
    harvested(db, planner, 5, stats=told)

    planned = planner.plan(a_trigger(start=day(1)))

    assert planned.window.end == day(5) + (day(1) - day(0)) / 2
    assert planned.parts[0].cuts[-1].endswith("the source is complete up to there")


def test_the_status_counts_what_waits_for_room(db):
    few = {"planning": {"max_queued": 3}}
    a_planner(db).plan(a_trigger(start=day(0), end=day(10), values=few))

    with db.read() as tx:
        (state,) = list_states(tx)
    assert (state.tasks, state.last_plan) == ({"QUEUED": 3, "WAITING": 7}, 1)
