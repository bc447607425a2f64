"""Ends that a source did not mean: totals that fall, rules for nothing, repeats, clamped pages."""

import pytest

from patra_ingest_tests.builders import an_endpoint, by_token
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    between,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    works,
)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def a_page(asked, items, total=None, size=10, **more):
    """Return a page by token or by offset; a token is handed out while there is more."""
    at = int(asked.get("token") or asked.get("offset") or 0)
    past = at + size
    page = {"items": items[at:past], "next": str(past) if past < len(items) else None, **more}
    return page if total is None else {**page, "total": total}


def at(asked):
    return int(asked.get("token") or asked.get("offset") or 0)


BY_TOKEN = by_token(paging={"stop": ["NO_TOKEN", "TOTAL_REACHED"]})
SORTED, FROZEN, LOOSE = (
    an_endpoint(paging={"consistency": one, "stop": ["TOTAL_REACHED", "EMPTY_PAGE"]})
    for one in ("STABLE_SORT", "SNAPSHOT", "UNSTABLE")
)


@pytest.mark.parametrize("endpoint", [BY_TOKEN, SORTED, FROZEN, LOOSE])
def test_a_total_that_falls_for_one_answer_ends_no_walk(home, endpoint):
    """A part of the source is away while the second page is asked for."""

    def answer(asked):
        return 200, a_page(asked, works(50), 20 if at(asked) == 10 else 50)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == 5
    assert records(home) == ids(50)


@pytest.mark.parametrize(
    "endpoint",
    [by_token(), BY_TOKEN, an_endpoint(paging={"consistency": "STABLE_SORT"}), SORTED],
)
def test_an_answer_cut_short_that_counts_only_itself_is_no_end(home, endpoint):
    def answer(asked):
        if at(asked) == 10 and len(server.asked) < 5:
            return 200, {"items": works(15)[10:], "total": 15}
        return 200, a_page(asked, works(50), 50)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home, rounds=4)[-1] == "SUCCEEDED", last_error(home)
    assert records(home) == ids(50)
    assert [one["verdict"] for one in proofs(home)] == ["COMPLETE"]


def test_records_that_leave_a_walk_by_token_are_believed_to_have_left(home):
    """The last total stands where the walk ended by itself, and said so twice."""

    def answer(asked):
        left = 47 if at(asked) >= 20 else 50
        return 200, a_page(asked, works(left), left)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=BY_TOKEN))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert [at(one) for one in server.asked] == [0, 10, 20, 30, 40, 40]
    assert [(one["promised"], one["verdict"]) for one in proofs(home)] == [(47, "DRIFTED")]


def test_a_record_removed_from_sorted_pages_pulls_no_other_one_out_of_sight(home):
    items, gone = works(30), []

    def answer(asked):
        if at(asked) == 10 and not gone:
            gone.append(items.pop(0))
        return 200, a_page(asked, items, len(items))

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(paging={"consistency": "STABLE_SORT"})))

        assert harvest(home, rounds=2) == ["RELEASED", "SUCCEEDED"], last_error(home)
    assert records(home) == ids(30)


NOTHING = [{"when": {"status": 404}, "do": "EMPTY"}]


def without_total(endpoint):
    del endpoint["paging"]["total"]
    return endpoint


def test_a_rule_for_nothing_does_not_end_a_walk_by_token(home):
    """The source answers 404 when nothing matches, and once for a token that has died."""

    def answer(asked):
        if at(asked) == 20 and len(server.asked) == 3:
            return 404, {"error": "not found"}
        return 200, a_page(asked, works(50))

    with listening(answer) as server:
        home.apply(a_source(server.url, works=without_total(by_token(errors=NOTHING))))

        assert harvest(home, rounds=2) == ["RELEASED", "SUCCEEDED"], last_error(home)
    assert records(home) == ids(50)


@pytest.mark.parametrize(
    "endpoint",
    [
        without_total(by_token(errors=NOTHING, paging={"stop": ["NO_TOKEN", "EMPTY_PAGE"]})),
        by_token(errors=NOTHING),
        without_total(an_endpoint(errors=NOTHING)),
        an_endpoint(errors=NOTHING),
    ],
)
def test_a_rule_for_nothing_behind_the_last_page_is_its_end(home, endpoint):
    def answer(asked):
        if at(asked) == 20:
            return 404, {"error": "not found"}
        return 200, a_page(asked, works(20), 20) | {"next": str(at(asked) + 10)}

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert [one["verdict"] for one in proofs(home)] == ["COMPLETE"]


def test_a_rule_for_nothing_before_the_promised_total_is_an_empty_page_too_early(home):
    def answer(asked):
        return (404, {}) if at(asked) == 20 else (200, a_page(asked, works(50), 50))

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(errors=NOTHING)))

        assert harvest(home) == ["RELEASED"]
        assert [at(one) for one in server.asked] == [0, 10, 20, 20]
    assert last_error(home)[1] == "INCOMPLETE"


def test_an_empty_page_before_the_total_is_asked_for_twice_also_within_the_tolerance(home):
    def answer(asked):
        if at(asked) == 90 and len(server.asked) == 10:
            return 200, {"items": [], "total": 100}
        return 200, a_page(asked, works(100), 100)

    paging = {"stop": ["EMPTY_PAGE", "NO_TOKEN"], "total": {"path": "$.total", "tolerance": 0.1}}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=by_token(paging=paging)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == 11
    assert records(home) == ids(100)


@pytest.mark.parametrize("stop", [["TOTAL_REACHED", "NO_TOKEN"], ["TOTAL_REACHED"]])
def test_items_that_come_twice_do_not_fill_the_total(home, stop):
    """Each page begins with the last three items of the one before it."""

    def answer(asked):
        start = max(0, at(asked) - 3)
        return 200, a_page({"token": start}, works(50), 50)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=by_token(paging={"stop": stop})))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(50)
    assert [(one["landed"], one["verdict"]) for one in proofs(home)] == [(50, "COMPLETE")]


@pytest.mark.parametrize("endpoint", [by_token, an_endpoint])
def test_a_total_that_counts_repeats_still_ends_the_walk(home, endpoint):
    """Two of fifty items are the same one; a tenth may be missing."""
    items = [*works(49), works(1)[0]]

    def answer(asked):
        return 200, a_page(asked, items, 50)

    paging = {"stop": ["TOTAL_REACHED"], "total": {"path": "$.total", "tolerance": 0.1}}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint(paging=paging)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) <= 7
    assert [(one["landed"], one["verdict"]) for one in proofs(home)] == [(49, "DRIFTED")]


def numbered():
    query = {"from": "${window.from|iso}", "to": "${window.last|iso}", "token": "${page.number}"}
    endpoint = an_endpoint(paging={"type": "PAGE", "first_page": 0})
    return {**endpoint, "request": {"path": "/works", "query": query}}


def by_time():
    paging = {"type": "TIME", "order": "ASC", "stop": ["SHORT_PAGE"]}
    endpoint = an_endpoint(paging=paging)
    del endpoint["request"]["query"]["offset"]
    return endpoint


CLAMPED = {
    "by offset": (an_endpoint(), lambda asked: works(50)[at(asked) :][:7]),
    "by number": (numbered(), lambda asked: works(50)[at(asked) * 7 :][:7]),
    "by time": (by_time(), lambda asked: between(works(50), asked)[:7]),
    "an empty page": (
        an_endpoint(paging={"stop": ["EMPTY_PAGE"]}),
        lambda asked: works(50)[at(asked) :][:7],
    ),
}


@pytest.mark.parametrize(("endpoint", "items"), CLAMPED.values(), ids=CLAMPED)
def test_a_page_size_that_is_silently_clamped_loses_nothing(home, endpoint, items):
    """Ten are asked for, seven come, and nobody says how many there are."""
    with listening(lambda asked: (200, {"items": items(asked)})) as server:
        home.apply(a_source(server.url, works=without_total(endpoint)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(50)


@pytest.mark.parametrize(("policy", "requests"), [({}, 3), ({"size_policy": "OBEYED"}, 2)])
def test_a_short_page_without_a_total_is_asked_about_once_unless_the_pack_knows(
    home, policy, requests
):
    with listening(lambda asked: (200, a_page(asked, works(13)))) as server:
        home.apply(a_source(server.url, works=without_total(an_endpoint(paging=policy))))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert [at(one) for one in server.asked] == [0, 10, 13][:requests]
    assert records(home) == ids(13)


@pytest.mark.parametrize("total", [None, 50])
def test_a_short_page_with_a_token_does_not_end_the_walk(home, total):
    def answer(asked):
        if at(asked) == 10:
            return 200, a_page(asked, works(50), total, size=7)
        return 200, a_page(asked, works(50), total)

    paging = {"stop": ["SHORT_PAGE", "NO_TOKEN"], "size_policy": "OBEYED"}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=by_token(paging=paging)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == 6
    assert records(home) == ids(50)
