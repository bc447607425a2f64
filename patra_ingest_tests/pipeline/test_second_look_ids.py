"""A second look at ids: whoever finds them, asks for them or blames them."""

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    stamp,
    work_on,
)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


class Catalogue(Library):
    """A search whose hits are more than ids."""

    def __init__(self, count=12):
        super().__init__(count)
        self.hits = {one: {"id": one, "updated": stamp(n)} for n, one in enumerate(self.found)}
        self.withdrawn = []

    def __call__(self, asked):
        if asked["path"] != "/works":
            return super().__call__(asked)
        start = int(asked["offset"])
        hits = list(self.hits.values())
        tree = {"ids": hits[start : start + 10], "total": len(hits), "dead": self.withdrawn}
        return 200, tree


WINDOW = {"from": "${window.from|iso}", "to": "${window.last|iso}"}
FETCH = {
    "usage": "DETAIL",
    "request": {"path": "/fetch", "query": {"id": "${ids|join(',')}"}},
    "paging": {"type": "NONE", "page_size": 100},
    "batching": {"ids_per_request": 4},
    "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
    "changed": "NEWER_OR_HASH",
    "fields": {"title": {"path": "$.title", "required": True}},
}


def a_search(**parts):
    """Return a search that hands its ids over, four at a time."""
    search = an_endpoint(detail={"endpoint": "fetch", "batch": 4}, **parts)
    del search["fields"], search["changed"]
    if "client_window" not in search["response"]:
        del search["response"]["updated_at"]
    return search


def a_catalogue(url, **response):
    hits = {"items": "$.ids", "id": "$.id", **response}
    return a_source(url, None, works=a_search(response=hits), fetch=FETCH)


def test_hits_that_are_skipped_are_not_asked_for_and_not_missed(home):
    source = Catalogue(12)
    source.hits["w003"]["kind"] = "ad"
    with listening(source) as server:
        home.apply(a_catalogue(server.url, skip={"path": "$.kind", "equals": "ad"}))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == [one for one in ids(12) if one != "w003"]
    assert proofs(home)[0]["verdict"] == "COMPLETE"


def test_hits_outside_the_window_are_not_asked_for_and_not_missed(home):
    source = Catalogue(12)
    source.hits["w003"]["updated"] = "2030-01-01T00:00:00Z"
    with listening(source) as server:
        home.apply(a_catalogue(server.url, client_window=True))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == [one for one in ids(12) if one != "w003"]
    assert sum(one["outOfWindow"] for one in batches(home)) == 1


def test_what_a_search_reports_as_deleted_is_deleted(home):
    source = Catalogue(6)
    with listening(source) as server:
        home.apply(a_catalogue(server.url, tombstones="$.dead"))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        source.withdrawn = ["w001"]
        del source.hits["w001"]

        assert harvest(home, past=2) == ["SUCCEEDED"], last_error(home)
    assert home.rows("SELECT provider_id FROM ing_record WHERE is_deleted = 1")[0][0] == "w001"


def test_an_id_that_fails_by_chance_while_halving_is_not_blamed(home):
    library = Library(4)
    failing = {("w000", "w001", "w002", "w003"), ("w000", "w001"), ("w000",)}
    answer = library.__call__

    def flaky(asked):
        if asked["path"] == "/fetch" and tuple(library.wanted(asked)) in failing:
            failing.discard(tuple(library.wanted(asked)))
            return 503, {}
        return answer(asked)

    with listening(flaky) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(4)
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 0


def test_an_endpoint_whose_details_break_is_held_and_no_other(home):
    library = Library(4)
    library.works = {one: {**item, "title": None} for one, item in library.works.items()}
    with listening(library) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["FAILED"]
    assert last_error(home)[1] == "L4"
    assert [row[0] for row in home.rows("SELECT endpoint_name FROM ing_hold")] == ["works"]


def test_details_do_not_keep_a_token_alive(home):
    """The token is as old as the search that brought it, however young the last detail is."""
    found = ids(20)

    def answer(asked):
        if asked["path"] == "/works":
            start = int(asked.get("token", 0))
            tree = {"ids": found[start : start + 10], "total": 20}
            return 200, {**tree, "next": str(start + 10) if start + 10 < 20 else None}
        wanted = asked["id"].split(",")
        return 200, {"items": [an_item(one, stamp(0)) for one in wanted]}

    def die(stats):
        if stats.get("phase") == "DETAIL":
            raise KeyboardInterrupt

    with listening(answer) as server:
        query = {**WINDOW, "token": "${page.token}"}
        paging = {"type": "TOKEN", "next_token": "$.next", "stop": ["NO_TOKEN"]}
        search = a_search(
            request={"query": query},
            paging={**paging, "token_life": "5m"},
            response={"items": "$.ids", "id": "$"},
        )
        home.apply(a_source(server.url, None, works=search, fetch=FETCH))
        harvest(home, rounds=0)
        with pytest.raises(KeyboardInterrupt):
            home.work(on_batch=die)
        home.pass_leases()
        home.execute(
            "UPDATE ing_task_run_batch SET committed_at = '2020-01-01 00:00:00.000000'"
            " WHERE stats LIKE '%SEARCH%'"
        )
        server.asked.clear()

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
        tokens = [asked.get("token") for asked in server.asked if asked["path"] == "/works"]
    assert tokens == [None, "10"], "the search begins again"
    assert records(home) == found


def test_two_ids_that_became_one_do_not_fail_their_slice(home):
    """The source has merged w1 into w0, and we have both: an UPDATE asks for both."""
    items = {f"w{n}": an_item(f"w{n}", stamp(n)) for n in range(4)}
    merged = {}

    def answer(asked):
        if "ids" not in asked:
            return 200, {"items": list(items.values()), "total": 4}
        wanted = asked["ids"].split(",")
        found = [{**items[merged.get(one, one)], "asked": one} for one in wanted]
        return 200, {"items": found}

    one = an_endpoint(
        operations=["UPDATE"],
        request={"path": "/one"},
        response={"asked": "$.asked"},
        batching={"ids_per_request": 3},
        planning={"refresh_days": 1, "ids_per_slice": 5},
        detail={"aliases": True},
    )
    one["request"]["query"] = {"ids": "${ids|join(',')}"}
    one["paging"] = {"type": "NONE", "page_size": 100}
    with upstream(answer) as server:
        home.apply(a_pack(server.url, works=an_endpoint(paging={"page_size": 100}), one=one))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()
        home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
        home.execute("UPDATE ing_record SET endpoint_name = 'one'")
        merged["w1"] = "w0"
        home.plan(a_trigger("one", operation=Operation.UPDATE))

        assert work_on(home) == ["SUCCEEDED"]
    assert records(home) == ["w0", "w2", "w3"]
    assert proofs(home)[-1]["verdict"] == "COMPLETE"


def test_a_tombstone_that_cannot_be_an_id_is_not_counted_as_gone(home):
    library = Library(4)

    def answer(asked):
        status, told = library(asked)
        return status, {**told, "gone": ["x" * 600, *told["gone"]]} if "gone" in told else told

    with listening(answer) as server:
        home.apply(a_library(server.url))
        library.deleted = ["w002"]

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    (proof,) = proofs(home)
    assert (proof["gone"], proof["quarantined"], proof["verdict"]) == (1, 1, "COMPLETE")
    assert [one["goneIds"] for one in batches(home) if "goneIds" in one] == [1]
