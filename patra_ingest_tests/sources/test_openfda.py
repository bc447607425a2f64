"""Every recorded answer of openFDA, read by the built-in pack, and what the pack asks."""

import json
from datetime import UTC, datetime

import pytest

from patra_ingest.errors import EndpointHalted, Throttled
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Ended, Page, Seen, first_page, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.recorded import (
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)
from patra_ingest_tests.sources.rendered import hours, sent_for

DAY = hours("2026-01-05T00:00Z", "2026-01-06T00:00Z")
APPROVED, COUNTED = "01-drugsfda-imatinib.json", "03-faers-count.json"
NOTHING = "04-device-510k-no-match.json"
BROUGHT = ("events", "labels", "recalls", "approvals")


@pytest.fixture(scope="module")
def specs(sqlite_template):
    pack = read_pack(FOLDER / "openfda.yaml")
    return {name: compiled(sqlite_template, pack, name) for name in pack.endpoints}


@pytest.fixture(scope="module")
def by_ids(sqlite_template):
    pack = read_pack(FOLDER / "openfda.yaml")
    names = (name for name in pack.endpoints if name != "recalls")
    return {name: compiled(sqlite_template, pack, name, Operation.UPDATE) for name in names}


@pytest.mark.parametrize(
    ("name", "path", "date", "partition"),
    [
        ("events", "/drug/event.json", "receiptdate", {}),
        ("labels", "/drug/label.json", "effective_time", {}),
        ("recalls", "/food/enforcement.json", "report_date", {"kind": "food"}),
        ("approvals", "/drug/drugsfda.json", "submissions.submission_status_date", {}),
    ],
)
def test_a_day_is_asked_for_with_a_literal_plus_and_without_a_skip(
    specs, name, path, date, partition
):
    sent = sent_for(specs[name], DAY, partition=partition)

    assert sent.address == f"https://api.fda.gov{path}"
    assert sent.params == {"search": f"{date}:[20260105 TO 20260105]", "limit": "1000"}
    assert "%5B20260105+TO+20260105%5D" in sent.url


def test_the_next_page_is_the_address_of_the_link_header(specs):
    events = specs["events"]
    link = "https://api.fda.gov/drug/event.json?search=x&limit=1000&skip=0&search_after=0%3Dab"
    body = b'{"meta": {"results": {"total": 1001}}, "results": []}'

    page = read(a_response(body, link=f'<{link}>; rel="next"'), events, events.paging)
    after = next_page(events.paging, first_page(events.paging), Seen(1000, page.decoded.next))

    assert after == Page(2, token=link)
    assert sent_for(events, DAY, after).url == link
    assert next_page(events.paging, after, Seen(1)) == Ended("NO_TOKEN")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        *(("events", "safetyreportid"), ("labels", "set_id")),
        ("approvals", "application_number"),
    ],
)
def test_known_records_are_asked_for_one_or_another(by_ids, name, field):
    sent = sent_for(by_ids[name], ids=("A-1", "B"))

    assert sent.params == {"search": f'{field}:"A-1" {field}:"B"', "limit": "50"}
    assert "%22+" in sent.url


def test_a_used_up_minute_is_waited_for(specs):
    said = b'{"error": {"code": "OVER_RATE_LIMIT", "message": "exceeded your rate limit"}}'

    with pytest.raises(Throttled, match="OVER_RATE_LIMIT"):
        read(a_response(said, status=429), specs["events"], specs["events"].paging)


@needs_recordings
def test_every_recording_has_its_row(specs):
    assert {APPROVED, COUNTED, NOTHING} == recordings("openfda")
    there = asked_url("openfda", APPROVED).partition("?")[0]
    assert there == sent_for(specs["approvals"], DAY).address


@needs_recordings
def test_a_page_of_approvals_gives_their_numbers(specs):
    approvals = specs["approvals"]
    page = read(recorded("openfda", APPROVED), approvals, approvals.paging)
    fields = json.loads(page.record("NDA021588").fields_json)

    assert (page.ids, page.decoded.total) == (["NDA021588"], 17)
    assert find_misfits(fields) == []
    said = {
        "title": "GLEEVEC",
        "published": "2003-04-18",
        "type": "NDA",
        "sponsor": "NOVARTIS",
        "ingredients": ["IMATINIB MESYLATE"],
    }
    assert {key: fields[key] for key in said} == said


@needs_recordings
@pytest.mark.parametrize("name", BROUGHT)
def test_counted_words_are_no_records_and_404_is_nothing(specs, name):
    spec = specs[name]

    with pytest.raises(EndpointHalted, match=r"\$\.meta\.results\.total"):
        read(recorded("openfda", COUNTED), spec, spec.paging)
    empty = read(recorded("openfda", NOTHING, status=404), spec, spec.paging)
    assert (empty.ids, empty.decoded.total) == ([], 0)


INVENTED = {
    "events": (
        {
            **{"safetyreportid": "99000001", "safetyreportversion": "2"},
            **{"receiptdate": "20260105", "receivedate": "20251230", "reporttype": "1"},
            "patient": {
                "drug": [{"medicinalproduct": "OWLEX"}, {"medicinalproduct": "MOUSOL"}],
                "reaction": [{"reactionmeddrapt": "Insomnia"}],
            },
        },
        "99000001",
        {"version": "2", "title": "OWLEX; MOUSOL", "created": "2025-12-30", "type": "1"},
    ),
    "labels": (
        {
            **{"id": "d-2", "set_id": "s-1", "version": "7", "effective_time": "20260105"},
            "openfda": {"brand_name": ["Owlex"], "product_type": ["HUMAN OTC DRUG"]},
        },
        "s-1",
        {"version": "7", "title": "Owlex", "published": "2026-01-05", "type": "HUMAN OTC DRUG"},
    ),
    "recalls": (
        {
            **{"recall_number": "F-0001-2026", "report_date": "20260105", "status": "Ongoing"},
            **{"product_description": "Owl  feed", "classification": "Class II"},
            "recall_initiation_date": "20251201",
        },
        "F-0001-2026",
        {"title": "Owl feed", "published": "2026-01-05", "initiated": "2025-12-01"},
    ),
}


@pytest.mark.parametrize("name", INVENTED)
def test_a_record_of_each_dataset_has_its_id_its_version_and_its_day(specs, name):
    """Nobody has recorded one of these."""
    item, number, said = INVENTED[name]

    (record,) = map_items([item], specs[name], "UTC", None).records
    fields = json.loads(record.fields_json)

    assert record.provider_id == number
    assert record.source_updated_at == datetime(2026, 1, 5, tzinfo=UTC)
    assert {key: fields[key] for key in said} == said
    assert find_misfits(fields) == []
