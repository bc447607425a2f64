"""What the works of Crossref say, as a person reads them in the recorded files."""

import json
from datetime import UTC, datetime

import orjson
import pytest

from patra_ingest.executor.mapping import map_items
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.builtin import fields_of, misfits
from patra_ingest_tests.sources.recorded import compiled, needs_recordings, read, recorded

pytestmark = needs_recordings


@pytest.fixture(scope="module")
def works(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "crossref.yaml"), "works")


def record_of(works, name):
    """Map the work of an answer about one work, as if it stood in a list."""
    work = orjson.loads(recorded("crossref", name).body)["message"]
    (record,) = map_items([work], works, "UTC", None).records
    return record


SAID = {  # the file, the DOI, the time of indexing, and some fields
    "39-work-elife-relation.json": (
        *("10.7554/elife.01567", datetime(2026, 5, 12, 8, 9, 16, tzinfo=UTC)),
        {
            "doi": "10.7554/elife.01567",
            "title": "Automated quantitative histology reveals vascular morphodynamics during"
            " Arabidopsis hypocotyl secondary growth",
            "authors": [
                *("Sankar, Martial", "Nieminen, Kaisa", "Ragni, Laura"),
                *("Xenarios, Ioannis", "Hardtke, Christian S"),
            ],
            "journal": "eLife",
            "issn": ["2050-084X"],
            "published": "2014-02-11",
            "created": "2014-02-11",
            "type": "journal-article",
            "language": "en",
            "has_abstract": True,
            "license": "http://creativecommons.org/licenses/by/3.0/",
            "retracted": False,
            "corrected": False,
        },
    ),
    "40-work-posted-blog.json": (
        *("10.53731/ybhah-9jy85", datetime(2026, 7, 19, 18, 1, 56, tzinfo=UTC)),
        {"title": "The rise of the (science) newsletter", "type": "posted-content"},
    ),
    "43-work-journal-record.json": (  # a journal: nobody wrote it, and its date is [[null]]
        *("10.1007/12080.1874-1746", datetime(2022, 4, 5, 14, 50, 14, tzinfo=UTC)),
        {
            "title": "Theoretical Ecology",
            "published": None,
            "authors": None,
            "issn": ["1874-1738", "1874-1746"],
            "type": "journal",
        },
    ),
    "47-work-corrected.json": (  # updated by a correction
        *("10.1371/journal.pone.0033693", datetime(2026, 6, 6, 19, 55, 37, tzinfo=UTC)),
        {"page": "e33693", "cited_by": 72, "retracted": False, "corrected": True},
    ),
    "48-work-updates-itself.json": (  # updated by a new version, which is itself
        *("10.1371/journal.ppat.1008184", datetime(2026, 2, 28, 17, 4, 38, tzinfo=UTC)),
        {"published": "2020-01-17", "retracted": False, "corrected": False},
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_record_says_what_the_file_says(works, name):
    doi, indexed, said = SAID[name]
    record = record_of(works, name)
    fields = json.loads(record.fields_json)

    assert (record.provider_id, record.source_updated_at) == (doi, indexed)
    assert {key: fields[key] for key in said} == said
    assert misfits([record]) == []


def test_a_title_comes_without_its_markup(works):
    page = read(recorded("crossref", "10-members98-works-cursor-p04.json"), works, works.paging)
    title = fields_of(page.record("10.1111/jai.12009"))["title"]

    assert title.startswith("New record of the antenna codlet, Bregmaceros atlanticus Goode")


def test_an_abstract_comes_without_its_tags(works):
    abstract = json.loads(record_of(works, "39-work-elife-relation.json").fields_json)["abstract"]

    assert abstract.startswith("Among various advantages, their small size makes model organisms")
    assert "<" not in abstract


@pytest.mark.parametrize("kind", ["retraction", "withdrawal", "removal"])
def test_a_retraction_is_seen_and_a_doi_in_capitals_is_the_same_record(works, kind):
    """No recording has either; this is one with a correction, changed in these two words."""
    work = orjson.loads(recorded("crossref", "47-work-corrected.json").body)["message"]
    work["updated-by"][0]["type"] = kind
    work["DOI"] = "10.1371/JOURNAL.PONE.0033693"

    (record,) = map_items([work], works, "UTC", None).records

    assert record.provider_id == "10.1371/journal.pone.0033693"
    assert json.loads(record.fields_json)["retracted"] is True
