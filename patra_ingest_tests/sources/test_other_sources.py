"""Recorded answers of sources that have no built-in pack yet: shapes that the three lack."""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

import pytest

from patra_ingest.errors import (
    EndpointHalted,
    RequestRejected,
    SliceIncomplete,
    SliceMustRestart,
    TransientError,
)
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.executor.request import Asking, render
from patra_ingest_tests.builders import NOON, days
from patra_ingest_tests.sources.other_pack import other_pack
from patra_ingest_tests.sources.recorded import (
    asked,
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    walk,
)

pytestmark = needs_recordings

PMC = [f"{n:02d}-listrecords-oai_dc-p{n:02d}.xml" for n in range(1, 18)]
DATACITE = [f"0{n}-listrecords-oai_dc-p0{n}.xml" for n in (1, 2)]
ASU = [f"0{n}-asu-deleted-p0{n}.xml" for n in (1, 2)]
ARXIV = [f"0{n}-query-testing-p0{n}.xml" for n in range(1, 7)]
TURING = [f"0{n}-search-turing-offset-p0{n}.json" for n in (1, 2)]
AUTHOR = [f"{n + 9}-author-papers-offset-p0{n}.json" for n in range(1, 10)]
BULK = [f"0{n + 2}-bulk-sort-asc-token-p0{n}.json" for n in range(1, 5)]
CITED = [f"{n + 22}-references-offset-p0{n}.json" for n in (1, 2)]
STUDIES = [f"0{n}-v2-search-phelan-p0{n}.json" for n in (1, 2)]
PEOPLE = [f"0{n}-search-rows3-start-p0{n}.json" for n in (1, 2)]
USGS = [f"0{n}-publication-p0{n}.json" for n in range(1, 10)]


@pytest.fixture(scope="module")
def specs(sqlite_template):
    pack = other_pack()
    return {name: compiled(sqlite_template, pack, name) for name in pack.endpoints}


# The endpoint, the source, its pages, how many ids there are, the first and the last of them, the
# total of the first page, and the rule that ends the walk or the place that comes next.
_TOKEN = "ZVt07cGHkvI2wRk2CJf6_LLq14bEL8swd7KrgP4bmjeauvk_IQ"
_PMC, _ZENODO = "oai:pubmedcentral.nih.gov", "oai:zenodo.org"
_COLORADO = "oai:dspace.library.colostate.edu:10968"
_PAST_600 = "oai_dc/2016-05-04T00:00:00Z/2016-05-06T00:00:00Z//600"
WALKS = [
    ("oai", "oai-pmc", PMC, 844, f"{_PMC}:3539697", f"{_PMC}:4276715", None, "NO_TOKEN"),
    (
        *("oai", "oai-datacite", DATACITE, 56),
        *("oai:oai.datacite.org:1540717", "oai:oai.datacite.org:1543914", 56, "NO_TOKEN"),
    ),
    ("oai", "oai-repositories", ASU, 79, "item:28146", "item:28200", None, "NO_TOKEN"),
    (
        *("oai", "oai-repositories", ["03-colostate-page6-deleted.xml"], 100),
        *(f"{_COLORADO}/914", f"{_COLORADO}/100", 1008, Page(2, token=_PAST_600)),
    ),
    (
        *("oai", "oai-repositories", ["04-zenodo-2015.xml"], 7),
        *(f"{_ZENODO}:13841", f"{_ZENODO}:17190", None, "NO_TOKEN"),
    ),
    (
        *("oai", "oai-repositories", ["07-nature-listsize-mismatch.xml"], 173),
        *("oai:nature.com:10.1038/srep22278", "oai:nature.com:10.1038/nm.4054", 174, "NO_TOKEN"),
    ),
    ("atom", "arxiv", ARXIV, 60, "2202.12139", "2101.09077", 214881, Page(7, offset=60)),
    ("atom", "arxiv", ["11-id-not-found.xml"], 0, "", "", 0, "TOTAL_REACHED"),
    *(
        ("atom", "arxiv", [name], 1, one, one, 1, "TOTAL_REACHED")
        for name, one in (
            ("14-id-list-one-bad.xml", "1707.08567"),
            ("17-id-old-style.xml", "astro-ph/0601001"),
            ("19-id-old-versioned.xml", "quant-ph/0201082"),
        )
    ),
    (
        *("dois", "datacite", ["07-dois-updated-range-lastpage.json"], 22),
        *("10.0133/32238", "10.25499/af32omozas3pe77xfeekow6ah", 22, "NO_TOKEN"),
    ),
    ("dois", "datacite", ["09-dois-updated-range-empty.json"], 0, "", "", 0, "NO_TOKEN"),
    (
        *("papers", "semanticscholar", TURING, 200, "7cbc2a7843411a1768ab762930707af0a3c33a19"),
        *("f2acd4ed92017a31222358c0076ccc98e753de0d", 70498, Page(3, token="200")),
    ),
    (
        *("papers", "semanticscholar", AUTHOR, 875, "01063e45d9fc9635d29d8d78aa24ed8de351f36a"),
        *("d3ba40f9be03277b52740056c787ecda4ca42f2c", None, "NO_TOKEN"),
    ),
    ("papers", "semanticscholar", ["25-empty-result.json"], 0, "", "", 0, "NO_TOKEN"),
    (
        *("bulk", "semanticscholar", BULK, 3027, "0020825b272b31f63359eadf0d714d49590095f4"),
        *("f125b540d7453eb58d38f933588f4b80c80959f2", 3027, "NO_TOKEN"),
    ),
    (
        *("studies", "clinicaltrials", STUDIES, 10, "NCT02710084", "NCT07281079", 21),
        Page(3, token=_TOKEN),
    ),
    (
        *("people", "orcid", PEOPLE, 6, "0000-0002-8289-1497", "0000-0002-2572-3809", 10242),
        Page(3, offset=6),
    ),
    ("people", "orcid", ["03-search-no-results.json"], 0, "", "", 0, "TOTAL_REACHED"),
    ("works", "orcid", ["08-works-empty.json"], 0, "", "", None, "ONE_PAGE"),
    ("works", "orcid", ["09-works-full.json"], 111, "44924450", "9011431", None, "ONE_PAGE"),
    (
        *("solr", "plos", ["02-search-xml-2007-p02.xml"], 116, "10.1371/journal.ppat.0030198"),
        *("10.1371/journal.pgen.0030225/supporting_information", 116, "TOTAL_REACHED"),
    ),
]


@pytest.mark.parametrize(
    ("endpoint", "source", "names", "many", "first", "last", "total", "after"),
    WALKS,
    ids=[f"{row[1]}/{row[2][0][:24]}" for row in WALKS],
)
def test_a_walk_gives_the_ids_and_goes_where_the_source_says(
    specs, endpoint, source, names, many, first, last, total, after
):
    walked = walk(source, names, specs[endpoint])

    ids = walked.ids
    assert (len(ids), len(set(ids))) == (many, many)
    assert (ids[:1], ids[-1:]) == (([first], [last]) if many else ([], []))
    assert walked.pages[0].decoded.total == total
    assert walked.after == (Ended(after) if isinstance(after, str) else after)
    assert all(page.mapped.bad == [] for page in walked.pages)


@pytest.mark.parametrize(
    ("source", "names"),
    [("oai-pmc", PMC), ("oai-datacite", DATACITE), ("oai-repositories", ASU)],
)
def test_a_resumption_token_is_taken_as_it_stands(specs, source, names):
    walked = walk(source, names, specs["oai"])

    # These clients put it into the address as it was, percent signs and all.
    for name, page in zip(names[1:], walked.places[1:], strict=True):
        assert asked_url(source, name).endswith(f"resumptionToken={page.token}")


@pytest.mark.parametrize(
    ("endpoint", "source", "names", "param"),
    [
        ("papers", "semanticscholar", TURING, "offset"),
        ("papers", "semanticscholar", AUTHOR, "offset"),
        ("bulk", "semanticscholar", BULK, "token"),
        ("studies", "clinicaltrials", STUDIES, "pageToken"),
    ],
)
def test_a_token_is_the_one_that_the_next_request_carried(specs, endpoint, source, names, param):
    walked = walk(source, names, specs[endpoint])

    sent = [asked(source, name)[param] for name in names[1:]]
    assert [page.token for page in walked.places[1:]] == sent


@pytest.mark.parametrize(
    ("endpoint", "source", "name", "error"),
    [
        ("oai", "oai-spec-examples", "01-badresumptiontoken.xml", SliceMustRestart),
        ("oai", "oai-spec-examples", "02-cannotdisseminateformat.xml", EndpointHalted),
        ("oai", "oai-repositories", "08-redirect-302-p01.txt", RequestRejected),
        ("atom", "arxiv", "12-id-malformed.xml", RequestRejected),
        ("dois", "datacite", "05-activities-page.json", EndpointHalted),
        ("dois", "datacite", "13-doi-404.json", RequestRejected),
        ("dois", "datacite", "15-doi-dryad.json", EndpointHalted),
        ("papers", "semanticscholar", "26-batch-with-null.json", EndpointHalted),
        ("papers", "semanticscholar", "28-400-bad-fields.json", RequestRejected),
        ("papers", "semanticscholar", "29-403-forbidden.json", EndpointHalted),
        ("papers", "semanticscholar", "30-404-paper.json", RequestRejected),
        ("papers", "semanticscholar", "33-releases.json", EndpointHalted),
        ("studies", "clinicaltrials", "05-v2-study-nct02576665.json", EndpointHalted),
        ("people", "orcid", "05-500-start-not-a-number.json", TransientError),
        ("people", "orcid", "06-400-rows-not-a-number.json", RequestRejected),
    ],
)
def test_another_answer_is_an_error_and_never_an_empty_page(specs, endpoint, source, name, error):
    spec = specs[endpoint]

    with pytest.raises(error) as raised:
        read(recorded(source, name), spec, spec.paging)

    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (ASU, {"item:28167": datetime(2015, 3, 10, 22, 0, 44, tzinfo=UTC)}),
        (
            ["03-colostate-page6-deleted.xml"],
            {
                "oai:dspace.library.colostate.edu:10217/21112": datetime(
                    2016, 5, 4, 20, 40, 36, tzinfo=UTC
                ),
                "oai:dspace.library.colostate.edu:10217/21438": datetime(
                    2016, 5, 4, 20, 40, 20, tzinfo=UTC
                ),
            },
        ),
    ],
)
def test_a_deleted_header_is_a_deletion_with_its_time(specs, names, gone):
    pages = walk("oai-repositories", names, specs["oai"]).pages

    records = [record for page in pages for record in page.mapped.records if record.is_deleted]
    assert {record.provider_id: record.source_updated_at for record in records} == gone


def test_a_version_is_split_from_its_id(specs):
    page = read(recorded("arxiv", ARXIV[1]), specs["atom"], specs["atom"].paging)

    record = page.record("2403.16981")
    assert json.loads(record.fields_json)["version"] == "2"


def test_milliseconds_in_an_object_are_a_time(specs):
    page = read(recorded("orcid", "09-works-full.json"), specs["works"])

    moment = datetime(2018, 5, 21, 7, 37, 31, 9000, tzinfo=UTC)
    assert page.record("44924450").source_updated_at == moment


@pytest.mark.parametrize(
    ("name", "many"),
    [("06-dois-updated-range-p1of2.json", 25), ("11-dois-related-pmid-p1of24.json", 25)],
)
def test_an_address_gets_back_the_parameter_that_it_has_lost(specs, name, many):
    spec = specs["dois"]
    walked = walk("datacite", [name], spec)

    assert len(walked.ids) == many
    lost = dict(parse_qsl(urlsplit(walked.after.token).query, keep_blank_values=True))
    assert asked("datacite", name)["exclude_registration_agencies"] == "true"
    assert "exclude_registration_agencies" not in lost
    request = render(spec, Asking(days(3, 5), walked.after, 7, 2, "me@example.org", NOON))
    sent = dict(parse_qsl(urlsplit(request.full_url).query, keep_blank_values=True))
    assert sent.items() >= {**lost, "exclude_registration_agencies": "true"}.items()
    assert sent["page[number]"] == "2"


def test_references_without_an_id_are_bad_items_and_the_others_records(specs):
    walked = walk("semanticscholar", CITED, specs["references"])

    assert [len(page.ids) for page in walked.pages] == [40, 4]
    assert [len(page.mapped.bad) for page in walked.pages] == [10, 13]
    assert walked.pages[0].mapped.bad[-1].path == "$.citedPaper.paperId"
    assert walked.after == Ended("NO_TOKEN")


def test_a_shorter_first_page_leaves_a_gap_that_the_total_shows(specs):
    walked = walk("usgs", USGS, specs["publications"])

    assert walked.after == Ended("EMPTY_PAGE")
    assert (len(set(walked.ids)), walked.pages[-1].decoded.total) == (186, 196)


def test_an_empty_page_that_promises_records_is_no_end(specs):
    with pytest.raises(SliceIncomplete, match="empty"):
        walk("plos", ["01-search-xml-2007-p01.xml"], specs["solr"])
