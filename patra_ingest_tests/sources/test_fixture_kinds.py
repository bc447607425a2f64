"""What `patra fixture` makes of every kind of run brings the same records again."""

import shutil

import pytest

from patra_ingest.cli.fixture import write_answers
from patra_ingest.executor.recollect import recollect, tell
from patra_ingest.ledger.db import open_db
from patra_ingest.rawstore.store import RawStore
from patra_ingest.sandbox.recordings import read_recordings
from patra_ingest.transport.scrub import Scrubber
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.suite.cases import handmade_sources
from patra_ingest_tests.sources.suite.run_case import CONTACT, check, run_case

PROVED = [
    case
    for source in handmade_sources()
    for case in source.cases
    # An answer that failed is no part of a fixture.
    if not case.is_error and case.ids and not case.secrets and not case.quarantined
]
_FIRST, _SECOND = "first", "second"


@pytest.fixture
def homes(sqlite_template, tmp_path):
    opened = []
    for name in (_FIRST, _SECOND):
        copy = tmp_path / f"{name}.db"
        shutil.copyfile(sqlite_template, copy)
        url = f"sqlite:///{copy}"
        opened.append(Home(open_db(url), url, tmp_path / name))
    yield opened
    for home in opened:
        home.db.close()


def contents(home):
    query = "SELECT provider_id, content_hash, is_deleted FROM ing_record ORDER BY provider_id"
    return [tuple(row) for row in home.rows(query)]


@pytest.mark.parametrize("case", PROVED, ids=lambda one: f"{one.source}-{one.case}")
def test_a_run_made_into_recordings_brings_the_same_records(case, homes, tmp_path):
    first, second = homes
    check(case, run_case(case, first))
    folder = tmp_path / "recorded"
    folder.mkdir()
    raw = RawStore(first.folder / "raw")
    told = recollect(first.db, raw, first.one("SELECT MIN(id) FROM ing_task_run"))

    write_answers(folder, told, tell(first.db, raw, told, CONTACT), Scrubber())

    assert CONTACT not in "".join(file.read_text() for file in folder.iterdir())
    result = run_case(case, second, read_recordings(folder))
    assert result.unanswered == []
    assert contents(second) == contents(first)
