"""What the pack of DOAJ asks, and what it makes of answers; nobody recorded any, so of our own."""

from datetime import timedelta

import pytest

from patra_ingest.errors import RequestRejected, SliceTooBig
from patra_ingest.executor.paging import Page
from patra_ingest.ledger.db import open_db
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import read_pack
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.builders import DAY, NOON
from patra_ingest_tests.sources.question import days_of, fields_of, handmade, misfits, question
from patra_ingest_tests.sources.recorded import compiled, read

HOUR = days_of("2026-11-01T09:00:00Z", "2026-11-01T10:00:00Z")
ONE = f"{1:032x}"


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "doaj.yaml")


@pytest.fixture(scope="module")
def articles(sqlite_template, pack):
    return compiled(sqlite_template, pack, "articles")


@pytest.fixture(scope="module")
def oai(sqlite_template, pack):
    return compiled(sqlite_template, pack, "oai")


def test_the_question_is_a_part_of_the_path_and_nothing_in_it_is_read_as_an_address(articles):
    address, sent = question(articles, HOUR)

    asked = "last_updated:%5B2026-11-01T08:00:00Z%20TO%202026-11-01T09:59:59Z%5D"
    assert address == f"https://doaj.org/api/search/articles/{asked}"
    assert sent == {"sort": "last_updated:asc", "page": "1", "pageSize": "100"}
    assert question(articles, HOUR, Page(2, offset=2)) == (address, {**sent, "page": "2"})


def test_an_article_is_the_common_record(articles):
    pages = [read(handmade("doaj", f"0{n}-search-p{n}.json"), articles) for n in (1, 2)]

    assert dict(fields_of(pages[0], ONE)) == {
        "doi": "10.5555/doaj.1",
        "title": "Example article 1",
        "authors": ["Ada Example", "Bo Beispiel"],
        "journal": "Journal of Examples",
        "issn": ["1234-5678", "8765-432X"],
        "published": "2024-02",
        "created": "2024-12-31",
        "language": "EN",
        "has_abstract": True,
        "publisher": "Example University",
        "volume": "7",
        "issue": "1",
    }
    assert fields_of(pages[1], f"{3:032x}")["published"] == "2024"
    assert [sentence for page in pages for sentence in misfits(page)] == []


def test_an_hour_with_more_than_a_thousand_is_cut_again_and_other_mistakes_are_not(articles):
    with pytest.raises(SliceTooBig):
        read(handmade("doaj", "05-search-beyond.json"), articles, articles.paging)
    with pytest.raises(RequestRejected):
        read(handmade("doaj", "06-search-forbidden.json"), articles, articles.paging)
    assert (articles.cap.max, articles.paging.page_size * articles.paging.max_pages) == (1000, 1000)


def test_one_article_by_its_id_is_the_same_record(sqlite_template, pack):
    article = compiled(sqlite_template, pack, "article", Operation.UPDATE)
    page = read(handmade("doaj", "09-article.json"), article)

    assert question(article, None, ids=("a/b",))[0] == "https://doaj.org/api/articles/a%2Fb"
    assert (page.ids, misfits(page)) == ([f"{2:032x}"], [])


def test_without_a_premium_key_nothing_of_the_last_month_is_asked_for(sqlite_template, pack, oai):
    assert oai.window.safety_lag == timedelta(days=31)

    ledger = open_db(f"sqlite:///{sqlite_template}")
    with ledger.write() as tx, tx.begin_nested() as trial:
        apply_pack(tx, pack, NOON)
        codes = builtin_code_book()
        declared = read_declaration(tx, "doaj", "oai", Operation.HARVEST, NOON + DAY, codes)
        trial.rollback()
    ledger.close()
    premium = compile_spec(declared, Overrides(), frozenset({"doaj-premium"})).spec
    assert premium.window.safety_lag == timedelta(hours=2)


def test_the_first_and_the_next_request_of_oai(oai):
    day = days_of("2026-09-01", "2026-09-02")

    assert question(oai, day) == (
        "https://doaj.org/oai.article",
        {
            "verb": "ListRecords",
            "metadataPrefix": "oai_doaj",
            "from": "2026-08-30T00:00:00Z",
            "until": "2026-09-01T23:59:59Z",
        },
    )
    token = "eyJpbnZlbnRlZCI6IDF9"
    sent = question(oai, day, Page(2, token=token))[1]
    assert sent == {"verb": "ListRecords", "resumptionToken": token}


def test_an_article_of_oai_is_the_common_record_and_a_removed_one_a_deletion(oai):
    pages = [read(handmade("doaj", f"0{n}-oai-p{n - 6}.xml"), oai, oai.paging) for n in (7, 8)]

    assert dict(fields_of(pages[0], "oai:doaj.org/article:b1")) == {
        "doi": "10.5555/doaj.1",
        "title": "Example article 1",
        "authors": ["Ada Example"],
        "journal": "Journal of Examples",
        "issn": ["1234-5678", "8765-432X"],
        "published": "2024-02-01",
        "language": "eng",
        "has_abstract": True,
        "publisher": "Example University",
        "sets": None,
    }
    assert [one.provider_id for one in pages[1].mapped.records if one.is_deleted] == [
        "oai:doaj.org/article:b0"
    ]
    assert misfits(pages[0]) == []
