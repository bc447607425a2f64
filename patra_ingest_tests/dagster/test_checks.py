"""The asset checks: named, placed and judged as the ledger says."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from patra_ingest.definitions import defs
from patra_ingest.defs.assets import Place
from patra_ingest.defs.checks import check_key
from patra_ingest.ledger.holds import place_hold
from patra_ingest.views.health import CHECKS

WORKS = Place("sandbox", "works")
NAMES = {
    *("completeness", "coverage", "cursor_lag", "cursor_fold", "error_rate", "throttled_share"),
    *("quarantine_share", "freshness", "outbox_backlog", "no_hold"),
}


@pytest.fixture
def judge(instance):
    """Evaluate checks; none named: all of them."""

    def run(*checks):
        job = defs.resolve_job_def("check_job")
        if checks:  # as a person selects them in the UI
            keys = {check_key(check, WORKS) for check in checks}
            job = job.get_subset(asset_selection=set(), asset_check_selection=keys)
        result = job.execute_in_process(instance=instance)
        assert result.success
        return {one.check_name: one for one in result.get_asset_check_evaluations()}

    return run


@pytest.fixture
def harvest(execute, sandbox):
    def run(**config):
        return execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **config)

    return run


def test_every_planned_endpoint_has_the_ten_checks_with_their_question():
    assert set(CHECKS) == NAMES
    (definition,) = defs.asset_checks
    own = [
        spec for spec in definition.check_specs if spec.asset_key.path[1:] == ["sandbox", "works"]
    ]
    assert {spec.name for spec in own} == NAMES
    assert all(spec.description and spec.description.endswith("?") for spec in own)
    kinds = {spec.name: spec.asset_key.path[0] for spec in own}
    assert kinds["cursor_lag"] == kinds["cursor_fold"] == "cursors"
    assert (kinds["quarantine_share"], kinds["no_hold"]) == ("quarantine", "plans")
    assert kinds["completeness"] == kinds["coverage"] == "records"


def test_a_harvest_of_the_past_passes_all_but_those_that_look_at_the_clock(
    prepared, harvest, judge
):
    harvest(window_from="2025-09-01", window_to="2025-09-03")

    found = judge()

    failed = {name: one.severity for name, one in found.items() if not one.passed}
    assert set(found) == NAMES
    # Since then more than a year has passed, and nobody has harvested it.
    error = dg.AssetCheckSeverity.ERROR
    assert failed == {"coverage": error, "cursor_lag": error}
    assert found["coverage"].description.startswith("The first hole is [2025-09-03T00:00:00Z, ")
    assert "nobody has planned it" in found["coverage"].description
    assert found["cursor_lag"].metadata["value"].value > 86_400
    units = {name: one.metadata["unit"].value for name, one in found.items()}
    assert (units["cursor_lag"], units["error_rate"]) == ("seconds", "share, 0 to 1")


def test_an_endpoint_that_nobody_ever_planned_is_left_out(home, judge):
    assert judge() == {}


def test_what_a_person_selects_is_judged_alone(home, judge):
    found = judge("no_hold", "cursor_lag")

    assert set(found) == {"no_hold", "cursor_lag"}
    assert all(one.passed for one in found.values())


def test_a_hold_by_an_error_fails_its_check_as_an_error_with_the_remedy(home, ledger, judge):
    with ledger.write() as tx:
        place_hold(tx, "sandbox", "works", "L4", "401 everywhere", "w1", datetime.now(UTC))

    hold = judge("no_hold")["no_hold"]

    assert not hold.passed
    assert hold.severity is dg.AssetCheckSeverity.ERROR
    assert "`patra resume sandbox/works`" in hold.description


def test_other_limits_can_be_set_and_wrong_ones_cost_one_sentence(
    home, harvest, instance, judge, monkeypatch
):
    harvest(window_from="2025-09-01", window_to="2025-09-03")
    monkeypatch.setenv("PATRA_CHECK_THRESHOLDS", '{"cursor_lag": 1e9, "cursor_lag_error": 1e9}')
    assert judge("cursor_lag")["cursor_lag"].passed

    monkeypatch.setenv("PATRA_CHECK_THRESHOLDS", '{"cursor_lagg": 1}')
    job = defs.resolve_job_def("check_job")
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    (failure,) = [one for one in result.all_node_events if one.is_step_failure]
    assert "PATRA_CHECK_THRESHOLDS names cursor_lagg" in failure.event_specific_data.error.message


def test_a_check_job_writes_nothing_to_the_ledger(home, harvest, judge, rows):
    harvest(window_from="2025-09-01", window_to="2025-09-02")
    tables = ("ing_record", "ing_cursor_event", "ing_task_run_batch", "ing_plan", "ing_task")
    before = [rows(f"SELECT COUNT(*), MAX(updated_at) FROM {table}") for table in tables]

    judge()

    assert before == [rows(f"SELECT COUNT(*), MAX(updated_at) FROM {table}") for table in tables]


def test_the_schedule_asks_for_the_checks_of_what_was_planned_and_for_no_others(home, harvest):
    def tick():
        with dg.build_schedule_context(resources={"ledger": defs.resources["ledger"]}) as context:
            return defs.resolve_schedule_def("check_schedule").evaluate_tick(context)

    assert tick().skip_message == "Nothing was planned yet."
    harvest(window_from="2025-09-01", window_to="2025-09-02")

    (request,) = tick().run_requests

    assert set(request.asset_check_keys) == {check_key(check, WORKS) for check in CHECKS}
