"""The recorded answer of NIH RePORTER, read by the built-in pack, and what the pack asks."""

import json

import orjson
import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.sources.recorded import (
    asked_url,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)
from patra_ingest_tests.sources.rendered import hours, sent_for

ERBB2 = "01-projects-search-erbb2.json"
IDS = [  # the ends of the addresses: nobody asked for the number itself
    *("10697688", "10926563", "11188696", "11359721", "11185304"),
    *("10493360", "10702986", "11365606", "11275885", "10434719"),
]
DAY = hours("2026-11-01T04:00Z", "2026-11-02T05:00Z")  # of 25 hours


@pytest.fixture(scope="module")
def projects(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "nihreporter.yaml"), "projects")


@pytest.fixture(scope="module")
def project(sqlite_template):
    pack = read_pack(FOLDER / "nihreporter.yaml")
    return compiled(sqlite_template, pack, "project", Operation.UPDATE)


def test_a_day_in_new_york_is_posted_and_then_its_offset(projects):
    first, second = sent_for(projects, DAY), sent_for(projects, DAY, Page(2, offset=500))

    assert (first.method, first.url) == (
        *("POST", "https://api.reporter.nih.gov/v2/projects/search"),
    )
    span = {"from_date": "2026-11-01", "to_date": "2026-11-01"}
    said = {
        "criteria": {"date_added": span},
        **{"limit": 500, "sort_field": "appl_id", "sort_order": "asc"},
    }
    assert first.body == {**said, "offset": 0}
    assert second.body == {**said, "offset": 500}


def test_a_day_above_the_cap_is_cut_by_fiscal_year(projects):
    sent = sent_for(projects, DAY, split="2024")

    assert sent.body["criteria"]["fiscal_years"] == [2024]
    assert projects.cap.max == projects.paging.page_size * projects.paging.max_pages == 15000


def test_known_applications_are_asked_for_by_their_numbers(project):
    sent = sent_for(project, ids=("10697688", "10926563"))

    assert sent.body == {
        "criteria": {"appl_ids": [10697688, 10926563]},
        **{"offset": 0, "limit": 500},
    }


@needs_recordings
def test_every_recording_has_its_row():
    assert recordings("nih-reporter") == {ERBB2}
    assert asked_url("nih-reporter", ERBB2) == "https://api.reporter.nih.gov/v2/projects/search"


@needs_recordings
def test_a_page_gives_the_numbers_of_its_applications(projects, project):
    answer = recorded("nih-reporter", ERBB2)

    page = read(answer, projects, projects.paging, {"page": {"offset": 0}})

    assert (page.ids, page.decoded.total) == (IDS, 187)
    assert page.mapped.bad == []
    assert read(answer, project).ids == IDS
    assert all(find_misfits(json.loads(one.fields_json)) == [] for one in page.mapped.records)


@needs_recordings
def test_a_page_from_another_place_than_was_asked_for_is_refused(projects):
    with pytest.raises(EndpointHalted, match=r"\$\.meta\.offset holds 0, expected was '500'"):
        read(recorded("nih-reporter", ERBB2), projects, projects.paging, {"page": {"offset": 500}})


@needs_recordings
def test_a_record_says_what_the_file_says(projects):
    items = orjson.loads(recorded("nih-reporter", ERBB2).body)["results"]
    (_, _, _, record, *_) = map_items(items, projects, "UTC", None).records
    fields = json.loads(record.fields_json)

    said = {
        "title": "HPV and host factors in juvenile onset recurrent respiratory papillomatosis",
        "authors": ["Smith, David", "Wells, Susanne"],
        "project": "4R01CA287486-03",
        "fiscal_year": 2026,
        "organization": "CINCINNATI CHILDRENS HOSP MED CTR",
        "award": 1340183,
        "published": None,
        "has_abstract": False,
    }
    assert {key: fields[key] for key in said} == said


def test_a_whole_project_has_dates_a_type_and_an_abstract(projects):
    """The recording has none of them; this project is invented."""
    item = {
        "appl_id": 10000001,
        "project_title": "Owls\n at night",
        "date_added": "2026-10-24T09:00:00Z",
        "award_notice_date": "2026-10-20T00:00:00",
        "activity_code": "R01",
        "abstract_text": "They see.",
        "principal_investigators": [{"full_name": "Ada  Lovelace"}],
    }

    (record,) = map_items([item], projects, "UTC", None).records
    fields = json.loads(record.fields_json)

    assert (record.provider_id, find_misfits(fields)) == ("10000001", [])
    assert (fields["created"], fields["published"]) == ("2026-10-24", "2026-10-20")
    assert (fields["title"], fields["authors"]) == ("Owls at night", ["Ada Lovelace"])
    assert (fields["type"], fields["has_abstract"]) == ("R01", True)
