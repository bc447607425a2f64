"""A harvest lands exactly what the source has, once."""

from itertools import pairwise

import pytest

from patra_ingest.ledger.db import find_instant, read_instant, read_json
from patra_ingest_tests.pipeline.harness import (
    HOUR,
    end_state,
    records_of,
    sandbox_trigger,
    truth_of,
)

ENDPOINTS = ["works", "works-by-offset"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_harvest_lands_the_sources_truth_and_the_next_one_only_what_is_new(
    home, box, in_days, endpoint
):
    def harvest(days):
        planned = home.plan(sandbox_trigger(box, in_days(0), in_days(days), endpoint))
        home.work(lanes=2)
        return planned

    first = harvest(2)
    after_first = box.stats()["requests"]

    assert first.slices == 2
    assert records_of(home, endpoint) == truth_of(box, in_days(0), in_days(2))
    assert box.stats()["pages"]["repeated"] == {}
    assert end_state(home).cursor == end_state(home).folded == in_days(2)

    again = harvest(2)

    assert (again.plan_id, again.slices) == (None, 0)
    assert "what lies before it is covered already" in again.reason
    assert box.stats()["requests"] == after_first

    third = harvest(3)

    assert third.slices == 1
    assert records_of(home, endpoint) == truth_of(box, in_days(0), in_days(3))
    assert box.stats()["pages"]["repeated"] == {}
    assert end_state(home).cursor == in_days(3)
    assert end_state(home).fates["inserted"] == len(records_of(home, endpoint))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_window_that_begins_and_ends_anywhere_loses_nothing_at_its_edges(
    home, box, in_days, endpoint
):
    edges = [in_days(0.1), in_days(0.9), in_days(1.2), in_days(1.2) + HOUR / 3600 * 7]

    for start, end in pairwise(edges):
        home.plan(sandbox_trigger(box, start, end, endpoint))
    home.work(lanes=2)

    assert records_of(home, endpoint) == truth_of(box, edges[0], edges[-1])
    assert end_state(home).cursor == edges[-1]


def test_the_cursor_follows_every_slice_and_says_which_batch_let_it(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(0), in_days(3)))
    seen = []

    def look(_stats):
        seen.append(end_of(home))

    def end_of(home):
        return find_instant(home.one("SELECT MAX(normalized_instant) FROM ing_cursor"))

    home.work(on_batch=look)

    assert sorted({at for at in seen if at}) == [in_days(1), in_days(2)]
    steps = home.rows(
        "SELECT e.new_instant, s.window_to, b.run_id, e.run_id FROM ing_cursor_event e"
        " JOIN ing_plan_slice s ON s.id = e.slice_id"
        " JOIN ing_task_run_batch b ON b.id = e.batch_id ORDER BY e.id"
    )
    assert [read_instant(step[0]) for step in steps] == [in_days(1), in_days(2), in_days(3)]
    assert all(step[0] == step[1] and step[2] == step[3] for step in steps)


def test_every_row_leads_back_to_the_trigger(home, box, in_days):
    planned = home.plan(sandbox_trigger(box, in_days(0), in_days(1)))
    home.work()

    lines = home.rows(
        "SELECT DISTINCT r.schedule_instance_id, r.plan_id, s.plan_id, t.slice_id, x.task_id,"
        " b.run_id FROM ing_record r JOIN ing_task_run_batch b ON b.id = r.batch_id"
        " JOIN ing_task_run x ON x.id = b.run_id AND x.id = r.run_id"
        " JOIN ing_task t ON t.id = x.task_id AND t.id = r.task_id"
        " JOIN ing_plan_slice s ON s.id = t.slice_id AND s.id = r.slice_id"
    )

    assert len(lines) == 1
    assert lines[0][:3] == (planned.root, planned.plan_id, planned.plan_id)
    assert home.one("SELECT COUNT(*) FROM ing_record WHERE batch_id IS NULL") == 0


def test_a_batch_keeps_what_was_asked_and_what_was_answered(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(0), in_days(0.2)))
    home.work()

    first = home.rows("SELECT * FROM ing_task_run_batch ORDER BY id")[0]._mapping
    request, response = read_json(first["request"]), read_json(first["response"])

    assert request["url"].startswith(f"{box.url}/works?")
    assert "filter=from-index-date%3A2025-01-01T00%3A00%3A00%2Cuntil-" in request["url"]
    assert "x-ingest-correlation-id" in request["headers"]
    assert (response["status"], response["body"]) == (200, first["storage_key"])
    assert (home.folder / "raw" / first["storage_key"]).stat().st_size > 0


def test_a_certificate_says_that_all_that_was_promised_has_landed(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(0), in_days(3)))
    home.work(lanes=3)

    truth = [len(truth_of(box, in_days(day), in_days(day + 1))) for day in range(3)]
    proofs = end_state(home).certificates

    assert sorted((proof[0], proof[1]) for proof in proofs) == sorted((n, n) for n in truth)
    assert {verdict for *_, verdict in proofs} == {"COMPLETE"}


def test_the_largest_time_seen_is_evidence_and_not_the_cursor(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(5), in_days(9)))
    home.work()

    assert end_state(home).cursor == in_days(9)
    newest = max(records_of(home, "works").values())
    assert newest < in_days(6)
    assert home.one("SELECT observed_max_value FROM ing_cursor").startswith(newest.isoformat()[:19])
