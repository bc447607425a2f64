"""`patra replay` and `patra blackbox`: what they say, their exit codes, and what they leave out."""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from patra_ingest_tests.builders import an_endpoint, pack_text
from patra_ingest_tests.cli.conftest import PATRA
from patra_ingest_tests.fakes import upstream

KEY = "CANARY-8f3a91-c0ffee-0123"  # long enough to be known as a key wherever it is repeated
WORKS = [
    {"id": f"w{n}", "updated": f"2025-09-01T0{n}:00:00Z", "title": f"On w{n}"} for n in range(3)
]


def answer(asked):
    """Return a page that repeats the key it was asked with, by its name and without one."""
    start = int(asked["offset"])
    page = WORKS[start : start + 2]
    return 200, {"total": 3, "you": f"{asked.get('k')}", "api_key": KEY, "items": page}


def the_pack(url):
    works = an_endpoint(paging={"page_size": 2, "stop": ["SHORT_PAGE", "TOTAL_REACHED"]})
    own = {"type": "API_KEY", "secret": "env:EXAMPLE_KEY", "field": "k", "location": "QUERY"}
    return {**pack_text(url, works=works), "auth": {"credentials": {"own": own}}}


@pytest.fixture(scope="module")
def harvested(tmp_path_factory, prepared_home):
    """A home after a harvest of two pages, to copy."""
    home = tmp_path_factory.mktemp("harvested") / "home"
    shutil.copytree(prepared_home, home)
    with upstream(answer) as source:
        pack = home.parent / "example.yaml"
        pack.write_text(json.dumps(the_pack(source.url)))  # JSON is YAML
        env = {**os.environ, "PATRA_HOME": str(home), "EXAMPLE_KEY": KEY}
        for words in (
            ("registry", "apply", str(pack)),
            ("run", "example", "--from", "2025-09-01", "--to", "2025-09-02"),
        ):
            done = subprocess.run(
                [*PATRA, *words], env=env, timeout=60, check=False, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert KEY in {asked.get("k") for asked in source.asked}
    return home


@pytest.fixture
def home(harvested, tmp_path):
    return shutil.copytree(harvested, tmp_path / "home")


def change(home, statement):
    with closing(sqlite3.connect(home / "ledger.db")) as db, db:
        db.execute(statement)


def remarks(home):
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        query = "SELECT record_remarks FROM ing_task_run_batch ORDER BY id"
        return [json.loads(row[0]) if row[0] else [] for row in db.execute(query)]


WINDOW = (
    "--source",
    "example",
    "--endpoint",
    "works",
    "--from",
    "2025-09-01",
    "--to",
    "2025-09-03",
)


@pytest.mark.parametrize(
    "words", [("1/2",), ("--task", 1), WINDOW], ids=["batch", "task", "window"]
)
def test_everything_equal_is_exit_code_0_and_nothing_secret(patra, home, words):
    done = patra("replay", *words, "--json")
    form = json.loads(done.stdout)

    assert (done.returncode, done.stderr) == (0, "")
    one = form if words == ("1/2",) else form[0]
    batches = 1 if words == ("1/2",) else 2
    assert (one["outcome"], len(one["batches"])) == ("EQUAL", batches)
    assert KEY not in done.stdout


def test_people_read_the_verdict_first(patra, home):
    lines = patra("replay", 1).stdout.splitlines()

    assert lines[0] == "## Replay of run 1"
    assert lines[2] == (
        "**EQUAL: 2 batches of run 1 told again and held against the ledger: nothing differs;"
        " records: 3 same.**"
    )
    assert [line for line in lines if line.startswith("###")] == ["### Batches", "### Cursor steps"]


def test_a_difference_is_exit_code_1_and_named(patra, home):
    change(home, "DELETE FROM ing_record WHERE provider_id = 'w2'")

    done = patra("replay", 1)

    assert done.returncode == 1
    assert (
        "**DIFFERS: 2 batches of run 1 told again and held against the ledger: not every"
        in done.stdout
    )
    assert "| 1/2 | w2 | lost | it is not in the ledger |" in done.stdout
    assert patra("replay", "1/1").returncode == 0


def test_a_body_that_is_gone_is_exit_code_1_and_one_sentence(patra, home):
    for file in (home / "raw").rglob("*.zst"):
        file.unlink()

    done = patra("replay", "1/1")

    assert done.returncode == 1
    assert "older than its retention" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_live_a_source_that_is_not_there_is_told(patra, home):
    done = patra("replay", "1/1", "--live", EXAMPLE_KEY=KEY)

    assert done.returncode == 1
    assert "the source does not answer as it did" in done.stdout
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("replay", 99), 1, "There is no run 99."),
        (("replay", "1/9"), 1, "Run 1 has no batch 9 that succeeded."),
        (("replay",), 2, "Say what to replay"),
        (("replay", "1/"), 2, "neither RUN nor RUN/BATCH"),
        (("replay", "--source", "example"), 2, "A window needs"),
        (("blackbox", "1"), 2, "a black box is of"),
        (("blackbox", "1/1", "-o", "no/such/folder"), 1, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(patra, home, words, code, told):
    done = patra(*words)

    assert done.returncode == code
    assert told in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_black_box_leads_from_the_trigger_to_the_bytes_and_holds_no_secret(patra, home, tmp_path):
    shown = patra("blackbox", "1/1")
    box = json.loads(patra("blackbox", "1/1", "--json").stdout)
    written = patra("blackbox", "1/1", "-o", "box.json")

    assert (shown.returncode, written.returncode) == (0, 0)
    assert "The black box of 1/1 is in box.json" in written.stdout
    told = json.loads((tmp_path / "box.json").read_text())
    assert {**told, "exported": 0} == {**box, "exported": 0}
    assert list(box["lineage"].values()) == [1, 1, 1, 1, 1, 1]
    assert box["plan"]["window"]["from"] == "2025-09-01T00:00:00+00:00"
    assert len(box["plan"]["specFingerprint"]) == len(box["slice"]["signature"]) == 64
    assert (box["request"]["method"], box["response"]["status"]) == ("GET", 200)
    assert box["request"]["query"]["k"] == "***"
    assert (box["stats"]["inserted"], box["run"]["certificate"]["verdict"]) == (2, "COMPLETE")
    assert box["gate"]["rate"]
    assert len(box["cursorSteps"]) == 1
    (body,) = box["bodies"]
    assert body["sample"].startswith('{"total": 3')
    assert len(body["sample"].encode()) <= 1024
    assert "body" not in body
    assert "CANARY" not in json.dumps(box) + shown.stdout
    assert remarks(home) == [[], []], "nothing was written"


def test_whole_bodies_are_given_out_with_a_remark_of_who_took_them(patra, home):
    box = json.loads(patra("blackbox", "1/1", "--with-body", "--json", USER="ann").stdout)

    assert json.loads(box["bodies"][0]["body"])["items"] == WORKS[:2]
    first, second = remarks(home)
    assert [(one["by"], one["type"]) for one in first] == [(box["exported"]["by"], "BLACKBOX")]
    assert second == []
    assert "CANARY" not in json.dumps(box), "our own key is hidden before a body is stored"
