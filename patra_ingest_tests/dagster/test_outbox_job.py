"""`publish_outbox_job`: the outbox from Dagster, without a secret in what Dagster keeps."""

import json

import pytest

from patra_ingest.definitions import defs
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.model.lineage import Lineage
from patra_ingest_tests.builders import NOON, a_change
from patra_ingest_tests.receivers import webhook

SECRET = "CANARY-93c2"


@pytest.fixture
def publish(home, ledger, instance):
    """Three messages, and a function that runs the job with the config of its op."""
    changes = [a_change(name) for name in "abc"]
    with ledger.write() as tx:
        add_changes(tx, changes, Lineage(), NOON)

    def run(**config):
        return defs.resolve_job_def("publish_outbox_job").execute_in_process(
            run_config={"ops": {"publish_messages": {"config": config}}},
            instance=instance,
            raise_on_error=False,
        )

    return run


def events(instance, result):
    return "\n".join(str(entry) for entry in instance.all_logs(result.run_id))


def test_the_job_publishes_what_is_due_and_says_how_much(publish, tmp_path, rows):
    result = publish(to=f"jsonl:{tmp_path / 'out.jsonl'}")

    assert result.success
    assert result.output_for_node("publish_messages") == 3
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    assert rows("SELECT DISTINCT status_code FROM ing_outbox_message") == [("PUBLISHED",)]
    assert publish(to=f"jsonl:{tmp_path / 'out.jsonl'}").output_for_node("publish_messages") == 0


def test_the_job_takes_no_more_than_it_is_told(publish, tmp_path):
    result = publish(to=f"jsonl:{tmp_path / 'out.jsonl'}", limit=2, batch=1)

    assert result.output_for_node("publish_messages") == 2


def test_what_cannot_be_delivered_fails_the_job_without_showing_the_address(
    publish, tmp_path, instance, rows
):
    with webhook(lambda _: (500, {})) as hook:
        (tmp_path / "address").write_text(f"{hook.url}/hooks/{SECRET}")
        result = publish(to=f"@{tmp_path / 'address'}")

    assert not result.success
    told = events(instance, result)
    assert "3 messages failed, 0 are dead: 3 × HTTP_500" in told
    assert "CANARY" not in told + json.dumps(rows("SELECT error_msg FROM ing_outbox_message"))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"to": f"https://me:{SECRET}@host.example/"}, "give @FILE"),
        ({"to": "jsonl:x", "batch": 0}, "batch is 0; give a number from 1 to 1000."),
        ({"to": "jsonl:x", "lease_seconds": 1}, "lease_seconds is 1; give a number from 60 on."),
        ({"to": "jsonl:x", "limit": -1}, "limit is -1; give a number from 0 on."),
    ],
)
def test_a_wrong_config_is_refused_before_dagster_keeps_it(home, refused, config, said):
    sentence = refused("publish_outbox_job", **config)

    assert said in sentence
    assert SECRET not in sentence


def test_a_sink_that_is_none_fails_with_one_sentence(publish, instance, rows):
    result = publish(to="nowhere")

    assert not result.success
    assert "There is no such sink" in events(instance, result)
    assert rows("SELECT DISTINCT status_code FROM ing_outbox_message") == [("PENDING",)]
