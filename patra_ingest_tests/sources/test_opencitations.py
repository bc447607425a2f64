"""OpenCitations: what is asked for a DOI, and every recorded answer by the built-in pack.

The recordings are of version 1, whose rows have DOIs alone where version 2 has several ids.
"""

import json

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.asking import request_for
from patra_ingest_tests.sources.recorded import (
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)

DOI = "10.1108/jd-12-2013-0166"
CITATIONS, REFERENCES = "01-citations-jd.json", "02-references-jd.json"
METADATA, ONE = "04-metadata-one-doi.json", "05-citation-oci.json"


@pytest.fixture(scope="module")
def specs(sqlite_template):
    pack = read_pack(FOLDER / "opencitations.yaml")
    names = ("citations", "references")
    return {name: compiled(sqlite_template, pack, name, Operation.UPDATE) for name in names}


def fields_of(spec, response):
    (record,) = read(response, spec, ids=[DOI]).mapped.records
    assert record.provider_id == DOI
    fields = json.loads(record.fields_json)
    assert find_misfits(fields) == []
    return fields


@pytest.mark.parametrize("endpoint", ["citations", "references"])
def test_a_doi_stands_in_the_path_behind_its_scheme(specs, endpoint):
    request = request_for(specs[endpoint], ids=[DOI])

    assert request.full_url == (
        f"https://api.opencitations.net/index/v2/{endpoint}/doi:10.1108%2Fjd-12-2013-0166"
    )


def test_a_token_travels_without_a_word_before_it(specs):
    (named,) = specs["citations"].auth.credentials
    key = named.credential

    assert (key.type, key.location, key.field) == ("API_KEY", "HEADER", "authorization")
    assert not key.prefix


@needs_recordings
def test_every_recording_has_its_test():
    assert {CITATIONS, REFERENCES, METADATA, ONE} == recordings("opencitations")


@needs_recordings
def test_twenty_citations_are_one_record(specs):
    fields = fields_of(specs["citations"], recorded("opencitations", CITATIONS))

    assert (fields["doi"], fields["citations"], fields["own_citations"]) == (DOI, 20, 0)
    cited_by = fields["cited_by"]
    assert len(cited_by) == len(set(cited_by)) == 20
    assert (cited_by[0], cited_by[-1]) == ("10.1145/3197026.3197050", "10.1177/0961000615616450")


@needs_recordings
def test_its_references_are_another(specs):
    fields = fields_of(specs["references"], recorded("opencitations", REFERENCES))

    assert (fields["references"], len(fields["cites"])) == (37, 37)
    assert (fields["cites"][0], fields["cites"][-1]) == (
        *("10.1001/jama.295.1.90", "10.7717/peerj.175"),
    )
    assert "10.1002/(sici)1097-4571(198909)40:5<342::aid-asi7>3.0.co;2-u" in fields["cites"]


@needs_recordings
def test_one_reference_is_a_list_of_one(specs):
    fields = fields_of(specs["references"], recorded("opencitations", ONE))

    assert (fields["references"], fields["cites"]) == (1, ["10.5539/ass.v9n5p18"])


@needs_recordings
def test_metadata_are_no_citations(specs):
    with pytest.raises(EndpointHalted, match="a row that is no citation"):
        read(recorded("opencitations", METADATA), specs["citations"], ids=[DOI])


def test_nobody_cites_it_is_a_record_too(specs):
    fields = fields_of(specs["citations"], a_response(b"[]"))

    assert (fields["citations"], fields["cited_by"]) == (0, None)


def test_of_several_ids_the_doi_is_taken(specs):
    row = {
        "oci": "061-062",
        "citing": "omid:br/061 pmid:7 doi:10.5555/Citing.1 openalex:W7",
        "cited": f"omid:br/062 doi:{DOI}",
        "author_sc": "yes",
    }
    fields = fields_of(specs["citations"], a_response(json.dumps([row]).encode()))

    assert fields["cited_by"] == ["10.5555/citing.1"]
    assert fields["own_citations"] == 1
