"""The tutorial's pack, written from the documentation alone: short, and right about PLOS."""

import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from patra_ingest.cli import main
from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.model.codes import Operation
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.recorded import needs_recordings, recordings
from patra_ingest_tests.sources.suite.cases import FIXTURES, Case, Served, handmade_sources
from patra_ingest_tests.sources.suite.run_case import check, run_case

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PACK = EXAMPLES / "plos.yaml"
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
HANDMADE = Path(__file__).parent / "handmade_examples"
FINGERPRINT = re.compile(r"\b[0-9a-f]{12}\b")
[PLOS] = handmade_sources(HANDMADE)

TWO_DAYS = (datetime(2007, 12, 20, tzinfo=UTC), datetime(2007, 12, 22, tzinfo=UTC))
BACKFILL = {"operation": Operation.BACKFILL, "window": TWO_DAYS}
IS_JSON = {"outcome": "FATAL", "says": "XML was asked for"}
RECORDED = {
    "01-search-xml-2007-p01.xml": {"outcome": "INCOMPLETE", "says": "empty"},  # only a count
    "02-search-xml-2007-p02.xml": {
        "outcome": "COMPLETE",
        "stop": "TOTAL_REACHED",
        "pages": 1,
        "ids": {"xml": "//doc/str[@name='id']"},
    },
    "03-search-json-rows0.json": IS_JSON,
    "06-search-json-no-hits.json": IS_JSON,
}


@pytest.fixture
def home(sqlite_url, tmp_path):
    home = Home(open_db(sqlite_url), sqlite_url, tmp_path / "home")
    yield home
    home.db.close()


def fields(home):
    """Return what is kept of each record, by its id."""
    rows = home.rows("SELECT provider_id, fields FROM ing_record")
    return {row[0]: read_json(row[1]) for row in rows}


def test_the_pack_has_less_than_forty_lines():
    assert len(PACK.read_text(encoding="utf-8").splitlines()) < 40


@pytest.fixture
def say(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command on a ledger of its own and returns what it prints."""
    monkeypatch.setenv("PATRA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(ROOT)

    def said(command):
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert not ended.value.code, captured.out + captured.err
        return captured.out

    said("patra init")
    return said


def test_the_pack_compiles_without_a_warning_that_is_not_meant(say):
    say("patra registry apply docs/examples/plos.yaml")
    checked = say("patra registry check plos")

    assert "✓ plos/articles BACKFILL" in checked
    assert checked.endswith("1 compiled, 0 refused, 0 warnings that are not intended.\n")


def blocks(language):
    """Return the blocks of the tutorial in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_what_the_tutorial_shows_of_the_pack_stands_in_it():
    assert blocks("yaml")
    assert [one for one in blocks("yaml") if one not in PACK.read_text(encoding="utf-8")] == []


def test_the_tutorial_shows_what_its_commands_print(say):
    shown = [
        pair
        for block in blocks("console")
        for pair in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]

    assert len(shown) == 3
    for command, lines in shown:
        told = FINGERPRINT.sub("#", lines).splitlines(keepends=True)
        pattern = "".join(r"(?:.*\n)*" if one == "…\n" else re.escape(one) for one in told)
        said = say(command)
        assert re.fullmatch(pattern, FINGERPRINT.sub("#", said)), f"{command}\n{said}"


@pytest.mark.parametrize("case", PLOS.cases, ids=lambda case: case.case)
def test_our_own_answers_become_what_they_hold(case, home):
    check(case, run_case(case, home, packs=EXAMPLES))


def test_an_article_is_a_common_record(home):
    run_case(PLOS.cases[0], home, packs=EXAMPLES)
    records = fields(home)

    assert [find_misfits(one) for one in records.values()] == [[]] * 3
    assert records["10.1371/Journal.example.0001"] == {
        "doi": "10.1371/journal.example.0001",
        "title": "On <one>",
        "authors": ["Ada Example", "Bo Example"],
        "journal": "PLOS Examples",
        "issn": ["1234-5679"],
        "published": "2025-01-01",
        "type": "Research Article",
        "has_abstract": True,
    }
    assert records["10.1371/Journal.example.0003"]["has_abstract"] is False


@needs_recordings
@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_of_plos_gives_its_ids_or_an_error(name, home):
    served = Served(name, as_="GET https://api.plos.org/search")
    folder = FIXTURES / "plos"
    told = {**BACKFILL, **RECORDED[name]}
    case = Case("plos", "recorded", folder, name, "articles", serve=(served,), **told)

    check(case, run_case(case, home, packs=EXAMPLES))


@needs_recordings
def test_no_recording_of_plos_is_left_out():
    assert recordings("plos") == set(RECORDED)
