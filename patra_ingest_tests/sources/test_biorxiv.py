"""The recorded answer of bioRxiv, read by the built-in pack; and what it asks of both servers."""

import pytest

from patra_ingest.errors import CompileError, EndpointHalted
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText, read_pack_file
from patra_ingest_tests.sources.question import days_of, fields_of, handmade, misfits, question
from patra_ingest_tests.sources.recorded import (
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

PAGE = "01-details-reduced.json"


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "biorxiv.yaml")


@pytest.fixture(scope="module")
def details(sqlite_template, pack):
    return compiled(sqlite_template, pack, "details")


@pytest.fixture(scope="module")
def pubs(sqlite_template, pack):
    return compiled(sqlite_template, pack, "pubs", Operation.BACKFILL)


@needs_recordings
def test_the_recorded_page_gives_its_versions(details):
    assert recordings("biorxiv") == {PAGE}

    walked = walk("biorxiv", [PAGE], details)

    assert walked.ids == [
        "10.64898/2026.07.13.738145v1",
        "10.64898/2026.07.13.738249v1",
        "10.64898/2025.12.19.695336v3",
    ]
    (page,) = walked.pages
    assert (page.decoded.total, page.mapped.bad, misfits(page)) == (3, [], [])  # the total is text
    assert walked.after == Ended("TOTAL_REACHED")


@needs_recordings
def test_a_version_says_what_the_file_says(details):
    page = read(recorded("biorxiv", PAGE), details)

    assert dict(fields_of(page, "10.64898/2026.07.13.738145v1")) == {
        "doi": "10.64898/2026.07.13.738145",
        "title": "Laterality of subcortical structures predicts spontaneous brain dynamics",
        "authors": ["Ghafari, T.", "Quinn, A. J.", "Jensen, O."],
        "published": "2026-07-15",
        "type": "new results",
        "has_abstract": True,
        "license": "cc_by",
        "server": "bioRxiv",
        "category": "neuroscience",
        "journal_doi": None,  # NA
        "version": "1",
        "retracted": False,
    }


@needs_recordings
def test_the_request_is_the_recorded_one_for_its_days(details):
    window = days_of("2026-07-17T04:00:00Z", "2026-07-19T04:00:00Z")  # it reaches back two days

    address, sent = question(details, window, partition={"server": "biorxiv"})

    assert (address, sent) == (asked_url("biorxiv", PAGE), {})


def test_the_next_page_begins_where_the_source_says_and_not_a_hundred_further(details):
    page = read(handmade("biorxiv", "01-walk-p1.json"), details, details.paging)

    assert (page.decoded.step, page.decoded.total) == (2, 3)
    address, _ = question(
        details,
        days_of("2026-11-01T05:00:00Z", "2026-11-02T05:00:00Z"),
        Page(2, offset=2),
        partition={"server": "medrxiv"},
    )
    assert address == "https://api.biorxiv.org/details/medrxiv/2026-10-30/2026-11-01/2"


def test_each_server_is_a_partition_of_one_budget(details):
    assert {name: dict(values) for name, values in details.partitions.items()} == {
        "biorxiv": {"server": "biorxiv"},
        "medrxiv": {"server": "medrxiv"},
    }
    assert (details.rate.key, details.rate.in_flight) == ("cshl", 1)


def test_a_withdrawn_version_is_retracted_and_a_published_one_knows_where(details):
    first = read(handmade("biorxiv", "01-walk-p1.json"), details)
    second = read(handmade("biorxiv", "02-walk-p2.json"), details)

    assert fields_of(first, "10.1101/2025.01.01.900002v2")["journal_doi"] == "10.5555/journal.2"
    assert fields_of(second, "10.1101/2025.01.01.900002v3")["retracted"] is True
    assert [*misfits(first), *misfits(second)] == []


def test_no_posts_are_no_items_and_another_status_needs_a_person(details):
    assert read(handmade("biorxiv", "04-none.json"), details, details.paging).ids == []
    with pytest.raises(EndpointHalted, match="invented trouble"):
        read(handmade("biorxiv", "05-another-status.json"), details, details.paging)


def test_published_preprints_are_the_common_record_under_either_name_of_their_doi(pubs):
    pages = [read(handmade("biorxiv", f"0{n}-pubs-p{n - 6}.json"), pubs) for n in (7, 8)]

    assert [page.ids for page in pages] == [
        ["10.1101/2024.11.11.900011"],
        ["10.1101/2024.11.11.900012"],
    ]
    said = fields_of(pages[0], "10.1101/2024.11.11.900011")
    assert (said["doi"], said["journal"], said["published"], said["created"]) == (
        *("10.5555/journal.11", "Journal of Examples"),
        *("2025-01-01", "2024-11-11"),
    )
    assert [sentence for page in pages for sentence in misfits(page)] == []


def test_what_is_filed_by_its_publication_date_refuses_to_be_harvested(sqlite_template):
    text = read_pack_file(FOLDER / "biorxiv.yaml")
    text.value["endpoints"]["pubs"]["operations"] = ["HARVEST"]
    pack = parse_pack(PackText("biorxiv", text.value, {}))

    with pytest.raises(CompileError, match="late and changed records would never be seen"):
        compiled(sqlite_template, pack, "pubs")
