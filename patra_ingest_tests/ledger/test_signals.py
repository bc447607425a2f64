"""Signals: the same hint waits once, and may come again when it was taken up."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from patra_ingest.ledger.db import open_db, read_instant, read_json
from patra_ingest.ledger.records import upsert_newer
from patra_ingest.ledger.signals import add_signals, consume_signals, list_kept, list_pending
from patra_ingest.model.codes import Signal
from patra_ingest.model.records import ChangeRule
from patra_ingest_tests.builders import DAY, NOON, a_record

STAMP = {"spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}


def add(db, *ids, signal=Signal.CORRECTION, endpoint="works", reason=None, by="ann", now=NOON):
    with db.write() as tx:
        return add_signals(tx, "example", endpoint, ids, signal, by, reason, now)


def pending(db, provenance=None):
    with db.read() as tx:
        return list_pending(tx, provenance)


def consume(db, *row_ids, plan=7, now=NOON + DAY):
    with db.write() as tx:
        return consume_signals(tx, row_ids, plan, now)


def rows(db):
    with db.read() as tx:
        return tx.execute(text("SELECT * FROM ing_signal ORDER BY id")).mappings().all()


def test_the_same_hint_waits_once(db):
    assert add(db, "a", "b", "a") == 2
    assert add(db, "b", "c") == 1
    assert add(db) == 0

    assert sorted(one.provider_id for one in pending(db)) == ["a", "b", "c"]


def test_another_hint_about_the_same_record_waits_too(db):
    assert add(db, "a") == 1
    assert add(db, "a", signal=Signal.RETRACTION) == 1
    assert add(db, "a", endpoint="authors") == 1

    assert len(pending(db)) == 3


def test_ids_are_told_apart_to_the_last_byte(db):
    names = ["10.1/A", "10.1/a", "10.1/á", "straße", "strasse", "x'); --", "i" * 512]

    assert add(db, *names) == len(names)
    assert sorted(one.provider_id for one in pending(db)) == sorted(names)


def test_a_signal_remembers_who_gave_it_when_and_why(db):
    add(db, "a", signal=Signal.RETRACTION, reason="the journal says so", by="x" * 200)

    (one,) = pending(db)
    assert (one.provenance, one.endpoint, one.provider_id) == ("example", "works", "a")
    assert (one.signal, one.reason, one.at) == (Signal.RETRACTION, "the journal says so", NOON)
    assert one.by == "x" * 100


def test_signals_are_listed_by_source_and_in_the_order_they_came(db):
    add(db, "b")
    add(db, "a")
    with db.write() as tx:
        add_signals(tx, "other", "works", ["c"], Signal.MERGE, "ann", None, NOON)

    assert [one.provider_id for one in pending(db)] == ["b", "a", "c"]
    assert [one.provider_id for one in pending(db, "other")] == ["c"]
    assert pending(db, "nobody") == []


def test_a_consumed_signal_names_its_plan_and_waits_no_longer(db):
    add(db, "a", "b")
    first, second = pending(db)

    assert consume(db, first.id, first.id, 999_999) == 1

    assert pending(db) == [second]
    row = rows(db)[0]
    (remark,) = read_json(row["record_remarks"])
    assert (row["status_code"], read_instant(row["consumed_at"])) == ("CONSUMED", NOON + DAY)
    assert (remark["data"], row["version"]) == ({"plan_id": 7}, 1)


def test_a_signal_is_consumed_once(db):
    add(db, "a")
    (one,) = pending(db)

    assert consume(db, one.id, plan=7) == 1
    assert consume(db, one.id, plan=8) == 0
    assert consume(db) == 0

    (row,) = rows(db)
    assert [remark["data"]["plan_id"] for remark in read_json(row["record_remarks"])] == [7]


def test_the_same_hint_may_come_again_after_it_was_taken_up_every_time(db):
    for _ in range(3):
        assert add(db, "a") == 1
        assert add(db, "a") == 0
        (one,) = pending(db)
        assert consume(db, one.id) == 1

    assert [row["status_code"] for row in rows(db)] == ["CONSUMED"] * 3


def test_thousands_of_ids_are_added_and_consumed_at_once(db):
    names = [f"id{n}" for n in range(1201)]

    assert add(db, *names) == 1201
    assert add(db, *names) == 0
    assert consume(db, *(one.id for one in pending(db))) == 1201


def test_two_who_give_the_same_hint_at_once_leave_it_once(db, db_url):
    people = 4
    start = threading.Barrier(people)

    def give(_number):
        own = open_db(db_url)
        start.wait()
        try:
            add(own, *(f"id{n}" for n in range(50)))
        finally:
            own.close()

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(give, range(people)))

    assert len(pending(db)) == 50


def test_ids_are_found_where_their_records_are_kept(db):
    with db.write() as tx:
        for endpoint, names in (("works", "ab"), ("authors", "b"), ("hidden", "c")):
            records = [a_record(name) for name in names]
            upsert_newer(tx, "example", endpoint, records, ChangeRule.NEWER, STAMP, NOON)
        found = list_kept(tx, "example", ["works", "authors"], ["a", "b", "c", "d"])
        nowhere = list_kept(tx, "other", ["works"], ["a"]), list_kept(tx, "example", [], ["a"])

    assert {name: sorted(ids) for name, ids in found.items()} == {
        "works": ["a", "b"],
        "authors": ["b"],
    }
    assert nowhere == ({}, {})
