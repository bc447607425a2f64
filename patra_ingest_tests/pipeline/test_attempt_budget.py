"""A budget ends an attempt also where its slice cannot be cut: the next one goes on behind it."""

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import a_trigger, an_endpoint, an_item, by_token, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    a_source,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    work_on,
    works,
)

WORKS = works(45)
# The filter of the source is no finer than a day.
AT_THE_FLOOR = {"safety_lag": "1d", "max_span": "1d", "min_span": "1d"}
TWO = {"slice_requests": 2}


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def answer(asked):
    if "ids" in asked:
        return 200, {
            "items": [an_item(one, WORKS[0]["updated"]) for one in asked["ids"].split(",")]
        }
    start = int(asked.get("offset", asked.get("token", 0)))
    token = str(start + 10) if start + 10 < 45 else None
    return 200, {"items": WORKS[start : start + 10], "total": 45, "next": token}


def runs(home):
    return [tuple(row) for row in home.rows("SELECT status_code, error FROM ing_task_run")]


def require_one_walk(home, server, count=45):
    """Nothing is asked for twice, nothing is lost, and the proof is that of one walk."""
    asked = [tuple(sorted(map(str, one["pairs"]))) for one in server.asked]
    assert len(asked) == len(set(asked))
    assert records(home) == ids(count)
    assert [one["verdict"] for one in proofs(home)] == ["COMPLETE"]


@pytest.mark.parametrize("endpoint", [an_endpoint, by_token])
def test_a_slice_at_the_floor_is_walked_in_several_attempts(home, endpoint):
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint(window=AT_THE_FLOOR, planning=TWO)))

        assert harvest(home) == ["PAUSED", "PAUSED", "SUCCEEDED"], last_error(home)
        require_one_walk(home, server)
    paused = ("PARTIAL", "BUDGET: 2 requests are all that planning.slice_requests allows")
    assert runs(home) == [paused, paused, ("SUCCEEDED", None)]
    assert home.one("SELECT COUNT(*) FROM ing_reslice_request") == 0


def test_a_range_of_pages_is_walked_in_several_attempts(home):
    planning = {"strategy": "PAGE_RANGE", "total_records": 45, "pages_per_slice": 9, **TWO}
    endpoint = an_endpoint(operations=["BACKFILL"], planning=planning)
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, operation=Operation.BACKFILL)

        assert ends.count("PAUSED") >= 2
        assert set(ends) == {"PAUSED", "SUCCEEDED"}, last_error(home)
        require_one_walk(home, server)


def test_ids_are_asked_for_in_several_attempts(home):
    one = an_endpoint(
        operations=["UPDATE"],
        request={"path": "/one"},
        batching={"ids_per_request": 10},
        planning={"refresh_days": 1, "ids_per_slice": 100, **TWO},
    )
    one["request"]["query"] = {"ids": "${ids|join(',')}"}
    one["paging"] = {"type": "NONE", "page_size": 100}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(), one=one))
        harvest(home)
        home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
        home.execute("UPDATE ing_record SET endpoint_name = 'one'")
        home.execute("DELETE FROM ing_task_run WHERE status_code = 'SUCCEEDED'")
        server.asked.clear()
        home.plan(a_trigger("one", operation=Operation.UPDATE))

        assert work_on(home) == ["PAUSED", "PAUSED", "SUCCEEDED"], last_error(home)
        require_one_walk(home, server)


def test_details_go_on_amid_a_search_page(home):
    library = Library(12)
    with listening(library) as server:
        home.apply(a_library(server.url))
        ends = harvest(home, values={"planning": TWO, "window": AT_THE_FLOOR})

        assert ends == ["PAUSED"] * 2 + ["SUCCEEDED"], last_error(home)
    assert records(home) == ids(12)
    assert sum(map(len, library.details)) == 12, "no id is asked for twice"


def test_others_have_their_turn_between_two_attempts(home):
    window = {"window": AT_THE_FLOOR, "planning": {"slice_requests": 1}}
    other = an_endpoint(request={"path": "/other"}, **window)
    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(**window), other=other))
        for name in ("works", "other"):
            home.plan(a_trigger(name, day(0), day(1)))
        work_on(home)
        paths = [one["path"] for one in server.asked]

    assert sorted(paths[:2]) == ["/other", "/works"]
    assert paths == paths[:2] * (len(paths) // 2)


def test_a_walk_that_one_token_serves_is_not_given_away(home):
    staying = by_token(window=AT_THE_FLOOR, planning=TWO, paging={"token_stays": True})
    with listening(answer) as server:
        home.apply(a_source(server.url, works=staying))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        require_one_walk(home, server)
