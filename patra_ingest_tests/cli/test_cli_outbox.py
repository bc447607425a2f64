"""`patra outbox`: messages out, one line about them, an exit code that scripts can trust."""

import json
import signal
import subprocess
from contextlib import closing

import pytest
from sqlalchemy import text

from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.model.lineage import Lineage
from patra_ingest_tests.builders import NOON, a_change
from patra_ingest_tests.cli.conftest import PATRA
from patra_ingest_tests.fakes import wait_until
from patra_ingest_tests.receivers import redis, webhook

SECRET = "CANARY-41b7"


@pytest.fixture
def filled(home):
    """A home with three messages."""
    changes = [a_change(name) for name in "abc"]
    with closing(open_db(f"sqlite:///{home / 'ledger.db'}")) as db, db.write() as tx:
        add_changes(tx, changes, Lineage(), NOON)
    return home


def statuses(home):
    with closing(open_db(f"sqlite:///{home / 'ledger.db'}")) as db, db.read() as tx:
        query = text("SELECT status_code FROM ing_outbox_message ORDER BY id")
        return list(tx.execute(query).scalars())


def test_what_changed_goes_into_a_file(patra, filled, tmp_path):
    done = patra("outbox", "publish", "--to", "jsonl:out.jsonl", "--until-empty")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "jsonl:out.jsonl: 3 published, 0 failed and will be tried again, 0 dead.\n"
    )
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["payload"]["id"] for line in lines] == ["a", "b", "c"]


def test_scripts_get_numbers(patra, filled):
    with redis(password=SECRET) as server:
        to = ("--to", server.url, "--until-empty", "--json")
        done = patra("outbox", "publish", *to, "--limit", 2)
        patra("outbox", "publish", *to)

    said = json.loads(done.stdout)
    assert (said.pop("sink"), said.pop("reasons")) == (server.url.replace(f":{SECRET}@", ""), {})
    assert said == {"published": 2, "failed": 0, "dead": 0, "lost": 0}
    assert len(server.entries()) == 3


def test_a_receiver_that_refuses_costs_exit_code_1_and_no_secret(patra, filled, tmp_path):
    with webhook(lambda _: (422, {})) as hook:
        (tmp_path / "address").write_text(f"{hook.url}/hooks/{SECRET}")
        done = patra("outbox", "publish", "--to", "@address", "--until-empty")
    status = patra("outbox", "status")
    told = json.loads(patra("outbox", "status", "--json").stdout)

    assert done.returncode == 1
    assert f"{hook.url}/…: 0 published, 0 failed and will be tried again, 3 dead." in done.stdout
    assert "3 × HTTP_422" in done.stdout
    assert "patra outbox retry" in done.stdout
    assert status.returncode == 0
    assert "0 PENDING, 0 PUBLISHING, 0 PUBLISHED, 0 FAILED, 3 DEAD." in status.stdout
    assert "HTTP_422" in status.stdout
    assert told["troubles"][0]["messages"] == 3
    assert "CANARY" not in done.stdout + done.stderr + status.stdout + json.dumps(told)
    assert patra("outbox", "retry").stdout == "3 dead messages wait again.\n"
    assert statuses(filled) == ["PENDING"] * 3


def test_an_outage_costs_exit_code_1_and_is_told(patra, filled):
    with webhook() as hook:
        pass
    done = patra("outbox", "publish", "--to", hook.url, "--until-empty")

    assert done.returncode == 1
    assert "3 failed and will be tried again, 0 dead" in done.stdout
    assert "UNREACHABLE" in done.stdout
    assert "is tried again" in patra("outbox", "status").stdout


def test_an_empty_outbox_is_fine(patra, home):
    assert patra("outbox", "publish", "--to", "jsonl:x", "--until-empty").returncode == 0
    assert patra("outbox", "status").stdout.startswith("0 PENDING, ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("publish", "--to", f"kafka://:{SECRET}@host"), 1),
        (("publish", "--to", f"redis://:{SECRET}@host/0"), 1),
        (("publish",), 2),
        (("publish", "--to", "jsonl:x", "--lease", 5), 2),
        (("publish", "--to", "jsonl:x", "--batch", 0), 2),
    ],
)
def test_wrong_usage_is_one_sentence(patra, filled, arguments, code):
    done = patra("outbox", *arguments)

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "CANARY" not in done.stdout + done.stderr
    assert statuses(filled) == ["PENDING"] * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_publisher_that_goes_on_ends_cleanly_when_told(filled, tmp_path, number):
    with webhook() as hook:
        command = [*PATRA, "outbox", "publish", "--to", hook.url, "--json"]
        process = subprocess.Popen(
            command, env={"PATRA_HOME": str(filled)}, stdout=subprocess.PIPE, text=True
        )
        wait_until(lambda: len(hook.accepted) == 3 and "PUBLISHING" not in statuses(filled))
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert json.loads(said)["published"] == 3
    assert statuses(filled) == ["PUBLISHED"] * 3
