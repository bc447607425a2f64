"""Records: what is new or newer is stored, everything is counted."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from patra_ingest.errors import LedgerBusy
from patra_ingest.executor.mapping import tombstones
from patra_ingest.ledger.db import instant_text, open_db, read_instant, read_json
from patra_ingest.ledger.records import find_newest_update, mark_gone, upsert_newer
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.records import ChangeRule
from patra_ingest.model.window import Window
from patra_ingest_tests.builders import NOON, a_record

SECOND = timedelta(seconds=1)
STAMP = {**Lineage(1, 2, 3, 4, 5, 6).columns(), "spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}


def upserted(db, *records, rule=ChangeRule.NEWER_OR_HASH, now=NOON, window=None, **stamp):
    with db.write() as tx:
        done = upsert_newer(tx, "example", "works", records, rule, {**STAMP, **stamp}, now, window)
    assert done.counts.total() == len(records)
    return done


def upsert(db, *records, **more):
    counts = upserted(db, *records, **more).counts
    return {name: count for name, count in asdict(counts).items() if count}


def told(changes):
    return [(change.provider_id, change.kind, change.content_hash[0]) for change in changes]


def gone(record, at=NOON + SECOND):
    return record._replace(source_updated_at=at, is_deleted=True)


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
        a_record("gone", NOON + SECOND)._replace(is_deleted=True),
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
    assert upsert(db, newest._replace(provider_id="b"), older._replace(provider_id="b")) == {
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
    large = a_record("i" * 512)._replace(payload=f'{{"x": "{"é" * 300_000}"}}'.encode())

    upsert(db, large)

    assert rows(db)["i" * 512]["payload"].encode() == large.payload


def test_the_same_id_at_another_endpoint_is_another_record(db):
    upsert(db, a_record("a"))
    with db.write() as tx:
        upsert_newer(tx, "example", "authors", [a_record("a")], ChangeRule.NEWER, STAMP, NOON)
        upsert_newer(tx, "other", "works", [a_record("a")], ChangeRule.NEWER, STAMP, NOON)
        count = tx.execute(text("SELECT COUNT(*) FROM ing_record")).scalar()

    assert count == 3


def test_no_records_no_statement_no_counts(db):
    assert upsert(db) == {}


def test_every_change_is_told_once_with_its_last_version(db):
    upsert(db, *(a_record(name) for name in ("old", "same", "newer", "gone")))

    done = upserted(
        db,
        a_record("new"),
        a_record("new", NOON + SECOND, "2"),
        a_record("old", NOON - SECOND, "2"),
        a_record("same"),
        a_record("newer", NOON + SECOND, "2"),
        gone(a_record("gone", content="3")),
    )

    assert told(done.changes) == [
        ("new", "UPSERT", "2"),
        ("newer", "UPSERT", "2"),
        ("gone", "DELETE", "3"),
    ]
    first = done.changes[0]
    assert (first.provenance, first.endpoint) == ("example", "works")
    assert first.source_updated_at == instant_text(NOON + SECOND)
    found = rows(db)
    assert [c.record[0] for c in done.changes] == [found[c.provider_id]["id"] for c in done.changes]


def test_what_is_only_mapped_anew_is_no_change(db):
    upsert(db, a_record("a"))
    anew = a_record("a")._replace(fields_json=b'{"title": "y"}')

    done = upserted(db, anew, spec_fingerprint="d" * 64)

    assert (done.counts.unchanged, done.changes) == (1, [])
    assert read_json(rows(db)["a"]["fields"]) == {"title": "y"}


def test_what_was_accepted_and_belongs_to_an_earlier_window_is_late(db):
    upsert(db, a_record("known", NOON), a_record("stale", NOON))
    window = Window(NOON, NOON + SECOND)
    before = NOON - SECOND

    done = upserted(
        db,
        a_record("late", before),
        a_record("known", NOON),
        a_record("stale", before),
        a_record("at the start", NOON),
        a_record("after", NOON + 2 * SECOND),
        a_record("timeless", None),
        window=window,
    )

    assert done.late == 1
    assert upserted(db, a_record("b", before)).late == 0


def test_a_tombstone_deletes_and_keeps_what_was_said(db):
    upsert(db, a_record("a"), a_record("b"))

    done = upserted(db, *tombstones(["a", "a", "never seen"]))

    assert (done.counts.deleted, done.counts.unchanged) == (2, 1)
    assert {(c.provider_id, c.kind, c.source_updated_at) for c in done.changes} == {
        ("a", "DELETE", instant_text(NOON)),
        ("never seen", "DELETE", None),
    }
    found = rows(db)
    assert {name for name, row in found.items() if row["is_deleted"]} == {"a", "never seen"}
    assert read_instant(found["a"]["source_updated_at"]) == NOON
    assert found["a"]["payload"].encode() == a_record("a").payload
    assert read_json(found["a"]["fields"]) == {"title": "x"}
    assert (found["never seen"]["payload"], found["never seen"]["fields"]) == (None, None)


@pytest.mark.parametrize("rule", [ChangeRule.NEWER, ChangeRule.NEWER_OR_HASH])
def test_a_deleted_record_comes_back_as_new_as_it_was_and_not_older(db, rule):
    upsert(db, a_record("a"), rule=rule)
    upsert(db, *tombstones(["a"]), rule=rule)

    assert upsert(db, a_record("a", NOON - SECOND, "0"), rule=rule) == {"stale": 1}
    assert rows(db)["a"]["is_deleted"] == 1
    assert upsert(db, a_record("a"), rule=rule) == {"updated": 1}
    assert (rows(db)["a"]["is_deleted"], rows(db)["a"]["content_hash"]) == (0, "1" * 64)


def test_what_the_source_does_not_have_any_more_is_marked_once(db):
    upsert(db, a_record("a"), a_record("b"), gone(a_record("c")))
    ids, later = ["a", "c", "unknown", "a"], NOON + SECOND

    with db.write() as tx:
        first = mark_gone(tx, "example", "works", ids, later, Lineage(1, 2, 3, 4, 5, 99))
    with db.write() as tx:
        second = mark_gone(tx, "example", "works", ids, later + SECOND)

    assert (told(first.changes), first.unknown) == ([("a", "DELETE", "1")], ["unknown"])
    assert (second.changes, second.unknown) == ([], ["unknown"])
    found = rows(db)
    assert [name for name, row in found.items() if row["is_deleted"]] == ["a", "c"]
    assert (found["a"]["version"], found["a"]["batch_id"], found["c"]["batch_id"]) == (1, 99, 6)
    assert read_instant(found["c"]["last_checked_at"]) == later + SECOND
    assert read_instant(found["b"]["last_checked_at"]) == NOON
    assert found["a"]["payload"].encode() == a_record("a").payload


def test_a_page_may_be_larger_than_a_statement(db):
    many = [a_record(f"r{n:05d}") for n in range(2500)]

    assert upsert(db, *many) == {"inserted": 2500}
    assert upsert(db, *many) == {"unchanged": 2500}


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


@pytest.mark.parametrize("known", [False, True])
def test_a_tombstone_keeps_the_version_that_came_with_it(db, known):
    if known:
        upsert(db, a_record("a", NOON - SECOND, "0"))
    (tombstone,) = tombstones(["a"])

    counts = upsert(db, a_record("a", NOON + SECOND), tombstone)

    assert counts == {"updated" if known else "inserted": 1, "deleted": 1}
    row = rows(db)["a"]
    assert read_instant(row["source_updated_at"]) == NOON + SECOND
    assert (row["is_deleted"], read_json(row["fields"])) == (1, {"title": "x"})
    assert row["content_hash"] == tombstone.content_hash
    assert upsert(db, a_record("a", NOON)) == {"stale": 1}, "an older version does not revive it"
    assert upsert(db, a_record("a", NOON + 2 * SECOND)) == {"updated": 1}
