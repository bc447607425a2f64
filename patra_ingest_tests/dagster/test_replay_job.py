"""`replay_job`: batches told once more from Dagster, and nothing written."""

import shutil

import dagster as dg
import pytest
from sqlalchemy import text

from patra_ingest.definitions import defs

TWO_DAYS = {"window_from": "2025-09-01", "window_to": "2025-09-03"}


@pytest.fixture
def harvested(home, execute, sandbox):
    """Two days of the sandbox, in the ledger and in the raw store."""
    done = execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **TWO_DAYS)
    assert done.success


def contents(rows):
    """Return how many rows every table has."""
    names = rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {name: rows(f"SELECT COUNT(*) FROM {name}") for (name,) in names}


def metadata_of(result):
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    return event.step_output_data.metadata


def failure_of(result):
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data


CONFIGS = {
    "a run": ({"run": 1}, 1),
    "a batch": ({"run": 1, "batch": 1}, 1),
    "a task": ({"task": 2}, 1),
    "a window": ({"provenance": "sandbox", "endpoint": "works", **TWO_DAYS}, 2),
}


@pytest.mark.parametrize(("config", "runs"), CONFIGS.values(), ids=CONFIGS)
def test_a_replay_of_what_is_unchanged_succeeds_and_writes_nothing(
    harvested, execute, rows, instance, config, runs
):
    before = contents(rows)

    result = execute("replay_job", **config)

    assert result.success
    told = metadata_of(result)
    assert told["runs"].value == runs
    assert "nothing differs" in told["verdict"].value
    assert told["report"].value.startswith("## Replay of run ")
    table = told["batches"]
    assert isinstance(table, dg.TableMetadataValue)
    assert {record.data["outcome"] for record in table.records} == {"EQUAL"}
    assert {record.data["request"] for record in table.records} == {"equal"}
    assert (
        len(table.records) == told["batch_count"].value == result.output_for_node("replay_batches")
    )
    assert contents(rows) == before
    tags = instance.get_run_by_id(result.run_id).tags
    assert (tags["patra/source"], tags["patra/plan"]) == ("sandbox", "1")


def test_a_record_that_says_otherwise_fails_the_run_and_the_failure_holds_the_report(
    harvested, execute, ledger
):
    with ledger.write() as tx:
        tx.execute(text("DELETE FROM ing_record"))

    failure = failure_of(execute("replay_job", run=1))

    assert failure.description.startswith("DIFFERS: ")
    assert "### Records" in failure.metadata["report"].value


def test_bodies_that_are_gone_are_named(harvested, execute, home):
    shutil.rmtree(home / "raw")

    failure = failure_of(execute("replay_job", run=1))

    assert failure.description.startswith("UNREADABLE: ")
    assert "is older than its retention" in failure.metadata["report"].value


def test_a_live_replay_asks_the_source_again(harvested, execute, sandbox):
    sandbox.reset()

    result = execute("replay_job", run=1, batch=1, live=True)

    assert result.success
    assert metadata_of(result)["report"].value.startswith("## Live replay of run 1")
    assert sandbox.stats()["requests"] == 1


BAD = {
    "nothing": ({}, "Say what to replay"),
    "two things": ({"run": 1, "task": 1}, "Say what to replay"),
    "a batch of no run": ({"batch": 1}, "Say what to replay"),
    "half a window": ({"provenance": "sandbox", "window_from": "2025-09-01"}, "Say what to replay"),
    "below zero": ({"run": -1}, "run, batch and task are numbers from 1."),
    "no such run": ({"run": 99}, "There is no run 99"),
    "an end before": (
        {
            "provenance": "a",
            "endpoint": "b",
            "window_from": "2025-09-02",
            "window_to": "2025-09-01",
        },
        "window_from must lie before window_to.",
    ),
    "no date": (
        {"provenance": "a", "endpoint": "b", "window_from": "soon", "window_to": "2025-09-01"},
        "window_from: 'soon' is not an instant;",
    ),
}


@pytest.mark.parametrize(("config", "sentence"), BAD.values(), ids=BAD)
def test_what_cannot_be_meant_is_refused_at_launch(harvested, refused, config, sentence):
    assert refused("replay_job", **config).startswith(sentence)


def test_a_batch_that_is_not_there_fails_the_run_with_one_sentence(harvested, execute):
    said = failure_of(execute("replay_job", run=1, batch=99)).description

    assert said.startswith("Run 1 has no batch 99 that succeeded.")


@pytest.mark.parametrize("config", [{"run": "one"}, {"rum": 1}, {"live": "perhaps"}])
def test_a_wrong_field_is_refused_before_the_run_starts(config):
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(
            defs.resolve_job_def("replay_job"), {"ops": {"replay_batches": {"config": config}}}
        )
