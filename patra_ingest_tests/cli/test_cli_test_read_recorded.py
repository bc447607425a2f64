"""`patra test-read --recorded`: recorded answers instead of the source."""

import hashlib
import json

import pytest

from patra_ingest.sandbox.recordings import Recording, write_recording
from patra_ingest_tests.builders import an_endpoint
from patra_ingest_tests.cli.test_cli_test_read import DAY, KEY, OWN, WORKS


@pytest.fixture
def recorded(tmp_path):
    """A folder with the first page of a walk, as somebody recorded it."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    body = json.dumps({"total": 24, "items": WORKS[:10]}).encode()
    url = "https://api.library.example/v1/works?from=2019-01-01T00:00:00Z&offset=0&rows=10"
    write_recording(folder, Recording("01.json", "GET", url, body), "example")
    return folder


def test_recordings_are_read_instead_of_the_source_and_the_ledger_is_not_touched(
    patra, write, home, recorded
):
    secret = {"auth": {"required": True, "credentials": {"own": OWN}}}
    file = write("https://api.library.example/v1", secret)
    before = hashlib.sha256((home / "ledger.db").read_bytes()).hexdigest()
    done = patra("test-read", file, *DAY, "--recorded", recorded, EXAMPLE_KEY=KEY)
    after = hashlib.sha256((home / "ledger.db").read_bytes()).hexdigest()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "It works: 1 page in 1 request brought 10 records; the recordings end" in done.stdout
    assert "No recording answers" in done.stdout
    assert after == before
    assert KEY not in done.stdout


def test_a_first_question_that_no_recording_answers_is_the_verdict(patra, write, recorded):
    works_elsewhere = an_endpoint(request={"path": "/articles"})
    file = write("https://api.library.example/v1", works=works_elsewhere)
    done = patra("test-read", file, *DAY, "--recorded", recorded)

    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("No recording answers GET /v1/articles?")
    assert "01.json (its path is /v1/works" in last
