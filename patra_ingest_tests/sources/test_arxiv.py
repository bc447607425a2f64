"""Every recorded answer of arXiv, read by the built-in pack; and what it asks of both its APIs."""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.errors import RequestRejected, Throttled
from patra_ingest.executor.paging import Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.question import days_of, fields_of, handmade, misfits, question
from patra_ingest_tests.sources.recorded import (
    asked,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

TESTING = [f"0{n}-query-testing-p0{n}.xml" for n in range(1, 7)]
LISTED = {  # how many papers, the first and the last, and the total that is promised
    TESTING[0]: (10, "2202.12139", "1812.11470", 214881),
    TESTING[1]: (10, "2403.16981", "2202.06271", 214881),
    TESTING[2]: (10, "2008.01944", "2602.15552", 214881),
    TESTING[3]: (10, "2101.12036", "2501.09657", 214881),
    TESTING[4]: (10, "1704.08347", "2107.07364", 214881),
    TESTING[5]: (10, "1709.03221", "2101.09077", 214881),
    "11-id-not-found.xml": (0, "", "", 0),
    "13-id-0808.05394-wrong.xml": (0, "", "", 0),
    "14-id-list-one-bad.xml": (1, "1707.08567", "1707.08567", 1),
    "15-id-1605.08386.xml": (1, "1605.08386", "1605.08386", 1),
    "17-id-old-style.xml": (1, "astro-ph/0601001", "astro-ph/0601001", 1),
    "19-id-old-versioned.xml": (1, "quant-ph/0201082", "quant-ph/0201082", 1),
}
MALFORMED = "12-id-malformed.xml"


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "arxiv.yaml")


@pytest.fixture(scope="module")
def query(sqlite_template, pack):
    return compiled(sqlite_template, pack, "query", Operation.BACKFILL)


@pytest.fixture(scope="module")
def by_ids(sqlite_template, pack):
    return compiled(sqlite_template, pack, "query", Operation.UPDATE)


@pytest.fixture(scope="module")
def records(sqlite_template, pack):
    return compiled(sqlite_template, pack, "records")


@needs_recordings
def test_every_recording_has_its_row():
    assert {*LISTED, MALFORMED} == recordings("arxiv")


@needs_recordings
@pytest.mark.parametrize("name", LISTED)
def test_a_page_gives_its_papers_whatever_it_was_asked_for(query, by_ids, name):
    page = read(recorded("arxiv", name), query, query.paging)

    assert (*page.ends, page.decoded.total) == LISTED[name]
    assert (page.mapped.bad, misfits(page)) == ([], [])
    assert read(recorded("arxiv", name), by_ids).ends == LISTED[name][:3]


@needs_recordings
def test_an_error_that_looks_like_one_result_is_rejected(query):
    with pytest.raises(RequestRejected, match="an error looks like one result"):
        read(recorded("arxiv", MALFORMED), query, query.paging)
    with pytest.raises(RequestRejected, match="an error looks like one result"):
        read(handmade("arxiv", "07-query-error.xml"), query, query.paging)  # … with status 200


def test_plain_text_says_that_we_are_too_fast(query):
    for status in (200, 429):
        with pytest.raises(Throttled):
            read(a_response(b"Rate exceeded.", status), query, query.paging)


@needs_recordings
def test_a_walk_goes_on_by_offset_to_where_the_recorded_one_went(sqlite_template, pack):
    values = {"paging": {"page_size": 10}, "cap": {"max": 300000}}
    spec = compiled(sqlite_template, pack, "query", Operation.BACKFILL, values)

    walked = walk("arxiv", TESTING, spec)

    sent = [int(asked("arxiv", name)["start"]) for name in TESTING]
    assert [page.offset for page in walked.places] == sent
    assert walked.after == Page(7, offset=60)


@needs_recordings
def test_a_paper_says_what_the_file_says(query):
    page = read(recorded("arxiv", "17-id-old-style.xml"), query)
    record, fields = page.record("astro-ph/0601001"), fields_of(page, "astro-ph/0601001")

    assert record.source_updated_at == datetime(2006, 1, 2, 14, 57, 58, tzinfo=UTC)
    said = {
        "title": "Frequency of Hot Jupiters and Very Hot Jupiters from the OGLE-III Transit Surveys"
        " Toward the Galactic Bulge and Carina",
        "authors": ["Andrew Gould", "Susan Dorsher", "B. Scott Gaudi", "Andrzej Udalski"],
        "journal": "ActaAstron.56:1-50,2006",
        "published": "2006-01-02",
        "has_abstract": True,
        "categories": ["astro-ph"],
        "version": "1",
        "retracted": False,
        "doi": None,
    }
    assert {name: fields[name] for name in said} == said
    first = read(recorded("arxiv", TESTING[0]), query)
    assert fields_of(first, "2202.12139")["doi"] == "10.1109/icstw55395.2022.00035"
    second = read(recorded("arxiv", TESTING[1]), query)
    assert fields_of(second, "2403.16981")["version"] == "2"


def test_a_day_of_submissions_is_asked_for_in_minutes(query):
    day = days_of("2026-11-01", "2026-11-02")
    first, sent = question(query, day)

    assert first == "https://export.arxiv.org/api/query"
    assert sent == {
        "search_query": "submittedDate:[202611010000 TO 202611012359]",
        "sortBy": "submittedDate",
        "sortOrder": "ascending",
        "start": "0",
        "max_results": "1000",
    }
    assert question(query, day, Page(2, offset=1000))[1] == {**sent, "start": "1000"}


def test_papers_are_asked_for_by_their_ids(by_ids):
    address, sent = question(by_ids, None, ids=("2501.90002", "ex/0501003"))

    assert address == "https://export.arxiv.org/api/query"
    assert sent == {"id_list": "2501.90002,ex/0501003", "max_results": "100"}


def test_a_harvest_sends_no_end_and_a_token_alone(sqlite_template, pack, records):
    day = days_of("2026-11-01", "2026-11-02")

    assert question(records, day) == (
        "https://oaipmh.arxiv.org/oai",
        {"verb": "ListRecords", "metadataPrefix": "arXiv", "from": "2026-10-30"},
    )
    assert question(records, day, Page(2, token="a%2Fb c"))[1] == {
        "verb": "ListRecords",
        "resumptionToken": "a%2Fb c",
    }
    backfill = compiled(sqlite_template, pack, "records", Operation.BACKFILL)
    bounded = question(backfill, day)[1]
    assert (bounded["from"], bounded["until"]) == ("2026-11-01", "2026-11-01")


def test_both_apis_spend_from_one_budget_of_one_request_in_three_seconds(query, records):
    for spec in (query, records):
        assert (spec.rate.key, spec.rate.in_flight, spec.rate.burst) == ("arxiv", 1, 1)
        assert spec.rate.min_interval == timedelta(seconds=3)


def test_a_record_of_oai_is_the_common_record_and_a_withdrawn_one_is_retracted(records):
    page = read(handmade("arxiv", "01-oai-p1.xml"), records, records.paging)

    assert dict(fields_of(page, "oai:arXiv.org:2412.90001")) == {
        "doi": "10.5555/ax.1",  # the first of two
        "title": "On examples",
        "authors": ["Example, Ada", "The Example Collaboration"],
        "journal": "J. Ex. 1 (2025) 1",
        "published": "2024-12-20",
        "created": "2024-12-20",
        "has_abstract": True,
        "license": "http://creativecommons.org/licenses/by/4.0/",
        "sets": ["cs:cs:EX"],
        "arxiv_id": "2412.90001",
        "revised": None,
        "categories": ["cs.EX", "math.EX"],
        "comment": "12 pages",
        "retracted": False,
    }
    assert fields_of(page, "oai:arXiv.org:2412.90002")["retracted"] is True
    assert misfits(page) == []


def test_a_harvest_ends_with_an_empty_token(records):
    page = read(handmade("arxiv", "02-oai-p2.xml"), records, records.paging)

    assert page.decoded.next is None
    assert [one.provider_id for one in page.mapped.records if one.is_deleted] == [
        "oai:arXiv.org:2412.90003"
    ]
