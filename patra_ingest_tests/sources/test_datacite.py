"""Every recorded answer of DataCite, read by the built-in pack: its DOIs, or the declared error."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import orjson
import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, SliceIncomplete
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Ended, Page, Seen, first_page, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.builtin import fields_of, misfits
from patra_ingest_tests.sources.recorded import (
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

pytestmark = needs_recordings

WHOLE = {  # all there is: how many DOIs, the first and the last, and the total that is promised
    "07-dois-updated-range-lastpage.json": (
        *(22, "10.0133/32238", "10.25499/af32omozas3pe77xfeekow6ah", 22),
    ),
    "09-dois-updated-range-empty.json": (0, "", "", 0),
    "12-dois-arxiv-2hits.json": (2, "10.0327/2_test", "10.0327/1_test", 2),
}
# Pages by number: a walk by cursor never gets one, a question for ids may.
NUMBERED = {
    "01-dois-page-number.json": (5, "10.5281/zenodo.3596961", "10.17605/osf.io/vr6nb"),
    "06-dois-updated-range-p1of2.json": (25, "10.21953/lse.zucse37vlja1", "10.0133/1517301998029"),
    "11-dois-related-pmid-p1of24.json": (25, "10.23705/d9fel6ms", "10.23705/d9f872i5"),
}
_NO_TOTAL = (EndpointHalted, "nothing at $.meta.total")
_NO_DOIS = (EndpointHalted, "items fails at $.id|doi")
REFUSED = {
    "04-clients-page.json": _NO_DOIS,
    "05-activities-page.json": _NO_DOIS,
    "13-doi-404.json": (RequestRejected, "The resource you are looking for doesn't exist."),
    "15-doi-dryad.json": _NO_TOTAL,
    "16-doi-lipics.json": _NO_TOTAL,
    "18-doi-zenodo.json": _NO_TOTAL,
    "20-data-centers-old-api.json": _NO_DOIS,
}
COUNTED = "08-dois-updated-range-size0.json"  # a page of none: only the total


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "datacite.yaml")


@pytest.fixture(scope="module")
def dois(sqlite_template, pack):
    return compiled(sqlite_template, pack, "dois")


@pytest.fixture(scope="module")
def details(sqlite_template, pack):
    return compiled(sqlite_template, pack, "doi", Operation.UPDATE)


def test_every_recording_has_its_row():
    assert {*WHOLE, *NUMBERED, *REFUSED, COUNTED} == recordings("datacite")


@pytest.mark.parametrize("name", WHOLE)
def test_a_page_without_a_next_address_is_the_last(dois, name):
    walked = walk("datacite", [name], dois)

    (page,) = walked.pages
    assert (*page.ends, page.decoded.total) == WHOLE[name]
    assert (page.mapped.bad, walked.after) == ([], Ended("NO_TOKEN"))
    assert misfits(page.mapped.records) == []


@pytest.mark.parametrize("name", {**WHOLE, **NUMBERED})
def test_a_question_for_dois_gets_their_records(details, name):
    page = read(recorded("datacite", name), details)

    assert page.ends == {**WHOLE, **NUMBERED}[name][:3]
    assert page.mapped.bad == []
    assert misfits(page.mapped.records) == []


@pytest.mark.parametrize("name", NUMBERED)
def test_a_page_by_number_leads_no_walk_by_cursor_on(dois, name):
    with pytest.raises(EndpointHalted, match=r"links.next has no parameter page\[cursor\]"):
        read(recorded("datacite", name), dois, dois.paging)


@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_is_the_declared_error(details, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded("datacite", name), details)

    assert type(raised.value) is error


def test_a_page_of_none_is_not_the_end_of_those_that_are_promised(dois):
    page = read(recorded("datacite", COUNTED), dois, dois.paging)

    assert (page.ids, page.decoded.total) == ([], 31)


@pytest.fixture
def cursors():
    """Pages of a walk by cursor, with addresses as the source code writes them."""
    answer = recorded("datacite", "06-dois-updated-range-p1of2.json")
    tree = json.loads(answer.body)

    def page(dois, token):
        links = {"self": "https://api.datacite.org/dois"}
        if token:
            address = f"?page%5Bcursor%5D={quote(token, safe='')}&page%5Bsize%5D=25&query=updated"
            links["next"] = "https://api.datacite.org/dois" + address
        body = {**tree, "links": links, "data": tree["data"][:dois]}
        return replace(answer, body=json.dumps(body).encode())

    return page


def test_the_token_is_taken_out_of_the_address_as_it_was(dois, cursors):
    token = "MTUxNTc1NjQwNjAwMCwxMC4yMTk1My9sc2U="
    page = read(cursors(25, token), dois, dois.paging)

    after = next_page(dois.paging, first_page(dois.paging), Seen(25, page.decoded.next, 31))

    assert after == Page(2, token=token)
    last = read(cursors(6, None), dois, dois.paging)
    assert next_page(dois.paging, after, Seen(6, last.decoded.next, 31)) == Ended("NO_TOKEN")


def test_a_cursor_that_comes_back_as_it_was_sent_is_a_loop(dois, cursors):
    page = read(cursors(25, "MQ=="), dois, dois.paging)

    with pytest.raises(SliceIncomplete, match="a loop"):
        next_page(dois.paging, Page(2, token="MQ=="), Seen(25, page.decoded.next, 31))


SAID = {  # the file, the DOI, the time of update, and some fields
    "15-doi-dryad.json": (
        *("10.5061/dryad.8515", datetime(2026, 1, 27, 3, 25, 16, tzinfo=UTC)),
        {
            "doi": "10.5061/dryad.8515",
            "title": "Data from: A new malaria agent in African hominids.",
            "authors": [
                *("Ollomo, Benjamin", "Durand, Patrick", "Prugnolle, Franck"),
                *("Douzery, Emmanuel J. P.", "Arnathau, Céline", "Nkoghe, Dieudonné"),
                *("Leroy, Eric", "Renaud, François"),
            ],
            "journal": None,
            "issn": None,
            "published": "2011-02-01",
            "created": "2011-11-22",
            "type": "Dataset",
            "language": "en",
            "has_abstract": True,
            "license": "cc0-1.0",
            "publisher": "Dryad",
            "state": "findable",
        },
    ),
    "16-doi-lipics.json": (
        *("10.4230/lipics.tqc.2013.93", datetime(2023, 12, 21, 12, 3, 17, tzinfo=UTC)),
        {
            "authors": ["Johnston, Nathaniel"],
            "journal": "LIPIcs, Volume 22, TQC 2013",
            "issn": ["1868-8969"],
            "published": "2013",
            "type": "ConferencePaper",
        },
    ),
    "18-doi-zenodo.json": (
        *("10.5281/zenodo.48440", datetime(2023, 4, 25, 22, 26, 51, tzinfo=UTC)),
        {"published": "2016-03-27", "language": None, "license": "cc-by-nc-sa-4.0"},
    ),
}


def record_of(dois, name, **attributes):
    """Map the one DOI of an answer, as if it stood in a list."""
    item = orjson.loads(recorded("datacite", name).body)["data"]
    item["attributes"] |= attributes
    (record,) = map_items([item], dois, "UTC", None).records
    return record


@pytest.mark.parametrize("name", SAID)
def test_a_record_says_what_the_file_says(dois, name):
    doi, updated, said = SAID[name]
    record = record_of(dois, name)
    fields = fields_of(record)

    assert (record.provider_id, record.source_updated_at) == (doi, updated)
    assert {key: fields[key] for key in said} == said
    assert misfits([record]) == []
    assert record.is_deleted is False


@pytest.mark.parametrize("state", ["registered", "draft"])
def test_a_doi_that_is_not_findable_any_more_is_deleted(dois, state):
    """No recording has one; this is one of them, with the other state."""
    assert record_of(dois, "15-doi-dryad.json", state=state).is_deleted is True


@pytest.mark.parametrize(
    ("dates", "published"),
    [
        ([{"date": "2004-03-02/2005-06-02", "dateType": "Issued"}], "2004-03-02"),
        ([{"date": "2018-13-45", "dateType": "Issued"}], "2011"),
        ([{"date": "2018", "dateType": "Issued"}], "2011"),
        ([{"date": "2018-05-04", "dateType": "Submitted"}], "2011"),
    ],
)
def test_the_day_of_issue_counts_where_it_is_one_and_else_the_year(dois, dates, published):
    record = record_of(dois, "15-doi-dryad.json", dates=dates)

    assert fields_of(record)["published"] == published


def test_a_publisher_may_be_written_with_its_identifier(dois):
    said = {"name": "Dryad", "publisherIdentifier": "https://ror.org/00x6h5n95"}

    assert fields_of(record_of(dois, "15-doi-dryad.json", publisher=said))["publisher"] == "Dryad"


@pytest.mark.parametrize(
    ("available", "limit"), [(frozenset(), 500), (frozenset({"datacite-account"}), 3000)]
)
def test_an_account_may_ask_more_in_five_minutes(sqlite_template, pack, available, limit):
    spec = compiled(sqlite_template, pack, "dois", available=available)

    (quota,) = spec.rate.quotas
    assert (quota.limit, quota.per.total_seconds()) == (limit, 300)
