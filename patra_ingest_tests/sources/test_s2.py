"""Every recorded answer of Semantic Scholar, read by the built-in pack: its ids, or the error."""

import json
import re

import orjson
import pytest

from patra_ingest.errors import CompileError, EndpointHalted, RequestRejected, UnknownName
from patra_ingest.executor.decoding import decode
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.executor.two_phase import reconcile
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import read_pack_text
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.recorded import (
    asked,
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)
from patra_ingest_tests.sources.rendered import hours, sent_for

SOURCE = "semanticscholar"
BULK = [f"0{n + 2}-bulk-sort-asc-token-p0{n}.json" for n in range(1, 5)]
BATCH = "26-batch-with-null.json"
LISTED = {  # how many papers, the first and the last, and the total that is promised
    BULK[0]: (
        *(1000, "0020825b272b31f63359eadf0d714d49590095f4"),
        *("c5819c422f19bb98f834d525f828c535e0e66ae0", 3027),
    ),
    BULK[1]: (
        *(1000, "c5c31b834dd178bd5386c117748601807f77bfdf"),
        *("516ffe3ee52348736b77b1539a1990468c29f6f6", 3027),
    ),
    BULK[2]: (
        *(1000, "51b51ae8bbdf0abd7ef64fa2778f45358f061088"),
        *("46aeff64618ed8d4306f52b3c2842145f394bd15", 3027),
    ),
    BULK[3]: (
        *(27, "ef3ce7732e3ab16bdb11fb167aa19ccaf9ea0ac5"),
        *("f125b540d7453eb58d38f933588f4b80c80959f2", 3027),
    ),
    # The search by relevance, which the pack never asks: its pages look alike.
    "01-search-turing-offset-p01.json": (
        *(100, "7cbc2a7843411a1768ab762930707af0a3c33a19"),
        *("85b093fad42e510598da9a6bb8e81375016ce98c", 70498),
    ),
    "02-search-turing-offset-p02.json": (
        *(100, "ac7a3d2983b75bd4f44903892a5df295a0f859ff"),
        *("f2acd4ed92017a31222358c0076ccc98e753de0d", 70498),
    ),
    "31-search-year-complete.json": (
        *(21, "0f34fcab599aabf0ab46d91c21703a9a86b5f048"),
        *("8876e1e84b394c45f28169d44d0ae20e771e7ba0", 21),
    ),
    "25-empty-result.json": (0, "", "", 0),  # without a list
}
_NO_TOTAL = (EndpointHalted, "$.total")
REFUSED = {
    **{f"{n + 9}-author-papers-offset-p0{n}.json": _NO_TOTAL for n in range(1, 10)},
    "23-references-offset-p01.json": _NO_TOTAL,
    "24-references-offset-p02.json": _NO_TOTAL,
    BATCH: _NO_TOTAL,
    "28-400-bad-fields.json": (RequestRejected, "unsupported fields: [unknown]"),
    "29-403-forbidden.json": (EndpointHalted, "does not accept the key"),
    "30-404-paper.json": (RequestRejected, "Paper with id 0 not found"),
    "33-releases.json": _NO_TOTAL,
    "35-references-byte-exact.json": _NO_TOTAL,
    "36-paper-doi-404.json": (RequestRejected, "not found"),
}


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "s2.yaml")


@pytest.fixture(scope="module")
def papers(sqlite_template, pack):
    return compiled(sqlite_template, pack, "papers", Operation.BACKFILL)


@pytest.fixture(scope="module")
def batch(sqlite_template, pack):
    return compiled(sqlite_template, pack, "batch", Operation.UPDATE)


def test_there_is_no_harvest_and_none_could_be_declared(sqlite_template, pack):
    with pytest.raises(UnknownName, match="no endpoint 'papers' for HARVEST"):
        compiled(sqlite_template, pack, "papers", Operation.HARVEST)

    text = (FOLDER / "s2.yaml").read_text().replace("[BACKFILL]", "[BACKFILL, HARVEST]")
    eager = parse_pack(read_pack_text(text, "s2.yaml"))
    with pytest.raises(CompileError, match="PUBLISHED: late and changed records"):
        compiled(sqlite_template, eager, "papers", Operation.HARVEST)


def test_a_day_is_asked_for_from_and_to_the_same_day_and_then_by_its_token(papers):
    day = hours("2026-11-01T00:00Z", "2026-11-02T00:00Z")

    first, second = sent_for(papers, day), sent_for(papers, day, Page(2, token="ABC="))

    assert first.address == "https://api.semanticscholar.org/graph/v1/paper/search/bulk"
    assert first.params["publicationDateOrYear"] == "2026-11-01:2026-11-01"
    assert first.params["sort"] == "paperId:asc"
    assert {"paperId", "externalIds", "publicationDate"} <= {*first.params["fields"].split(",")}
    assert second.params == {**first.params, "token": "ABC="}


def test_ids_are_posted_as_a_list(batch):
    sent = sent_for(batch, ids=("a", "b"))

    assert (sent.method, sent.body) == ("POST", {"ids": ["a", "b"]})
    assert sent.address == "https://api.semanticscholar.org/graph/v1/paper/batch"
    assert "paperId" in sent.params["fields"].split(",")


def test_that_none_of_the_ids_is_known_is_no_error(batch):
    """Nobody has recorded one; this is as the source is said to write it."""
    answer = a_response(b'{"error":"No valid paper ids given"}', status=400)

    assert read(answer, batch).ids == []


@needs_recordings
def test_every_recording_has_its_row():
    assert {*LISTED, *REFUSED} == recordings(SOURCE)


@needs_recordings
@pytest.mark.parametrize("name", LISTED)
def test_a_page_gives_the_ids_of_its_papers(papers, name):
    page = read(recorded(SOURCE, name), papers, papers.paging)

    assert (*page.ends, page.decoded.total) == LISTED[name]
    assert page.mapped.bad == []


@needs_recordings
@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_is_the_declared_error(papers, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded(SOURCE, name), papers, papers.paging)

    assert type(raised.value) is error


@needs_recordings
def test_a_walk_sends_the_tokens_that_were_sent_and_ends_without_one(papers):
    walked = walk(SOURCE, BULK, papers)

    sent = [asked(SOURCE, name).get("token") for name in BULK]
    assert [page.token for page in walked.places] == sent
    assert walked.after == Ended("NO_TOKEN")
    assert len(set(walked.ids)) == 3027


@needs_recordings
def test_a_batch_has_nulls_for_unknown_ids_and_other_ids_for_merged_ones(batch):
    answer = recorded(SOURCE, BATCH)
    ids = ["CorpusId:211530585", "CorpusId:470667", "10.2139/ssrn.2250500"]
    ids.append("0f40b1f08821e22e859c6050916cec3667778613")
    decoded = decode(answer, orjson.loads(answer.body), batch, None, {})

    met = reconcile(ids, decoded, batch, batch.reconcile)

    assert asked_url(SOURCE, BATCH).startswith(sent_for(batch, ids=tuple(ids)).address)
    assert met.missing == ("CorpusId:211530585",)
    assert met.merged == {
        "CorpusId:470667": "c31c87c591a25c64fbaa82e8ac6a81831b6ac7ce",
        "10.2139/ssrn.2250500": "cb1ebd913c3724c599f6b276b14b5c6253da68f3",
    }


SAID = {
    "c31c87c591a25c64fbaa82e8ac6a81831b6ac7ce": {
        "doi": "10.2139/ssrn.288970",
        "title": "How Much Should We Trust Differences-in-Differences Estimates?",
        "authors": ["Marianne Bertrand", "E. Duflo", "S. Mullainathan"],
        "journal": "Experimental & Empirical Studies eJournal",
        "published": "2001-10-01",
        "type": "Review",
        "has_abstract": True,
        "pmid": None,
        "pmcid": None,
    },
    "0f40b1f08821e22e859c6050916cec3667778613": {  # neither a journal nor a day
        "doi": "10.1257/rct.1355",
        "journal": None,
        "published": "2023",
        "type": None,
    },
}


@needs_recordings
@pytest.mark.parametrize("paper", SAID)
def test_a_record_says_what_the_file_says(batch, paper):
    record = read(recorded(SOURCE, BATCH), batch).record(paper)
    fields = json.loads(record.fields_json)

    assert {key: fields[key] for key in SAID[paper]} == SAID[paper]
    assert find_misfits(fields) == []


def test_the_ids_of_other_services_are_written_as_everybody_writes_them(batch):
    """No recorded paper has any of them."""
    paper = {
        "paperId": "f00d",
        "externalIds": {"DOI": "10.5555/ABC", "PubMed": "123", "PubMedCentral": "456"},
        "publicationVenue": {"name": "Annals of Examples", "issn": "1234-567x"},
        "journal": {"name": ""},
        "venue": "",
    }

    (record,) = map_items([paper], batch, "UTC", None).records
    fields = json.loads(record.fields_json)

    assert find_misfits(fields) == []
    assert [fields[name] for name in ("doi", "pmid", "pmcid")] == ["10.5555/abc", "123", "PMC456"]
    assert (fields["journal"], fields["issn"]) == ("Annals of Examples", ["1234-567X"])
