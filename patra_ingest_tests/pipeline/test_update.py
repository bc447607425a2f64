"""An UPDATE by ids: asked for in batches, held against what came, stored where it belongs."""

from datetime import timedelta

import pytest

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.ledger.signals import add_signals
from patra_ingest.model.codes import Operation, Signal
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


class Library:
    """Seven works; whoever asks for ids gets those it has, once it feels like it."""

    def __init__(self):
        self.works = {f"w{n}": an_item(f"w{n}", f"2025-09-01T{n:02d}:00:00Z") for n in range(7)}
        self.shy = set()
        self.strange = []

    def __call__(self, asked):
        if "ids" not in asked:
            return 200, {"items": list(self.works.values()), "total": len(self.works)}
        wanted = asked["ids"].split(",")
        found = [self.works[one] for one in wanted if one in self.works and one not in self.shy]
        self.shy.difference_update(wanted)
        return 200, {"items": found + self.strange}


def a_library(url, **detail):
    one = an_endpoint(
        operations=["UPDATE"],
        request={"path": "/one"},
        batching={"ids_per_request": 3},
        planning={"refresh_days": 1, "ids_per_slice": 5},
        **({"detail": detail} if detail else {}),
    )
    one["request"]["query"] = {"ids": "${ids|join(',')}"}
    one["paging"] = {"type": "NONE", "page_size": 100}
    return a_pack(url, works=an_endpoint(paging={"page_size": 100}), one=one)


@pytest.fixture
def library(home):
    """A library whose works were harvested a month ago."""
    source = Library()
    with upstream(source) as server:
        home.apply(a_library(server.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()
        home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
        home.execute("UPDATE ing_record SET endpoint_name = 'one'")
        server.asked.clear()
        yield source, server, home


def an_update(**more):
    return a_trigger("one", operation=Operation.UPDATE, **more)


def test_every_stale_record_is_asked_for_once_and_the_cursor_follows(library):
    source, server, home = library
    source.works["w3"]["title"] = "On w3, corrected"

    planned = home.plan(an_update())
    home.work(lanes=2)

    asked = sorted(one["ids"] for one in server.asked)
    assert asked == ["w0,w1,w2", "w3,w4", "w5,w6"]
    assert home.one("SELECT status_code FROM ing_plan WHERE id = :id", id=planned.plan_id) == (
        "COMPLETED"
    )
    proofs = [
        read_json(row[0])
        for row in home.rows(
            "SELECT r.certificate FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id"
            " WHERE t.plan_id = :id ORDER BY r.id",
            id=planned.plan_id,
        )
    ]
    assert sorted((p["promised"], p["landed"], p["verdict"]) for p in proofs) == [
        (2, 2, "COMPLETE"),
        (5, 5, "COMPLETE"),
    ]
    title = home.one("SELECT fields FROM ing_record WHERE provider_id = 'w3'")
    assert "corrected" in title
    ((key, reached),) = home.rows(
        "SELECT cursor_key, normalized_instant FROM ing_cursor WHERE operation_code = 'UPDATE'"
    )
    assert (key, read_instant(reached)) == ("refresh_checked_at", planned.window.end)
    harvest = home.one("SELECT normalized_instant FROM ing_cursor WHERE operation_code = 'HARVEST'")
    assert read_instant(harvest) == day(1)


def test_what_does_not_come_is_asked_for_once_more(library):
    source, server, home = library
    source.shy = {"w1", "w4"}

    home.plan(an_update())
    home.work()

    assert sorted(one["ids"] for one in server.asked) == ["w0,w1,w2", "w1", "w3,w4", "w4", "w5,w6"]
    assert home.one("SELECT COUNT(*) FROM ing_record WHERE is_deleted = 1") == 0
    counted = home.rows("SELECT stats FROM ing_task_run_batch WHERE stats LIKE '%goneIds%'")
    assert sum(read_json(row[0])["reqCount"] for row in counted) == 5
    answers = home.rows("SELECT response FROM ing_task_run_batch WHERE plan_id = 2")
    kept = [read_json(row[0]).get("also") for row in answers]
    assert sum(key is not None for key in kept) == 2, "the second answers are evidence, too"


def test_a_record_the_source_has_no_more_is_withdrawn_and_an_unknown_id_is_bad(library):
    source, _, home = library
    del source.works["w2"]
    with home.db.write() as tx:
        now = home.db.now(tx)
        add_signals(tx, "example", "one", ["nobody"], Signal.CORRECTION, "ann", "a typo", now)

    planned = home.plan(an_update())
    home.work()

    gone = home.rows("SELECT provider_id FROM ing_record WHERE is_deleted = 1")
    assert [row[0] for row in gone] == ["w2"]
    bad = home.rows("SELECT kind_code, provider_id, endpoint_name FROM ing_quarantine")
    assert [tuple(row) for row in bad] == [("BAD_ID", "nobody", "one")]
    statuses = home.rows(
        "SELECT status_code FROM ing_plan_slice WHERE plan_id = :id", id=planned.plan_id
    )
    assert {row[0] for row in statuses} == {"SUCCEEDED"}
    later = home.plan(an_update(at=home_now(home) + timedelta(days=2)))
    named = [
        read_json(row[0])["bounds"]["id"]["ids"]
        for row in home.rows(
            "SELECT slice_spec FROM ing_plan_slice WHERE plan_id = :id", id=later.plan_id or 0
        )
    ]
    assert not {"w2", "nobody"} & {one for ids in named for one in ids}


def home_now(home):
    with home.db.read() as tx:
        return home.db.now(tx)


def test_a_record_nobody_asked_for_is_quarantined_not_stored(library):
    source, _, home = library
    source.strange = [an_item("stranger", "2025-09-01T00:00:00Z")]

    home.plan(an_update())
    home.work()

    assert home.one("SELECT COUNT(*) FROM ing_record WHERE provider_id = 'stranger'") == 0
    reasons = home.rows("SELECT provider_id, reason FROM ing_quarantine")
    assert {tuple(row) for row in reasons} == {("stranger", "nobody asked for it")}


def test_a_worker_that_dies_goes_on_after_its_last_request(library):
    _, server, home = library
    home.plan(an_update())
    calls = []

    def dying(stats):
        calls.append(stats)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        home.work(on_batch=dying)
    home.pass_leases()
    home.work()

    asked = [one["ids"] for one in server.asked]
    assert len(asked) == len(set(asked)) == 3
