"""The outbox: one message per version, in order per record, and only for whoever holds it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.ledger.outbox_queue import (
    Settled,
    claim_messages,
    renew_claim,
    revive_dead,
    settle,
)
from patra_ingest.ledger.records import mark_gone, upsert_newer
from patra_ingest.model.codes import OutboxStatus
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.records import ChangeRule
from patra_ingest_tests.builders import NOON, a_change, a_record

STAMP = {"spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}
LINEAGE = Lineage(1, 2, 3, 4, 5, 6)
MINUTE = timedelta(minutes=1)


def add(db, *changes, now=NOON):
    with db.write() as tx:
        return add_changes(tx, changes, LINEAGE, now)


def store(db, name="a", content="1", updated=None):
    """Write one version of a record and its message, as a batch does."""
    with db.write() as tx:
        record = a_record(name, updated, content)
        upsert_newer(tx, "example", "works", [record], ChangeRule.HASH, STAMP, NOON)
        add_changes(tx, [a_change(name, updated=updated, content=content)], LINEAGE, NOON)


def rows(db):
    with db.read() as tx:
        return tx.execute(text("SELECT * FROM ing_outbox_message ORDER BY id")).mappings().all()


def statuses(db):
    return [row["status_code"] for row in rows(db)]


def claim(db, owner="one", limit=10, now=NOON):
    with db.write() as tx:
        return claim_messages(tx, owner, limit, now, MINUTE)


def end(db, messages, status=OutboxStatus.PUBLISHED, owner="one", now=NOON, **more):
    with db.write() as tx:
        at = {"at": now} if status == OutboxStatus.PUBLISHED else {}
        ends = [Settled(message, status, **{**at, **more}) for message in messages]
        return [one.message.id for one in settle(tx, owner, ends, now)]


def names(messages):
    return [read_json(message.payload)["id"] for message in messages]


def test_a_message_carries_ids_and_keys_and_says_where_it_comes_from(db):
    store(db, "10.1/A", "7", NOON)

    (row,) = rows(db)
    with db.read() as tx:
        record_id = tx.execute(text("SELECT id FROM ing_record")).scalar_one()
    assert (row["aggregate_type"], row["aggregate_id"]) == ("RECORD", record_id)
    assert (row["channel"], row["op_type"]) == ("record.example", "UPSERT")
    assert (row["partition_key"], row["status_code"]) == ("works/10.1/A", "PENDING")
    payload = read_json(row["payload_json"])
    ids = ("scheduleInstanceId", "planId", "sliceId", "taskId", "runId", "batchId")
    assert payload.pop("lineage") == dict(zip(ids, range(1, 7), strict=True))
    said = {"provenance": "example", "endpoint": "works", "id": "10.1/A", "kind": "UPSERT"}
    version = {"sourceUpdatedAt": "2025-09-20T12:00:00.000000Z", "contentHash": "7" * 64}
    assert payload == {**said, **version, "recordId": record_id, "revision": 0}


def test_the_same_version_is_told_once(db):
    assert add(db, a_change("a"), a_change("b"), a_change("a")) == 2
    assert add(db, a_change("a"), a_change("b")) == 2
    assert add(db) == 0

    assert len(rows(db)) == 2


@pytest.mark.parametrize(
    "other",
    [
        a_change("A"),
        a_change(kind="DELETE"),
        a_change(updated=None),
        a_change(updated=NOON + timedelta(microseconds=1)),
        a_change(content="2"),
        a_change(endpoint="authors"),
        a_change(provenance="other"),
    ],
)
def test_another_version_or_record_is_told_too(db, other):
    add(db, a_change(), other)

    assert len({row["dedup_key"] for row in rows(db)}) == 2


def test_a_source_that_returns_to_an_earlier_version_says_something_new(db):
    for content in "121":
        store(db, "a", content)
    store(db, "a", "1")

    assert [read_json(row["payload_json"])["revision"] for row in rows(db)] == [0, 1, 2]


def test_a_record_that_went_and_came_back_is_told_each_time(db):
    store(db)
    with db.write() as tx:
        mark_gone(tx, "example", "works", ["a"], NOON)
        add_changes(tx, [a_change(kind="DELETE", updated=None)], LINEAGE, NOON)
    store(db)

    assert [row["op_type"] for row in rows(db)] == ["UPSERT", "DELETE", "UPSERT"]


def test_a_batch_that_is_rolled_back_tells_nobody(db):
    with db.write() as tx:
        add_changes(tx, [a_change()], LINEAGE, NOON)
        tx.rollback()

    assert rows(db) == []


def test_long_names_fit_and_stay_apart(db):
    long = "x" * 511
    add(db, a_change(long + "1"), a_change(long + "2"), a_change("a", provenance="p" * 64))

    stored = rows(db)
    assert len({row["partition_key"] for row in stored}) == 3
    assert max(len(row["partition_key"]) for row in stored) == 128
    assert max(len(row["channel"]) for row in stored) == 64
    assert read_json(stored[0]["payload_json"])["id"] == long + "1"


def test_a_record_we_do_not_have_has_no_id(db):
    add(db, a_change("never seen", kind="DELETE"))

    (row,) = rows(db)
    assert row["aggregate_id"] == 0
    assert read_json(row["payload_json"])["recordId"] is None


def test_messages_are_claimed_oldest_first_one_per_record(db):
    for name, content in ("a1", "b1", "a2", "c1", "a3"):
        store(db, name, content)

    assert names(claim(db, limit=2)) == ["a", "b"]
    assert names(claim(db, "two")) == ["c"]
    assert claim(db, "three") == []
    assert statuses(db) == ["PUBLISHING", "PUBLISHING", "PENDING", "PUBLISHING", "PENDING"]


@pytest.mark.parametrize(
    ("status", "goes_on"),
    [(OutboxStatus.PUBLISHED, True), (OutboxStatus.DEAD, True), (OutboxStatus.FAILED, False)],
)
def test_a_message_waits_until_the_older_one_of_its_record_is_settled(db, status, goes_on):
    store(db, "a", "1")
    store(db, "a", "2")
    end(db, claim(db), status, **({"at": NOON + MINUTE} if not goes_on else {}))

    assert names(claim(db)) == (["a"] if goes_on else [])
    (first, *_) = claim(db, now=NOON + MINUTE) or [None]
    assert goes_on or read_json(first.payload)["contentHash"] == "1" * 64


def test_what_is_not_due_yet_is_left(db):
    for name in "abc":
        store(db, name)
    failed, _ = claim(db, limit=2)
    end(db, [failed], OutboxStatus.FAILED, at=NOON + MINUTE, code="X", why="busy", counts=True)
    with db.write() as tx:
        later = text("UPDATE ing_outbox_message SET not_before = :at WHERE id = 3")
        tx.execute(later, {"at": "2025-09-20 12:01:00.000000"})

    assert claim(db, now=NOON + MINUTE / 2) == []
    again = claim(db, "two", now=NOON + MINUTE)
    assert names(again) == ["a", "b", "c"]
    assert [message.attempts for message in again] == [1, 0, 0]


def test_who_lost_its_lease_settles_nothing(db):
    store(db)
    store(db, "b")
    mine = claim(db)
    theirs = claim(db, "two", limit=1, now=NOON + MINUTE)

    assert names(theirs) == ["a"]
    assert end(db, mine, now=NOON + MINUTE) == [mine[1].id]
    assert statuses(db) == ["PUBLISHING", "PUBLISHED"]
    assert end(db, theirs, owner="two") == [theirs[0].id]
    assert end(db, mine) == []


def test_a_renewed_lease_lasts_and_names_what_is_left_of_the_claim(db):
    store(db)
    store(db, "b")
    mine = [message.id for message in claim(db)]
    claim(db, "two", limit=1, now=NOON + MINUTE)

    with db.write() as tx:
        assert renew_claim(tx, "one", mine, NOON + MINUTE, MINUTE) == {mine[1]}
    assert names(claim(db, "three", now=NOON + 1.5 * MINUTE)) == []


def test_what_was_not_sent_is_given_back_as_it_was(db):
    store(db)
    store(db, "b")
    end(db, claim(db, limit=1), OutboxStatus.FAILED, at=NOON, code="X", why="busy", counts=True)
    end(db, claim(db), OutboxStatus.PENDING)

    assert statuses(db) == ["FAILED", "PENDING"]
    first = rows(db)[0]
    assert (first["retry_count"], first["error_code"], first["pub_lease_owner"]) == (1, "X", None)


def test_the_end_of_a_message_is_written_down(db):
    for name in "abc":
        store(db, name)
    one, two, three = claim(db)
    end(db, [one], msg_id="m" * 200)
    end(db, [two], OutboxStatus.DEAD, code="HTTP_422", why="w" * 900, counts=True)
    end(db, [three], OutboxStatus.FAILED, at=NOON + MINUTE, code="BUSY", why="busy")

    published, dead, failed = rows(db)
    assert (published["msg_id"], published["error_code"]) == ("m" * 128, None)
    assert published["published_at"] is not None
    assert (dead["error_code"], dead["error_msg"], dead["retry_count"]) == (
        "HTTP_422",
        "w" * 512,
        1,
    )
    assert (failed["retry_count"], str(failed["next_retry_at"])[:19]) == (0, "2025-09-20 12:01:00")


def test_dead_messages_can_be_put_back_with_all_their_attempts(db):
    store(db)
    end(db, claim(db), OutboxStatus.DEAD, code="X", why="no", counts=True)
    with db.write() as tx:
        assert revive_dead(tx, NOON) == 1
        assert revive_dead(tx, NOON) == 0

    (again,) = claim(db)
    assert again.attempts == 0


def test_publishers_at_once_never_hold_the_same_message(db, db_url):
    for number in range(60):
        store(db, f"{number % 20}", str(number % 7))
    start = threading.Barrier(4)

    def publisher(number):
        own = open_db(db_url)
        start.wait()
        got = []
        for turn in range(40):
            held = claim(own, f"{number}.{turn}", limit=3)
            got += [message.id for message in held]
            end(own, held, owner=f"{number}.{turn}")
        own.close()
        return got

    with ThreadPoolExecutor(4) as pool:
        claimed = [one for got in pool.map(publisher, range(4)) for one in got]

    assert sorted(claimed) == [row["id"] for row in rows(db)]
    assert set(statuses(db)) == {"PUBLISHED"}
