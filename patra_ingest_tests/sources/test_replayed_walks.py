"""Whole harvests that others have recorded, served page by page and walked by the whole engine.

Tokens in elements, encoded tokens, tokens with an offset beside them, offsets, links: each in the
shape of the source that was recorded, with the smallest pack that reads it.
"""

from urllib.parse import urlsplit

import pytest

from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.sandbox.recordings import read_recordings
from patra_ingest.sandbox.replayer import serve_recordings
from patra_ingest_tests.builders import day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.other_pack import other_text
from patra_ingest_tests.sources.recorded import needs_recordings
from patra_ingest_tests.sources.suite.cases import FIXTURES
from patra_ingest_tests.sources.suite.packs import turned_pack
from patra_ingest_tests.sources.suite.readers import read_ids

pytestmark = needs_recordings

_HEADERS = {"xml": "//header/identifier"}
_DELETED = {"xml": "//header[@status='deleted']/identifier"}
_PAPERS = {"json": "data", "id": "paperId"}
WALKS = {
    "a token that is handed out encoded": ("oai", "oai-pmc", "*-listrecords-*", _HEADERS),
    "a token and a list size": ("oai", "oai-datacite", "*-listrecords-*", _HEADERS),
    "a token that holds a query": ("oai", "oai-repositories", "*-asu-deleted-*", _HEADERS),
    "a token beside an offset": ("bulk", "semanticscholar", "*-bulk-sort-asc-*", _PAPERS),
    "an offset without a total": ("papers", "semanticscholar", "*-author-papers-*", _PAPERS),
    "a link that is not there": (
        *("dois", "datacite", "07-*", {"json": "data", "id": "attributes.doi"}),
    ),
}


@pytest.mark.parametrize("walk", WALKS)
def test_a_recorded_harvest_is_walked_to_its_end(walk, sqlite_url, tmp_path):
    endpoint, source, pattern, how = WALKS[walk]
    names = sorted(file.name for file in (FIXTURES / source).glob(pattern))
    recordings = read_recordings(FIXTURES / source, [n for n in names if "meta.json" not in n])
    path = urlsplit(recordings[0].url).path
    home = Home(open_db(sqlite_url), sqlite_url, tmp_path / "home")
    with serve_recordings(recordings) as replayer:
        home.apply(turned_pack(other_text(endpoint, path), replayer.at))
        home.plan(Trigger("others", endpoint, asked=Asked(day(0), day(1))))
        home.work()

    (proof,) = [read_json(row[0]) for row in home.rows("SELECT certificate FROM ing_task_run")]
    stored = {row[0] for row in home.rows("SELECT provider_id FROM ing_record")}
    gone = {row[0] for row in home.rows("SELECT provider_id FROM ing_record WHERE is_deleted = 1")}
    home.db.close()
    assert replayer.served == [one.name for one in recordings]
    assert replayer.unanswered == []
    assert (proof["verdict"], proof["stop_rule"]) == ("COMPLETE", "NO_TOKEN")
    assert proof["pages"] == len(recordings)
    assert stored == set(read_ids(how, recordings))
    assert gone == (set(read_ids(_DELETED, recordings)) if how is _HEADERS else set())
