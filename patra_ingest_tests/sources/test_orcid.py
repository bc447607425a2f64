"""Every recorded answer of ORCID, read by the built-in pack: its ids, or the declared error."""

import json
import re
from datetime import UTC, datetime

import orjson
import pytest

from patra_ingest.errors import (
    EndpointHalted,
    RequestRejected,
    SliceTooBig,
    Throttled,
    TransientError,
)
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.recorded import (
    asked,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)
from patra_ingest_tests.sources.rendered import hours, sent_for

ECOLOGY = ["01-search-rows3-start-p01.json", "02-search-rows3-start-p02.json"]
FOUND = {
    ECOLOGY[0]: (["0000-0002-8289-1497", "0000-0002-3855-0919", "0000-0003-1935-7782"], 10242),
    ECOLOGY[1]: (["0000-0002-5870-4786", "0000-0002-7174-5005", "0000-0002-2572-3809"], 10242),
    "03-search-no-results.json": ([], 0),  # null, no list
}
REFUSED = {
    "05-500-start-not-a-number.json": (TransientError, "Something went wrong in ORCID."),
    "06-400-rows-not-a-number.json": (RequestRejected, "must be an integer between 0 and 200"),
    "07-person-404.json": (RequestRejected, "ORCID iD Asfaf not found"),
    "08-works-empty.json": (EndpointHalted, "$.num-found"),  # works, which the pack never asks for
    "09-works-full.json": (EndpointHalted, "$.num-found"),
}


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "orcid.yaml")


@pytest.fixture(scope="module")
def people(sqlite_template, pack):
    return compiled(sqlite_template, pack, "people")


@pytest.fixture(scope="module")
def record(sqlite_template, pack):
    return compiled(sqlite_template, pack, "record", Operation.UPDATE)


def test_an_hour_is_asked_for_without_its_end_and_then_by_its_offset(people):
    hour = hours("2026-11-01T09:00Z", "2026-11-01T10:00Z")

    first, second = sent_for(people, hour), sent_for(people, hour, Page(2, offset=1000))

    assert first.address == "https://pub.orcid.org/v3.0/search"
    span = "[2026-11-01T09:00:00Z TO 2026-11-01T10:00:00Z}"
    said = {"q": f"profile-last-modified-date:{span}", "rows": "1000"}
    assert first.params == {**said, "start": "0"}
    assert second.params == {**said, "start": "1000"}
    assert first.headers["accept"] == "application/json"
    part = sent_for(people, hour, split="orcid:*X")
    assert part.params["q"] == f"profile-last-modified-date:{span} AND orcid:*X"


def test_a_record_is_asked_for_by_its_id_in_the_path(people, record):
    there = "https://pub.orcid.org/v3.0/0000-0002-1825-0097/record"

    for spec, details in ((people, True), (record, False)):
        sent = sent_for(spec, ids=("0000-0002-1825-0097",), details=details)
        assert (sent.url, sent.headers["accept"]) == (there, "application/json")


def test_too_much_at_once_is_503_and_too_far_is_another_cut(people):
    with pytest.raises(Throttled, match="burst of 40"):
        read(a_response(b"", status=503), people, people.paging)

    said = b'{"developer-message": "The start parameter must be between 0 and 10000"}'
    with pytest.raises(SliceTooBig):
        read(a_response(said, status=400), people, people.paging)


@pytest.mark.parametrize("status", [404, 409])
def test_a_person_who_is_not_shown_any_more_is_gone(record, status):
    assert read(a_response(b"{}", status=status), record).ids == []


@needs_recordings
def test_every_recording_has_its_row():
    assert {*FOUND, *REFUSED} == recordings("orcid")


@needs_recordings
@pytest.mark.parametrize("name", FOUND)
def test_a_page_gives_the_ids_of_people(people, name):
    page = read(recorded("orcid", name), people, people.paging)

    assert (page.ids, page.decoded.total) == FOUND[name]


@needs_recordings
@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_is_the_declared_error(people, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded("orcid", name), people, people.paging)

    assert type(raised.value) is error


@needs_recordings
def test_an_unknown_id_is_gone_and_works_are_no_record(record):
    assert read(recorded("orcid", "07-person-404.json"), record).ids == []
    for name in ("08-works-empty.json", "09-works-full.json"):
        with pytest.raises(EndpointHalted, match=r"orcid-identifier"):
            read(recorded("orcid", name), record)


@needs_recordings
def test_a_walk_goes_on_where_the_next_request_began(sqlite_template, pack):
    few = {"paging": {"page_size": 3}, "cap": {"max": 30}, "planning": {"records_per_slice": 30}}
    people = compiled(sqlite_template, pack, "people", values=few)

    walked = walk("orcid", ECOLOGY, people)

    assert [page.offset for page in walked.places] == [0, int(asked("orcid", ECOLOGY[1])["start"])]
    assert walked.after == Page(3, offset=6)


def a_person(**more):
    """Return an invented person, as ORCID writes one."""
    return {
        "orcid-identifier": {"path": "0000-0002-1825-0097"},
        "preferences": {"locale": "en"},
        "history": {
            "submission-date": {"value": 1349992800000},
            "last-modified-date": {"value": 1717012729950},
            "claimed": True,
        },
        "person": {
            "name": {
                "given-names": {"value": "Josiah"},
                "family-name": {"value": "Carberry"},
                "credit-name": None,
            },
            "other-names": {"other-name": [{"content": "J. Carberry"}]},
            "keywords": {"keyword": []},
        },
        **more,
    }


def test_a_person_has_a_name_for_a_title_and_milliseconds_are_a_time(record):
    page = read(a_response(orjson.dumps(a_person())), record)
    one = page.record("0000-0002-1825-0097")
    fields = json.loads(one.fields_json)

    assert one.source_updated_at == datetime(2024, 5, 29, 19, 58, 49, 950000, tzinfo=UTC)
    assert find_misfits(fields) == []
    assert (fields["title"], fields["created"]) == ("Josiah Carberry", "2012-10-11")
    assert (fields["other_names"], fields["keywords"]) == (["J. Carberry"], None)
    assert (fields["works"], fields["dois"]) == (0, None)


@needs_recordings
def test_the_works_of_a_person_are_counted_and_their_dois_kept(record):
    """The recorded works are put into an invented record, where the source keeps them, too."""
    works = orjson.loads(recorded("orcid", "09-works-full.json").body)
    person = a_person(**{"activities-summary": {"works": works}})

    (one,) = map_items([person], record, "UTC", None).records
    fields = json.loads(one.fields_json)

    assert fields["works"] == 111
    assert fields["dois"][0] == "10.3897/biss.2.25589"
    assert len(fields["dois"]) == 97
