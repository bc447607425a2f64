"""The publisher: everyone is told at least once, in order, whatever the receiver or we do."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.executor.publish import MAX_ATTEMPTS, Publisher, PublishOrder, delay_after
from patra_ingest.ledger.db import find_instant, open_db, read_json
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.ledger.outbox_queue import claim_messages
from patra_ingest.model.lineage import Lineage
from patra_ingest.transport.delivery import Published
from patra_ingest.transport.sinks import open_sink
from patra_ingest.views.outbox import summarize_outbox
from patra_ingest_tests.builders import NOON, a_change
from patra_ingest_tests.fakes import Died, FakeClock, dying
from patra_ingest_tests.receivers import redis, webhook

MINUTE = timedelta(minutes=1)


def fill(db, *names, content="1"):
    changes = [a_change(name, content=content) for name in names]
    with db.write() as tx:
        add_changes(tx, changes, Lineage(), NOON)


def publish(db, to, stop=None, clock=None, **order):
    """Publish to an address, or to a sink of the test's own."""
    clock = clock or SystemClock()
    sink = open_sink(to, clock, "patra-tests/1") if isinstance(to, str) else to
    order = PublishOrder(str(to), **{"until_empty": True, **order})
    try:
        return Publisher(db, clock, sink, "tests", order).publish(stop or threading.Event())
    finally:
        sink.close()


def rows(db, columns="status_code"):
    with db.read() as tx:
        query = text(f"SELECT {columns} FROM ing_outbox_message ORDER BY id")
        return [row if len(row) > 1 else row[0] for row in tx.execute(query)]


def let_time_pass(db):
    """Everything that waits for its next attempt is due."""
    with db.write() as tx:
        tx.execute(text("UPDATE ing_outbox_message SET next_retry_at = NULL"))


def test_everything_is_published_in_batches_and_only_once(db):
    fill(db, *(f"{number:03}" for number in range(250)))
    with webhook() as hook:
        tally = publish(db, hook.url)
        again = publish(db, hook.url)

    assert (tally.published, again.published, tally.is_clean) == (250, 0, True)
    assert [len(batch) for batch in hook.batches] == [100, 100, 50]
    assert hook.keys() == sorted(hook.keys())
    assert set(rows(db)) == {"PUBLISHED"}
    assert None not in rows(db, "msg_id")


def test_versions_of_a_record_arrive_in_their_order(db):
    for content in "12345":
        fill(db, "a", "b", content=content)
    with webhook() as hook:
        publish(db, hook.url)

    for name in "ab":
        own = [one["payload"] for one in hook.accepted if one["payload"]["id"] == name]
        assert [one["contentHash"][0] for one in own] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("kind", ["jsonl", "redis"])
def test_a_file_and_a_stream_are_told_too(db, tmp_path, kind):
    fill(db, "a", "b")
    with redis() as server:
        to = f"jsonl:{tmp_path / 'out.jsonl'}" if kind == "jsonl" else server.url
        assert publish(db, to).published == 2
        told = [entry["message"] for entry in server.entries()]
    told = told or (tmp_path / "out.jsonl").read_text().splitlines()

    assert [read_json(one)["dedupKey"] for one in told] == rows(db, "dedup_key")


def test_who_dies_between_telling_and_writing_it_down_tells_it_again_under_the_same_key(db):
    fill(db, "a", "b")
    with webhook() as hook:
        with (
            pytest.raises(Died),
            dying(db, lambda sql: "SET status_code = " in sql and hook.batches),
        ):
            publish(db, hook.url)
        assert rows(db) == ["PUBLISHING"] * 2
        assert publish(db, hook.url).published == 0  # the lease of the dead one still runs
        _expire(db)
        assert publish(db, hook.url).published == 2

    keys = [one["dedupKey"] for one in hook.accepted]
    assert keys == rows(db, "dedup_key") * 2
    assert len(set(keys)) == 2


def _expire(db):
    with db.write() as tx:
        past = text("UPDATE ing_outbox_message SET pub_leased_until = '2020-01-01 00:00:00.000000'")
        tx.execute(past)


def test_who_lost_its_lease_while_it_was_telling_writes_nothing_down(db):
    fill(db, "a", "b")

    class Slow:
        shown = "slow"
        close = staticmethod(lambda: None)

        def publish(self, messages):
            _expire(db)
            with db.write() as tx:
                assert len(claim_messages(tx, "another", 1, db.now(tx), MINUTE)) == 1
            return [Published("x") for _ in messages]

    tally = publish(db, Slow(), limit=2)

    assert (tally.published, tally.lost) == (1, 1)
    assert rows(db, "status_code, pub_lease_owner") == [
        ("PUBLISHING", "another"),
        ("PUBLISHED", None),
    ]


def test_a_batch_that_is_refused_is_halved_until_the_one_to_blame_stands_alone(db):
    fill(db, *map(str, range(16)))

    def judge(batch):
        return (422 if any(one["payload"]["id"] == "11" for one in batch) else 200), {}

    with webhook(judge) as hook:
        tally = publish(db, hook.url)

    assert (tally.published, tally.dead, tally.failed) == (15, 1, 0)
    assert sorted(hook.keys(), key=int) == [str(n) for n in range(16) if n != 11]
    assert len(hook.batches) == 9  # 16, then two halves of each of 16, 8, 4 and 2
    assert rows(db, "error_code").count("HTTP_422") == 1
    assert not tally.is_clean


def test_what_makes_the_receiver_fall_over_is_tried_alone_and_given_up_at_last(db):
    fill(db, "a", "poison", "c")

    def judge(batch):
        return (0 if any(one["payload"]["id"] == "poison" for one in batch) else 200), {}

    with webhook(judge) as hook:
        first = publish(db, hook.url)
        assert (first.failed, first.published) == (3, 0)
        for _ in range(MAX_ATTEMPTS - 1):
            let_time_pass(db)
            publish(db, hook.url)

    assert sorted(hook.keys()) == ["a", "c"]
    assert rows(db) == ["PUBLISHED", "DEAD", "PUBLISHED"]
    assert rows(db, "retry_count") == [1, MAX_ATTEMPTS, 1]


def test_an_outage_kills_no_message_however_long_it_lasts(db):
    fill(db, "a", "b")
    with webhook(lambda _: (503, {})) as hook:
        for _ in range(MAX_ATTEMPTS + 2):
            let_time_pass(db)
            assert publish(db, hook.url).failed == 2
    let_time_pass(db)
    with webhook() as hook:
        assert publish(db, hook.url).published == 2

    assert rows(db, "retry_count") == [0, 0]


def test_nor_does_an_outage_kill_one_that_has_a_single_attempt_left(db):
    fill(db, "a")
    with db.write() as tx:
        tx.execute(text(f"UPDATE ing_outbox_message SET retry_count = {MAX_ATTEMPTS - 1}"))
    with webhook(lambda _: (503, {})) as hook:
        publish(db, hook.url)

    assert rows(db, "status_code, retry_count") == [("FAILED", MAX_ATTEMPTS - 1)]


def test_an_outage_ends_the_round_and_what_was_not_sent_is_given_back(db):
    fill(db, *map(str, range(5)))
    with webhook(lambda _: (500, {})) as hook:
        assert publish(db, hook.url).failed == 5
    let_time_pass(db)
    with webhook(lambda _: (503, {})) as hook:
        assert publish(db, hook.url).failed == 1
    let_time_pass(db)
    with webhook(lambda _: (500, {})) as hook:
        assert publish(db, hook.url).failed == 3
        assert len(hook.batches) == 3

    assert rows(db) == ["FAILED"] * 5
    assert rows(db, "pub_lease_owner") == [None] * 5


def test_a_failed_message_waits_longer_each_time_and_never_less_than_was_asked(db):
    assert [delay_after(n).total_seconds() for n in (1, 2, 3, 9, 10, 11, 9999)] == [
        *(5, 10, 20, 1280, 2560, 3600, 3600)
    ]
    fill(db, "a")
    with webhook(lambda _: (429, {"Retry-After": "900"})) as hook:
        publish(db, hook.url)
    (due,) = rows(db, "next_retry_at")
    with db.read() as tx:
        waits = (find_instant(due) - db.now(tx)).total_seconds()

    assert 850 < waits <= 900


def test_a_publisher_that_goes_on_waits_as_long_as_the_receiver_asked(sqlite_url):
    clock = FakeClock()
    own = open_db(sqlite_url, clock=clock)
    fill(own, "a")

    def judge(_):
        return (204, {}) if clock.at >= NOON + 15 * MINUTE else (429, {"Retry-After": "900"})

    class Once(FakeClock):
        def now(self):
            return clock.at

        def wait(self, event, seconds):
            clock.sleep(seconds)
            if rows(own) == ["PUBLISHED"]:
                event.set()
            return event.is_set()

    with webhook(judge) as hook:
        tally = publish(own, hook.url, clock=Once(), until_empty=False)
    own.close()

    assert (tally.published, tally.failed, len(hook.batches)) == (1, 1, 2)


def test_told_to_stop_it_ends_after_the_current_batch(db):
    fill(db, *(f"{number:02}" for number in range(30)))
    stop = threading.Event()

    def judge(_):
        stop.set()
        return 204, {}

    with webhook(judge) as hook:
        tally = publish(db, hook.url, stop, batch=10, until_empty=False)

    assert (tally.published, len(hook.batches)) == (10, 1)
    assert rows(db).count("PENDING") == 20


def test_a_limit_ends_it(db):
    fill(db, *(f"{number:02}" for number in range(30)))
    with webhook() as hook:
        assert publish(db, hook.url, limit=17, batch=10, until_empty=False).published == 17


def test_the_status_tells_what_waits_and_why(db):
    fill(db, "a", "b", "c")
    with webhook(lambda _: (422, {})) as hook:
        publish(db, hook.url, limit=1, batch=1)
    with webhook(lambda _: (500, {})) as hook:
        publish(db, hook.url, limit=1, batch=1)
    with db.read() as tx:
        state = summarize_outbox(tx)

    counts = {"PENDING": 1, "PUBLISHING": 0, "PUBLISHED": 0, "FAILED": 1, "DEAD": 1}
    assert (state.counts, state.oldest_pending) == (counts, NOON)
    assert state.next_retry_at is not None
    assert [(one.status, one.code) for one in state.troubles] == [
        *(("DEAD", "HTTP_422"), ("FAILED", "HTTP_500"))
    ]
    assert "CANARY" not in str(state)
