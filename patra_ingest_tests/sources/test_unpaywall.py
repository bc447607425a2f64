"""Unpaywall: what is asked for a DOI, and every recorded answer by the built-in pack."""

import json
from datetime import UTC, datetime

import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.sources.asking import request_for
from patra_ingest_tests.sources.recorded import (
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)

OPEN, CLOSED = "01-doi-oa.json", "02-doi-closed.json"
SEARCHES = ("05-search-one.json", "06-search-empty.json")  # an endpoint that the pack does not ask


@pytest.fixture(scope="module")
def spec(sqlite_template):
    pack = read_pack(FOLDER / "unpaywall.yaml")
    return compiled(sqlite_template, pack, "doi", Operation.UPDATE)


def test_a_doi_stands_in_the_path_and_our_address_in_the_query(spec):
    request = request_for(spec, ids=["10.1002/(sici)1097-4571(198909)40:5<342::aid-asi7>"])

    assert request.full_url == (
        "https://api.unpaywall.org/v2/10.1002%2F%28sici%291097-4571%28198909%2940%3A5%3C342%3A%3A"
        "aid-asi7%3E?email=suite%40uni-x.de"
    )
    assert (request.method, spec.batching.ids_per_request) == ("GET", 1)


def test_without_an_address_nothing_is_asked(spec):
    with pytest.raises(RequestRejected, match=r"email is required.*set PATRA_CONTACT"):
        request_for(spec, ids=["10.5555/1"], contact="")


def test_a_day_has_a_hundred_thousand_requests(spec):
    (quota,) = spec.rate.quotas
    assert (quota.limit, quota.per.total_seconds()) == (100_000, 86_400)


@needs_recordings
def test_every_recording_has_its_test():
    assert {OPEN, CLOSED, *SEARCHES} == recordings("unpaywall")


@needs_recordings
@pytest.mark.parametrize("name", [OPEN, CLOSED])
def test_the_address_is_the_one_that_was_recorded(spec, name):
    doi = asked_url("unpaywall", name).split("/v2/")[1].split("?")[0]
    url = request_for(spec, ids=[doi]).full_url

    assert url.replace("%2F", "/").split("?")[0] == asked_url("unpaywall", name).split("?")[0]


@needs_recordings
def test_an_open_work_says_what_the_file_says(spec):
    record = read(recorded("unpaywall", OPEN), spec).record("10.1016/j.xgen.2025.100814")
    fields = json.loads(record.fields_json)

    assert record.source_updated_at == datetime(2025, 8, 4, 14, 10, 34, tzinfo=UTC)
    assert fields == {
        "doi": "10.1016/j.xgen.2025.100814",
        "title": ("High-throughput screening of human genetic variants by pooled prime editing"),
        "authors": [
            *("Michael Herger", "Christina M. Kajba", "Megan Buckley", "Ana Cunha"),
            *("Molly Strom", "Gregory M. Findlay"),
        ],
        "journal": "Cell Genomics",
        "issn": ["2666-979X"],
        "published": "2025-03-22",
        "type": "journal-article",
        "license": "cc-by",
        "publisher": "Elsevier BV",
        "is_open": True,
        "status": "gold",
        "url": "https://doi.org/10.1016/j.xgen.2025.100814",
        "version": "publishedVersion",
        "copies": 2,
    }
    assert find_misfits(fields) == []


@needs_recordings
def test_a_closed_work_has_no_place_and_no_authors(spec):
    record = read(recorded("unpaywall", CLOSED), spec).record("10.1007/s40278-023-41815-2")
    fields = json.loads(record.fields_json)

    assert record.source_updated_at == datetime(2025, 5, 22, 18, 42, 22, tzinfo=UTC)
    known = ("issn", "published", "status", "is_open", "url", "license", "authors", "copies")
    assert [fields[name] for name in known] == [
        *(["0114-9954", "1179-2051"], "2023-06-23", "closed", False),
        *(None, None, None, 0),
    ]
    assert find_misfits(fields) == []


@needs_recordings
@pytest.mark.parametrize("name", SEARCHES)
def test_what_a_search_answers_is_an_error_and_never_no_record(spec, name):
    with pytest.raises(EndpointHalted, match=r"there is nothing at \$\.doi"):
        read(recorded("unpaywall", name), spec)
