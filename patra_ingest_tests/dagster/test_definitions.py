"""What Dagster loads: complete, valid, and free of retries that would fight the ledger's."""

import re
import shutil
from pathlib import Path

import dagster as dg
import pytest
import yaml

from patra_ingest.definitions import defs
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import read_pack

ROOT = Path(__file__).parents[2]
JOBS = {
    "ingest_job": ["compile_spec", "open_plan", "cut_slices", "execute_slice", "settle"],
    "plan_job": ["compile_spec", "open_plan", "queue_slices"],
    "execute_job": ["open_lanes", "execute_slice", "settle"],
    "reslice_job": ["go_on"],
    "update_candidates_job": ["plan_updates"],
    "replay_job": ["replay_batches"],
    "publish_outbox_job": ["publish_messages"],
    "upkeep_job": [
        *("free_leases", "drop_quotas", "verify_cursors", "drop_old_bodies", "drop_dagster_runs")
    ],
}


def test_the_definitions_can_be_loaded():
    dg.Definitions.validate_loadable(defs)

    assert {job.name for job in defs.jobs} == {*JOBS, "check_job"}
    assert set(defs.resources) == {"ledger", "registry", "rate_gate", "cursors"}
    off = {dg.DefaultSensorStatus.STOPPED, dg.DefaultScheduleStatus.STOPPED}
    assert {one.default_status for one in [*defs.sensors, *defs.schedules]} == off


def test_everything_that_can_be_launched_or_switched_on_is_explained():
    shown = [*map(defs.resolve_job_def, [*JOBS, "check_job"]), *defs.sensors, *defs.schedules]

    assert [one.name for one in shown if not one.description] == []


def test_the_readme_names_exactly_what_dagster_shows():
    text = (ROOT / "README.md").read_text()
    told = text[text.index("`make dev`") : text.index("| a run: slices in lanes")]
    shown = [*defs.jobs, *defs.sensors, *defs.schedules]

    assert set(re.findall(r"`(\w+)`", told)) == {one.name for one in shown}


def test_the_readme_names_exactly_the_assets_there_are():
    (listed,) = re.findall(r"^Assets: (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    names = re.findall(r"`([^`]+)`", listed)
    kinds = [name.removesuffix("/…") for name in names if name.endswith("/…")]
    sources = {name for name in names if name.startswith("upstream/")}
    endpoints = [name for name in names if name not in sources and not name.endswith("/…")]

    assert {spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()} == sources | {
        f"{kind}/{endpoint}" for kind in kinds for endpoint in endpoints
    }


@pytest.mark.parametrize(("job", "ops"), JOBS.items(), ids=JOBS)
def test_a_job_has_its_steps_in_one_process_and_retries_none(job, ops):
    resolved = defs.resolve_job_def(job)

    assert {node.name for node in resolved.nodes} == set(ops)
    assert [node.definition.retry_policy for node in resolved.nodes] == [None] * len(ops)
    assert resolved.op_retry_policy is None
    assert resolved.executor_def.name == "in_process"


@pytest.mark.parametrize("job", JOBS)
def test_everything_a_person_fills_in_is_explained(job):
    for node in defs.resolve_job_def(job).nodes:
        assert node.definition.description
        fields = getattr(node.definition.config_schema.config_type, "fields", {})
        for name, field in fields.items():
            assert field.description, f"{job}: {node.name}.{name}"


def test_every_endpoint_of_the_built_in_packs_with_a_window_is_an_asset_below_its_source():
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    for pack in map(read_pack, builtin_packs()):
        source = f"upstream/{pack.provenance.code}"
        assert source in specs
        for endpoint, part in pack.endpoints.items():
            spec = specs.get(f"records/{pack.provenance.code}/{endpoint}")
            searches = [one for one in pack.endpoints.values() if one.usage != "DETAIL"]
            if part.usage == "DETAIL" and searches:  # it completes them; the records are theirs
                assert spec is None
                continue
            plans = f"plans/{pack.provenance.code}/{endpoint}"
            assert [dep.asset_key.to_user_string() for dep in spec.deps] == [plans]
            assert [dep.asset_key.to_user_string() for dep in specs[plans].deps] == [source]


def test_dagster_yaml_works_as_it_is(tmp_path, monkeypatch):
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))

    with dg.DagsterInstance.get() as instance:
        assert instance.get_runs() == []
        assert not instance.telemetry_enabled
        assert instance.is_persistent
    assert list(tmp_path.glob("history/*.db"))


def test_both_dagster_yamls_differ_in_their_storage_only():
    here, mysql = (
        yaml.safe_load((ROOT / name).read_text())
        for name in ("dagster.yaml", "deploy/mysql/dagster.yaml")
    )

    assert here.pop("storage") == {"sqlite": {"base_dir": {"env": "DAGSTER_HOME"}}}
    assert mysql.pop("storage") == {"mysql": {"mysql_url": {"env": "DAGSTER_MYSQL_URL"}}}
    assert here == mysql
