"""docs/sources: a page for every built-in source, made from its pack and never by hand."""

import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import pytest

from patra_ingest.cli import source_words as words
from patra_ingest.cli.source_page import source_page
from patra_ingest.cli.sources import builtin_sheets, pages
from patra_ingest.model.records import ChangeRule
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.comments import Comments, read_comments
from patra_ingest.registry.pack_file import read_pack_text
from patra_ingest.registry.provenance import EvidenceGrade, EvidencePart
from patra_ingest.spec.places import When
from patra_ingest.spec.words import Action, Meaning, MissingIds, PagingType, StopRule

FOLDER = Path(__file__).parents[1] / "docs" / "sources"
NAMES = [path.stem for path in builtin_packs()]


@pytest.fixture(scope="module")
def made():
    return pages()


@pytest.fixture(scope="module")
def sheets():
    return {sheet.code: sheet for sheet in builtin_sheets()}


def test_there_is_a_page_for_every_pack_and_no_other(made):
    assert sorted(made) == sorted(["README.md", *(f"{name}.md" for name in NAMES)])
    assert {file.name for file in FOLDER.iterdir()} == set(made)


@pytest.mark.parametrize("name", ["README", *NAMES])
def test_the_pages_are_current(made, name):
    assert (FOLDER / f"{name}.md").read_text() == made[f"{name}.md"], "run `make sources`"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_speaks_of_every_endpoint_operation_field_and_credential(sheets, made, name):
    sheet, page = sheets[name], made[f"{name}.md"]

    assert f"`{name}`" in made["README.md"]
    for one in sheet.endpoints:
        assert one.problems == ()
        part = page.partition(f"\n## `{one.name}`")[2].partition("\n## ")[0]
        assert ", ".join(one.operations) in part
        assert {field.name for field in one.part.fields or ()} <= set(
            re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
        )
    for credential in sheet.credentials:
        assert f"| `{credential}` |" in page
    assert sheet.comments.intro in page
    for note in sheet.comments.notes.values():
        assert note in page


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (words.MEANINGS, Meaning),
        (words.PAGES, PagingType),
        (words.STOPS, StopRule),
        (words.ACTIONS, Action),
        (words.GRADES, EvidenceGrade),
        (words.CHANGES, ChangeRule),
        (words.MISSING, MissingIds),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_there_are_plain_words_for_every_code(said, kind: type[StrEnum]):
    assert {str(code) for code in said} == {str(code) for code in kind}
    assert all(said.values())


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ({"status": (404, 410)}, "status 404 or 410"),
        ({"path": "$.a|b", "exists": True}, "`$.a\\|b` is there"),
        ({"path": "$.a", "empty": False, "status": 200}, "status 200 and `$.a` is not empty"),
        ({"header": "x-e", "equals": "no"}, "header `x-e` is `no`"),
        ({"path": "$.a", "one_of": ("x", 1)}, "`$.a` is one of x, 1"),
        ({"text": "Rate `limit`"}, "the text `` Rate `limit` ``"),
        ({"path": "$.a", "matches": "^x"}, "`$.a` matches `^x`"),
    ],
)
def test_a_condition_is_said_in_words(when, said):
    assert words.when_words(When(**when)) == said


def test_evidence_is_said_with_its_grade_and_its_note():
    part = EvidencePart(date="2026-11-01", grade="REPORTED", note="the cap is a guess")

    assert words.evidence_words(part) == (
        "2026-11-01, REPORTED: by what others say who use the source (the cap is a guess)"
    )
    assert words.evidence_words(None) == "not said"


COMMENTED = """
# yaml-language-server: $schema=pack.schema.json
# A library. https://library.example
provenance: {code: x}       # not of us
endpoints:
  works:                    # all of them
    # One line,
    # and another.
    request: {path: "/a#b"} # a path
    fields:
      title: '# no comment'
"""


def test_comments_are_read_with_the_place_they_speak_of():
    found = read_comments(COMMENTED, read_pack_text(COMMENTED, "a pack"))

    assert found.intro == "A library."
    assert found.at("endpoints", "works") == "all of them"
    assert dict(found.below("endpoints", "works")) == {
        "request": "One line, and another. a path",
    }
    assert found.notes[("provenance",)] == "not of us"


def test_grades_of_evidence_in_notes_are_explained(sheets):
    pubmed = sheets["pubmed"]
    graded = replace(pubmed, comments=Comments("", {("rate",): "ten a second [D]"}))

    assert "[D] says the source's own documentation" in source_page(graded)
    assert "[D]" not in source_page(replace(pubmed, comments=Comments("", {})))


def test_what_stands_twice_is_shown_once(sheets):
    page = source_page(sheets["pubmed"])

    assert page.count("| when an answer has | then |") == 2
    assert "Errors: as for `new`." in page
