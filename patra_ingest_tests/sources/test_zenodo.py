"""What the pack of Zenodo asks of its two interfaces, and what it makes of their answers."""

from datetime import timedelta

import pytest

from patra_ingest.errors import RequestRejected, SliceMustRestart, SliceTooBig
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.question import days_of, fields_of, handmade, misfits, question
from patra_ingest_tests.sources.recorded import compiled, needs_recordings, walk
from patra_ingest_tests.sources.recorded import read as read_answer

DAY = days_of("2026-11-01", "2026-11-02")


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "zenodo.yaml")


@pytest.fixture(scope="module")
def oai(sqlite_template, pack):
    return compiled(sqlite_template, pack, "oai")


@pytest.fixture(scope="module")
def records(sqlite_template, pack):
    return compiled(sqlite_template, pack, "records")


def read(name, spec):
    return read_answer(handmade("zenodo", name), spec, spec.paging)


@needs_recordings
def test_the_recorded_page_gives_its_records_though_it_is_in_an_older_format(oai):
    walked = walk("oai-repositories", ["04-zenodo-2015.xml"], oai)

    numbers = (13841, 14165, 17183, 17185, 17188, 17189, 17190)
    (page,) = walked.pages
    assert walked.after == Ended("NO_TOKEN")
    assert page.ids == [f"oai:zenodo.org:{number}" for number in numbers]
    said = fields_of(page, "oai:zenodo.org:13841")
    assert (said["doi"], said["authors"]) == ("10.5281/zenodo.13841", ["Sticht, Kendra"])
    assert misfits(page) == []


def test_the_first_and_the_next_request_of_oai(oai):
    assert question(oai, DAY) == (
        "https://zenodo.org/oai2d",
        {
            "verb": "ListRecords",
            "metadataPrefix": "oai_datacite",
            "from": "2026-10-31T22:00:00Z",
            "until": "2026-11-01T23:59:59Z",
        },
    )
    assert question(oai, DAY, Page(2, token=".eJw.x"))[1] == {
        "verb": "ListRecords",
        "resumptionToken": ".eJw.x",
    }


def test_a_token_is_not_tried_after_two_minutes_and_422_says_that_it_was_too_late(oai):
    assert oai.paging.token_life < timedelta(minutes=2)
    with pytest.raises(SliceMustRestart):
        read("08-oai-too-late.html", oai)


def test_a_record_of_oai_is_the_common_record_and_a_removed_one_a_deletion(oai):
    page, last = read("06-oai-p1.xml", oai), read("07-oai-p2.xml", oai)

    assert dict(fields_of(page, "oai:zenodo.org:900001")) == {
        "doi": "10.5555/zenodo.900001",
        "title": "Example dataset 900001",
        "authors": ["Example, Ada"],
        "published": "2024-12-01",  # issued, not updated
        "type": "Dataset",
        "language": "eng",
        "has_abstract": True,
        "license": "https://creativecommons.org/licenses/by/4.0/legalcode",
        "publisher": "Zenodo",
        "sets": ["user-example"],
    }
    assert misfits(page) == []
    assert [one.provider_id for one in last.mapped.records if one.is_deleted] == [
        "oai:zenodo.org:900003"
    ]


def test_the_end_of_a_window_is_not_counted_in_by_rest(records):
    address, sent = question(records, DAY)

    assert address == "https://zenodo.org/api/records"
    assert sent == {
        "q": "updated:[2026-10-31T22:00:00 TO 2026-11-02T00:00:00}",
        "all_versions": "true",
        "sort": "updated-asc",
        "page": "1",
        "size": "25",
    }
    assert question(records, DAY, Page(2, offset=2))[1] == {**sent, "page": "2"}


def test_a_record_of_rest_is_the_common_record(records):
    pages = [read(f"0{n}-rest-p{n}.json", records) for n in (1, 2)]

    assert dict(fields_of(pages[0], "900001")) == {
        "doi": "10.5555/zenodo.900001",
        "title": "Example dataset 900001",
        "authors": ["Example, Ada"],
        "journal": None,
        "published": "2024-12-01",
        "created": "2024-12-01",
        "type": "dataset",
        "language": "eng",
        "has_abstract": True,
        "license": "cc-by-4.0",
        "subtype": None,
        "access": "open",
        "concept": "900000",
    }
    dates = [fields_of(pages[0], "900002")["published"], fields_of(pages[1], "900003")["published"]]
    assert dates == ["2024", "2024-01-01"]  # a year; the first day of a range
    assert [sentence for page in pages for sentence in misfits(page)] == []


def test_one_record_by_its_number_is_the_same_record(sqlite_template, pack):
    record = compiled(sqlite_template, pack, "record", Operation.UPDATE)
    page = read_answer(handmade("zenodo", "09-record.json"), record)

    assert question(record, None, ids=("900002",))[0] == "https://zenodo.org/api/records/900002"
    assert (page.ids, misfits(page)) == (["900002"], [])


def test_more_than_ten_thousand_are_cut_again_and_a_page_that_is_too_large_is_not(records):
    with pytest.raises(SliceTooBig):
        read("04-rest-beyond.json", records)
    with pytest.raises(RequestRejected):
        read("05-rest-too-large.json", records)


def test_search_and_oai_have_budgets_of_their_own_within_that_of_a_guest(oai, records):
    assert [spec.rate.key for spec in (oai, records)] == ["zenodo:oai", "zenodo:search"]
    for spec in (oai, records):
        (guest,) = spec.rate.also
        assert (guest.key, [quota.limit for quota in guest.quotas]) == ("zenodo", [2000])
