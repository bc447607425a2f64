"""`ingest_job` from trigger to asset, on a real ledger and a real upstream."""

from datetime import timedelta

import dagster as dg
import pytest
from sqlalchemy import text

from patra_ingest.defs.processes import own_process
from patra_ingest.ledger.db import read_instant
from patra_ingest.views.records import list_ids
from patra_ingest_tests.builders import day

WORKS = dg.AssetKey(["records", "sandbox", "works"])


def metadata_of(result):
    """Return the metadata of the run's only plan on the records, as plain values."""
    told = [one for one in result.get_asset_materialization_events() if one.asset_key == WORKS]
    (event,) = [one for one in told if one.partition is None]
    return {key: value.value for key, value in event.materialization.metadata.items()}


@pytest.fixture
def harvest(execute, sandbox):
    """Harvest the sandbox's works."""

    def run(**config):
        return execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **config)

    return run


def test_it_lands_exactly_what_the_upstream_has(prepared, harvest, ledger, sandbox):
    result = harvest(window_from="2025-09-01", window_to="2025-09-04")

    assert result.success
    with ledger.read() as tx:
        have = list_ids(tx, "sandbox", "works")
    assert have == set(sandbox.truth(day(0), day(3)).ids)
    assert len(have) > 400


def test_the_asset_says_what_the_ledger_says(prepared, harvest, rows):
    told = metadata_of(harvest(window_from="2025-09-01", window_to="2025-09-04"))

    ((records,),) = rows("SELECT COUNT(*) FROM ing_record")
    ((batches,),) = rows("SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'")
    ((slices,),) = rows("SELECT COUNT(*) FROM ing_plan_slice WHERE status_code = 'SUCCEEDED'")
    ((cursor,),) = rows("SELECT normalized_instant FROM ing_cursor")
    ((plan, fingerprint),) = rows("SELECT id, spec_fingerprint FROM ing_plan")
    assert told["dagster/row_count"] == told["records_seen"] == told["records_inserted"] == records
    assert told["requests"] == batches
    assert (told["slices"], told["slices_failed"]) == (slices, 0) == (3, 0)
    assert told["cursor_after"] == read_instant(cursor).timestamp() == day(3).timestamp()
    assert told["certificate"] == f"3 COMPLETE of 3 slices; {records} of {records} landed"
    assert told["plan"] == f"{plan} (HARVEST, COMPLETED)"
    assert told["spec_fingerprint"] == fingerprint


def test_run_again_it_asks_only_for_what_is_new(home, harvest, rows, sandbox):
    harvest(window_from="2025-09-01", window_to="2025-09-03")
    before = sandbox.stats()["requests"]

    next_day = harvest(window_to="2025-09-04")
    again = harvest(window_to="2025-09-04")

    told = metadata_of(next_day)
    assert told["window"] == "[2025-09-03T00:00:00Z, 2025-09-04T00:00:00Z)"
    assert told["records_inserted"] == sandbox.truth(day(2), day(3)).count
    assert again.success
    assert again.get_asset_materialization_events() == []
    assert sandbox.stats()["requests"] - before == told["requests"]
    assert rows("SELECT COUNT(*) FROM ing_plan") == [(2,)]


def test_a_run_is_found_by_what_it_works_on(home, harvest, instance):
    result = harvest(window_from="2025-09-01", window_to="2025-09-02")

    tags = instance.get_run_by_id(result.run_id).tags
    assert {key: value for key, value in tags.items() if key.startswith("patra/")} == {
        "patra/source": "sandbox",
        "patra/endpoint": "works",
        "patra/operation": "HARVEST",
        "patra/plan": "1",
        "patra/window": "[2025-09-01T00:00:00Z, 2025-09-02T00:00:00Z)",
        "patra/trigger": "person",
        "patra/process": own_process(),
    }


def test_slices_are_shared_out_to_few_lanes(home, harvest, rows):
    begin = day(0) - timedelta(days=6)  # ten slices, six of them empty

    result = harvest(window_from=begin.date().isoformat(), window_to="2025-09-05")

    done = result.output_for_node("execute_slice")
    assert list(done) == ["lane_01", "lane_02", "lane_03"]
    assert [lane["tasks_succeeded"] for lane in done.values()] == [4, 3, 3]
    assert rows("SELECT COUNT(*) FROM ing_task WHERE status_code = 'SUCCEEDED'") == [(10,)]


def test_what_an_earlier_run_left_in_the_queue_is_executed_first(
    home, execute, harvest, rows, sandbox
):
    asked = {"provenance": "sandbox", "base_url": sandbox.url, "window_from": "2025-09-01"}
    execute("plan_job", **asked, window_to="2025-09-03")

    result = harvest(window_from="2025-09-01", window_to="2025-09-04")

    done = result.output_for_node("execute_slice")
    assert [(lane, told["tasks_succeeded"]) for lane, told in done.items()] == [
        ("earlier", 2),
        ("lane_01", 1),
    ]
    assert rows("SELECT id, status_code FROM ing_plan") == [(1, "COMPLETED"), (2, "COMPLETED")]


def test_a_cursor_that_was_left_behind_is_advanced_even_with_nothing_to_plan(
    home, harvest, ledger, rows
):
    asked = {"window_from": "2025-09-01", "window_to": "2025-09-02"}
    harvest(**asked)
    with ledger.write() as tx:  # as if the worker had died between the event and the cursor
        tx.execute(text("DELETE FROM ing_cursor"))

    result = harvest(**asked)

    assert [opened.plan_id for opened in result.output_for_node("open_plan")] == [None]
    ((cursor,),) = rows("SELECT normalized_instant FROM ing_cursor")
    assert read_instant(cursor) == day(1)
