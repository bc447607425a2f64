"""A replay tells a batch once more and finds what the ledger has, or names what differs."""

import pytest
from sqlalchemy import inspect

from patra_ingest.clock import SystemClock
from patra_ingest.executor.replay import replay
from patra_ingest.executor.replaying import Match, Outcome
from patra_ingest.model.codes import Operation
from patra_ingest.rawstore.store import RawStore
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, sandbox_trigger
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    a_source,
    between,
    harvest,
    ids,
    last_error,
    listening,
    stamp,
    works,
)


def ledger_of(home):
    """Return every row of every table."""
    with home.db.read() as tx:
        tables = [name for name in inspect(tx).get_table_names() if "yoyo" not in name]
    return {name: sorted(map(str, home.rows(f"SELECT * FROM {name}"))) for name in tables}


def raw_of(home):
    return RawStore(home.folder / "raw")


def replays(home):
    """Replay every run; insist that nothing is written by that."""
    before = ledger_of(home)
    runs = [row[0] for row in home.rows("SELECT id FROM ing_task_run ORDER BY id")]
    found = [replay(home.db, raw_of(home), SystemClock(), run) for run in runs]
    assert ledger_of(home) == before
    return found


def worst_of(found):
    return {one.outcome for one in found}


def told(found):
    return "\n".join(one.as_markdown() for one in found)


@pytest.mark.parametrize("endpoint", ["works", "works-by-offset"])
def test_a_replay_of_a_harvest_says_what_the_ledger_says(home, box, in_days, endpoint):
    home.plan(sandbox_trigger(box, in_days(0), in_days(2), endpoint))
    home.work()
    asked = box.stats()["requests"]

    found = replays(home)

    assert worst_of(found) == {Outcome.EQUAL}, told(found)
    records = home.one("SELECT COUNT(*) FROM ing_record")
    assert sum(one.counts[Match.SAME] for one in found) == records > 300
    assert sum(len(one.batches) for one in found) == home.pages_done()
    assert [len(one.steps) for one in found] == [1, 1]
    assert found[0].steps[0].reached == found[1].steps[0].previous
    assert box.stats()["requests"] == asked, "nobody was asked"


def test_a_search_and_its_details_are_replayed_with_all_that_went_wrong(home):
    library = Library(12)
    library.lost, library.poison = {"w002"}, {"w005": 400}
    library.shy, library.deleted = {"w009"}, ["w011"]
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = replays(home)

    assert worst_of(found) == {Outcome.EQUAL}, told(found)
    assert len(found[0].batches) == 6
    quarantined = [c.now for b in found[0].batches for c in b.checks if c.name == "quarantined ids"]
    assert [one for some in quarantined for one in some] == ["w002", "w005"]


XML = '<list total="{}">{}</list>'
XML_ITEM = '<work id="{}"><updated>{}</updated><title>On {} &amp; more</title></work>'


def test_a_source_that_speaks_xml_is_replayed(home):
    def answer(asked):
        rest = between(works(25), asked)
        start = int(asked["offset"])
        page = [XML_ITEM.format(w["id"], w["updated"], w["id"]) for w in rest[start : start + 10]]
        return 200, XML.format(len(rest), "".join(page)).encode()

    endpoint = an_endpoint(
        paging={"total": "$.list['@total']"},
        response={
            "format": "XML",
            "items": "$.list.work",
            "id": "$['@id']",
            "updated_at": "$.updated",
        },
    )
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = replays(home)

    assert worst_of(found) == {Outcome.EQUAL}, told(found)
    assert found[0].counts == {Match.SAME: 25}


class Shelf:
    """Seven works that can be asked for by ids; what is withdrawn does not come."""

    def __init__(self):
        self.works = {f"w{n}": an_item(f"w{n}", stamp(n)) for n in range(7)}

    def __call__(self, asked):
        if "ids" not in asked:
            return 200, {"items": list(self.works.values()), "total": len(self.works)}
        wanted = asked["ids"].split(",")
        return 200, {"items": [self.works[one] for one in wanted if one in self.works]}


def a_shelf(url):
    one = an_endpoint(operations={"HARVEST": {}, "UPDATE": {}}, batching={"ids_per_request": 3})
    update = {
        "request": {"path": "/works", "query": {"ids": "${ids|join(',')}"}},
        "paging": {"type": "NONE", "page_size": 100},
        "planning": {"refresh_days": 1, "ids_per_slice": 5},
    }
    one["operations"]["UPDATE"] = update
    return a_pack(url, works=one)


def test_an_update_by_ids_is_replayed_and_explains_what_changed_since(home):
    shelf = Shelf()
    with upstream(shelf) as server:
        home.apply(a_shelf(server.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()
        home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
        shelf.works["w3"]["title"] = "On w3, corrected"
        del shelf.works["w5"]
        home.plan(a_trigger("works", operation=Operation.UPDATE))
        home.work()

    first, *updates = replays(home)

    assert worst_of(updates) == {Outcome.EQUAL}, told(updates)
    assert first.outcome is Outcome.CHANGED_SINCE, told([first])
    assert first.is_fine
    changed = {one.provider_id: one.why for b in first.batches for one in b.matches}
    assert sorted(changed) == ["w3", "w5"]
    by = {f"{b.run_id}/{b.batch_no}" for one in updates for b in one.batches}
    assert {why.removeprefix("by batch ") for why in changed.values()} <= by


@pytest.fixture
def walked(sqlite_db, sqlite_url, tmp_path):
    """A small harvest of two pages, to be tampered with."""
    home = Home(sqlite_db, sqlite_url, tmp_path / "home")
    with listening(lambda asked: (200, page_of(works(12), asked))) as server:
        home.apply(a_source(server.url, works=an_endpoint()))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        yield home


def page_of(items, asked):
    rest = between(items, asked)
    start = int(asked["offset"])
    return {"items": rest[start : start + 10], "total": len(rest)}


def the_run(home):
    (found,) = replays(home)
    return found


def only_trouble(found):
    matches = [one for batch in found.batches for one in batch.matches]
    assert len(matches) == 1, found.as_markdown()
    return matches[0]


def test_a_changed_record_is_named(walked):
    walked.execute("UPDATE ing_record SET content_hash = :h WHERE provider_id = 'w003'", h="0" * 64)

    found = the_run(walked)

    assert (found.outcome, found.is_fine) == (Outcome.DIFFERS, False)
    assert (only_trouble(found).provider_id, only_trouble(found).match) == ("w003", Match.DIFFERS)
    assert "000000000000" in found.as_markdown()


def test_a_record_that_was_removed_is_lost(walked):
    walked.execute("DELETE FROM ing_record WHERE provider_id = 'w011'")

    trouble = only_trouble(the_run(walked))

    assert (trouble.provider_id, trouble.match) == ("w011", Match.LOST)


def test_a_record_that_no_answer_brought_is_added(walked):
    walked.execute("UPDATE ing_record SET provider_id = 'forged' WHERE provider_id = 'w001'")

    found = the_run(walked)

    matches = {one.provider_id: one.match for batch in found.batches for one in batch.matches}
    assert matches == {"w001": Match.LOST, "forged": Match.ADDED}


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        pytest.param(lambda file: file.unlink(), "older than its retention", id="missing"),
        pytest.param(
            lambda file: file.write_bytes(b"\x28\xb5\x2f\xfd"), "is damaged", id="damaged"
        ),
    ],
)
def test_a_body_that_is_gone_is_one_sentence_and_the_other_batches_are_replayed(
    walked, harm, words
):
    key = walked.one("SELECT storage_key FROM ing_task_run_batch WHERE batch_no = 1")
    harm(walked.folder / "raw" / key)

    found = the_run(walked)

    assert [one.outcome for one in found.batches] == [Outcome.UNREADABLE, Outcome.EQUAL]
    assert words in found.batches[0].problem
    assert not found.is_fine


@pytest.mark.parametrize(
    ("column", "value", "check"),
    [
        ("after_token", "'offset:20'", "next position"),
        ("request", "REPLACE(request, 'offset=0', 'offset=5')", "request"),
        ("stats", "json_set(stats, '$.itemsCount', 11)", "items"),
    ],
)
def test_a_batch_row_that_was_changed_is_named(walked, column, value, check):
    walked.execute(f"UPDATE ing_task_run_batch SET {column} = {value} WHERE batch_no = 1")

    found = the_run(walked)

    unequal = [one.name for batch in found.batches for one in batch.checks if not one.is_equal]
    assert unequal == [check]
    assert found.outcome is Outcome.DIFFERS


def test_a_quarantined_item_is_found_again_and_missed_when_it_was_removed(
    sqlite_db, sqlite_url, tmp_path
):
    home = Home(sqlite_db, sqlite_url, tmp_path / "home")
    items = [*works(4), {**an_item("w900", stamp(9)), "title": None}]
    with listening(lambda asked: (200, page_of(items, asked))) as server:
        home.apply(a_source(server.url, works=an_endpoint()))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert the_run(home).outcome is Outcome.EQUAL, the_run(home).as_markdown()

    home.execute("DELETE FROM ing_quarantine")

    assert "quarantined items" in the_run(home).as_markdown()


def test_what_a_second_run_went_on_with_is_replayed_after_what_the_first_had_seen(
    sqlite_db, sqlite_url, tmp_path
):
    home = Home(sqlite_db, sqlite_url, tmp_path / "home")
    library = Library(12)
    with listening(library) as server:
        home.apply(a_library(server.url, {"isolate": False}))
        library.poison = {"w004": 503}
        assert harvest(home) == ["RELEASED"]
        library.poison.clear()
        home.pass_pauses()
        home.work()

    found = replays(home)

    assert [len(one.batches) for one in found] == [2, 4]
    assert worst_of(found) == {Outcome.EQUAL}, told(found)
    assert ids(12) == sorted(row[0] for row in home.rows("SELECT provider_id FROM ing_record"))
