"""A second look at what is paid, told, kept secret and written by two at once."""

import threading
import time

import pytest

from patra_ingest.ledger.db import read_json
from patra_ingest_tests.builders import a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    last_error,
    listening,
    records,
    stamp,
    works,
)

WORKS = works(35)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


@pytest.fixture
def each_home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


def page(asked):
    start = int(asked["offset"])
    return 200, {"items": WORKS[start : start + 10], "total": 35}


def holds(home):
    return [row[0] for row in home.rows("SELECT endpoint_name FROM ing_hold")]


PROBED = {"cap": {"max": 100, "probe": {"query": {"count": "yes"}, "total": "$.count"}}}
BEARERS = {
    "old": {"type": "BEARER", "secret": "env:PATRA_TEST_OLD", "preferred": True},
    "new": {"type": "BEARER", "secret": "env:PATRA_TEST_NEW"},
}


@pytest.mark.parametrize("count", ["35", "1,005", 35.0])
def test_a_count_may_be_written_as_a_total_may(home, count):
    with listening(lambda a: (200, {"count": count}) if "count" in a else page(a)) as server:
        home.apply(a_source(server.url, works=an_endpoint(cap={**PROBED["cap"], "max": 2000})))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert "count" in server.asked[0]
    assert holds(home) == []


def probed(accepted):
    def answer(asked):
        if asked["headers"].get("Authorization") not in accepted:
            return 401, {"error": "revoked"}
        return (200, {"count": 35}) if "count" in asked else page(asked)

    return answer


@pytest.mark.parametrize("accepted", [{"Bearer new"}, set()], ids=["another helps", "none helps"])
def test_a_probe_that_is_refused_tries_the_next_credential_or_holds(home, monkeypatch, accepted):
    monkeypatch.setenv("PATRA_TEST_OLD", "old")
    monkeypatch.setenv("PATRA_TEST_NEW", "new")
    auth = {"auth": {"required": True, "credentials": BEARERS}}
    with listening(probed(accepted)) as server:
        home.apply(a_source(server.url, auth, works=an_endpoint(**PROBED)))
        ends = harvest(home)

    assert ends == (["SUCCEEDED"] if accepted else ["FAILED"]), last_error(home)
    assert holds(home) == ([] if accepted else ["works"])


def test_who_has_to_be_silent_pays_nothing_of_the_quota(home):
    """Five tasks meet the silence that the first of them was told to keep."""
    quota = {"rate": {"key": "example", "quotas": [{"limit": 100, "per": "1d"}]}}
    with listening(lambda _: (429, {}, {"Retry-After": "3600"})) as server:
        home.apply(a_source(server.url, quota))
        harvest(home, past=6)

        sent = len(server.asked)
    assert sent == 1
    spent = home.one("SELECT SUM(spent_amount) FROM ing_quota_window WHERE limit_amount > 0")
    assert float(spent) == sent


def test_a_record_that_goes_and_comes_back_is_told_of_three_times_in_order(each_home):
    home, now = each_home, {"deleted": False}

    def answer(asked):
        return 200, {"items": [an_item("a", stamp(1), **now)], "total": 1}

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(response={"deleted": "$.deleted"})))
        for past, gone in enumerate((False, True, False), start=1):
            now["deleted"] = gone
            assert harvest(home, past=past) == ["SUCCEEDED"], past

    told = home.rows("SELECT op_type, payload_json FROM ing_outbox_message ORDER BY id")
    assert [row[0] for row in told] == ["UPSERT", "DELETE", "UPSERT"]
    revisions = [read_json(row[1])["revision"] for row in told]
    assert revisions == sorted(set(revisions))
    assert records(home) == ["a"]


def test_lanes_that_bring_the_same_records_in_opposite_order_store_each_once(each_home):
    """Every slice brings the same sixty records, each second one the other way round."""
    home, met = each_home, threading.Barrier(4, timeout=10)

    def answer(asked):
        items = [an_item(f"w{n:03d}", stamp(n)) for n in range(60)]
        if int(asked["from"][8:10]) % 2:
            items.reverse()
        met.wait()
        return 200, {"items": items, "total": 60}

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(paging={"page_size": 100})))
        home.plan(a_trigger(start=day(0), end=day(8)))
        ended = home.work(lanes=4)

    assert ended.tasks == {"SUCCEEDED": 8}
    assert records(home) == [f"w{n:03d}" for n in range(60)]
    assert home.one("SELECT COUNT(*) FROM ing_outbox_message") == 60
    assert sum(one["inserted"] for one in batches(home)) == 60
    assert sum(one["unchanged"] for one in batches(home)) == 420


@pytest.mark.parametrize("named", ["99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "-5"])
def test_a_retry_after_from_another_world_breaks_nothing(home, named):
    asked_before = []

    def answer(asked):
        if not asked_before:
            asked_before.append(asked)
            return 429, {}, {"Retry-After": named}
        return page(asked)

    with listening(answer) as server:
        home.apply(a_source(server.url))
        ends = harvest(home)

    assert ends in (["RELEASED"], ["SUCCEEDED"]), last_error(home)
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE status_code = 'FAILED'") == 0


CANARY = "canary-0123456789-abcdef"


def test_a_key_that_the_source_repeats_in_its_records_reaches_no_table(home, monkeypatch):
    monkeypatch.setenv("PATRA_TEST_KEY", CANARY)
    secret = {"location": "QUERY", "field": "k", "secret": "env:PATRA_TEST_KEY"}
    auth = {"auth": {"required": True, "credentials": {"main": {"type": "API_KEY", **secret}}}}

    def answer(asked):
        item = {**an_item("w1", stamp(0)), "title": f"asked with {asked['k']}"}
        return 200, {"items": [item], "total": 1}

    with listening(answer) as server:
        home.apply(a_source(server.url, auth))
        ends = harvest(home)

    assert ends == ["SUCCEEDED"], last_error(home)
    assert "asked with ***" in str(home.rows("SELECT fields FROM ing_record"))
    for table in ("ing_record", "ing_task_run_batch", "ing_outbox_message", "ing_task_run"):
        assert CANARY not in str(home.rows(f"SELECT * FROM {table}")), table


def test_a_credential_whose_budget_is_gone_rests_and_the_next_one_goes_on(home, monkeypatch):
    monkeypatch.setenv("PATRA_TEST_OLD", "old")
    monkeypatch.setenv("PATRA_TEST_NEW", "new")

    def answer(asked):
        is_old = asked["headers"]["Authorization"] == "Bearer old"
        if is_old and asked["offset"] == "20":
            return 429, {"error": "nothing left today"}, {"Retry-After": "54000"}
        return page(asked)

    with listening(answer) as server:
        home.apply(a_source(server.url, {"auth": {"required": True, "credentials": BEARERS}}))
        ends = harvest(home)
        used = [asked["headers"]["Authorization"][7:] for asked in server.asked]

    assert ends == ["SUCCEEDED"], last_error(home)
    assert used == ["old", "old", "old", "new", "new"]
    assert home.one("SELECT COUNT(*) FROM ing_rate_bucket WHERE cool_down_until IS NOT NULL") == 0


def test_a_page_that_takes_too_long_is_asked_for_at_half_its_size(home):
    def answer(asked):
        if int(asked["rows"]) > 5:
            time.sleep(0.6)
        start, size = int(asked["offset"]), int(asked["rows"])
        return 200, {"items": WORKS[start : start + size], "total": 35}

    patience = {"http": {"read_timeout": "200ms"}, "retry": {"max_attempts": 1}}
    works_slowly = an_endpoint(paging={"shrink_on_timeout": True})
    with listening(answer) as server:
        home.apply(a_source(server.url, patience, works=works_slowly))
        ends = harvest(home)
        sizes = [int(asked["rows"]) for asked in server.asked]

    assert ends == ["SUCCEEDED"], last_error(home)
    assert sizes[:2] == [10, 5]
    assert set(sizes[1:]) == {5}
    assert len(records(home)) == 35
