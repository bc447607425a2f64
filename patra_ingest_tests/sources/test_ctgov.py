"""Every recorded answer of ClinicalTrials.gov, read by the built-in pack: its ids, or the error."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.decoding import BodyUnreadable, decode
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Ended, Page, Seen, first_page, next_page
from patra_ingest.executor.two_phase import reconcile
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.recorded import (
    asked,
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)
from patra_ingest_tests.sources.rendered import hours, sent_for

SOURCE = "clinicaltrials"
PHELAN = ["01-v2-search-phelan-p01.json", "02-v2-search-phelan-p02.json"]
NAMED = [
    ["NCT02710084", "NCT05105685", "NCT01525901", "NCT03493607", "NCT07119606"],
    ["NCT05187377", "NCT03836300", "NCT07014020", "NCT05025241", "NCT07281079"],
]
_NO_DATE = (EndpointHalted, "lastUpdatePostDateStruct.date (the update time is missing)")
_OLD = (BodyUnreadable, "that is not JSON")
REFUSED = {
    # Whoever recorded these asked for other fields than we read.
    PHELAN[0]: _NO_DATE,
    PHELAN[1]: _NO_DATE,
    "05-v2-study-nct02576665.json": (EndpointHalted, "$.studies"),  # one study, no list
    "07-v1-xml-search.xml": _OLD,  # of the API before this one
    "08-v1-xml-study-a.xml": _OLD,
    "09-v1-xml-study-b.xml": _OLD,
}


@pytest.fixture(scope="module")
def studies(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "ctgov.yaml"), "studies")


@pytest.fixture(scope="module")
def study(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "ctgov.yaml"), "study", Operation.UPDATE)


def dated(name):
    """Return a recorded page whose studies have the date that nobody asked for."""
    answer = recorded(SOURCE, name)
    tree = orjson.loads(answer.body)
    for one in tree["studies"]:
        said = {"lastUpdatePostDateStruct": {"date": "2026-08-10", "type": "ACTUAL"}}
        one["protocolSection"]["statusModule"] |= said
    return replace(answer, body=orjson.dumps(tree))


def test_a_day_in_new_york_is_asked_for_and_counted_once(studies):
    """The clocks go back on this day: it has 25 hours."""
    day = hours("2026-11-01T04:00Z", "2026-11-02T05:00Z")

    first, second = sent_for(studies, day), sent_for(studies, day, Page(2, token="A-b_"))

    assert first.address == "https://clinicaltrials.gov/api/v2/studies"
    said = {
        "filter.advanced": "AREA[LastUpdatePostDate]RANGE[2026-11-01,2026-11-01]",
        "format": "json",
        "pageSize": "100",
        "sort": "LastUpdatePostDate:asc",
    }
    assert first.params == {**said, "countTotal": "true"}
    assert second.params == {**said, "pageToken": "A-b_"}


def test_known_studies_are_asked_for_by_their_numbers(study):
    sent = sent_for(study, ids=("NCT00000001", "NCT00000002"))

    assert sent.params["filter.ids"] == "NCT00000001,NCT00000002"
    assert sent.params["pageSize"] == "100"


def test_an_empty_page_in_the_middle_is_no_end_and_one_without_a_token_is(studies):
    first = first_page(studies.paging)

    after = next_page(studies.paging, first, Seen(0, next="more", total=7))

    assert after == Page(2, token="more")
    assert next_page(studies.paging, after, Seen(0, total=7)) == Ended("NO_TOKEN")


@needs_recordings
def test_every_recording_has_its_row():
    assert {*REFUSED} == recordings(SOURCE)


@needs_recordings
@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_to_another_question_is_the_declared_error(studies, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded(SOURCE, name), studies, studies.paging)

    assert type(raised.value) is error


@needs_recordings
@pytest.mark.parametrize(
    ("name", "ids", "total"), [(PHELAN[0], NAMED[0], 21), (PHELAN[1], NAMED[1], None)]
)
def test_with_its_dates_a_page_gives_its_studies_and_the_first_the_total(studies, name, ids, total):
    page = read(dated(name), studies, studies.paging)

    assert (page.ids, page.decoded.total) == (ids, total)
    assert page.mapped.bad == []
    assert all(find_misfits(json.loads(one.fields_json)) == [] for one in page.mapped.records)


@needs_recordings
def test_the_token_of_a_page_is_the_one_that_the_next_request_carried(studies):
    page = read(dated(PHELAN[0]), studies, studies.paging)

    assert page.decoded.next == asked(SOURCE, PHELAN[1])["pageToken"]
    there = asked_url(SOURCE, PHELAN[0]).partition("?")[0]
    assert there == sent_for(studies, hours("2026-11-01T04:00Z", "2026-11-02T05:00Z")).address


@needs_recordings
def test_a_record_says_what_the_file_says(studies):
    items = orjson.loads(dated(PHELAN[0]).body)["studies"]
    record = map_items(items, studies, studies.window.zone, None).records[0]
    fields = json.loads(record.fields_json)

    assert record.source_updated_at == datetime(2026, 8, 10, 4, tzinfo=UTC)  # midnight, New York
    said = {
        "title": "Piloting Treatment With Intranasal Oxytocin in Phelan-McDermid Syndrome",
        "type": "INTERVENTIONAL",
        "status": "COMPLETED",
        "phases": ["PHASE2"],
        "sponsor": "Alexander Kolevzon",
        "interventions": ["Oxytocin", "Saline"],
        "started": "2016-04-29",
        "enrollment": 18,
        "has_abstract": True,
        "published": None,
    }
    assert {key: fields[key] for key in said} == said


def test_dates_people_and_articles_are_found_where_a_whole_study_has_them(studies):
    """No recording has them; this study is invented."""
    status = {
        "lastUpdatePostDateStruct": {"date": "2026-10-30"},
        "studyFirstSubmitDate": "2026-01-02",
        "studyFirstPostDateStruct": {"date": "2026-01-05"},
    }
    protocol = {
        "identificationModule": {"nctId": "NCT99999999", "briefTitle": "Short", "acronym": "S"},
        "statusModule": status,
        "contactsLocationsModule": {"overallOfficials": [{"name": "Ada Lovelace", "role": "PI"}]},
        "referencesModule": {"references": [{"pmid": "123", "type": "RESULT"}, {"type": "X"}]},
    }

    (record,) = map_items([{"protocolSection": protocol}], studies, "UTC", None).records
    fields = json.loads(record.fields_json)

    assert find_misfits(fields) == []
    assert (fields["created"], fields["published"]) == ("2026-01-02", "2026-01-05")
    assert (fields["authors"], fields["articles"]) == (["Ada Lovelace"], ["123"])
    assert fields["has_abstract"] is False


def test_a_number_that_was_given_twice_leads_to_the_study_that_was_kept(study):
    module = {"nctId": "NCT00000002", "nctIdAliases": ["NCT00000009"]}
    body = orjson.dumps({"studies": [{"protocolSection": {"identificationModule": module}}]})
    decoded = decode(a_response(body), orjson.loads(body), study, None, {})

    met = reconcile(["NCT00000009"], decoded, study, study.reconcile)

    assert (met.missing, met.merged) == ((), {"NCT00000009": "NCT00000002"})
