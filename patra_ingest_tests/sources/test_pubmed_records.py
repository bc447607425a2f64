"""What the records of PubMed say, as a person reads them in the recorded files."""

import json
from dataclasses import replace

import pytest

from patra_ingest.model.records import ChangeRule, Known, change_of
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources import builtin
from patra_ingest_tests.sources.builtin import misfits
from patra_ingest_tests.sources.recorded import (
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
)

pytestmark = needs_recordings

FETCHED = sorted(name for name in recordings("pubmed") if "-efetch-" in name)
CHAPTER = b"""<?xml version="1.0"?>
<PubmedArticleSet><PubmedBookArticle>
<BookDocument>
 <PMID Version="1">90000101</PMID>
 <Book><BookTitle book="inv">Invented Reviews</BookTitle><PubDate><Year>2024</Year></PubDate></Book>
 <ArticleTitle>An invented <i>chapter</i></ArticleTitle>
 <Language>eng</Language>
 <AuthorList Type="authors"><Author><LastName>Doe</LastName><Initials>J</Initials></Author>
 <Author><CollectiveName>A Group</CollectiveName></Author></AuthorList>
 <PublicationType UI="D016454">Review</PublicationType>
 <Abstract><AbstractText>Words.</AbstractText></Abstract>
</BookDocument>
<PubmedBookData><History>
 <PubMedPubDate PubStatus="entrez"><Year>2024</Year><Month>2</Month><Day>3</Day></PubMedPubDate>
</History></PubmedBookData>
</PubmedBookArticle></PubmedArticleSet>"""
BOOK = {
    "pmid": "90000101",
    "title": "An invented chapter",
    "authors": ["Doe, J", "A Group"],
    "journal": "Invented Reviews",
    "published": "2024",
    "created": "2024-02-03",
    "type": "Review",
    "language": "eng",
    "has_abstract": True,
    "corrected": False,
    "retracted": False,
}


@pytest.fixture(scope="module")
def detail(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "pubmed.yaml"), "new").detail


def fetched(name, detail):
    return read(recorded("pubmed", name), detail)


def fields_of(name, provider_id, detail):
    return builtin.fields_of(fetched(name, detail).record(provider_id))


# One row per record: its fields as a person reads them in the file.
SAID = [
    pytest.param(
        *("24-efetch-xml-two-old.xml", "12091962"),
        {
            "title": "The treatment of AIDS behind the walls of correctional facilities.",
            "abstract": None,
            "published": "1990",
            "revised": "2007-11-15",
            "created": "1990-04-01",
            "authors": ["Olivero, J Michael"],
            "journal": "Social justice (San Francisco, Calif.)",
            "issn": ["1043-1578"],
            "doi": None,
            "pmid": "12091962",
            "type": "Journal Article",
            "types": ["Journal Article", "Review"],
            "language": "eng",
            "has_abstract": False,
            "corrected": False,
            "version": "1",
            "retracted": False,
        },
        id="a season is no month; one author is a list; no abstract",
    ),
    pytest.param(
        *("24-efetch-xml-two-old.xml", "9997"),
        {"published": "1976-09-28", "doi": "10.1016/0005-2795(76)90109-4", "issn": ["0006-3002"]},
        id="a month in letters; a DOI with brackets",
    ),
    pytest.param(
        *("26-efetch-xml-markup-in-title.xml", "27797938"),
        {
            "title": "Leucocyte telomere length, genetic variants at the TERT gene region and risk"
            " of pancreatic cancer.",
            "pmcid": "PMC5442267",
            "published": "2017-06",
        },
        id="markup within a title",
    ),
    pytest.param(
        *("42-efetch-xml-32887691.xml", "32887691"),
        {
            "title": "A living WHO guideline on drugs for covid-19.",
            "created": "2020-09-05",
            "revised": "2025-05-30",
            "has_abstract": True,
            "retracted": False,
            "corrected": True,
        },
        id="corrected and updated, not retracted",
    ),
    pytest.param(
        *("43-efetch-xml-31978945.xml", "31978945"),
        {"doi": "10.1056/nejmoa2001017", "pmcid": "PMC7092803", "published": "2020-02-20"},
        id="a DOI with capitals",
    ),
    pytest.param(
        *("44-efetch-xml-29540945.xml", "29540945"),
        {"doi": "10.1590/0100-3984.2015.0251", "pmcid": "PMC5844442", "mesh": None},
        id="its own ids, not those of its references",
    ),
    pytest.param(
        *("61-efetch-xml-38833988.xml", "38833988"),
        {
            "type": "Published Erratum",
            "types": ["Published Erratum"],
            "retracted": False,
            "corrected": False,
            "published": "2024-08",
        },
        id="an erratum",
    ),
]


@pytest.mark.parametrize(("name", "provider_id", "said"), SAID)
def test_a_record_says_what_the_file_says(detail, name, provider_id, said):
    fields = fields_of(name, provider_id, detail)

    assert {key: fields[key] for key in said} == said


@pytest.mark.parametrize("name", FETCHED)
def test_every_record_is_a_common_record(detail, name):
    assert misfits(fetched(name, detail).mapped.records) == []


def test_a_group_and_one_with_one_name_are_authors_too(detail):
    names = [
        name
        for file in FETCHED
        for record in fetched(file, detail).mapped.records
        for name in builtin.fields_of(record)["authors"]
    ]

    assert len(names) == 212
    group = "China Novel Coronavirus Investigating and Research Team"
    assert {name for name in names if ", " not in name} == {"Mahmooduzzafar", group}


def test_a_chapter_of_a_book_is_a_record_too(detail):
    """No recording has one; this is what the DTD says that NLM sends."""
    page = read(replace(recorded("pubmed", "25-efetch-xml-two.xml"), body=CHAPTER), detail)

    assert page.ids == ["90000101"]
    fields = builtin.fields_of(page.record("90000101"))
    assert misfits(page.mapped.records) == []
    assert fields | BOOK == fields


def test_an_abstract_keeps_the_text_of_its_markup_and_joins_its_parts(detail):
    abstract = fields_of("26-efetch-xml-markup-in-title.xml", "27797938", detail)["abstract"]

    assert abstract.startswith("Telomere shortening occurs as an early event")
    assert "transcriptase (TERT) gene region" in abstract
    assert "ptrend=0.048" in abstract
    assert "(linkage disequilibrium r2<0.25)" in abstract
    assert "risk of pancreatic cancer. We measured prediagnostic" in abstract


def test_an_abstract_keeps_its_formulas_and_not_their_indentation(detail):
    abstract = fields_of("28-efetch-xml-mathml-namespace.xml", "30108519", detail)["abstract"]

    assert "maximal oxygen uptake ( V . O 2 m a x ) 67.6 ± 4.1 ml·kg-1·min-1]" in abstract
    assert "\n" not in abstract


PAIRS = [  # the older and the newer recording of one record, and both dates of revision
    ("31-efetch-xml-20412080-2017.xml", "30-efetch-xml-20412080-2024.xml", "2010-06-23", None),
    ("33-efetch-xml-22351513-2017.xml", "32-efetch-xml-22351513-2024.xml", "2013-11-21", None),
    (
        *("35-efetch-xml-22528466-2018.xml", "34-efetch-xml-22528466-2024.xml"),
        *("2017-11-02", "2021-10-21"),
    ),
    (
        "40-efetch-xml-1234567-2017.xml",
        "38-efetch-xml-1234567-2024.xml",
        "2013-11-21",
        "2019-10-28",
    ),
]


@pytest.mark.parametrize(("before", "after", "revised", "again"), PAIRS)
def test_a_change_is_seen_also_where_the_date_of_revision_stays(
    detail, before, after, revised, again
):
    (old,), (new,) = fetched(before, detail).mapped.records, fetched(after, detail).mapped.records

    assert json.loads(old.fields_json)["revised"] == revised
    assert json.loads(new.fields_json)["revised"] == (again or revised)
    known = Known(old.source_updated_at, old.content_hash, is_deleted=False)
    assert detail.changed is ChangeRule.HASH
    assert change_of(known, new, detail.changed) == "updated"
    assert change_of(known, old, detail.changed) == "unchanged"


def test_a_retracted_record_and_a_deleted_one_are_known_as_such(detail):
    """No recording has either; this is one of them, changed where NLM writes it."""
    answer = recorded("pubmed", "25-efetch-xml-two.xml")
    kind = b'<PublicationType UI="D016441">Retracted Publication</PublicationType>'
    body = answer.body.replace(b"</PublicationTypeList>", kind + b"</PublicationTypeList>", 1)
    gone = b'<DeleteCitation><PMID Version="1">7</PMID></DeleteCitation></PubmedArticleSet>'

    page = read(replace(answer, body=body.replace(b"</PubmedArticleSet>", gone)), detail)

    flags = [json.loads(one.fields_json)["retracted"] for one in page.mapped.records]
    assert (page.ids, flags) == (["11748933", "11700088"], [True, False])
    assert page.decoded.gone == ("7",)
