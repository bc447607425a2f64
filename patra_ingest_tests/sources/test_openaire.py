"""OpenAIRE: what is asked for a day and for a product; nobody recorded an answer."""

import pytest

from patra_ingest.errors import CompileError, UnknownName
from patra_ingest.executor.paging import Page, Seen, first_page, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import read_pack_file
from patra_ingest_tests.sources.asking import request_for, sent
from patra_ingest_tests.sources.recorded import compiled, recordings


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "openaire.yaml")


@pytest.fixture(scope="module")
def products(sqlite_template, pack):
    return compiled(sqlite_template, pack, "products", Operation.BACKFILL)


def test_nobody_recorded_it():
    assert recordings("openaire") == set(), "there are recordings now: read them here"


def test_a_harvest_is_refused_because_only_publication_dates_are_known(sqlite_template, pack):
    assert set(pack.endpoints["products"].operations) == {Operation.BACKFILL}
    text = read_pack_file(FOLDER / "openaire.yaml")
    text.value["endpoints"]["products"]["operations"] = ["HARVEST"]

    with pytest.raises(CompileError, match="PUBLISHED: late and changed records would never be"):
        compiled(sqlite_template, parse_pack(text), "products")


def test_who_asks_for_a_harvest_is_told_what_can_be_asked_for(sqlite_template, pack):
    with pytest.raises(
        UnknownName, match=r"no endpoint for HARVEST\. .*: BACKFILL, UPDATE \(--op\)"
    ):
        compiled(sqlite_template, pack, None)


def test_a_day_is_asked_for_with_both_ends(products):
    request = request_for(products, first_page(products.paging))

    assert request.full_url.startswith("https://api.openaire.eu/graph/v2/researchProducts?")
    assert sent(request) == {
        "fromPublicationDate": "2026-11-01",
        "toPublicationDate": "2026-11-01",
        "pageSize": "100",
        "cursor": "*",
    }


def test_the_next_page_is_asked_for_by_its_cursor(products):
    after = next_page(products.paging, Page(token="*"), Seen(100, "a+b/==", 250))

    assert sent(request_for(products, after)) == {
        "fromPublicationDate": "2026-11-01",
        "toPublicationDate": "2026-11-01",
        "pageSize": "100",
        "cursor": "a+b/==",
    }


def test_a_product_is_asked_for_by_its_id(sqlite_template, pack):
    spec = compiled(sqlite_template, pack, "product", Operation.UPDATE)

    url = request_for(spec, ids=["doi_dedup___::0a/1"]).full_url
    assert url == "https://api.openaire.eu/graph/v2/researchProducts/doi_dedup___%3A%3A0a%2F1"


def test_a_token_allows_a_hundred_and_twenty_times_as_much(sqlite_template, pack, products):
    service = next(c for c in products.auth.credentials if c.name == "openaire-service")

    (anonymous,) = products.rate.quotas
    assert (anonymous.limit, anonymous.per.total_seconds(), anonymous.kind) == (60, 3600, "SLIDING")
    (allowed,) = service.credential.unlocks["rate"]["quotas"]
    assert (allowed["limit"], allowed["per"]) == (7200, "1h")
    assert service.credential.token_url == "https://aai.openaire.eu/oidc/token"
