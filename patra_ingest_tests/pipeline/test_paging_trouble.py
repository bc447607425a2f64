"""Walks that meet trouble: empty pages, lost tokens, pages too big, tokens that die in a pause."""

import pytest

from patra_ingest_tests.builders import an_endpoint, by_token
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    work_on,
    works,
)

WORKS = works(35)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def page(start, size=10, **more):
    return 200, {"items": WORKS[start : start + size], "total": 35, **more}


def by_offset(asked):
    return page(int(asked["offset"]), int(asked["rows"]))


def tokens(asked):
    start = int(asked.get("token", 0))
    return page(
        start, int(asked["rows"]), next=str(start + int(asked["rows"]) if start < 25 else "")
    )


def once(first, then, at="20", name="offset"):
    """Answer the first question for a place wrongly, and rightly from then on."""
    met = []

    def answer(asked):
        if asked.get(name) == at and not met:
            met.append(asked)
            return first(asked)
        return then(asked)

    return answer


def nothing(_asked):
    return 200, {"items": [], "total": 35}


def test_an_empty_page_before_the_total_is_asked_for_once_more_and_then_believed(home):
    with listening(once(nothing, by_offset)) as server:
        home.apply(a_source(server.url))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert [asked["offset"] for asked in server.asked] == ["0", "10", "20", "20", "30"]
    assert records(home) == ids(35)
    assert [one["selfHealing"]["tailProbed"] for one in batches(home)] == [
        False,
        False,
        True,
        False,
    ]
    assert [one["reqCount"] for one in batches(home)] == [1, 1, 2, 1]


def test_an_empty_page_that_stays_empty_is_never_success(home):
    def answer(asked):
        return nothing(asked) if asked["offset"] == "20" else by_offset(asked)

    with listening(answer) as server:
        home.apply(a_source(server.url))
        ends = harvest(home, rounds=5)

        assert ends == ["RELEASED"] * 3 + ["FAILED"]
        assert [asked["offset"] for asked in server.asked] == ["0", "10", "20", "20"] * 4
    assert last_error(home)[:2] == ("FAILED", "INCOMPLETE")


def test_a_walk_by_numbers_does_not_count_up_for_ever(home):
    endpoint = an_endpoint(paging={"stop": ["TOTAL_REACHED"]})
    with listening(lambda a: page(int(a["offset"])) if a["offset"] < "3" else nothing(a)) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["RELEASED"]
        assert len(server.asked) == 4
    assert "page 4 is empty" in last_error(home)[2]


def test_items_that_are_skipped_count_towards_the_total(home):
    endpoint = an_endpoint(paging={"stop": ["TOTAL_REACHED"]})
    endpoint["response"]["skip"] = {"path": "$.id", "matches": "[05]$"}
    with listening(by_offset) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == 4
    assert records(home) == [one for one in ids(35) if one[-1] not in "05"]
    (proof,) = proofs(home)
    assert (proof["landed"], proof["duplicates"], proof["verdict"]) == (35, 0, "COMPLETE")


def test_a_page_without_a_next_token_is_asked_for_twice_where_the_pack_says_so(home):
    endpoint = by_token(paging={"probe_tail": True, "total": None})

    def loses(asked):
        return page(int(asked["token"]), next="")

    with listening(once(loses, tokens, name="token")) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert [a.get("token") for a in server.asked] == [None, "10", "20", "20", "30", "30"]
    assert records(home) == ids(35)


def too_slow(asked):
    return 504, {}


def too_long(asked):
    return 200, {"items": [], "padding": "x" * 1_100_000}


@pytest.mark.parametrize(
    ("trouble", "sizes"),
    [
        pytest.param(too_slow, [10, 10, 10, 5, 5, 5, 5], id="a declared status"),
        pytest.param(too_long, [10, 10, 10, 5, 5, 5, 5], id="a body above the limit"),
    ],
)
@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN"])
def test_a_page_that_is_too_big_is_asked_for_in_halves(home, trouble, sizes, kind):
    paging = {"shrink_on": [504]}
    endpoint = {
        "OFFSET": an_endpoint(paging=paging),
        "PAGE": an_endpoint(paging={**paging, "type": "PAGE", "page_param": "p"}),
        "TOKEN": by_token(paging=paging),
    }[kind]
    if kind == "PAGE":
        del endpoint["request"]["query"]["offset"]

    def answer(asked):
        size = int(asked["rows"])
        starts = {"OFFSET": "offset", "TOKEN": "token"}
        number = (int(asked.get("p", 1)) - 1) * size
        start = number if kind == "PAGE" else int(asked.get(starts[kind], 0))
        if start == 20 and size > 5:
            return trouble(asked)
        return page(start, size, next=str(start + size) if start + size < 35 else None)

    with listening(answer) as server:
        home.apply(a_source(server.url, {"http": {"max_body_mb": 1}}, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert [int(asked["rows"]) for asked in server.asked][: len(sizes) - 1] == sizes[:-1]
    assert records(home) == ids(35)
    shrunk = [one["selfHealing"]["pageSizeShrink"] for one in batches(home)]
    assert shrunk[:3] == [False, False, True]
    assert proofs(home)[0]["duplicates"] == 0


def stopped_after_a_page(home, server, endpoint):
    """Work one page and die there; forget what was asked."""

    def die(_stats):
        raise KeyboardInterrupt

    home.apply(a_source(server.url, works=endpoint))
    with pytest.raises(KeyboardInterrupt):
        harvest_and(home, die)
    home.pass_leases()
    server.asked.clear()


def harvest_and(home, on_batch):
    harvest(home, rounds=0)
    home.work(on_batch=on_batch)


def test_a_token_that_is_young_enough_is_resumed(home):
    with listening(tokens) as server:
        stopped_after_a_page(home, server, by_token(paging={"token_life": "1h"}))

        assert work_on(home) == ["SUCCEEDED"]
        assert [asked.get("token") for asked in server.asked] == ["10", "20", "30"]
    assert records(home) == ids(35)


@pytest.mark.parametrize(
    ("paging", "why"),
    [({"token_life": "1h"}, "TOKEN_EXPIRED"), ({"token_stays": True}, "TOKEN_STAYS")],
)
def test_a_token_that_may_be_dead_is_not_resumed_and_nothing_is_doubled(home, paging, why):
    with listening(tokens) as server:
        stopped_after_a_page(home, server, by_token(paging=paging))
        home.execute("UPDATE ing_task_run_batch SET committed_at = '2020-01-01 00:00:00.000000'")

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
        assert [asked.get("token") for asked in server.asked] == [None, "10", "20", "30"]
    assert records(home) == ids(35)
    (proof,) = proofs(home)
    assert (proof["landed"], proof["duplicates"], proof["pages"]) == (35, 0, 4)
    assert proof["verdict"] == "COMPLETE"
    assert [one["inserted"] for one in batches(home)] == [10, 0, 10, 10, 5]
    first = home.one("SELECT certificate FROM ing_task_run WHERE attempt_no = 1")
    assert why in first


def kept_tokens(home):
    query = (
        "SELECT reason, prev_value, new_value FROM ing_cursor_event"
        " WHERE cursor_key = 'page_token' ORDER BY id"
    )
    return [tuple(row) for row in home.rows(query)]


def test_a_token_is_kept_as_a_cursor_if_the_pack_wants_it(home):
    with listening(tokens) as server:
        home.apply(a_source(server.url, works=by_token(paging={"keep_token": True})))
        harvest(home)

    steps = [("ADVANCE", None, "10"), ("ADVANCE", "10", "20"), ("ADVANCE", "20", "30")]
    assert kept_tokens(home) == steps
    kinds = home.rows("SELECT cursor_key, cursor_type_code, cursor_value FROM ing_cursor")
    assert ("page_token", "TOKEN", "30") in [tuple(row) for row in kinds]
    assert len(kinds) == 2  # and the cursor of the window is another one


def test_a_kept_token_that_died_is_compensated(home):
    with listening(tokens) as server:
        paging = {"token_life": "1h", "keep_token": True}
        stopped_after_a_page(home, server, by_token(paging=paging))
        home.execute("UPDATE ing_task_run_batch SET committed_at = '2020-01-01 00:00:00.000000'")

        assert work_on(home) == ["SUCCEEDED"], last_error(home)
    assert kept_tokens(home)[:2] == [("ADVANCE", None, "10"), ("COMPENSATE", "10", "")]
    assert kept_tokens(home)[-1][2] == "30"
    assert records(home) == ids(35)
