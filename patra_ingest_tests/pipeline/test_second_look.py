"""A second look at walks and certificates: nothing is held, lost or believed without a reason."""

import pytest

from patra_ingest_tests.builders import an_endpoint, an_item, by_token
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


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def served(items, **more):
    """Serve these items by offset, in pages as large as asked for."""

    def answer(asked):
        start, size = int(asked["offset"]), int(asked["rows"])
        return 200, {"items": items[start : start + size], "total": len(items), **more}

    return answer


def held(home):
    return [row[0] for row in home.rows("SELECT endpoint_name FROM ing_hold")]


def by_time(**more):
    paging = {"type": "TIME", "order": "ASC", "stop": ["SHORT_PAGE"], **more.pop("paging", {})}
    endpoint = an_endpoint(paging=paging, **more)
    del endpoint["request"]["query"]["offset"]
    return endpoint


def test_one_bad_record_alone_on_the_last_page_holds_nothing(home):
    items = [*works(10), an_item("w010", stamp(10), title=None)]
    with listening(served(items)) as server:
        home.apply(a_source(server.url))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert held(home) == []
    assert records(home) == ids(10)
    assert home.one("SELECT provider_id FROM ing_quarantine") == "w010"
    assert proofs(home)[0]["landed"] == 11


def test_one_bad_record_among_hollow_ones_holds_nothing(home):
    hollow = [an_item(f"h{n}", stamp(n), body="") for n in range(9)]
    items = [*hollow, an_item("bad", stamp(9), title=None, body="x")]
    response = {"usable": {"path": "$.body", "empty": False}}
    with listening(served(items)) as server:
        home.apply(a_source(server.url, works=an_endpoint(response=response)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert held(home) == []
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 10


def test_a_walk_by_time_also_notices_that_the_source_has_changed_its_shape(home):
    items = [{**one, "title": None} for one in works(8)]
    with listening(lambda asked: (200, {"items": between(items, asked), "total": 8})) as server:
        home.apply(a_source(server.url, works=by_time()))

        assert harvest(home) == ["FAILED"]
    assert last_error(home)[1] == "L4"
    assert held(home) == ["works"]
    assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 0


def test_pages_of_nothing_but_items_to_skip_are_not_empty(home):
    """Sixty advertisements, then the empty page that ends the walk."""
    items = [an_item(f"a{n:02d}", stamp(n), kind="ad") for n in range(60)]
    response = {"skip": {"path": "$.kind", "equals": "ad"}}
    endpoint = an_endpoint(response=response, paging={"stop": ["EMPTY_PAGE"]})
    with listening(served(items)) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert (proofs(home)[0]["landed"], records(home)) == (60, [])


def test_a_total_below_what_the_page_itself_holds_ends_no_walk(home):
    """A counter that is down says 0 while the pages are full."""
    items = works(35)

    def answer(asked):
        start = int(asked["offset"])
        return 200, {"items": items[start : start + 10], "total": 0}

    endpoint = an_endpoint(paging={"stop": ["TOTAL_REACHED", "SHORT_PAGE"]})
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home)

    assert records(home) == ids(35)
    assert [one["verdict"] for one in proofs(home)] in ([], ["DRIFTED"])


def test_equal_times_at_the_edge_of_a_page_are_neither_lost_nor_doubled(home):
    """Four of them at one instant, two on each side of the edge; the question reaches back."""
    times = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9, 10, 11]
    items = [an_item(f"w{n:03d}", stamp(at)) for n, at in enumerate(times)]

    def answer(asked):
        found = between(items, asked)
        return 200, {"items": found[: int(asked["rows"])], "total": len(found)}

    endpoint = by_time(window={"overlap": "1h"})
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(15)
    (proof,) = proofs(home)
    assert (proof["promised"], proof["landed"], proof["verdict"]) == (15, 15, "COMPLETE")
    assert sum(one["inserted"] for one in batches(home)) == 15


@pytest.mark.parametrize("rule", ["NEWER", "NEWER_OR_HASH", "HASH"])
def test_of_two_versions_on_one_page_the_newer_one_stays_and_one_message_tells_of_it(home, rule):
    new, old = an_item("a", stamp(9), title="new"), an_item("a", stamp(3), title="old")
    items = [old, new, an_item("b", stamp(4))] if rule == "HASH" else [new, old, an_item("b")]
    endpoint = an_endpoint(changed=rule)
    if rule == "HASH":
        del endpoint["response"]["updated_at"]
    with listening(served(items)) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home)

    title = home.one("SELECT fields FROM ing_record WHERE provider_id = 'a'")
    assert "new" in title
    keys = home.rows("SELECT partition_key FROM ing_outbox_message ORDER BY id")
    assert sorted(row[0] for row in keys) == ["works/a", "works/b"]


def shuffled(asked):
    """Answer as if no order had been asked for: the newest of a page is not its last."""
    found = between(works(35), asked)
    mixed = [*found[20:], *found[:20]]
    start, size = int(asked.get("offset", 0)), int(asked["rows"])
    return 200, {"items": mixed[start : start + size]}


def test_a_walk_by_time_over_items_in_another_order_is_stopped_before_it_skips_some(home):
    with listening(shuffled) as server:
        home.apply(a_source(server.url, works=by_time(paging={"page_size": 20, "total": None})))

        assert harvest(home) == ["FAILED"]
    assert "do not come in the order of their update times" in last_error(home)[2]
    assert held(home) == ["works"]


def test_where_the_order_is_not_as_declared_the_whole_slice_is_cut_again(home):
    """By its newest time the rest would begin after fifteen works that nobody has seen."""
    paging = {"order": "ASC", "order_by": "updated", "consistency": "STABLE_SORT"}
    endpoint = an_endpoint(
        paging={**paging, "page_size": 20, "total": None}, planning={"slice_requests": 1}
    )
    with listening(shuffled) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=12)

    assert (ends[0], "FAILED" in ends) == ("RESLICED", False)
    assert records(home) == ids(35)


def test_a_page_shrunk_before_a_crash_is_resumed_at_the_right_record(home):
    """PAGE: the third page of five is not the third page of ten."""
    items = works(35)
    endpoint = an_endpoint(
        request={
            "query": {
                "from": "${window.from|iso}",
                "to": "${window.last|iso}",
                "p": "${page.number}",
            }
        },
        paging={"type": "PAGE", "shrink_on": [413]},
    )

    def answer(asked):
        size, number = int(asked["rows"]), int(asked["p"])
        if size > 5:
            return 413, {}
        start = (number - 1) * size
        return 200, {"items": items[start : start + size], "total": 35}

    def die(stats):
        if home.pages_done() == 3:
            raise KeyboardInterrupt

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home, rounds=0)
        with pytest.raises(KeyboardInterrupt):
            home.work(on_batch=die)
        home.pass_leases()

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(35)
    assert proofs(home)[0]["duplicates"] == 0


def test_a_walk_that_dies_each_time_is_given_up(home):
    """The source forgets its tokens at the third page, whoever asks and whenever."""
    rules = [{"when": {"status": 410}, "do": "RESTART_SLICE"}]

    def answer(asked):
        start = int(asked.get("token", 0))
        if start == 20:
            return 410, {}
        return 200, {"items": works(35)[start : start + 10], "total": 35, "next": str(start + 10)}

    with listening(answer) as server:
        home.apply(a_source(server.url, works=by_token(errors=rules)))
        ends = harvest(home, rounds=8)

        assert len(server.asked) == 5 * 3 - 3
    assert ends == ["RELEASED", "RELEASED", "RELEASED", "FAILED"]
    assert last_error(home)[1] == "INCOMPLETE"


def test_a_pause_longer_than_the_life_of_a_token_does_not_go_on_for_ever(home):
    """Every walk is turned away at its second page for longer than its token lives."""

    def answer(asked):
        start = int(asked.get("token", 0))
        if start == 10:
            return 429, {}, {"Retry-After": "3600"}
        return 200, {"items": works(35)[start : start + 10], "total": 35, "next": str(start + 10)}

    ends = []
    with listening(answer) as server:
        home.apply(a_source(server.url, works=by_token(paging={"token_life": "5m"})))
        harvest(home, rounds=0)
        for _ in range(12):
            home.execute("UPDATE ing_rate_bucket SET cool_down_until = NULL")
            home.execute(
                "UPDATE ing_task_run_batch SET committed_at = '2020-01-01 00:00:00.000000'"
            )
            home.pass_pauses()
            ends += work_on(home)

    assert "FAILED" in ends or "RESLICED" in ends


def test_a_record_that_goes_during_a_walk_by_numbers_pulls_no_other_one_out_of_sight(home):
    """w000 leaves the window after the first page: w010 moves up to the page that has been read."""
    items, gone = works(35), []

    def answer(asked):
        start = int(asked["offset"])
        if start == 10 and not gone:
            gone.append(items.pop(0))
        return 200, {"items": items[start : start + 10], "total": len(items)}

    with listening(answer) as server:
        home.apply(a_source(server.url))

        assert harvest(home, rounds=2) == ["RELEASED", "SUCCEEDED"], last_error(home)
    assert records(home) == ids(35)
    assert proofs(home)[0]["verdict"] == "COMPLETE"
