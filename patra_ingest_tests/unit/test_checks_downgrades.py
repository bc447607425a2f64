"""Downgrades: what a source cannot give is said, once, and only where it is so."""

from dataclasses import replace

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.words import Downgrade
from patra_ingest_tests.builders import a_declaration, a_spec

WINDOW = {"from": "${window.from|iso}", "to": "${window.last|iso}"}
WITH_TOKEN = {**WINDOW, "cursor": "${page.token}"}
BY_OFFSET = {"type": "OFFSET", "next_token": None, "offset_param": "start"}


def by_offset(**paging):
    return {"request": {"query": WINDOW}, "paging": {**BY_OFFSET, **paging}}


SAID = [
    (Downgrade.NO_TOTAL, {"paging": {"total": None}}),
    (Downgrade.ESTIMATED_TOTAL, {"paging": {"total": {"path": "$.n", "is_estimate": True}}}),
    (Downgrade.EXTRA_PAGE, by_offset(stop=["EMPTY_PAGE"], consistency="SNAPSHOT")),
    (Downgrade.NO_UPDATE_TIME, {"endpoint": {"changed": "HASH"}}),
    (Downgrade.NO_UPDATE_FILTER, {"response": {"client_window": True}}),
    (Downgrade.NEW_ONLY, {"window": {"meaning": "CREATED"}}),
    (Downgrade.UNSTABLE_WALK, by_offset(stop=["SHORT_PAGE"], consistency="UNSTABLE")),
    (Downgrade.UNREPEATABLE, {"request": {"query": {**WITH_TOKEN, "at": "${now|iso}"}}}),
    (Downgrade.NO_SECOND_SPLIT, {"cap": {"max": 100}}),
]


@pytest.mark.parametrize(("code", "groups"), SAID)
def test_what_a_source_cannot_give_is_said(code, groups):
    [warning] = a_spec(**groups).warnings
    assert warning.startswith(f"{code}: ")


def test_every_downgrade_but_that_of_a_missing_secret_is_in_the_table():
    assert {*Downgrade} - {code for code, _ in SAID} == {Downgrade.ANONYMOUS}


def test_a_source_that_gives_all_has_no_downgrade():
    assert a_spec().warnings == ()


@pytest.mark.parametrize("meaning", ["UPDATED", "INDEXED"])
def test_a_window_of_changes_sees_more_than_what_is_new(meaning):
    assert a_spec(window={"meaning": meaning}).warnings == ()


def test_a_backfill_of_what_was_created_misses_nothing():
    harvest = a_declaration(window={"meaning": "CREATED"})
    backfill = replace(harvest, operation=Operation.BACKFILL)
    assert compile_spec(backfill, Overrides()).spec.warnings == ()
    assert compile_spec(harvest, Overrides()).spec.warnings == (
        "NEW_ONLY: a change of a known record is not seen: harvest it elsewhere",
    )
