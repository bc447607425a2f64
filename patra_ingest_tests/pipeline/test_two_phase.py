"""A search finds ids, details become records: every id is a record, merged, gone or bad."""

import threading

import pytest

from patra_ingest.errors import EndpointHalted, PlanError
from patra_ingest.executor.pay import Purse
from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import read_json
from patra_ingest_tests.builders import a_spec
from patra_ingest_tests.fakes import Died, dying
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    batches,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    work_on,
)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def searched(server):
    return [asked["offset"] for asked in server.asked if asked["path"] == "/works"]


def bad_ids(home):
    query = "SELECT provider_id FROM ing_quarantine WHERE kind_code = 'BAD_ID' ORDER BY provider_id"
    return [row[0] for row in home.rows(query)]


def deleted(home):
    query = "SELECT provider_id FROM ing_record WHERE is_deleted = 1 ORDER BY provider_id"
    return [row[0] for row in home.rows(query)]


JOINED = {"query": {"id": "${ids|join(',')}"}}
REPEATED = {"query": {"id": {"value": "${ids}", "repeat": True}}}


@pytest.mark.parametrize("request_", [JOINED, REPEATED], ids=["comma", "repeat"])
def test_ids_become_records_in_batches(home, request_):
    library = Library(12)
    with listening(library) as server:
        home.apply(a_library(server.url, request=request_))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    names = ids(12)
    assert library.details == [names[0:4], names[4:8], names[8:10], names[10:12]]
    assert records(home) == names
    stored = {row[0] for row in home.rows("SELECT endpoint_name FROM ing_record")}
    assert stored == {"works"}
    (proof,) = proofs(home)
    assert (proof["promised"], proof["found"], proof["landed"]) == (12, 12, 12)
    assert (proof["pages"], proof["verdict"]) == (2, "COMPLETE")
    assert [one.get("phase") for one in batches(home)] == [
        *("SEARCH", "DETAIL", "DETAIL", "DETAIL", "SEARCH", "DETAIL")
    ]


def test_a_question_too_long_for_a_url_is_posted(home):
    library = Library(4)
    with listening(library) as server:
        length = {**JOINED, "post_when_longer": len(server.url) + 20}
        home.apply(a_library(server.url, request=length))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        methods = [asked["method"] for asked in server.asked]
    assert methods == ["GET", "POST"]
    assert records(home) == ids(4)


def test_a_question_too_long_for_any_url_is_halved(home):
    library = Library(4)
    with listening(library) as server:
        longest = len(f"{server.url}/fetch?id=w000%2Cw001")
        home.apply(a_library(server.url, batching={"max_url": longest}))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert library.details == [["w000", "w001"], ["w002", "w003"]]
    assert [one["reqCount"] for one in batches(home)] == [1, 2], "still one batch"


def test_an_id_found_on_two_pages_is_fetched_once(home):
    library = Library(found=[*ids(10), "w009", "w003", "w010"])
    with listening(library) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    asked = [one for wanted in library.details for one in wanted]
    assert sorted(asked) == ids(11)
    (proof,) = proofs(home)
    assert (proof["found"], proof["duplicates"], proof["verdict"]) == (11, 2, "COMPLETE")


def test_a_detail_that_fails_leaves_the_others_and_only_it_is_asked_for_again(home):
    library = Library(10)
    with listening(library) as server:
        home.apply(a_library(server.url, {"isolate": False}))
        library.poison = {"w004": 503}

        assert harvest(home) == ["RELEASED"]
        assert records(home) == ids(4)
        library.poison.clear()
        server.asked.clear()
        library.details.clear()
        home.pass_pauses()

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
        assert searched(server) == ["10"], "the first page of the search stands"
    assert library.details == [ids(10)[4:8], ids(10)[8:10]]
    assert records(home) == ids(10)
    assert proofs(home)[0]["landed"] == 10


def test_a_crash_between_details_goes_on_with_the_next_one(home):
    library, seen = Library(10), []

    def second_detail(statement):
        seen.append(statement)
        starts = [one for one in seen if one.startswith("INSERT INTO ing_task_run_batch")]
        return len(starts) == 4  # with its commit the third one would be written down

    with listening(library) as server:
        home.apply(a_library(server.url))
        harvest(home, rounds=0)
        with home.live() as live, dying(live.db, second_detail), pytest.raises(Died):
            live.worker().work(Order(until_empty=True), threading.Event(), lambda _: None)
        server.asked.clear()
        library.details.clear()
        home.pass_leases()

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
        assert searched(server) == ["10"]
    assert library.details == [ids(10)[4:8], ids(10)[8:10]]
    assert records(home) == ids(10)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("attempts", [1, 5])
def test_a_poison_id_is_found_by_halving_and_listed(home, status, attempts):
    library = Library(8)
    library.poison = {"w002": status}
    with listening(library) as server:
        retry = {"retry": {"max_attempts": attempts, "initial_delay": "1ms"}}
        home.apply(a_library(server.url, more=retry))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        sent = len(server.asked)
    assert bad_ids(home) == ["w002"]
    assert records(home) == [one for one in ids(8) if one != "w002"]
    (proof,) = proofs(home)
    assert (proof["landed"], proof["bad"], proof["verdict"]) == (7, 1, "COMPLETE")
    assert [one["selfHealing"]["idsHalved"] for one in batches(home)] == [False, True, False]
    assert sum(one["reqCount"] for one in batches(home)) == sent


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("poison", [["w002"], ["w000"], ["w000", "w001"], ["w002", "w003"]])
def test_a_poison_id_of_a_source_that_is_asked_one_by_one_stops_no_other(home, status, poison):
    library = Library(4)
    library.poison = dict.fromkeys(poison, status)
    with listening(library) as server:
        home.apply(a_library(server.url, detail={"batch": 1}, batching={"ids_per_request": 1}))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        sent = len(server.asked)
    assert bad_ids(home) == poison
    assert records(home) == [one for one in ids(4) if one not in poison]
    (proof,) = proofs(home)
    assert (proof["bad"], proof["verdict"]) == (len(poison), "COMPLETE")
    assert sum(one["reqCount"] for one in batches(home)) == sent


@pytest.mark.parametrize("count", [1, 4])
def test_a_source_that_rejects_every_id_one_by_one_is_not_blamed_on_them(home, count):
    library = Library(count)
    library.poison = dict.fromkeys(ids(count), 400)
    with listening(library) as server:
        home.apply(a_library(server.url, detail={"batch": 1}, batching={"ids_per_request": 1}))

        assert harvest(home) == ["FAILED"]
    assert last_error(home)[1] == "L2"
    assert bad_ids(home) == []
    assert len(library.details) == count, "the id, and each of the others that could tell"


def test_a_source_that_is_down_is_not_blamed_on_ids(home):
    library = Library(8)
    library.down = 10**6
    with listening(library) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["RELEASED"]
        assert last_error(home)[1] == "L1"
        assert bad_ids(home) == []
        library.down = 0
        home.execute("UPDATE ing_rate_bucket SET cool_down_until = NULL")
        home.pass_pauses()

        assert work_on(home) == ["SUCCEEDED"]
    assert records(home) == ids(8)


def test_a_source_that_goes_down_while_halving_is_not_blamed_on_ids(home):
    library = Library(4)
    library.poison = {"w003": 500}
    answer = library.__call__

    def falls(asked):
        if len(library.details) >= 2:  # the whole and its first half have been asked for
            library.down = 10**6
        return answer(asked)

    with listening(falls) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["RELEASED"]
    assert bad_ids(home) == []


def test_what_is_missing_is_asked_for_once_more_and_then_listed(home):
    library = Library(4)
    library.shy, library.lost = {"w001"}, {"w003"}
    with listening(library) as server:
        home.apply(a_library(server.url))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert library.details == [ids(4), ["w001", "w003"]]
    assert records(home) == ["w000", "w001", "w002"]
    assert bad_ids(home) == ["w003"]
    assert (proofs(home)[0]["landed"], proofs(home)[0]["gone"]) == (3, 1)


def test_nulls_stand_for_the_ids_that_are_lost(home):
    library = Library(4)
    library.lost, library.nulls = {"w001"}, True
    with listening(library) as server:
        home.apply(a_library(server.url, {"positional": True, "missing": "GONE"}))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert len(library.details) == 1
    assert records(home) == ["w000", "w002", "w003"]


def test_a_merged_id_is_stored_as_what_it_has_become_and_the_old_one_is_withdrawn(home):
    library = Library(4)
    with listening(library) as server:
        home.apply(a_library(server.url, {"aliases": True}))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.now = {"w001": "v777"}

        assert harvest(home, past=2) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ["v777", "w000", "w002", "w003"]
    assert deleted(home) == ["w001"]
    assert bad_ids(home) == []
    merged = [one["merged"] for one in batches(home) if "merged" in one]
    assert merged == [{"w001": "v777"}]


def test_a_tombstone_deletes_the_record_and_counts_as_an_answer(home):
    library = Library(4)
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        library.deleted = ["w002"]

        assert harvest(home, past=2) == ["SUCCEEDED"], last_error(home)
    assert deleted(home) == ["w002"]
    assert records(home) == ["w000", "w001", "w003"]
    assert sum(one["deleted"] for one in batches(home)) == 1
    stats = home.rows("SELECT stats FROM ing_task_run WHERE status_code = 'SUCCEEDED'")
    assert sum(read_json(row[0])["deleted"] for row in stats) == 1


TOO_SMALL = {"key": "fetch", "quotas": [{"limit": 1, "per": "1m", "kind": "SLIDING"}]}


def test_a_quota_of_the_details_that_cannot_be_kept_is_refused_when_planned(home):
    with listening(Library(2)) as server:
        home.apply(a_library(server.url, rate={"per_second": 10, **TOO_SMALL}))

        with pytest.raises(PlanError, match="sliding quota 1 per 1m of fetch"):
            harvest(home)


def test_a_plan_with_such_a_quota_halts_its_endpoint_and_no_worker():
    with pytest.raises(EndpointHalted, match="sliding quota"):
        Purse(None, None).pay(None, a_spec(rate=TOO_SMALL))
