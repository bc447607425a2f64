"""What an auditor sees in Dagster after a harvest: lineage, numbers, days, the way to the proof."""

import dagster as dg
import pytest

from patra_ingest.definitions import defs
from patra_ingest_tests.builders import day

SOURCE = ("sandbox", "works")


def key(kind):
    return dg.AssetKey([kind, *SOURCE])


@pytest.fixture
def harvest(execute, sandbox):
    """Harvest the sandbox's works."""

    def run(**config):
        return execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **config)

    return run


def test_the_lineage_reads_api_plan_records_cursor():
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}

    def above(asset):
        return [dep.asset_key for dep in specs[asset].deps]

    assert above(key("cursors")) == [key("records")]
    assert above(key("records")) == [key("plans")]
    assert above(key("quarantine")) == [key("plans")]
    assert above(key("plans")) == [dg.AssetKey(["upstream", "sandbox"])]


def test_every_asset_is_named_in_small_letters_and_grouped_by_its_kind():
    for spec in defs.resolve_all_asset_specs():
        assert spec.key.to_user_string() == spec.key.to_user_string().lower()
        assert spec.group_name == spec.key.path[0]
        # The catalog shows the first line as it is written, Markdown and all.
        assert not set("*`_[") & set(spec.description.partition("\n")[0])


def test_a_node_of_the_lineage_says_its_source_and_leads_to_the_job_that_fills_it():
    # Its name is the endpoint's alone, and several sources have one that is called the same.
    for spec in defs.resolve_all_asset_specs():
        kind, source, *endpoint = spec.key.path
        if endpoint:
            assert source in spec.kinds
            assert spec.metadata["filled_by"].job_name == "ingest_job"
        assert ("table" in spec.kinds) == (kind in ("records", "quarantine"))


def told(result, kind, partition=None):
    events = [
        one.materialization
        for one in result.get_asset_materialization_events()
        if one.asset_key == key(kind) and one.partition == partition
    ]
    assert len(events) == 1, (kind, partition, events)
    return {name: value.value for name, value in events[0].metadata.items()}


def test_a_plan_is_told_once_on_each_of_its_assets_and_once_for_each_whole_day(
    prepared, harvest, instance
):
    result = harvest(window_from="2025-09-01", window_to="2025-09-04")

    assert result.success, result
    kinds = [one.asset_key.path[0] for one in result.get_asset_materialization_events()]
    assert sorted(kinds) == ["cursors", "plans", "quarantine", *["records"] * 4]
    whole = {"2025-09-01", "2025-09-02", "2025-09-03"}
    assert instance.get_materialized_partitions(key("records")) == whole


def test_the_events_carry_what_the_ledger_says_in_types_that_dagster_plots(home, harvest, rows):
    result = harvest(window_from="2025-09-01", window_to="2025-09-04")

    whole = told(result, "records")
    ((records,),) = rows("SELECT COUNT(*) FROM ing_record")
    ((plan, fingerprint, question),) = rows(
        "SELECT id, spec_fingerprint, expr_proto_hash FROM ing_plan"
    )
    assert whole["dagster/row_count"] == whole["records_seen"] == whole["landed"] == records
    assert whole["promised"] == records
    assert whole["certificate"] == f"3 COMPLETE of 3 slices; {records} of {records} landed"
    assert (whole["slices_complete"], whole["slices_incomplete"]) == (3, 0)
    assert (whole["plan_id"], whole["dagster_run"]) == (str(plan), result.run_id)
    assert (whole["spec_fingerprint"], whole["expr_hash"]) == (fingerprint, question)
    assert whole["records_per_second"] > 0
    assert whole["cursor_after"] == day(3).timestamp()
    assert told(result, "cursors")["cursor_now"] == day(3).timestamp()
    assert told(result, "quarantine")["quarantine_share"] == 0.0
    assert told(result, "plans")["requests"] == whole["requests"] > 3


def test_a_day_carries_the_numbers_of_its_own_slices(home, harvest, sandbox):
    result = harvest(window_from="2025-09-01", window_to="2025-09-04")

    for number in range(3):
        of_day = told(result, "records", day(number).date().isoformat())
        assert of_day["records_inserted"] == sandbox.truth(day(number), day(number + 1)).count
        assert of_day["plan_id"] == "1"


def test_what_an_event_speaks_of_comes_first_and_what_has_no_size_is_not_plotted(home, harvest):
    result = harvest(window_from="2025-09-01", window_to="2025-09-02")

    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        assert list(metadata)[:3] == ["plan", "plan_id", "window"]
        assert isinstance(metadata["plan_id"], dg.TextMetadataValue)


def test_the_black_box_is_named_by_commands_that_can_be_typed(home, harvest, rows):
    result = harvest(window_from="2025-09-01", window_to="2025-09-02")

    ((run,),) = rows("SELECT id FROM ing_task_run")
    text = told(result, "plans")["blackbox"]
    assert f"`patra blackbox {run}/1`" in text
    assert f"`patra replay {run}`" in text
    assert max(map(len, text.splitlines())) < 45  # the asset's page cuts longer ones


def test_a_day_is_reported_by_the_plan_that_completes_it(home, harvest, instance):
    harvest(window_from="2025-09-01", window_to="2025-09-02T12:00Z")
    first = instance.get_materialized_partitions(key("records"))

    harvest(window_to="2025-09-03")

    assert first == {"2025-09-01"}
    assert instance.get_materialized_partitions(key("records")) == {"2025-09-01", "2025-09-02"}


def test_a_day_with_a_failed_slice_is_not_reported(home, execute, grumpy, instance):
    window = {"window_from": "2025-09-01", "window_to": "2025-09-04"}
    result = execute("ingest_job", provenance="sandbox", base_url=grumpy.url, **window)

    assert not result.success  # grumpy rejects the second of September
    whole = {"2025-09-01", "2025-09-03"}
    assert instance.get_materialized_partitions(key("records")) == whole
    assert told(result, "plans")["slices_failed"] == 1


def test_of_a_long_plan_the_newest_31_days_are_reported_and_the_others_counted(
    home, harvest, instance
):
    result = harvest(window_from="2025-07-28", window_to="2025-09-02")  # 36 days

    reported = sorted(instance.get_materialized_partitions(key("records")))
    assert (len(reported), reported[0], reported[-1]) == (31, "2025-08-02", "2025-09-01")
    assert told(result, "records")["whole_days_not_listed"] == 5


def test_what_people_see_first_on_the_records_is_the_whole_plan(home, harvest, instance):
    harvest(window_from="2025-09-01", window_to="2025-09-03")

    newest = instance.get_latest_materialization_event(key("records"))
    assert newest.asset_materialization.partition is None
    assert "2 COMPLETE of 2 slices" in newest.asset_materialization.description
