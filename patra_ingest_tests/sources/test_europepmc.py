"""Every recorded answer of Europe PMC, read by the built-in pack: source and id, or the error."""

import json
from dataclasses import replace

import pytest

from patra_ingest.errors import EndpointHalted, SliceIncomplete
from patra_ingest.executor.decoding import BodyUnreadable
from patra_ingest.executor.paging import Ended, Page, Seen, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.builtin import fields_of, misfits
from patra_ingest_tests.sources.recorded import (
    asked,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

pytestmark = needs_recordings

CANCER = [f"{n:02d}-search-cancer-cursor-p{n:02d}.json" for n in range(1, 11)]
_ALL = 5059039
LISTED = {  # how many results, the first and the last, and the hits that are promised
    "01-search-cancer-cursor-p01.json": (100, "MED:39709209", "MED:40498131", _ALL),
    "02-search-cancer-cursor-p02.json": (100, "MED:40526173", "MED:40484410", _ALL),
    "03-search-cancer-cursor-p03.json": (100, "MED:40174916", "MED:40515951", _ALL),
    "04-search-cancer-cursor-p04.json": (100, "MED:40506749", "MED:40452385", _ALL),
    "05-search-cancer-cursor-p05.json": (100, "PPR:PPR1031772", "MED:40513391", _ALL),
    "06-search-cancer-cursor-p06.json": (100, "MED:40173050", "MED:39911068", _ALL),
    "07-search-cancer-cursor-p07.json": (100, "MED:40498414", "MED:40529040", _ALL),
    "08-search-cancer-cursor-p08.json": (100, "MED:40488592", "MED:40536706", _ALL),
    "09-search-cancer-cursor-p09.json": (100, "MED:40529777", "MED:40403196", _ALL),
    "10-search-cancer-cursor-p10.json": (100, "MED:40503739", "MED:40457873", _ALL),
    "11-search-json-lite.json": (25, "MED:39709209", "MED:40476859", _ALL),
    "12-search-json-core.json": (25, "MED:39709209", "MED:40476859", _ALL),
    "13-search-json-idlist.json": (25, "MED:39709209", "MED:40476859", _ALL),
    "16-search-json-sorted.json": (25, "MED:3311353", "MED:3117255", _ALL),
    "17-search-json-no-hits.json": (0, "", "", 0),
    "20-search-ext-id-1-hit.json": (1, "MED:20516115", "MED:20516115", 1),
    "21-search-last-page-a.json": (6, "MED:36457512", "PMC:PMC11627200", 6),
    "23-search-last-page-c.json": (1, "MED:22799487", "MED:22799487", 1),
}
REFUSED = {  # XML where JSON was asked for
    "14-search-xml-lite.xml": "<responseWrapper",
    "25-supplementary-not-open-access.xml": "is not open access one",
}
WHOLE = ["17-search-json-no-hits.json", *(name for name in LISTED if name > "2")]


@pytest.fixture(scope="module")
def search(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "epmc.yaml"), "search")


@pytest.fixture(scope="module")
def details(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "epmc.yaml"), "article", Operation.UPDATE)


def test_every_recording_has_its_row():
    assert {*LISTED, *REFUSED} == recordings("europepmc")


@pytest.mark.parametrize("name", LISTED)
def test_a_page_gives_the_ids_of_its_results(search, name):
    page = read(recorded("europepmc", name), search, search.paging)

    assert (*page.ends, page.decoded.total) == LISTED[name]
    assert page.mapped.bad == []


@pytest.mark.parametrize(("name", "words"), REFUSED.items())
def test_an_answer_in_xml_is_refused(search, name, words):
    with pytest.raises(BodyUnreadable, match="that is not JSON") as raised:
        read(recorded("europepmc", name), search, search.paging)

    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"errCode":404,"errMsg":"Invalid page size"}', "Invalid page size"),
        (b'{"version":"6.9"}', "nothing at \\$.hitCount"),
    ],
)
def test_an_error_with_status_200_is_refused(search, body, words):
    """Nobody has recorded one; these are as the source is known to write them."""
    answer = replace(recorded("europepmc", "17-search-json-no-hits.json"), body=body)

    with pytest.raises(EndpointHalted, match=words):
        read(answer, search, search.paging)


def test_a_walk_of_ten_pages_asks_for_what_was_asked_for(search):
    walked = walk("europepmc", CANCER, search)

    sent = [asked("europepmc", name)["cursorMark"] for name in CANCER]
    assert [page.token for page in walked.places] == sent
    assert len(set(sent)) == 10
    assert walked.after == Page(11, token="AoIIP4HN8ig1MzEwOTI4OQ==")
    assert len(walked.ids) == len(set(walked.ids)) == 1000


@pytest.mark.parametrize("name", WHOLE)
def test_a_page_without_a_next_cursor_is_the_last(search, name):
    assert walk("europepmc", [name], search).after == Ended("NO_TOKEN")


def test_a_page_that_echoes_the_cursor_that_was_sent_is_the_last(search):
    """No long walk was recorded to its end; this is a page as the source is known to end one."""
    last = walk("europepmc", CANCER, search).after
    answer = recorded("europepmc", "17-search-json-no-hits.json")
    tree = {**json.loads(answer.body), "nextCursorMark": last.token}

    page = read(replace(answer, body=json.dumps(tree).encode()), search, search.paging)

    assert next_page(search.paging, last, Seen(0, page.decoded.next)) == Ended("SAME_TOKEN")


def test_a_page_that_comes_twice_is_a_circle(search):
    with pytest.raises(SliceIncomplete, match="goes in a circle"):
        walk("europepmc", [CANCER[0], CANCER[1], CANCER[0]], search)


SAID = [
    pytest.param(
        *("12-search-json-core.json", "MED:39709209"),
        {
            "title": "Abscopal response in a patient with fibrolamellar hepatocellular carcinoma"
            " following radiotherapy.",
            "doi": "10.1016/s0140-6736(24)02600-x",
            "pmcid": None,
            "authors": [
                *("Schoenfeld, Jonathan D", "Haas-Kogan, Daphne A", "O'Neill, Allison F"),
            ],
            "journal": "Lancet (London, England)",
            "issn": ["0140-6736", "1474-547X"],
            "published": "2025-12-01",
            "created": "2024-12-22",
            "type": "Journal Article",
            "language": "eng",
            "has_abstract": False,
            "license": None,
            "retracted": False,
            "corrected": False,
            "open_access": False,
            "abstract": None,
        },
        id="neither PMC id nor abstract",
    ),
    pytest.param(
        *("12-search-json-core.json", "MED:39709208"),
        {
            "title": "Department of Error.",
            "authors": None,
            "types": ["Published Erratum", "correction"],
        },
        id="an erratum that nobody has signed",
    ),
    pytest.param(
        *("12-search-json-core.json", "MED:40464630"),
        {"issn": ["1866-0452"]},
        id="one ISSN for paper and screen",
    ),
    pytest.param(
        *("12-search-json-core.json", "MED:40468710"),
        {"license": "cc by", "has_abstract": True, "issn": ["1359-107X", "2044-8287"]},
        id="a licence",
    ),
    pytest.param(
        *("05-search-cancer-cursor-p05.json", "PPR:PPR1031772"),
        {"source": "PPR", "pmid": None, "doi": "10.1101/2025.05.29.656750"},
        id="a preprint",
    ),
    pytest.param(
        *("21-search-last-page-a.json", "PMC:PMC11627200"),
        {"source": "PMC", "pmid": None, "pmcid": "PMC11627200", "published": "2024-11-01"},
        id="only in PMC",
    ),
]


@pytest.mark.parametrize(("name", "provider_id", "said"), SAID)
def test_a_record_says_what_the_file_says(search, name, provider_id, said):
    record = read(recorded("europepmc", name), search, search.paging).record(provider_id)
    fields = json.loads(record.fields_json)

    assert {key: fields[key] for key in said} == said
    assert record.source_updated_at is None  # the date it filters by is not in the record


@pytest.mark.parametrize("name", LISTED)
def test_every_result_is_a_common_record(search, name):
    page = read(recorded("europepmc", name), search, search.paging)

    assert misfits(page.mapped.records) == []


def test_a_retraction_and_a_correction_are_seen(search):
    """Nobody has recorded either; these are an erratum and another article, changed so."""
    answer = recorded("europepmc", "12-search-json-core.json")
    tree = json.loads(answer.body)
    erratum, article = tree["resultList"]["result"][1:3]
    erratum["commentCorrectionList"]["commentCorrection"][0]["type"] = "Erratum in"
    article["pubTypeList"]["pubType"].append("Retracted Publication")

    page = read(replace(answer, body=json.dumps(tree).encode()), search, search.paging)

    found = [fields_of(record) for record in page.mapped.records[1:3]]
    assert [(one["retracted"], one["corrected"]) for one in found] == [(False, True), (True, False)]


@pytest.mark.parametrize("name", LISTED)
def test_what_a_question_for_ids_gets_is_read_in_the_same_way(details, name):
    assert read(recorded("europepmc", name), details).ends == LISTED[name][:3]


def test_an_abstract_comes_without_its_headings_tags(search):
    page = read(recorded("europepmc", "12-search-json-core.json"), search, search.paging)
    abstract = json.loads(page.record("MED:40468710").fields_json)["abstract"]

    assert abstract.startswith("Objective This study investigated whether psychological")
    assert "<h4>" not in abstract
