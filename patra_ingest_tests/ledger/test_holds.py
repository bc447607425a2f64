"""Holds: who must wait, and until when."""

import pytest
from sqlalchemy import text

from patra_ingest.ledger.holds import place_hold, resume
from patra_ingest_tests.builders import DAY, NOON


def hold(db, provenance="example", endpoint="works", reason="broken"):
    with db.write() as tx:
        place_hold(tx, provenance, endpoint, "L4", reason, "worker-a", NOON)


def lift(db, provenance="example", endpoint=None):
    with db.write() as tx:
        return resume(tx, provenance, endpoint, "me", NOON + DAY)


def in_force(db):
    query = text(
        "SELECT provenance_code, endpoint_name, reason FROM ing_hold WHERE resumed_at IS NULL"
    )
    with db.read() as tx:
        return sorted((row[0], row[1] or "*", row[2]) for row in tx.execute(query))


def test_a_held_endpoint_stays_as_it_is(db):
    hold(db, reason="first")
    hold(db, reason="second")

    assert in_force(db) == [("example", "works", "first")]


def test_a_whole_source_and_its_endpoints_are_held_for_themselves(db):
    for endpoint in ("works", "authors", None, None):
        hold(db, endpoint=endpoint)

    assert [row[1] for row in in_force(db)] == ["*", "authors", "works"]


@pytest.mark.parametrize(
    ("endpoint", "lifted", "left"), [("works", 1, 2), (None, 3, 0), ("nothing", 0, 3)]
)
def test_resuming_lifts_an_endpoint_or_all_of_a_source(db, endpoint, lifted, left):
    for held in ("works", "authors", None):
        hold(db, endpoint=held)
    hold(db, provenance="other")

    assert lift(db, endpoint=endpoint) == lifted
    assert len(in_force(db)) == left + 1
    assert ("other", "works", "broken") in in_force(db)


def test_what_was_resumed_can_be_held_again_and_both_are_remembered(db):
    for _ in range(3):
        hold(db)
        assert lift(db) == 1
    assert lift(db) == 0

    hold(db, reason="again")

    assert in_force(db) == [("example", "works", "again")]
    with db.read() as tx:
        assert tx.execute(text("SELECT COUNT(*) FROM ing_hold")).scalar() == 4


def test_a_long_reason_is_cut(db):
    hold(db, reason="x" * 2000)

    assert len(in_force(db)[0][2]) == 512
