"""A live replay asks the same questions again, names what is new, and keeps nothing of it."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from patra_ingest.executor.replay import replay_live
from patra_ingest.executor.replaying import Match, Outcome
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import read_pack
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.builders import an_endpoint, an_item
from patra_ingest_tests.pipeline.harness import Home, sandbox_trigger
from patra_ingest_tests.pipeline.test_replay import ledger_of, page_of
from patra_ingest_tests.pipeline.walks import (
    a_source,
    harvest,
    last_error,
    listening,
    stamp,
    works,
)


@pytest.fixture
def walked_live(sqlite_db, sqlite_url, tmp_path):
    home = Home(sqlite_db, sqlite_url, tmp_path / "home")
    items = works(12)
    with listening(lambda asked: (200, page_of(items, asked))) as server:
        home.apply(a_source(server.url, works=an_endpoint()))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        yield home, items, server


def test_live_the_source_is_asked_as_often_as_then_and_what_changed_is_named(walked_live):
    home, items, server = walked_live
    before, stored = ledger_of(home), sorted((home.folder / "raw").rglob("*.zst"))
    server.asked.clear()
    items[0]["title"] = "On w000, corrected"
    del items[3]
    items.insert(4, an_item("w777", stamp(4)))

    with home.live() as live:
        found = replay_live(home.db, live.clock, live.upstream(), 1)

    words = {one.provider_id: one.match for batch in found.batches for one in batch.matches}
    assert words == {"w000": Match.DIFFERS, "w003": Match.LOST, "w777": Match.ADDED}
    assert found.counts[Match.SAME] == 10
    assert len(server.asked) == 2
    after = ledger_of(home)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"ing_rate_bucket", "ing_rate_permit"}, "the gate's own"
    assert sorted((home.folder / "raw").rglob("*.zst")) == stored


def test_live_an_unchanged_source_says_the_same_and_one_that_is_down_is_told(walked_live):
    home, _, server = walked_live
    with home.live() as live:
        same = replay_live(home.db, live.clock, live.upstream(), 1, 2)
        server.answer = lambda asked: (404, {"error": "moved away"})
        gone = replay_live(home.db, live.clock, live.upstream(), 1, 2)

    assert (same.outcome, len(same.batches)) == (Outcome.EQUAL, 1)
    assert gone.outcome is Outcome.DIFFERS
    assert "moved away" in gone.batches[0].problem


def test_live_another_world_behind_the_same_address_is_told(sqlite_db, sqlite_url, tmp_path):
    home = Home(sqlite_db, sqlite_url, tmp_path / "home")
    home.apply(*(read_pack(path) for path in builtin_packs()))
    start = datetime(2025, 1, 1, tzinfo=UTC)
    with start_sandbox(World(60, start, 1, seed=1)) as box:
        home.plan(sandbox_trigger(box, start, start + timedelta(days=1)))
        home.work()
        port = urlsplit(box.url).port
        with home.live() as live:
            same = replay_live(home.db, live.clock, live.upstream(), 1)
    with start_sandbox(World(70, start, 1, seed=2), port=port or 0), home.live() as live:
        other = replay_live(home.db, live.clock, live.upstream(), 1, 1)

    assert same.outcome is Outcome.EQUAL, same.as_markdown()
    assert same.counts == {Match.SAME: 60}
    assert other.outcome is Outcome.DIFFERS
    totals = {check.name: (check.then, check.now) for check in other.batches[0].checks}
    assert totals["total"] == (60, 70)
    assert other.counts[Match.ADDED]
    assert other.counts[Match.LOST]
    assert "the source does not send it here any more" in other.as_markdown()
