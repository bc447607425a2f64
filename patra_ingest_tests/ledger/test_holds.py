"""Holds: who must wait, and until when; and who said so."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.holds import Hold, find_hold, list_holds, place_hold, resume
from patra_ingest.ledger.remarks import read_remarks
from patra_ingest_tests.builders import DAY, NOON


def hold(db, provenance="example", endpoint="works", reason="broken"):
    with db.write() as tx:
        return place_hold(tx, provenance, endpoint, "L4", reason, "worker-a", NOON)


def lift(db, provenance="example", endpoint=None, reason="mended"):
    with db.write() as tx:
        return resume(tx, provenance, endpoint, "me", NOON + DAY, reason)


def audit(db):
    """Return what is remarked on every hold, oldest first."""
    with db.read() as tx:
        found = tx.execute(text("SELECT record_remarks FROM ing_hold ORDER BY id")).scalars()
        return [
            [
                (said["type"], said["by"], said["time"][:10], said["note"])
                for said in read_remarks(v)
            ]
            for v in found
        ]


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


def test_a_hold_remembers_who_placed_and_lifted_it_when_and_why(db):
    hold(db, reason="broken")
    lift(db, reason="mended")
    hold(db, reason="broken again")

    assert audit(db) == [
        [
            ("hold", "worker-a", "2025-09-20", "broken"),
            ("resume", "me", "2025-09-21", "mended"),
        ],
        [("hold", "worker-a", "2025-09-20", "broken again")],
    ]


def test_who_holds_what_is_held_is_told_so_and_remembered(db):
    assert hold(db, reason="first") is True
    assert hold(db, reason="second") is False

    assert [note for *_, note in audit(db)[0]] == ["first", "second"]
    assert in_force(db) == [("example", "works", "first")]


def test_resuming_remarks_on_nothing_but_what_it_lifts(db):
    hold(db)
    lift(db)
    hold(db, provenance="other")
    assert lift(db) == 0

    assert [[kind for kind, *_ in one] for one in audit(db)] == [["hold", "resume"], ["hold"]]


@pytest.mark.parametrize(
    ("held", "asked", "found"),
    [
        ([], "works", "nothing"),
        (["works"], "works", "works"),
        (["works"], "authors", "nothing"),
        (["works"], None, "nothing"),
        ([None], "works", None),
        ([None], None, None),
        (["works", None], "works", None),
    ],
)
def test_an_endpoint_is_stopped_by_its_own_hold_or_by_that_of_its_source(db, held, asked, found):
    for endpoint in held:
        hold(db, endpoint=endpoint)
    hold(db, provenance="other", endpoint=None)

    with db.read() as tx:
        stopped = find_hold(tx, "example", asked)
    assert (stopped.endpoint if stopped else "nothing") == found


def test_a_hold_says_all_about_itself_until_it_is_lifted(db):
    hold(db, reason="broken")

    with db.read() as tx:
        found = find_hold(tx, "example", "works")
    assert found == Hold("example", "works", "L4", "broken", NOON, "worker-a")
    assert found.place == "example/works"
    lift(db)
    with db.read() as tx:
        assert find_hold(tx, "example", "works") is None


def test_the_holds_in_force_are_listed_by_name(db):
    for provenance, endpoint in (("b", "x"), ("a", "z"), ("a", None), ("a", "c"), ("c", "y")):
        hold(db, provenance, endpoint)
    lift(db, "c")

    with db.read() as tx:
        assert [one.place for one in list_holds(tx)] == ["a", "a/c", "a/z", "b/x"]
        assert [one.place for one in list_holds(tx, "b")] == ["b/x"]
        assert list_holds(tx, "c") == []


def test_workers_that_stop_at_once_place_one_hold_and_every_one_is_remembered(db, db_url):
    start = threading.Barrier(4)

    def stop(number):
        own = open_db(db_url)
        start.wait()
        try:
            return hold(own, reason=f"reason {number}")
        finally:
            own.close()

    with ThreadPoolExecutor(4) as pool:
        new = list(pool.map(stop, range(4)))

    assert sorted(new) == [False, False, False, True]
    (said,) = audit(db)
    assert sorted(note for *_, note in said) == [f"reason {number}" for number in range(4)]
    assert in_force(db)[0][2] == said[0][3]
