"""The recorded harvest of PubMed Central, read by the built-in pack; and what it asks now."""

from datetime import UTC, datetime

import pytest

from patra_ingest.executor.paging import Ended, Page
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.question import days_of, fields_of, handmade, misfits, question
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

PAGES = [f"{n:02d}-listrecords-oai_dc-p{n:02d}.xml" for n in range(1, 18)]
_PMC = "oai:pubmedcentral.nih.gov"


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "pmc.yaml")


@pytest.fixture(scope="module")
def records(sqlite_template, pack):
    return compiled(sqlite_template, pack, "records")


@needs_recordings
def test_seventeen_pages_give_the_articles_and_the_common_record(records):
    assert set(PAGES) == recordings("oai-pmc")

    walked = walk("oai-pmc", PAGES, records)

    ids = walked.ids
    assert (len(ids), len(set(ids)), ids[0], ids[-1]) == (
        *(844, 844),
        *(f"{_PMC}:3539697", f"{_PMC}:4276715"),
    )
    assert walked.after == Ended("NO_TOKEN")
    assert [page.mapped.bad for page in walked.pages] == [[]] * 17
    assert [sentence for page in walked.pages for sentence in misfits(page)] == []


@needs_recordings
def test_an_article_says_what_the_file_says(records):
    page = read(recorded("oai-pmc", PAGES[0]), records)
    record = page.record(f"{_PMC}:3539697")

    assert record.source_updated_at == datetime(2014, 12, 25, tzinfo=UTC)
    assert dict(fields_of(page, f"{_PMC}:3539697")) == {
        "doi": "10.1107/s1744309112047562",
        "pmid": "23295480",
        "pmcid": "PMC3539697",
        "title": "Use of europium ions for SAD phasing of lysozyme at the Cu Kα wavelength",
        "authors": ["Vijayakumar, Balakrishnan", "Velmurugan, Devadasan"],
        "journal": None,
        "published": "2012-12-25",
        "type": "Text",
        "language": "en",
        "has_abstract": True,
        "license": None,
        "publisher": "International Union of Crystallography",
        "sets": ["actaf"],
    }
    empty = fields_of(page, f"{_PMC}:3870030")  # <dc:description/>
    assert empty["has_abstract"] is False


@needs_recordings
def test_the_days_are_written_as_the_recorded_ones_were(records):
    window = days_of("2014-12-26T05:00:00Z", "2014-12-27T05:00:00Z")  # it reaches back two days

    address, sent = question(records, window)

    assert address == "https://pmc.ncbi.nlm.nih.gov/api/oai/v1/mh/"
    assert sent == {**asked("oai-pmc", PAGES[0]), "until": "2014-12-26"}
    token = walk("oai-pmc", PAGES[:1], records).after.token
    assert asked_url("oai-pmc", PAGES[1]).endswith(f"resumptionToken={token}")
    assert question(records, window, Page(2, token=token))[1] == {
        "verb": "ListRecords",
        "resumptionToken": token,
    }


def test_it_spends_from_the_budget_of_pubmed_and_sends_one_request_at_a_time(
    sqlite_template, records
):
    pubmed = compiled(sqlite_template, read_pack(FOLDER / "pubmed.yaml"), "new").rate

    assert records.rate.key == pubmed.key == "ncbi"
    assert (records.rate.per_second, records.rate.in_flight) == (
        *(pubmed.per_second, pubmed.in_flight),
    )
    assert [(also.key, also.in_flight) for also in records.rate.also] == [("pmc:oai", 1)]


def test_an_article_of_today_has_its_three_ids_and_its_journal(records):
    page = read(handmade("pmc", "01-walk-p1.xml"), records, records.paging)

    said = fields_of(page, f"{_PMC}:9000001")
    assert (said["doi"], said["pmid"], said["pmcid"], said["journal"], said["license"]) == (
        *("10.5555/pmc.9000001", "99000001", "PMC9000001", "Journal of Examples"),
        "https://creativecommons.org/licenses/by/4.0/",
    )
    assert misfits(page) == []
