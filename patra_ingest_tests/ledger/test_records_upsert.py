"""Records: what is new or newer is stored, everything is counted."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from patra_ingest.errors import LedgerBusy
from patra_ingest.ledger.db import open_db, read_instant
from patra_ingest.ledger.records import find_newest_update, upsert_newer
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.records import ChangeRule
from patra_ingest_tests.builders import NOON, a_record

SECOND = timedelta(seconds=1)
STAMP = {**Lineage(1, 2, 3, 4, 5, 6).columns(), "spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}


def upsert(db, *records, rule=ChangeRule.NEWER_OR_HASH, now=NOON, **stamp):
    with db.write() as tx:
        counts = upsert_newer(tx, "example", "works", records, rule, {**STAMP, **stamp}, now)
    assert counts.total() == len(records)
    return {name: count for name, count in asdict(counts).items() if count}


def rows(db):
    with db.read() as tx:
        found = tx.execute(text("SELECT * FROM ing_record ORDER BY id")).mappings().all()
    return {row["provider_id"]: row for row in found}


def test_every_record_is_counted_by_what_became_of_it(db):
    upsert(db, *(a_record(name) for name in ("old", "same", "newer", "other", "gone")))

    counts = upsert(
        db,
        a_record("new"),
        a_record("old", NOON - SECOND, "2"),
        a_record("same"),
        a_record("newer", NOON + SECOND),
        a_record("other", NOON, "2"),
        replace(a_record("gone", NOON + SECOND), is_deleted=True),
    )

    assert counts == {"inserted": 1, "stale": 1, "unchanged": 1, "updated": 2, "deleted": 1}
    found = rows(db)
    assert len(found) == 6
    assert found["old"]["content_hash"] == "1" * 64
    assert found["other"]["content_hash"] == "2" * 64
    assert read_instant(found["newer"]["source_updated_at"]) == NOON + SECOND
    assert [name for name, row in found.items() if row["is_deleted"]] == ["gone"]


def test_repeating_a_batch_changes_nothing_but_the_time_of_the_last_look(db):
    batch = [a_record(name) for name in "abc"]
    upsert(db, *batch)
    before = rows(db)

    assert upsert(db, *batch, now=NOON + SECOND, batch_id=99) == {"unchanged": 3}

    for name, row in rows(db).items():
        assert read_instant(row["last_checked_at"]) == NOON + SECOND
        changed = {key for key in row if row[key] != before[name][key]}
        assert changed <= {"last_checked_at", "updated_at"}
        assert row["batch_id"] == 6


def test_a_changed_record_gets_the_lineage_of_its_change_and_keeps_its_first_day(db):
    upsert(db, a_record("a"))
    upsert(db, a_record("a", NOON + SECOND, "2"), now=NOON + SECOND, batch_id=99)

    row = rows(db)["a"]
    assert (row["batch_id"], row["version"], row["content_hash"]) == (99, 1, "2" * 64)
    assert read_instant(row["first_seen_at"]) == NOON
    assert read_instant(row["last_checked_at"]) == NOON + SECOND


def test_within_one_page_the_newest_version_wins_wherever_it_stands(db):
    newest, older = a_record("a", NOON + SECOND, "2"), a_record("a", NOON, "1")

    assert upsert(db, older, newest) == {"inserted": 1, "updated": 1}
    assert upsert(db, replace(newest, provider_id="b"), replace(older, provider_id="b")) == {
        "inserted": 1,
        "stale": 1,
    }
    assert {row["content_hash"] for row in rows(db).values()} == {"2" * 64}


def test_ids_are_compared_to_the_last_byte(db):
    names = ["10.1/A", "10.1/a", "10.1/á", "10.1/a\u0301", "straße", "strasse", "𝒳", "x'); --", "%"]

    assert upsert(db, *(a_record(name) for name in names)) == {"inserted": len(names)}
    assert upsert(db, *(a_record(name) for name in names)) == {"unchanged": len(names)}
    assert sorted(rows(db)) == sorted(names)


def test_the_longest_id_and_a_large_item_fit(db):
    large = replace(a_record("i" * 512), payload='{"x": "' + "é" * 300_000 + '"}')

    upsert(db, large)

    assert len(rows(db)["i" * 512]["payload"]) == len(large.payload)


def test_the_same_id_at_another_endpoint_is_another_record(db):
    upsert(db, a_record("a"))
    with db.write() as tx:
        upsert_newer(tx, "example", "authors", [a_record("a")], ChangeRule.NEWER, STAMP, NOON)
        upsert_newer(tx, "other", "works", [a_record("a")], ChangeRule.NEWER, STAMP, NOON)
        count = tx.execute(text("SELECT COUNT(*) FROM ing_record")).scalar()

    assert count == 3


def test_no_records_no_statement_no_counts(db):
    assert upsert(db) == {}


def test_the_newest_update_is_that_of_its_endpoint(db):
    upsert(db, a_record("a", NOON), a_record("b", NOON + SECOND), a_record("c", None))

    with db.read() as tx:
        assert find_newest_update(tx, "example", "works") == NOON + SECOND
        assert find_newest_update(tx, "example", "authors") is None


@pytest.mark.parametrize("lanes", [4])
def test_lanes_that_meet_at_the_same_records_leave_each_of_them_once(db, db_url, lanes):
    """A lane that loses the race repeats its transaction, as the executor does."""
    start = threading.Barrier(lanes)
    names = [f"r{n:02d}" for n in range(30)]

    def lane(number):
        own = open_db(db_url)
        start.wait()
        content = str(number)
        batch = [a_record(name, NOON + number * SECOND, content) for name in names]
        for _ in range(20):
            try:
                upsert(own, *batch)
                break
            except (IntegrityError, LedgerBusy):
                continue
        else:
            raise AssertionError("never got through")
        own.close()

    with ThreadPoolExecutor(lanes) as pool:
        list(pool.map(lane, range(1, lanes + 1)))

    found = rows(db)
    assert sorted(found) == names
    assert {row["content_hash"] for row in found.values()} == {str(lanes) * 64}
