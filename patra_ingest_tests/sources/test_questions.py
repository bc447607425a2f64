"""What the built-in packs ask: the first page of a day, the next one, and records by their ids.

As the documentation of each source has it, and as others who recorded its answers have asked.
"""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.executor.paging import Page, first_page
from patra_ingest.model.codes import Operation
from patra_ingest.model.window import Window
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.builtin import CONTACT, question
from patra_ingest_tests.sources.recorded import compiled

HARVEST, BACKFILL, UPDATE = Operation.HARVEST, Operation.BACKFILL, Operation.UPDATE
DAY = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
# In New York that Sunday begins at 4 o'clock UTC and has 25 hours.
SUNDAY = Window(datetime(2026, 11, 1, 4, tzinfo=UTC), datetime(2026, 11, 2, 5, tzinfo=UTC))
HOUR = Window(DAY.start, DAY.start + timedelta(hours=1))
NEXT = Page(2, token="AoE/+x==")

_EUTILS = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
_EPMC = "https://www.ebi.ac.uk/europepmc/webservices/rest"
_WHO = {"email": CONTACT, "tool": "patra-ingest"}
_SEARCH = {"db": "pubmed", "retmode": "json", "retmax": "9999", **_WHO}
_EPMC_DAY = {"email": CONTACT, "format": "json", "resultType": "core", "pageSize": "200"}
_EPMC_DAY |= {"query": "UPDATE_DATE:[2026-10-30 TO 2026-11-01]"}
_INDEXED = {
    "filter": "from-index-date:2026-10-31T23:00:00,until-index-date:2026-11-01T00:59:59",
    "rows": "500",
    "mailto": CONTACT,
}
_CHANGES = {
    "filter": "from_updated_date:2026-10-31T23:00:00.000000,"
    "to_updated_date:2026-11-01T00:59:59.999999",
    "per_page": "100",
}
_UPDATED = {
    "query": "updated:[2026-10-31T23:00:00Z TO 2026-11-01T01:00:00Z}",
    "disable-facets": "true",
    "page[size]": "1000",
    "mailto": CONTACT,
}
# The endpoint and the operation, the slice, then for every page of it the address and what is sent.
WALKS = [
    (
        *("pubmed/new", HARVEST, SUNDAY, f"GET {_EUTILS}/esearch.fcgi"),
        [(None, {**_SEARCH, "term": '("2026/10/30"[crdt] : "2026/11/01"[crdt])'})],
    ),
    (
        *("pubmed/changed", HARVEST, SUNDAY, f"GET {_EUTILS}/esearch.fcgi"),
        [(None, {**_SEARCH, "term": '("2026/10/30"[mdat] : "2026/11/01"[mdat])'})],
    ),
    (
        *("crossref/works", HARVEST, HOUR, "GET https://api.crossref.org/works"),
        [(None, {**_INDEXED, "cursor": "*"}), (NEXT, {**_INDEXED, "cursor": NEXT.token})],
    ),
    (
        *("epmc/search", HARVEST, DAY, f"GET {_EPMC}/search"),
        [(None, {**_EPMC_DAY, "cursorMark": "*"}), (NEXT, {**_EPMC_DAY, "cursorMark": NEXT.token})],
    ),
    (
        *("openalex/changes", HARVEST, HOUR, "GET https://api.openalex.org/works"),
        [(None, {**_CHANGES, "cursor": "*"}), (NEXT, {**_CHANGES, "cursor": NEXT.token})],
    ),
    (
        *("openalex/works", BACKFILL, DAY, "GET https://api.openalex.org/works"),
        [
            (
                None,
                {
                    "filter": "from_publication_date:2026-11-01,to_publication_date:2026-11-01",
                    "per_page": "100",
                    "cursor": "*",
                },
            )
        ],
    ),
    (
        *("datacite/dois", HARVEST, HOUR, "GET https://api.datacite.org/dois"),
        [
            (None, {**_UPDATED, "page[cursor]": "1"}),
            (NEXT, {**_UPDATED, "page[cursor]": NEXT.token}),
        ],
    ),
]
# The endpoint, two ids, the address, and what is sent.
BY_IDS = [
    (
        *("pubmed/fetch", ("11", "12"), f"POST {_EUTILS}/efetch.fcgi"),
        {"db": "pubmed", "retmode": "xml", "id": "11,12", **_WHO},
    ),
    (
        *("crossref/work", ("10.5555/a", "10.5555/b"), "GET https://api.crossref.org/works"),
        {"filter": "doi:10.5555/a,doi:10.5555/b", "rows": "50", "mailto": CONTACT},
    ),
    (
        *("epmc/article", ("MED:11", "PPR:PPR7"), f"POST {_EPMC}/searchPOST"),
        {
            "query": '(SRC:MED AND EXT_ID:"11") OR (SRC:PPR AND EXT_ID:"PPR7")',
            "format": "json",
            "resultType": "core",
            "pageSize": "100",
            "email": CONTACT,
        },
    ),
    (
        *("openalex/work", ("W1", "W2"), "GET https://api.openalex.org/works"),
        {"filter": "openalex:W1|W2", "per_page": "100"},
    ),
    (
        *("datacite/doi", ("10.5072/a", "10.5072/b"), "GET https://api.datacite.org/dois"),
        {
            "ids": "10.5072/a,10.5072/b",
            "disable-facets": "true",
            "page[size]": "50",
            "mailto": CONTACT,
        },
    ),
]


@pytest.fixture(scope="module")
def spec(sqlite_template):
    """Compile an endpoint of a built-in pack."""

    def compile_(name, operation, **more):
        source, _, endpoint = name.partition("/")
        pack = read_pack(FOLDER / f"{source}.yaml")
        return compiled(sqlite_template, pack, endpoint, operation, **more)

    return compile_


@pytest.mark.parametrize(
    ("name", "operation", "window", "address", "pages"), WALKS, ids=[row[0] for row in WALKS]
)
def test_a_slice_is_asked_for_page_by_page(spec, name, operation, window, address, pages):
    asked = spec(name, operation)

    for page, sent in pages:
        at = page or first_page(asked.paging)
        assert question(asked, window, at) == (address, sent)


@pytest.mark.parametrize(("name", "ids", "address", "sent"), BY_IDS, ids=[row[0] for row in BY_IDS])
def test_records_are_asked_for_by_their_ids(spec, name, ids, address, sent):
    assert question(spec(name, UPDATE), None, Page(), ids=ids) == (address, sent)


def test_a_day_of_pubmed_that_is_too_large_is_cut_by_its_ids(spec):
    asked = spec("pubmed/new", HARVEST)

    _, sent = question(asked, SUNDAY, Page(), split="1:30000000[UID]")

    assert sent["term"].endswith("[crdt]) AND 1:30000000[UID]")


def test_a_long_query_of_europe_pmc_goes_where_it_takes_forms(spec):
    many = {"in": {"field": "text", "values": [f"{number} owls" for number in range(200)]}}
    asked = spec("epmc/search", HARVEST, query=many)

    address, sent = question(asked, DAY, first_page(asked.paging))

    assert address == f"POST {_EPMC}/searchPOST"
    assert sent["query"].startswith('(("0 owls" OR "1 owls"')
    assert sent["query"].endswith(" AND UPDATE_DATE:[2026-10-30 TO 2026-11-01]")
