"""What the pack for HAL asks, and how it reads answers as Solr writes them; none was recorded."""

import json
from datetime import UTC, datetime

import orjson
import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, SliceIncomplete, TransientError
from patra_ingest.executor.paging import Ended, Page, Seen, first_page, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.sources.recorded import compiled, read
from patra_ingest_tests.sources.rendered import hours, sent_for

DAY = hours("2026-11-01T00:00Z", "2026-11-02T00:00Z")
DOCUMENT = {
    "docid": "9000001",
    "halId_s": "hal-09000001",
    "version_i": 2,
    "modifiedDate_tdate": "2026-11-01T10:20:30Z",
    "submittedDate_tdate": "2026-10-30T08:00:00Z",
    "publicationDate_s": "2026-09",
    "docType_s": "ART",
    "language_s": ["fr"],
    "title_s": ["Les  hiboux", "Owls"],
    "abstract_s": "Ils voient.",  # a list or a text, as it comes
    "authFullName_s": ["Ada Lovelace", "Grace Hopper"],
    "doiId_s": "10.5555/OWL",
    "pubmedId_s": "123",
    "pubmedcentralId_s": "PMC456",
    "journalTitle_s": "Annales des exemples",
    "journalIssn_s": "1234-5678",
    "journalEissn_s": "8765-432x",
    "licence_s": "http://creativecommons.org/licenses/by/",
    "openAccess_bool": True,
}


@pytest.fixture(scope="module")
def documents(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "hal.yaml"), "documents")


def page_of(documents, *docs, cursor="AoE=", status=200):
    tree = {"response": {"numFound": len(docs), "docs": docs}, "nextCursorMark": cursor}
    return read(a_response(orjson.dumps(tree), status=status), documents, documents.paging)


def test_a_day_is_asked_for_without_its_end_and_then_by_its_cursor(documents):
    first = sent_for(documents, DAY)
    second = sent_for(documents, DAY, Page(2, token="AoE/+=="))

    assert first.address == "https://api.archives-ouvertes.fr/search/"
    fields = first.params.pop("fl").split(",")
    # Two hours more: what is indexed late.
    span = "[2026-10-31T22:00:00Z TO 2026-11-02T00:00:00Z}"
    said = {"q": "*:*", "fq": f"modifiedDate_tdate:{span}", "sort": "docid asc", "wt": "json"}
    assert first.params == {**said, "rows": "500", "cursorMark": "*"}
    assert second.params["cursorMark"] == "AoE/+=="
    assert {"docid", "modifiedDate_tdate", "doiId_s"} <= {*fields}


def test_known_documents_are_asked_for_by_their_numbers(sqlite_template):
    spec = compiled(sqlite_template, read_pack(FOLDER / "hal.yaml"), "documents", Operation.UPDATE)

    assert sent_for(spec, ids=("1", "2")).params["q"] == "docid:(1 OR 2)"


def test_a_query_takes_the_place_of_everything(sqlite_template):
    query = {"query": {"term": {"field": "text", "value": 'owl "x"', "match": "PHRASE"}}}
    spec = compiled(
        sqlite_template, read_pack(FOLDER / "hal.yaml"), "documents", values={"endpoint": query}
    )

    assert sent_for(spec, DAY).params["q"] == '"owl \\"x\\""'


def test_the_page_that_hands_out_the_cursor_that_was_sent_is_the_last(documents):
    after = next_page(documents.paging, first_page(documents.paging), Seen(500, "AoE="))

    assert after == Page(2, token="AoE=")
    assert next_page(documents.paging, after, Seen(0, "AoE=")) == Ended("SAME_TOKEN")
    with pytest.raises(SliceIncomplete, match="hands out no token"):
        next_page(documents.paging, after, Seen(500, None))


def test_a_record_says_what_the_document_says(documents):
    record = page_of(documents, DOCUMENT).record("9000001")
    fields = json.loads(record.fields_json)

    assert record.source_updated_at == datetime(2026, 11, 1, 10, 20, 30, tzinfo=UTC)
    assert find_misfits(fields) == []
    said = {
        "version": 2,
        "doi": "10.5555/owl",
        "pmid": "123",
        "pmcid": "PMC456",
        "title": "Les hiboux",
        "authors": ["Ada Lovelace", "Grace Hopper"],
        "journal": "Annales des exemples",
        "issn": ["1234-5678", "8765-432X"],
        "published": "2026-09",
        "created": "2026-10-30",
        "type": "ART",
        "language": "fr",
        "has_abstract": True,
        "license": "http://creativecommons.org/licenses/by/",
        "hal_id": "hal-09000001",
    }
    assert {key: fields[key] for key in said} == said


def test_a_document_with_nothing_but_its_dates_is_a_record_too(documents):
    bare = {key: DOCUMENT[key] for key in ("docid", "modifiedDate_tdate")}
    fields = json.loads(page_of(documents, bare).record("9000001").fields_json)

    assert find_misfits(fields) == []
    assert {value for key, value in fields.items() if key != "has_abstract"} == {None}
    assert fields["has_abstract"] is False


@pytest.mark.parametrize(
    ("tree", "error", "words"),
    [
        ({"error": {"code": 400, "msg": "undefined field x"}}, RequestRejected, "undefined field"),
        ({"error": {"code": 503, "msg": "no servers"}}, TransientError, "no servers"),
        ({"response": {"numFound": 3}}, EndpointHalted, "$.response.docs"),
        (
            {"responseHeader": {"partialResults": True}, "response": {"numFound": 3, "docs": []}},
            *(TransientError, "partialResults"),
        ),
    ],
)
def test_an_error_with_status_200_is_an_error(documents, tree, error, words):
    with pytest.raises(error) as raised:
        read(a_response(orjson.dumps(tree)), documents, documents.paging)

    assert words in str(raised.value)
