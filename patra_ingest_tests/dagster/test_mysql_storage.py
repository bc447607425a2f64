"""`deploy/mysql/dagster.yaml`: Dagster's own storage on a real MySQL."""

import shutil
import uuid
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import create_engine, text

from patra_ingest.definitions import defs
from patra_ingest_tests.builders import day

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mysql_storage(mysql_server, tmp_path, monkeypatch):
    """DAGSTER_HOME as its comments say, with an empty database for Dagster alone."""
    name = f"patra_test_{uuid.uuid4().hex[:12]}"
    engine = create_engine(mysql_server.set(database=None), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        collation = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        connection.execute(text(f"CREATE DATABASE {name} {collation}"))
    shutil.copy(ROOT / "deploy/mysql/dagster.yaml", tmp_path)
    url = mysql_server.set(database=name).render_as_string(hide_password=False)
    monkeypatch.setenv("DAGSTER_MYSQL_URL", url)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    yield name
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name}"))
    engine.dispose()


def test_the_run_its_tags_and_the_asset_are_kept_in_mysql(home, mysql_storage, sandbox, tmp_path):
    config = {"provenance": "sandbox", "base_url": sandbox.url}
    config |= {"window_from": "2025-09-01", "window_to": "2025-09-02"}
    works = dg.AssetKey(["records", "sandbox", "works"])
    with dg.DagsterInstance.get() as instance:
        result = defs.resolve_job_def("ingest_job").execute_in_process(
            {"ops": {"compile_spec": {"config": config}}}, instance
        )

    with dg.DagsterInstance.get() as later:
        (run,) = later.get_runs(dg.RunsFilter(tags={"patra/plan": "1"}))
        event = later.get_latest_materialization_event(works)
        assert not later.telemetry_enabled
    assert (run.run_id, run.status) == (result.run_id, dg.DagsterRunStatus.SUCCESS)
    told = event.asset_materialization.metadata
    assert told["dagster/row_count"].value == sandbox.truth(day(0), day(1)).count
    assert not (tmp_path / "history").exists()  # where SQLite files would be


def test_assets_that_differ_in_case_stay_apart(mysql_storage):
    with dg.DagsterInstance.get() as instance:
        for name in ("Works", "works"):
            key = dg.AssetKey(["records", "sandbox", name])
            instance.report_runless_asset_event(dg.AssetMaterialization(key))

        assert {key.path[-1] for key in instance.all_asset_keys()} == {"Works", "works"}
