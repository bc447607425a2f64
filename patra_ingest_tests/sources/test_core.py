"""CORE: what is asked for a day and for a work, and what it costs; nobody recorded an answer."""

import pytest

from patra_ingest.executor.paging import Page, Seen, first_page, next_page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.asking import request_for, sent
from patra_ingest_tests.sources.recorded import compiled, recordings


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "core.yaml")


@pytest.fixture(scope="module")
def works(sqlite_template, pack):
    return compiled(sqlite_template, pack, "works", Operation.BACKFILL)


@pytest.fixture(scope="module")
def work(sqlite_template, pack):
    return compiled(sqlite_template, pack, "work", Operation.UPDATE)


def test_nobody_recorded_it():
    assert recordings("core") == set(), "there are recordings now: read them here"


def test_the_first_page_begins_a_scroll(works):
    request = request_for(works, first_page(works.paging))

    assert request.full_url.startswith("https://api.core.ac.uk/v3/search/works/?")
    assert sent(request) == {
        "q": "createdDate>=2026-11-01 AND createdDate<2026-11-02",
        "limit": "100",
        "exclude": "fullText",
        "scroll": "true",
    }


def test_the_next_page_goes_on_with_it(works):
    after = next_page(works.paging, Page(), Seen(100, "a+b/==", 250))
    request = request_for(works, after)

    assert sent(request) == {
        "q": "createdDate>=2026-11-01 AND createdDate<2026-11-02",
        "limit": "100",
        "exclude": "fullText",
        "scrollId": "a+b/==",
    }


def test_a_work_is_asked_for_by_its_number(work):
    assert request_for(work, ids=["9000001"]).full_url == "https://api.core.ac.uk/v3/works/9000001"


def test_a_scroll_costs_more_tokens_than_a_work_and_both_take_from_one_budget(works, work):
    assert (works.rate.key, works.rate.cost) == ("core", 5)
    assert (work.rate.key, work.rate.cost) == ("core", 1)
    limits = [(quota.limit, quota.per.total_seconds()) for quota in works.rate.quotas]
    assert limits == [(25, 60), (1000, 86_400)]
    assert work.rate.quotas == works.rate.quotas


def test_it_is_never_asked_without_a_key(works):
    assert works.auth.required
    assert [named.name for named in works.auth.credentials] == ["core-academic", "core-key"]
