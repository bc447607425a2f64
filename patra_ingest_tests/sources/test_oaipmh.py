"""The template for OAI-PMH: every recorded repository, read with no more than its parameters."""

from datetime import UTC, datetime

import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, SliceMustRestart
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.question import days_of, fields_of, misfits, question
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

DATACITE = [f"0{n}-listrecords-oai_dc-p0{n}.xml" for n in (1, 2)]
ASU = [f"0{n}-asu-deleted-p0{n}.xml" for n in (1, 2)]
_COLORADO = "oai:dspace.library.colostate.edu"
_PAST_600 = "oai_dc/2016-05-04T00:00:00Z/2016-05-06T00:00:00Z//600"

# The source, its pages, how many ids there are, the first and the last, the total that the first
# page promises, and the rule that ends the walk or the page that comes next.
WALKS = [
    (
        *("oai-datacite", DATACITE, 56, "oai:oai.datacite.org:1540717"),
        *("oai:oai.datacite.org:1543914", 56, Ended("NO_TOKEN")),
    ),
    ("oai-repositories", ASU, 79, "item:28146", "item:28200", None, Ended("NO_TOKEN")),
    (
        *("oai-repositories", ["03-colostate-page6-deleted.xml"], 100, f"{_COLORADO}:10968/914"),
        *(f"{_COLORADO}:10968/100", 1008, Page(2, token=_PAST_600)),
    ),
    (
        *("oai-repositories", ["04-zenodo-2015.xml"], 7, "oai:zenodo.org:13841"),
        *("oai:zenodo.org:17190", None, Ended("NO_TOKEN")),
    ),
    (
        *("oai-repositories", ["07-nature-listsize-mismatch.xml"], 173),
        *("oai:nature.com:10.1038/srep22278", "oai:nature.com:10.1038/nm.4054", 174),
        Ended("NO_TOKEN"),
    ),
    (
        *("oai-repositories", ["09-redirect-302-p02.xml"], 1),
        *("http://dx.doi.org/10.4231/R7TQ5ZG3", "http://dx.doi.org/10.4231/R7TQ5ZG3", None),
        Ended("NO_TOKEN"),
    ),
]
ERRORS = [
    ("oai-spec-examples", "01-badresumptiontoken.xml", SliceMustRestart, "badResumptionToken"),
    ("oai-spec-examples", "02-cannotdisseminateformat.xml", EndpointHalted, "cannotDisseminate"),
    ("oai-repositories", "08-redirect-302-p01.txt", RequestRejected, "answered 302"),
]


@pytest.fixture(scope="module")
def specs(sqlite_template):
    """The template applied by day and by second."""

    def applied(**given):
        pack = read_pack(FOLDER / "oaipmh.yaml", None, {"code": "any", **given})
        return compiled(sqlite_template, pack, "records")

    asu = applied(base_url="https://repository.asu.edu/oai-pmh", granularity="DAY")
    return {
        "DAY": asu,
        "SECOND": applied(base_url="https://zenodo.org/oai2d", set="user-zenodo"),
        "oai": applied(base_url="https://mirror.example/oai/"),
    }


@needs_recordings
def test_every_recording_has_its_row():
    told = [*((row[0], name) for row in WALKS for name in row[1]), *(row[:2] for row in ERRORS)]
    sources = ("oai-datacite", "oai-repositories", "oai-spec-examples")

    assert sorted(told) == sorted((one, name) for one in sources for name in recordings(one))


@needs_recordings
@pytest.mark.parametrize(
    ("source", "names", "many", "first", "last", "total", "after"),
    WALKS,
    ids=[row[1][0][:24] for row in WALKS],
)
def test_a_walk_gives_the_ids_and_the_common_record(
    specs, source, names, many, first, last, total, after
):
    walked = walk(source, names, specs["SECOND"])

    ids = walked.ids
    assert (len(ids), len(set(ids)), ids[0], ids[-1]) == (many, many, first, last)
    assert walked.pages[0].decoded.total == total
    assert walked.after == after
    assert [page.mapped.bad for page in walked.pages] == [[] for _ in names]
    assert [sentence for page in walked.pages for sentence in misfits(page)] == []


@needs_recordings
@pytest.mark.parametrize(("source", "name", "error", "words"), ERRORS)
def test_another_answer_is_the_declared_error(specs, source, name, error, words):
    with pytest.raises(error, match=words) as raised:
        read(recorded(source, name), specs["SECOND"], specs["SECOND"].paging)

    assert type(raised.value) is error


@needs_recordings
def test_a_deleted_header_is_a_deletion_with_its_time(specs):
    pages = [
        *walk("oai-repositories", ASU, specs["DAY"]).pages,
        *walk("oai-repositories", ["03-colostate-page6-deleted.xml"], specs["DAY"]).pages,
    ]

    records = [record for page in pages for record in page.mapped.records if record.is_deleted]
    assert {record.provider_id: record.source_updated_at for record in records} == {
        "item:28167": datetime(2015, 3, 10, 22, 0, 44, tzinfo=UTC),
        f"{_COLORADO}:10217/21112": datetime(2016, 5, 4, 20, 40, 36, tzinfo=UTC),
        f"{_COLORADO}:10217/21438": datetime(2016, 5, 4, 20, 40, 20, tzinfo=UTC),
    }


@needs_recordings
def test_a_record_says_what_the_file_says(specs):
    zenodo = read(recorded("oai-repositories", "04-zenodo-2015.xml"), specs["SECOND"])
    datacite = read(recorded("oai-datacite", DATACITE[1]), specs["SECOND"])

    assert dict(fields_of(zenodo, "oai:zenodo.org:13841")) == {
        "doi": "10.5281/zenodo.13841",  # written as `doi:…` after a line of blanks
        "title": "Einsatz von Forschungsinformationssystemen an Universitäten und Hochschulen mit"
        " Promotionsrecht in Deutschland. Ergebnisbericht",
        "authors": ["Sticht, Kendra"],
        "published": "2015-01-08",
        "type": "info:eu-repo/semantics/article",
        "language": None,
        "has_abstract": True,
        "license": None,
        "publisher": None,
        "sets": ["openaire", "user-ag-fis", "user-zenodo"],
    }
    rights = fields_of(datacite, "oai:oai.datacite.org:1543900")["license"]
    assert rights == "http://creativecommons.org/licenses/by-nc-nd/3.0/de/"  # behind prose


@needs_recordings
def test_the_first_and_the_next_request_are_those_that_were_recorded(specs):
    window = days_of("2015-03-12", "2015-03-13")  # it reaches back two days
    address, sent = question(specs["DAY"], window)

    was = asked("oai-repositories", ASU[0])
    assert address == asked_url("oai-repositories", ASU[0]).partition("?")[0].replace(
        "http:", "https:"
    )
    assert sent == {**was, "until": "2015-03-12"}
    token = walk("oai-repositories", ASU[:1], specs["DAY"]).after.token
    address, sent = question(specs["DAY"], window, Page(2, token=token))
    assert sent == {"verb": "ListRecords", "resumptionToken": token}
    assert asked_url("oai-repositories", ASU[1]).endswith(f"resumptionToken={token}")


def test_seconds_and_a_set_are_asked_for_and_a_slash_stays_where_it_was(specs):
    address, sent = question(specs["SECOND"], days_of("2015-04-27T02:00:00Z", "2015-04-28"))

    assert address == "https://zenodo.org/oai2d"
    assert sent == {
        "verb": "ListRecords",
        "metadataPrefix": "oai_dc",
        "set": "user-zenodo",
        "from": "2015-04-27T00:00:00Z",
        "until": "2015-04-27T23:59:59Z",
    }
    assert (
        question(specs["oai"], days_of("2015-04-27", "2015-04-28"))[0]
        == "https://mirror.example/oai/"
    )


def answer(inside):
    return a_response(
        f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        f"<responseDate>2026-11-01T00:00:00Z</responseDate>{inside}</OAI-PMH>".encode()
    )


def test_no_records_match_is_a_success_without_items(specs):
    page = read(answer('<error code="noRecordsMatch">None.</error>'), specs["DAY"])

    assert (page.ids, page.decoded.total) == ([], 0)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (answer('<error code="badArgument">No.</error>'), EndpointHalted),
        (answer('<error code="idDoesNotExist"/>'), EndpointHalted),
        (answer('<error code="badResumptionToken"/>'), SliceMustRestart),
        (a_response(b"<html/>", 422), SliceMustRestart),
        (answer("<ListIdentifiers/>"), EndpointHalted),  # another shape is no empty answer
        (a_response(b'<feed xmlns="http://www.w3.org/2005/Atom"/>'), EndpointHalted),
    ],
)
def test_every_other_error_is_never_zero_items(specs, response, error):
    with pytest.raises(error) as raised:
        read(response, specs["DAY"], specs["DAY"].paging)

    assert type(raised.value) is error
