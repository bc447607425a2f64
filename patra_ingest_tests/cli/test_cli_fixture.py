"""`patra fixture`: a run becomes recordings that bring the same records, and no secret leaves."""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from patra_ingest.packs import FOLDER
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.recordings import read_recordings
from patra_ingest.sandbox.replayer import serve_recordings
from patra_ingest.sandbox.world import World
from patra_ingest_tests.builders import an_endpoint, pack_text
from patra_ingest_tests.cli.conftest import PATRA
from patra_ingest_tests.pipeline.walks import listening

KEY = "CANARY-8f3a91/c0ffee+0123"
MAIL = "canary.person@mail.uni-x.de"
AUTHOR = "author@university.example"
SIGNATURE = "c1gn4tur3"
DAY = ("--from", "2025-09-01", "--to", "2025-09-02")


def patra(home, *words, code=0):
    env = {**os.environ, "PATRA_HOME": str(home), "EXAMPLE_KEY": KEY, "PATRA_CONTACT": MAIL}
    command = [*PATRA, *map(str, words)]
    done = subprocess.run(command, env=env, timeout=120, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def rows(home, query):
    with closing(sqlite3.connect(home / "ledger.db")) as ledger:
        return ledger.execute(query).fetchall()


def records(home, *columns):
    listed = ", ".join(("provider_id", "source_updated_at", *columns))
    return rows(home, f"SELECT {listed} FROM ing_record ORDER BY 1")


def assert_clean(folder, *secrets):
    for file in folder.iterdir():
        text = file.read_text()
        for secret in secrets:
            for form in (secret, quote(secret, safe=""), secret.replace("/", "\\/")):
                assert form not in text, (form, file.name)


@pytest.fixture
def homes(prepared_home, tmp_path):
    return [shutil.copytree(prepared_home, tmp_path / name) for name in ("first", "second")]


def test_a_harvest_of_the_sandbox_becomes_recordings_that_bring_the_same_records(homes, tmp_path):
    first, second = homes
    key = "{type: API_KEY, location: HEADER, field: X-Key, secret: 'env:EXAMPLE_KEY'}"
    text = (FOLDER / "sandbox.yaml").read_text()
    text = text.replace("http:\n", "http:\n  query: {mailto: '${identity.contact}'}\n", 1)
    pack, folder = tmp_path / "sandbox.yaml", tmp_path / "recorded"
    pack.write_text(f"{text}\nauth: {{credentials: {{own: {key}}}}}\n")
    window = ("--from", "2025-01-01", "--to", "2025-01-02", "--set", "paging.page_size=20")

    with start_sandbox(World(300, datetime(2025, 1, 1, tzinfo=UTC), 3, 1)) as box:
        patra(first, "registry", "apply", pack)
        patra(first, "run", "sandbox", *window, "--set", f"request.base_url={box.url}")
    said = patra(first, "fixture", 1, "-o", folder)

    recorded = read_recordings(folder)
    assert f"{len(recorded)} recordings of run 1 are in {folder}" in said
    assert [one.sequence.page for one in recorded] == list(range(1, 7))
    assert {dict(one.headers)["content-type"] for one in recorded} == {"application/json"}
    assert_clean(folder, KEY, MAIL)
    with serve_recordings(recorded) as replayer:
        patra(second, "registry", "apply", pack)
        patra(second, "run", "sandbox", *window, "--set", f"request.base_url={replayer.url}")
    assert replayer.unanswered == []
    assert replayer.served == [one.name for one in recorded]
    whole = records(first, "content_hash", "fields", "payload")
    assert records(second, "content_hash", "fields", "payload") == whole
    assert len(whole) > 90


WORKS = [
    {"id": f"w{n}", "updated": f"2025-09-01T0{n}:00:00Z", "title": f"On w{n}, by {AUTHOR}"}
    for n in range(7)
]


def parrot(asked):
    """Repeat the caller's key and address, and sign the address of the next page."""
    page = int(asked.get("page", 1))
    items = WORKS[3 * page - 3 : 3 * page]
    you = {"you": asked["k"], "mail": asked["mailto"], "session": {"password": asked["k"]}}
    file = f"https://files.example.org/a.pdf?X-Amz-Signature={SIGNATURE}"
    body = {**you, "file": file, "total": 7, "items": items}
    more = f"{asked['url'].partition('?')[0]}?page={page + 1}&sig={SIGNATURE}"
    headers = {"Link": f'<{more}>; rel="next"'} if page < 3 else {}
    return 200, body, {"Content-Type": "application/json", **headers}


def the_pack(url):
    paging = {"type": "URL", "page_size": 3, "next_url": {"link": "next"}, "stop": ["NO_TOKEN"]}
    works = an_endpoint(
        request={"query": {"from": "${window.from|iso}", "to": "${window.last|iso}"}}
    )
    works["paging"] = {**paging, "total": "$.total"}
    own = {"type": "API_KEY", "secret": "env:EXAMPLE_KEY", "field": "k", "location": "QUERY"}
    text = pack_text(url, works=works)
    text["http"] |= {"query": {"mailto": "${identity.contact}"}}
    return {**text, "auth": {"credentials": {"own": own}}}


@pytest.fixture
def harvested(homes, tmp_path):
    """A home after a harvest of three pages that repeat the key, and the pack of their source."""
    home, pack = homes[0], tmp_path / "example.yaml"
    with listening(parrot) as source:
        pack.write_text(json.dumps(the_pack(source.url)))
        patra(home, "registry", "apply", pack)
        patra(home, "run", "example", *DAY)
        assert {KEY, MAIL} == {value for one in source.asked for value in (one["k"], one["mailto"])}
    return home


def test_what_a_source_repeats_is_taken_out_and_the_walk_is_still_one(harvested, homes, tmp_path):
    folder = tmp_path / "recorded"
    told = json.loads(patra(harvested, "fixture", 1, "-o", folder, "--json"))

    assert (told["folder"], told["recordings"]) == (str(folder), 3)
    assert told["redacted"]["mail address"] == 2
    assert_clean(folder, KEY, MAIL, AUTHOR, SIGNATURE)
    recorded = read_recordings(folder)
    assert json.loads(recorded[0].body)["items"][0]["title"] == "On w0, by REDACTED-2"
    with serve_recordings(recorded) as replayer:
        again = tmp_path / "again.yaml"
        again.write_text(json.dumps(the_pack(replayer.url)))
        patra(homes[1], "registry", "apply", again)
        patra(homes[1], "run", "example", *DAY)
    assert replayer.served == ["01-page.json", "02-page.json", "03-page.json"]
    assert replayer.unanswered == []
    assert records(homes[1]) == records(harvested)
    assert len(records(harvested)) == 7


def test_who_takes_whole_bodies_out_is_noted(harvested, tmp_path):
    patra(harvested, "fixture", 1, "-o", tmp_path / "recorded")

    remarks = [row[0] for row in rows(harvested, "SELECT record_remarks FROM ing_task_run_batch")]
    assert all('"type":"BLACKBOX"' in one for one in remarks)
    assert all("taken out as a recording" in one for one in remarks)


def test_what_cannot_be_recorded_is_refused_with_a_sentence_and_leaves_nothing(harvested, tmp_path):
    folder = tmp_path / "recorded"

    assert "There is no run 99." in patra(harvested, "fixture", 99, "-o", folder, code=1)
    assert "Usage" in patra(harvested, "fixture", "1/2", "-o", folder, code=2)
    assert "Usage" in patra(harvested, "fixture", 0, "-o", folder, code=2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    assert "not empty" in patra(harvested, "fixture", 1, "-o", tmp_path / "full", code=1)
    assert "cannot be written" in patra(harvested, "fixture", 1, "-o", "/proc/no/such", code=1)

    body = next((harvested / "raw").rglob("*.zst"))
    body.unlink()
    said = patra(harvested, "fixture", 1, "-o", folder, code=1)
    assert "1 of the 3 answers of run 1 are gone" in said
    assert "older than its retention" in said
    assert sorted(one.name for one in tmp_path.iterdir() if "record" in one.name) == []


def test_a_run_without_a_good_batch_has_nothing_to_record(homes, tmp_path):
    pack = tmp_path / "example.yaml"
    with listening(lambda _: (400, {"error": "no"})) as source:
        pack.write_text(json.dumps(the_pack(source.url)))
        patra(homes[0], "registry", "apply", pack)
        patra(homes[0], "run", "example", *DAY, code=1)

    assert "no batch that succeeded" in patra(homes[0], "fixture", 1, code=1)
