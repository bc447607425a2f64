"""Every way to page, over real HTTP: all works arrive once, with their certificate."""

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import a_trigger, an_endpoint, by_token, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    between,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    stamp,
    work_on,
    works,
)

WINDOW = {"from": "${window.from|iso}", "to": "${window.last|iso}"}
WORKS = works(35)
CANARY = "CANARY-4711"


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def page(asked, start, size=10, **more):
    """Return a page of the works in the window."""
    found = between(WORKS, asked)
    return 200, {"items": found[start : start + size], "total": len(found), **more}


def an(request=None, **paging):
    """Return an endpoint that pages so and sends its window."""
    asked = request or {}
    return an_endpoint(
        request={**asked, "query": {**WINDOW, **asked.get("query", {})}}, paging=paging
    )


def by_page(first):
    def answer(asked):
        return page(asked, (int(asked["p"]) - first) * 10, int(asked["rows"]))

    return an(type="PAGE", page_param="p", first_page=first), answer


def in_path():
    asked = {"path": "/works/${page.number}"}
    return an(asked, type="PAGE"), lambda a: page(a, (int(a["path"].split("/")[2]) - 1) * 10)


def in_header():
    asked = {"headers": {"X-Start": "${page.offset}"}}
    return an(asked), lambda a: page(a, int(a["headers"]["X-Start"]))


def in_body():
    asked = {"method": "POST", "body": {"at": {"start": "${page.offset}", "n": "${page.size}"}}}
    return an(asked), lambda a: page(a, a["json"]["at"]["start"], a["json"]["at"]["n"])


def clamped():
    asked = {"query": {"offset": "${page.offset}"}}
    paging = {"step": "ITEMS", "size_policy": "CLAMPED", "stop": ["EMPTY_PAGE"]}
    return an(asked, **paging), lambda a: page(a, int(a["offset"]), 7)


def reported():
    def answer(asked):
        start = int(asked["offset"])
        return page(asked, start, 7, step=min(7, max(35 - start, 0)))

    asked = {"query": {"offset": "${page.offset}"}}
    paging = {"step": "REPORTED", "step_path": "$.step", "size_policy": "CLAMPED"}
    return an(asked, **paging, stop=["TOTAL_REACHED"]), answer


def with_a_flag():
    def answer(asked):
        start = int(asked["offset"])
        return page(asked, start, has_more=start + 10 < 35)

    asked = {"query": {"offset": "${page.offset}"}}
    return an(asked, has_more="$.has_more", total=None, stop=["NO_MORE"]), answer


def token_in_a_header():
    def answer(asked):
        start = int(asked.get("token", 0))
        status, tree = page(asked, start)
        return status, tree, {"X-Next": str(start + 10)} if start < 30 else {}

    return by_token(paging={"next_token": {"header": "X-Next"}}), answer


def next_of(asked, start, keep="&from={from}&to={to}"):
    return f"/works?after={start}" + keep.format(**asked) if start < 35 else None


def address_in_the_body(**paging):
    def answer(asked):
        start = int(asked.get("after", 0))
        host = asked["url"].partition("/works")[0]
        following = next_of(asked, start + 10)
        return page(asked, start, next=following and host + following)

    return an(type="URL", next_url="$.next", stop=["NO_TOKEN"], **paging), answer


def relative_address():
    def answer(asked):
        start = int(asked.get("after", 0))
        return page(asked, start, next=next_of(asked, start + 10))

    return an(type="URL", next_url="$.next", stop=["NO_TOKEN"]), answer


def link_header():
    def answer(asked):
        start = int(asked.get("after", 0))
        following = next_of(asked, start + 10)
        link = {"Link": f'<{following}>; rel="next", </x>; rel="last"'} if following else {}
        return *page(asked, start), link

    return an(type="URL", next_url={"link": "next"}, stop=["NO_TOKEN"]), answer


def lost_parameters():
    def answer(asked):
        start = int(asked.get("after", 0))
        return page(asked, start, next=next_of(asked, start + 10, keep=""))

    return an(type="URL", next_url="$.next", stop=["NO_TOKEN"]), answer


def by_time():
    paging = {"type": "TIME", "order": "ASC", "stop": ["SHORT_PAGE"]}
    return an(**paging), lambda a: page(a, 0, int(a["rows"]))


def by_time_to_the_total():
    paging = {"type": "TIME", "order": "ASC", "stop": ["TOTAL_REACHED"]}
    return an(**paging), lambda a: page(a, 0, int(a["rows"]))


KINDS = {
    "PAGE from 1": (by_page(1), 4),
    "PAGE from 0": (by_page(0), 4),
    "in the path": (in_path(), 4),
    "in a header": (in_header(), 4),
    "in a JSON body": (in_body(), 4),
    "a clamped page": (clamped(), 6),
    "a reported step": (reported(), 5),
    "a flag": (with_a_flag(), 4),
    "a token in a header": (token_in_a_header(), 4),
    "an address in the body": (address_in_the_body(), 4),
    "a relative address": (relative_address(), 4),
    "a Link header": (link_header(), 4),
    "an address that lost our parameters": (lost_parameters(), 4),
    "TIME": (by_time(), 4),
    "TIME to the total": (by_time_to_the_total(), 4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_paging_brings_all_works_once(home, kind):
    (endpoint, answer), requests = KINDS[kind]
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == requests
    assert records(home) == ids(35)
    (proof,) = proofs(home)
    assert (proof["landed"], proof["verdict"], proof["pages"]) == (35, "COMPLETE", requests)
    overlap = 3 if kind.startswith("TIME") else 0
    assert proof["duplicates"] == overlap
    assert sum(one["inserted"] for one in batches(home)) == 35
    assert sum(one["reqCount"] for one in batches(home)) == requests


def test_an_address_at_another_host_holds_the_endpoint(home):
    endpoint, _ = address_in_the_body()
    with listening(lambda a: page(a, 0, next="http://127.0.0.2:9/works?after=10")) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["FAILED"]
    assert last_error(home)[1] == "L4"
    assert "name the host in paging.url_hosts" in home.one("SELECT reason FROM ing_hold")
    assert home.one("SELECT COUNT(*) FROM ing_record") == 10, "the first page is safe"


def test_a_key_that_comes_back_in_an_address_is_sent_again_and_never_stored(home, monkeypatch):
    monkeypatch.setenv("PATRA_TEST_KEY", CANARY)
    key = {"type": "API_KEY", "field": "api_key", "secret": "env:PATRA_TEST_KEY"}
    endpoint, _ = address_in_the_body()

    def answer(asked):
        start = int(asked.get("after", 0))
        following = next_of(asked, start + 10)
        return page(asked, start, next=following and f"{following}&api_key={asked['api_key']}")

    with listening(answer) as server:
        auth = {"auth": {"required": True, "credentials": {"main": key}}}
        home.apply(a_source(server.url, auth, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        sent = [[v for k, v in asked["pairs"] if k == "api_key"] for asked in server.asked]
        assert sent == [[CANARY]] * 4, "once with every request"
    for table in ("ing_task_run_batch", "ing_task_run", "ing_plan", "ing_task"):
        assert CANARY not in str(home.rows(f"SELECT * FROM {table}"))
    assert records(home) == ids(35)


def test_one_page_that_is_less_than_the_total_is_cut_again_until_it_fits(home):
    endpoint = an(type="NONE", size_param="rows", stop=["ONE_PAGE"])
    with listening(lambda a: page(a, 0)) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=12)

    assert ends.count("RESLICED") >= 1
    assert "FAILED" not in ends
    reasons = {row[0] for row in home.rows("SELECT reason_code FROM ing_reslice_request")}
    assert reasons == {"RESULT_CAP"}
    assert records(home) == ids(35)
    assert {proof["verdict"] for proof in proofs(home)} == {"COMPLETE"}


def test_time_that_cannot_get_past_one_instant_is_cut_again_and_fails_loudly(home):
    same = [{**item, "updated": stamp(5)} for item in WORKS]
    endpoint, _ = by_time()

    def answer(asked):
        return 200, {"items": between(same, asked)[: int(asked["rows"])], "total": 35}

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=3)

        assert ends[0] == "RESLICED"
        assert "SUCCEEDED" not in ends
        assert len(server.asked) < 20


def test_ranges_of_pages_are_walked_apart_and_add_up(home):
    endpoint = an_endpoint(
        operations=["BACKFILL"],
        window={"meaning": "NONE"},
        paging={"consistency": "STABLE_SORT"},
        planning={"strategy": "PAGE_RANGE", "total_records": 25, "pages_per_slice": 1},
    )
    endpoint["request"]["query"] = {"offset": "${page.offset}"}
    all_of_it = {"from": stamp(0), "to": stamp(99)}
    with listening(lambda a: page({**a, **all_of_it}, int(a["offset"]))) as server:
        home.apply(a_source(server.url, works=endpoint))
        home.plan(a_trigger(start=day(0), end=day(9), operation=Operation.BACKFILL))

        assert work_on(home) == ["SUCCEEDED"] * 3
        assert sorted(int(asked["offset"]) for asked in server.asked) == [0, 10, 20, 30]
    assert records(home) == ids(35)
    promised = [(p["promised"], p["landed"], p["verdict"]) for p in proofs(home)]
    assert sorted(promised) == [
        (10, 10, "COMPLETE"),
        (10, 10, "COMPLETE"),
        (15, 15, "COMPLETE"),
    ]
