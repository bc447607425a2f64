"""Every recorded answer of NCBI, read by the built-in pack: ids as a person reads them, or refusal.

The pack asks esearch for JSON and efetch for XML; what other E-utilities answer must never pass
for either.
"""

import re

import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, Throttled
from patra_ingest.executor.decoding import BodyUnreadable
from patra_ingest.executor.paging import Ended
from patra_ingest.executor.two_phase import reconcile
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.recorded import (
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

pytestmark = needs_recordings

FOUND = {"02-esearch-json-one-hit.json": ["18033691"]}
FETCHED = {
    "24-efetch-xml-two-old.xml": ["12091962", "9997"],
    "25-efetch-xml-two.xml": ["11748933", "11700088"],
    "26-efetch-xml-markup-in-title.xml": ["27797938"],
    "28-efetch-xml-mathml-namespace.xml": ["30108519"],
    "30-efetch-xml-20412080-2024.xml": ["20412080"],
    "31-efetch-xml-20412080-2017.xml": ["20412080"],
    "32-efetch-xml-22351513-2024.xml": ["22351513"],
    "33-efetch-xml-22351513-2017.xml": ["22351513"],
    "34-efetch-xml-22528466-2024.xml": ["22528466"],
    "35-efetch-xml-22528466-2018.xml": ["22528466"],
    "38-efetch-xml-1234567-2024.xml": ["1234567"],
    "40-efetch-xml-1234567-2017.xml": ["1234567"],
    "42-efetch-xml-32887691.xml": ["32887691"],
    "43-efetch-xml-31978945.xml": ["31978945"],
    "44-efetch-xml-29540945.xml": ["29540945"],
    "45-efetch-xml-34567890.xml": ["34567890"],
    "46-efetch-xml-36789012.xml": ["36789012"],
    "61-efetch-xml-38833988.xml": ["38833988"],
    "63-efetch-xml-35649368.xml": ["35649368"],
    "65-efetch-xml-36156117.xml": ["36156117"],
}
# What is no answer to either question: what the search makes of it, and what the details do.
_NOT_JSON = (BodyUnreadable, "that is not JSON")
_NOT_XML = (BodyUnreadable, "that is not XML")
_NO_IDS = (EndpointHalted, "nothing at $.esearchresult.idlist")
_NO_SET = (EndpointHalted, "nothing at $.PubmedArticleSet")
_TOO_FAST = (Throttled, "API rate limit exceeded")
_TOO_LONG = (RequestRejected, "the URL is too long")
_OTHER_XML = (_NOT_JSON, _NO_SET)
_OTHER_JSON = (_NO_IDS, _NOT_XML)
REFUSED = {
    "01-esearch-json-phrase-dropped.json": (
        (RequestRejected, "ignored a part of the query"),
        _NOT_XML,
    ),
    "04-esummary-rate-limited.json": (_TOO_FAST, _TOO_FAST),
    "05-esearch-xml-history-new.xml": _OTHER_XML,
    "06-esearch-xml-history-old.xml": _OTHER_XML,
    "07-esearch-xml-medgen-remaining-0.xml": _OTHER_XML,
    "08-esearch-xml-basic.xml": _OTHER_XML,
    "09-esearch-xml-usehistory.xml": _OTHER_XML,
    "10-esearch-xml-retstart6.xml": _OTHER_XML,
    "12-esearch-xml-no-hits.xml": _OTHER_XML,
    "13-epost-xml.xml": _OTHER_XML,
    "14-epost-xml-error-db.xml": _OTHER_XML,
    "16-esummary-xml.xml": _OTHER_XML,
    "18-elink-xml-neighbor.xml": _OTHER_XML,
    "20-elink-xml-prlinks.xml": _OTHER_XML,
    "21-elink-xml-ncheck.xml": _OTHER_XML,
    "22-espell-xml.xml": _OTHER_XML,
    "23-einfo-pubmed-xml.xml": _OTHER_XML,
    "39-elink-xml-1234567-2024.xml": _OTHER_XML,
    "50-elink-json-citations-26846451.json": _OTHER_JSON,
    "51-elink-json-citations-27350240.json": _OTHER_JSON,
    "52-elink-json-related-27350240.json": _OTHER_JSON,
    "54-elink-json-pmc-links-27350240.json": _OTHER_JSON,
    "56-einfo-pubmed-json.json": _OTHER_JSON,
    "57-esearch-xml-pmc-200ids.xml": _OTHER_XML,
    "58-esummary-json-pmc-200.json": _OTHER_JSON,
    "60-esummary-414-uri-too-long.html": (_TOO_LONG, _TOO_LONG),
}


@pytest.fixture(scope="module")
def search(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "pubmed.yaml"), "new")


@pytest.fixture(scope="module")
def detail(search):
    return search.detail


def fetched(name, detail):
    return read(recorded("pubmed", name), detail)


def test_every_recording_has_its_row():
    assert {*FOUND, *FETCHED, *REFUSED} == recordings("pubmed")


@pytest.mark.parametrize(("name", "ids"), FOUND.items())
def test_a_search_finds_the_ids_of_its_one_page(search, name, ids):
    walked = walk("pubmed", [name], search)

    assert walked.ids == ids
    assert walked.pages[0].decoded.total == len(ids)  # written as a text
    assert walked.after == Ended("ONE_PAGE")


@pytest.mark.parametrize(("name", "ids"), FETCHED.items())
def test_a_fetch_brings_the_records_of_its_ids(detail, name, ids):
    page = fetched(name, detail)

    assert (page.ids, page.mapped.bad, page.decoded.gone) == (ids, [], ())
    reconciled = reconcile([*ids, "1"], page.decoded, detail, detail.reconcile)
    assert (reconciled.missing, reconciled.merged) == (("1",), {})


@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_passes_neither_for_ids_nor_for_records(search, detail, name):
    for call, (error, words) in zip((search, detail), REFUSED[name], strict=True):
        with pytest.raises(error, match=re.escape(words)):
            read(recorded("pubmed", name), call)


@pytest.mark.parametrize("name", FETCHED)
def test_records_are_never_taken_for_a_search(search, name):
    with pytest.raises(BodyUnreadable, match="that is not JSON"):
        read(recorded("pubmed", name), search)


@pytest.mark.parametrize("name", FOUND)
def test_a_search_is_never_taken_for_records(detail, name):
    with pytest.raises(BodyUnreadable, match="that is not XML"):
        fetched(name, detail)


def test_a_rate_limit_is_one_with_its_own_status_too(search, detail):
    for call in (search, detail):
        with pytest.raises(Throttled, match="429"):
            read(recorded("pubmed", "04-esummary-rate-limited.json", status=429), call)
