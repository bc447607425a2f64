"""`patra signal`: ids in, one clear sentence when one is wrong, and nothing half-written."""

import json
import os
import subprocess
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import text

from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.records import upsert_newer
from patra_ingest.model.records import ChangeRule
from patra_ingest_tests.builders import NOON, a_record
from patra_ingest_tests.cli.conftest import PATRA
from patra_ingest_tests.cli.test_cli_refusals import one_sentence

STAMP = {"spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}


@contextmanager
def ledger(home):
    with closing(open_db(f"sqlite:///{home / 'ledger.db'}")) as db, db.write() as tx:
        yield tx


@pytest.fixture
def stocked(home):
    """A home whose PubMed has 1 and 2 under `new`, and 2 and 3 under `changed`."""
    with ledger(home) as tx:
        for endpoint, names in (("new", "12"), ("changed", "23")):
            records = [a_record(name) for name in names]
            upsert_newer(tx, "pubmed", endpoint, records, ChangeRule.NEWER, STAMP, NOON)
    return home


def waiting(home):
    query = text("SELECT endpoint_name, provider_id, signal_code FROM ing_signal ORDER BY 1, 2, 3")
    with ledger(home) as tx:
        return [tuple(row) for row in tx.execute(query)]


def test_ids_go_to_every_endpoint_that_has_their_record(patra, stocked):
    done = patra("signal", "add", "PubMed", " 1 ", "2", "2")

    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "pubmed/changed: 1 CORRECTION signals added.\npubmed/new: 2 CORRECTION signals added.\n"
    )
    expected = [("changed", "2"), ("new", "1"), ("new", "2")]
    assert waiting(stocked) == [(*one, "CORRECTION") for one in expected]


def test_what_waits_already_is_not_added_again(patra, stocked):
    patra("signal", "add", "pubmed/new", "1")
    done = patra("signal", "add", "pubmed/new", "1", "2", "--json")
    said = patra("signal", "add", "pubmed/new", "1")

    assert json.loads(done.stdout) == {
        "source": "pubmed",
        "signal": "CORRECTION",
        "ids": 2,
        "added": {"new": 1},
    }
    assert said.stdout == "pubmed/new: 0 CORRECTION signals added, 1 were waiting already.\n"


def test_a_record_may_be_missing_where_the_endpoint_is_named(patra, stocked):
    done = patra("signal", "add", "pubmed/changed", "99", "--why", "missing_field")

    assert done.returncode == 0, done.stderr
    assert waiting(stocked) == [("changed", "99", "MISSING_FIELD")]


def test_signals_are_listed_with_who_gave_them_and_why(patra, stocked):
    patra("signal", "add", "pubmed/new", "1", "--why=RETRACTION", "--reason", "see [bold] note")
    shown, found = patra("signal", "list"), patra("signal", "list", "pubmed", "--json")
    none = patra("signal", "list", "crossref")

    assert "RETRACTION" in shown.stdout
    assert "see [bold] note" in shown.stdout
    (one,) = json.loads(found.stdout)
    assert (one["endpoint"], one["provider_id"], one["signal"]) == ("new", "1", "RETRACTION")
    assert one["reason"] == "see [bold] note"
    assert one["by"]
    assert none.stdout == "No signal is waiting.\n"


def test_ids_can_be_read_from_a_file(patra, stocked, tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_bytes(b"\xef\xbb\xbf1\r\n\r\n  2\t\r\n")

    done = patra("signal", "add", "pubmed", "3", "--from-file", listed)

    assert done.returncode == 0, done.stderr
    assert {name for _, name, _ in waiting(stocked)} == {"1", "2", "3"}


def test_ids_can_be_read_from_a_pipe(stocked):
    command = [*PATRA, "signal", "add", "pubmed", "--from-file", "-"]
    clean = {name: v for name, v in os.environ.items() if not name.startswith("PATRA_")}
    environment = {**clean, "PATRA_HOME": str(stocked)}
    done = subprocess.run(
        command, env=environment, input=b"1\n3\n", capture_output=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert {name for _, name, _ in waiting(stocked)} == {"1", "3"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ("pubmed", "1", "98", "99"),
            r"pubmed has no record '98', '99'; nothing was written. Name the endpoint (pubmed/",
            id="ids nobody has",
        ),
        pytest.param(
            ("pubmed", *(f"x{n}" for n in range(25))), "'x9' and 15 more;", id="many of them"
        ),
        pytest.param(("nosuch", "1"), "There is no source 'nosuch'", id="an unknown source"),
        pytest.param(
            ("pubmed/nope", "1"),
            "pubmed stores no records under 'nope'. It does under: changed, new.",
            id="an unknown endpoint",
        ),
        pytest.param(
            ("pubmed/fetch", "1"),
            "pubmed stores no records under 'fetch'. It does under: changed, new.",
            id="an endpoint that stores nothing",
        ),
        pytest.param(
            ("pubmed", "1", "--why", "BOREDOM"),
            "There is no signal 'BOREDOM'. Known signals: RETRACTION, CORRECTION, MERGE,",
            id="an unknown signal",
        ),
        pytest.param(
            ("pubmed", "1", "--why", "QUARANTINED"), "There is no signal", id="not for people"
        ),
        pytest.param(("pubmed/new", "1", " "), "One of the ids is empty.", id="an empty id"),
        pytest.param(
            ("pubmed/new", "1", "9" * 513), "longer than 512 characters.", id="an endless id"
        ),
        pytest.param(
            ("pubmed", "1", "--from-file", "nosuch.txt"), "cannot be read", id="no such file"
        ),
    ],
)
def test_one_wrong_id_or_name_and_nothing_is_written(patra, stocked, arguments, said):
    assert said in one_sentence(patra("signal", "add", *arguments))
    assert waiting(stocked) == []


def test_a_file_that_is_no_text_is_refused(patra, stocked, tmp_path):
    (tmp_path / "ids").write_bytes(b"1\n\xff\xfe")

    said = one_sentence(patra("signal", "add", "pubmed", "1", "--from-file", "ids"))

    assert "The ids in 'ids' cannot be read" in said
    assert waiting(stocked) == []


def test_the_signals_of_an_unknown_source_cannot_be_listed(patra, home):
    assert "There is no source 'nosuch'" in one_sentence(patra("signal", "list", "nosuch"))


def test_no_id_at_all_is_wrong_usage(patra, stocked):
    done = patra("signal", "add", "pubmed")

    assert done.returncode == 2
    assert "Give at least one id" in done.stderr
