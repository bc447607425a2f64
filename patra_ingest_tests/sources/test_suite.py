"""Every pack against recordings, through the whole engine, over real HTTP on the loopback."""

import pytest

from patra_ingest.ledger.db import open_db
from patra_ingest.packs import builtin_packs, builtin_templates
from patra_ingest.sandbox.recordings import read_recordings
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.suite.cases import (
    FIXTURES,
    SKIPPED,
    handmade_sources,
    recorded_sources,
)
from patra_ingest_tests.sources.suite.run_case import check, run_case

SOURCES = [*recorded_sources(), *handmade_sources()]
CASES = [case for source in SOURCES for case in source.cases]
NO_SOURCE = {"sandbox"}  # a server of ours, tested as such


def _is_there(kind):
    return kind == "handmade" or FIXTURES.is_dir()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            marks=() if _is_there(case.kind) else pytest.mark.skip(SKIPPED),
            id=f"{case.kind}-{case.source}-{case.case}",
        )
        for case in CASES
    ],
)
def test_the_ledger_has_what_the_recordings_hold(
    case, sqlite_url, tmp_path, monkeypatch, record_property
):
    for name, value in case.secrets.items():
        monkeypatch.setenv(name, value)
    record_property("suite", (case.kind, case.source))
    home = Home(open_db(sqlite_url), sqlite_url, tmp_path / "home")
    try:
        result = run_case(case, home)
        record_property("numbers", {**check(case, result), "served": sorted(set(result.served))})
    finally:
        home.db.close()


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: f"{one.kind}-{one.code}")
def test_every_recording_of_a_source_is_served_or_is_said_why_not(source):
    if not _is_there(source.kind):
        pytest.skip(SKIPPED)
    served = {(case.folder, one.name) for case in source.cases for one in case.recordings()}
    folders = {source.folder, *(case.folder for case in source.cases)}
    there = {(folder, one.name) for folder in folders for one in read_recordings(folder)}
    said = {(folder, name) for folder in folders for name in source.not_asked}

    assert there - served == there & said


def test_every_built_in_pack_has_hand_made_cases():
    made = {source.code for source in handmade_sources()}

    paths = [*builtin_packs(), *builtin_templates()]
    assert {path.stem for path in paths} - NO_SOURCE == made


@pytest.mark.parametrize("source", handmade_sources(), ids=lambda one: one.code)
def test_hand_made_cases_have_a_walk_and_an_error(source):
    walks = [case for case in source.cases if not case.is_error and len(case.ids) > 1]

    assert any((case.pages or 0) > 1 for case in walks) or source.one_page
    assert any(case.is_error for case in source.cases)
