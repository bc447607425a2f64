"""What our own answers hold is kept as the common record, field by field.

The recorded ones are held against it in the file of each source.
"""

import json

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.sandbox.recordings import read_recording
from patra_ingest.spec.common_shape import COMMON_FIELDS
from patra_ingest.transport.messages import Response
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.sources.builtin import fields_of, misfits
from patra_ingest_tests.sources.recorded import compiled, read
from patra_ingest_tests.sources.suite.cases import HANDMADE

# The endpoint, the answers, and the common fields that the source has no word for.
SOURCES = {
    "pubmed": ("fetch", Operation.UPDATE, ["02-fetch-three.xml"], {"license"}),
    "crossref": (
        *("works", Operation.HARVEST, [f"0{n}-walk-p{n}.json" for n in (1, 2, 3)]),
        {"pmid", "pmcid"},
    ),
    "epmc": (
        *(
            "article",
            Operation.UPDATE,
            [*(f"0{n}-walk-p{n}.json" for n in (1, 2, 3)), "09-by-ids.json"],
        ),
        set(),
    ),
    "openalex": (
        *("works", Operation.BACKFILL, [f"0{n}-walk-p{n}.json" for n in (1, 2, 3)]),
        {"corrected"},
    ),
    "datacite": (
        *("dois", Operation.HARVEST, [f"0{n}-walk-p{n}.json" for n in (1, 2, 3)]),
        {"pmid", "pmcid", "retracted", "corrected"},
    ),
}


@pytest.mark.parametrize("code", SOURCES)
def test_all_that_a_source_knows_is_called_by_its_common_name(sqlite_template, code):
    endpoint, operation, names, unknown = SOURCES[code]
    call = compiled(sqlite_template, read_pack(FOLDER / f"{code}.yaml"), endpoint, operation)

    records = []
    for name in names:
        body = read_recording(HANDMADE / code, name).body
        page = read(Response(200, {}, body, 0.1, f"https://{code}.example/", NOON), call)
        assert page.mapped.bad == []
        records += page.mapped.records

    assert len(records) > 1
    assert misfits(records) == []
    for record in records:
        assert set(COMMON_FIELDS) - fields_of(record).keys() == unknown


def test_one_record_of_ours_reads_as_it_was_written(sqlite_template):
    call = compiled(sqlite_template, read_pack(FOLDER / "datacite.yaml"), "dois")
    body = read_recording(HANDMADE / "datacite", "02-walk-p2.json").body

    page = read(Response(200, {}, body, 0.1, "https://datacite.example/", NOON), call)

    assert json.loads(page.record("10.5072/hand.3").fields_json) == {
        "doi": "10.5072/hand.3",
        "title": "Invented data, number 3",
        "authors": ["Beispiel, Erika", "Institute of Examples"],
        "journal": "Examples",
        "issn": ["1234-567X"],
        "published": "2024",
        "created": "2024-12-30",
        "type": "Dataset",
        "language": "en",
        "has_abstract": True,
        "license": "All ours",
        "abstract": "To have something to read.",
        "publisher": "Example Repository",
        "registered": "2024-12-30",
        "state": "findable",
        "client": "example.repo",
        "cited_by": 0,
    }
