"""The schedules: those of the built-in packs, and those for what only the Registry knows."""

from datetime import UTC, datetime

import dagster as dg
import pytest
from sqlalchemy import text

from patra_ingest.definitions import defs
from patra_ingest.defs import schedules
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import read_pack_text

NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)


@pytest.fixture
def evaluate(home, instance):
    """Evaluate a schedule at an instant."""

    def look(name, at=NOON):
        resources = {key: defs.resources[key] for key in ("registry", "ledger")}
        with dg.build_schedule_context(
            instance=instance, scheduled_execution_time=at, resources=resources
        ) as context:
            return defs.resolve_schedule_def(name).evaluate_tick(context)

    return look


def test_every_operation_of_every_built_in_endpoint_has_a_schedule():
    names = {
        f"{operation.lower()}_{pack.provenance.code}_{endpoint}".replace("-", "_")
        for pack in map(read_pack, builtin_packs())
        for endpoint, part in pack.endpoints.items()
        for operation in part.operations
    }
    general = {f"{operation}_registry" for operation in ("harvest", "backfill", "update")}

    ours = [*schedules.builtin_schedules(), *schedules.registry_schedules()]
    assert {one.name for one in ours} == names | general
    assert {one.name for one in ours} <= {one.name for one in defs.schedules}


def test_the_past_is_asked_in_the_courtesy_hours_of_the_source():
    pubmed = defs.resolve_schedule_def("backfill_pubmed_new")

    assert pubmed.cron_schedule == "0 0,1,2,3,4,21,22,23 * * *"
    assert pubmed.execution_timezone == "America/New_York"


@pytest.mark.parametrize("operation", ["HARVEST", "BACKFILL", "UPDATE"])
def test_a_tick_plans_its_endpoint_once(evaluate, operation):
    (request,) = evaluate(f"{operation.lower()}_sandbox_works").run_requests

    assert request.run_key == f"sandbox/works/{operation}/2025-09-20T12:00:00+00:00"
    assert dg.validate_run_config(defs.resolve_job_def("plan_job"), request.run_config)
    tags = {name: value for name, value in request.tags.items() if name.startswith("patra/")}
    assert tags == {
        "patra/source": "sandbox",
        "patra/endpoint": "works",
        "patra/operation": operation,
    }


def test_what_the_registry_no_longer_has_is_passed_over(evaluate, ledger):
    with ledger.write() as tx:
        tx.execute(text("UPDATE reg_prov_endpoint_def SET lifecycle_status_code = 'RETIRED'"))

    assert "is not in the Registry" in evaluate("harvest_sandbox_works").skip_message


def test_nothing_built_in_is_planned_by_the_general_schedules(evaluate):
    for name in ("harvest_registry", "backfill_registry", "update_registry"):
        assert evaluate(name).run_requests == []


@pytest.fixture
def apply(home, ledger):
    """Apply the sandbox's pack under a code, with the schedule of `works`."""
    (path,) = [path for path in builtin_packs() if path.stem == "sandbox"]

    def put(code, schedule):
        said = path.read_text().replace("code: sandbox", f"code: {code}")
        said = said.replace("  works:\n", f"  works:\n    schedule: {schedule}\n", 1)
        with ledger.write() as tx:
            apply_pack(tx, parse_pack(read_pack_text(said, "a test")), datetime.now(UTC))

    return put


def planned(looked):
    return {request.run_key.rpartition("/")[0] for request in looked.run_requests}


def test_what_only_the_registry_knows_is_planned_with_the_usual_cadence(evaluate, apply):
    apply("mine", "{}")

    both = {"mine/works/HARVEST", "mine/works-by-offset/HARVEST"}
    assert planned(evaluate("harvest_registry")) == both
    assert planned(evaluate("update_registry")) == set()
    assert planned(evaluate("update_registry", NOON.replace(hour=3, minute=30))) == {
        "mine/works/UPDATE"
    }
    assert planned(evaluate("backfill_registry", NOON.replace(hour=2))) == {
        "mine/works/BACKFILL",
        "mine/works-by-offset/BACKFILL",
    }


@pytest.mark.parametrize(
    ("clock", "is_due"), [((7, 0), False), ((7, 15), True), ((7, 30), False), ((8, 15), False)]
)
def test_a_cadence_of_its_own_is_kept_at_the_next_quarter_of_an_hour(
    evaluate, apply, clock, is_due
):
    apply("mine", '{HARVEST: "7 7 * * *"}')

    at = NOON.replace(hour=clock[0], minute=clock[1])
    assert ("mine/works/HARVEST" in planned(evaluate("harvest_registry", at))) == is_due


def test_a_cadence_that_the_registry_changed_moves_to_the_general_schedule(evaluate, apply):
    apply("sandbox", '{HARVEST: "0 12 * * *"}')

    said = evaluate("harvest_sandbox_works").skip_message
    assert said == "the Registry has another cadence: harvest_registry keeps it"
    assert planned(evaluate("harvest_registry")) == {"sandbox/works/HARVEST"}


def test_a_schedule_that_is_declared_but_silent_plans_nothing(evaluate, apply):
    apply("sandbox", '{HARVEST: {cron: "0 12 * * *", enabled: false}}')

    assert evaluate("harvest_sandbox_works").run_requests == []
    assert evaluate("harvest_registry").run_requests == []
