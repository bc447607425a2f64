"""Details that do not come, or come for nobody: what proves that a record is gone, and what not."""

from collections import Counter
from contextlib import suppress

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.test_two_phase import bad_ids, deleted
from patra_ingest_tests.pipeline.walks import (
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


def newest_error(home):
    query = "SELECT status_code, last_error_code, last_error_msg FROM ing_task ORDER BY id DESC"
    return tuple(home.rows(query)[0])


EMPTY_404 = {"errors": [{"when": {"status": 404}, "do": "EMPTY"}]}


@pytest.mark.parametrize("by_rule", [False, True])
def test_a_source_that_has_nothing_for_anybody_deletes_nothing(home, by_rule):
    library = Library(8)
    with listening(library) as server:
        home.apply(a_library(server.url, **EMPTY_404))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.lost = set() if by_rule else set(ids(8))
        library.poison = dict.fromkeys(ids(8), 404) if by_rule else {}

        assert harvest(home, rounds=4, past=2) == ["RELEASED"] * 3 + ["FAILED"]
        assert newest_error(home)[1] == "INCOMPLETE"
        assert "none of 4 ids" in newest_error(home)[2]
        assert "--set detail.batch=1" in newest_error(home)[2]
        assert (records(home), deleted(home), bad_ids(home)) == (ids(8), [], [])

        alone = {"campaign": "alone", "values": {"detail": {"batch": 1}}}
        assert harvest(home, past=2, **alone) == ["SUCCEEDED"] * 2
    assert deleted(home) == ids(8)


@pytest.mark.parametrize("lost", [slice(4, 8), slice(4, 10), slice(0, 4)])
def test_several_ids_are_gone_if_the_source_has_others(home, lost):
    library = Library(10)
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.lost = set(ids(10)[lost])

        assert harvest(home, past=2) == ["SUCCEEDED"], newest_error(home)
        sent = len(server.asked)
    assert deleted(home) == ids(10)[lost]
    assert sum(one["reqCount"] for one in batches(home)) == sent
    assert proofs(home)[-1]["verdict"] == "COMPLETE"


def an_update(home, url, **parts):
    """Harvest two works and plan to ask for both of them again."""
    one = an_endpoint(
        operations=["UPDATE"],
        request={"path": "/one"},
        batching={"ids_per_request": 3},
        planning={"refresh_days": 1},
        **parts,
    )
    one["request"]["query"] = {"ids": "${ids|join(',')}"}
    one["paging"] = {"type": "NONE", "page_size": 100}
    home.apply(a_pack(url, works=an_endpoint(paging={"page_size": 100}), one=one))
    home.plan(a_trigger(start=day(0), end=day(1)))
    home.work()
    home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
    home.execute("UPDATE ing_record SET endpoint_name = 'one'")


def two_works(asked):
    """Say that the source has two works, and nothing when they are asked for."""
    items = [] if "ids" in asked else [an_item(f"w{n}", stamp(n)) for n in range(2)]
    return 200, {"items": items, "total": len(items)}


def test_an_update_whose_ids_are_all_gone_says_what_to_do_and_that_helps(home):
    with listening(two_works) as server:
        an_update(home, server.url)
        home.plan(a_trigger("one", operation=Operation.UPDATE))

        assert work_on(home, rounds=4) == ["RELEASED"] * 3 + ["FAILED"]
        assert "--set batching.ids_per_request=1" in newest_error(home)[2]
        assert records(home) == ["w0", "w1"]
        alone = {"campaign": "alone", "values": {"batching": {"ids_per_request": 1}}}
        home.plan(a_trigger("one", operation=Operation.UPDATE, **alone))

        assert work_on(home) == ["SUCCEEDED"], newest_error(home)
    assert deleted(home) == ["w0", "w1"]


def test_details_that_write_their_ids_in_another_way_hold_the_endpoint(home):
    library = Library(8)
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.now = {one: one.upper() for one in ids(8)}

        assert harvest(home, past=2) == ["FAILED"]
    assert newest_error(home)[1] == "L4"
    assert "'W000' came where 'w000' was asked for" in newest_error(home)[2]
    assert records(home) == ids(8)
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 0


GONE_404 = {"errors": [{"when": {"status": 404}, "do": "GONE"}]}


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize(("poison", "requests"), [(["w002"], 6), (["w000", "w003"], 10)])
def test_a_rule_gone_for_several_ids_is_traced_to_the_ones_it_means(
    home, isolate, poison, requests
):
    library = Library(4)
    with listening(library) as server:
        home.apply(a_library(server.url, {"isolate": isolate}, **GONE_404))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.details.clear()
        library.poison = dict.fromkeys(poison, 404)

        assert harvest(home, past=2) == ["SUCCEEDED"], newest_error(home)
    assert deleted(home) == poison
    assert len(library.details) == requests, "halves of halves, and who is missing once more"
    assert bad_ids(home) == []


def test_ids_that_the_source_calls_gone_one_by_one_need_no_others(home):
    library = Library(2)
    with listening(library) as server:
        home.apply(a_library(server.url, **GONE_404))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.poison = dict.fromkeys(ids(2), 404)

        assert harvest(home, past=2) == ["SUCCEEDED"], newest_error(home)
    assert deleted(home) == ids(2)


BY_ONE = {"detail": {"batch": 1}, "batching": {"ids_per_request": 1}}


@pytest.mark.parametrize("resumed", [False, True])
def test_a_source_asked_one_by_one_that_changes_its_shape_is_held(home, resumed):
    library = Library(8)
    for one in ids(8)[1:]:
        library.works[one]["headline"] = library.works[one].pop("title")

    def die(stats):
        if resumed and stats["quarantined"] and len(library.details) == 3:
            raise KeyboardInterrupt

    with listening(library) as server:
        home.apply(a_library(server.url, **BY_ONE))
        harvest(home, rounds=0)
        with suppress(KeyboardInterrupt):
            home.work(on_batch=die)
        home.pass_leases()
        work_on(home)
    assert last_error(home)[:2] == ("FAILED", "L4")
    assert "every one of 3 items fails at $.title" in last_error(home)[2]
    assert "the source has changed its shape" in last_error(home)[2]
    assert library.details == [[one] for one in ids(4)]
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 2


def test_bad_details_between_good_ones_hold_nothing(home):
    library = Library(9)
    for one in ids(9):
        library.works[one]["title"] = "fine" if one in ("w002", "w005", "w008") else None
    with listening(library) as server:
        home.apply(a_library(server.url, **BY_ONE))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ["w002", "w005", "w008"]
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 6


def test_hollow_details_one_by_one_hold_nothing(home):
    library = Library(5)
    hollow = {"response": {"usable": {"path": "$.title", "exists": True}}}
    library.works = {one: {**item, "title": None} for one, item in library.works.items()}
    with listening(library) as server:
        home.apply(a_library(server.url, **BY_ONE, **hollow))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 5


def test_foreign_details_one_by_one_hold_the_endpoint_at_the_third(home):
    library = Library(8)
    library.now = {one: one.upper() for one in ids(8)}
    with listening(library) as server:
        home.apply(a_library(server.url, **BY_ONE))

        assert harvest(home) == ["FAILED"]
    assert last_error(home)[1] == "L4"
    assert "'W002' came where 'w002' was asked for" in last_error(home)[2]


def test_every_quarantined_item_has_a_row_of_its_own(home):
    library = Library(4)

    def answer(asked):
        status, told = library(asked)
        if asked["path"] == "/works" or len(library.details) > 1:
            return status, told
        *good, last = told["items"]
        ad = {**last, "id": "ad", "kind": "ad"}
        return 200, {"items": [*good, ad, {**last, "id": "zzz"}, {**last, "title": None}]}

    with listening(answer) as server:
        skip = {"skip": {"path": "$.kind", "equals": "ad"}}
        home.apply(a_library(server.url, response=skip))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    rows = home.rows("SELECT provider_id, item_no FROM ing_quarantine ORDER BY item_no")
    assert [tuple(row) for row in rows] == [("w003", 6), ("zzz", 7)]
    assert sum(one["quarantined"] for one in batches(home)) == 2


def test_an_id_of_a_busy_source_is_asked_for_patiently_before_it_is_blamed(home):
    library, busy = Library(4), Counter({("w003",): 3, ("w002", "w003"): 1, tuple(ids(4)): 5})

    def answer(asked):
        wanted = () if asked["path"] == "/works" else tuple(library.wanted(asked))
        if busy[wanted] > 0:
            busy[wanted] -= 1
            return 503, {"error": "busy"}
        return library(asked)

    with listening(answer) as server:
        retry = {"retry": {"max_attempts": 5, "initial_delay": "1ms"}}
        home.apply(a_library(server.url, more=retry))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        sent = len(server.asked)
    assert (records(home), bad_ids(home)) == (ids(4), [])
    assert sum(one["reqCount"] for one in batches(home)) == sent


@pytest.mark.parametrize("found", [["w000", "10.1/a,b", "w002"], ["10.1/a,b"]])
def test_an_id_that_holds_the_separator_is_bad_and_never_asked_for_as_two(home, found):
    library = Library(found=found)
    with listening(library) as server:
        home.apply(
            a_library(server.url, request={"query": {"id": {"value": "${ids}", "repeat": True}}})
        )
        library.wanted = lambda asked: [value for name, value in asked["pairs"] if name == "id"]
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert records(home) == sorted(found), "repeated parameters join nothing"
        del library.wanted
        library.details.clear()
        library.works |= {one: {**library.works[found[0]], "id": one} for one in ("10.1/a", "b")}
        home.apply(a_library(server.url))

        assert harvest(home, past=2) == ["SUCCEEDED"], newest_error(home)
    assert (records(home), deleted(home)) == (sorted(found), [])
    assert bad_ids(home) == ["10.1/a,b"]
    assert "it holds ','" in home.one("SELECT reason FROM ing_quarantine")
    assert library.details == [["w000", "w002"]] or len(found) == 1
    assert (proofs(home)[-1]["bad"], proofs(home)[-1]["verdict"]) == (1, "COMPLETE")


def test_an_id_that_travels_alone_may_hold_a_separator(home):
    library = Library(found=["w000", "10.1/a,b", "w002"])
    library.wanted = lambda asked: [asked["id"]]
    with listening(library) as server:
        home.apply(a_library(server.url, **BY_ONE))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ["10.1/a,b", "w000", "w002"]
