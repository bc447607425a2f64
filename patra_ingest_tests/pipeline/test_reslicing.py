"""A slice that takes too much is cut again: its rest where that is known, and nothing is lost."""

from itertools import pairwise

import pytest

from patra_ingest.ledger.db import find_instant, read_instant, read_json
from patra_ingest_tests.builders import an_endpoint, day
from patra_ingest_tests.pipeline.harness import Home, end_state
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
    works,
)

COUNT = 60
# One work in forty minutes, over the day; two of them at every instant.
SPREAD = [{**item, "updated": stamp(n // 2 * 40)} for n, item in enumerate(works(COUNT))]


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def answer(asked):
    found = between(SPREAD, asked)
    start = int(asked.get("offset", 0))
    return 200, {"items": found[start : start + 10], "total": len(found)}


def an_ordered(order="ASC", consistency="STABLE_SORT", **planning):
    return an_endpoint(
        paging={"order": order, "order_by": "updated", "consistency": consistency},
        planning=planning,
    )


def slices(home):
    query = (
        "SELECT id, parent_slice_id, window_from, window_to, done_to, status_code"
        " FROM ing_plan_slice ORDER BY window_from, id"
    )
    return home.rows(query)


def covered(home):
    """Return the spans that are proved: of a slice that was cut, what it had done itself."""
    spans = []
    for one in slices(home):
        end = find_instant(one.done_to) if one.status_code == "PARTIAL" else None
        if one.status_code == "SUCCEEDED" or end:
            spans.append((read_instant(one.window_from), end or read_instant(one.window_to)))
    return sorted(spans)


def assert_whole(home):
    assert records(home) == ids(COUNT)
    spans = covered(home)
    assert (spans[0][0], spans[-1][1]) == (day(0), day(1))
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert end_state(home, "example").cursor == day(1)
    assert sum(one["inserted"] for one in batches(home)) == COUNT


def assert_ahead_was_skipped(home, why):
    """Nothing failed: a page that was written down and is asked for in another slice is SKIPPED."""
    left = home.rows(
        "SELECT b.status_code, b.error, b.stats FROM ing_task_run_batch b"
        " JOIN ing_task_run r ON r.id = b.run_id WHERE r.status_code = 'PARTIAL'"
        " AND b.status_code <> 'SUCCEEDED'"
    )
    assert {(one.status_code, one.stats) for one in left} == {("SKIPPED", None)}
    assert all(one.error.startswith(f"{why}: ") for one in left)


def test_the_rest_of_a_slice_begins_where_its_last_page_went_on(home):
    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_ordered(slice_requests=2)))
        ends = harvest(home, rounds=8)

        assert ends[0] == "RESLICED"
        assert "FAILED" not in ends
        asked = [(one["from"], one["offset"]) for one in server.asked[:3]]
    # The tenth work lies at 2:40, and the second page went on from there: others may lie there too.
    assert asked == [(stamp(0), "0"), (stamp(0), "10"), (stamp(160), "0")]
    parent = next(one for one in slices(home) if one.parent_slice_id is None)
    assert (parent.status_code, read_instant(parent.done_to)) == (
        "PARTIAL",
        day(0) + (day(1) - day(0)) / 9,
    )
    request = home.rows("SELECT reason_code, remaining FROM ing_reslice_request ORDER BY id")[0]
    assert request[0] == "BUDGET"
    assert read_json(request[1])["bounds"]["time"]["from"].startswith("2025-09-01T02:40:00")
    assert_whole(home)
    assert_ahead_was_skipped(home, "BUDGET")
    assert {proof["verdict"] for proof in proofs(home)} == {"COMPLETE"}


def revised(place):
    """Works in the order of their creation; one of them was changed late that day."""
    return [
        {**one, "updated": stamp(18 * 60) if n == place else one["updated"]}
        for n, one in enumerate(SPREAD)
    ]


BACKWARDS = [{**one, "updated": stamp((5 - n // 10) * 240)} for n, one in enumerate(SPREAD)]


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(revised(9), id="the last item of a page is newer than the next page"),
        pytest.param(revised(19), id="the last item of all that was read is newer than the rest"),
        pytest.param(revised(14), id="an item amid a page is newer than those behind it"),
        pytest.param(BACKWARDS, id="every page is in order, and the pages are not"),
    ],
)
def test_a_source_that_does_not_keep_its_order_loses_nothing(home, listed):
    def by_creation(asked):
        found = between(listed, asked)
        start = int(asked["offset"])
        return 200, {"items": found[start : start + 10], "total": len(found)}

    with listening(by_creation) as server:
        home.apply(a_source(server.url, works=an_ordered(slice_requests=2)))
        ends = harvest(home, rounds=12)

    assert ends[0] == "RESLICED"
    assert records(home) == ids(COUNT)


@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param(an_ordered("DESC", slice_requests=2), id="newest first"),
        pytest.param(an_ordered(consistency="UNSTABLE", slice_requests=2), id="pages may shift"),
        pytest.param(an_endpoint(planning={"slice_requests": 2}), id="no order"),
    ],
)
def test_where_the_rest_is_not_known_the_whole_slice_is_cut_again(home, endpoint):
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=10)

        assert ends[0] == "RESLICED"
        assert "FAILED" not in ends
    remaining = {row[0] for row in home.rows("SELECT remaining FROM ing_reslice_request")}
    assert {str(read_json(one)) for one in remaining} == {"{}"}
    assert [one.done_to for one in slices(home) if one.status_code == "PARTIAL"] == [None] * sum(
        one.status_code == "PARTIAL" for one in slices(home)
    )
    assert_whole(home)


def test_a_slice_within_its_budget_is_left_alone(home):
    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_ordered(slice_requests=7)))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert home.one("SELECT COUNT(*) FROM ing_reslice_request") == 0


def test_pages_beyond_the_deepest_one_are_cut_again(home):
    endpoint = an_ordered()
    endpoint["paging"]["max_pages"] = 3
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=8)

        assert ends[0] == "RESLICED"
        assert max(int(one["offset"]) for one in server.asked) <= 20
    assert home.rows("SELECT reason_code FROM ing_reslice_request")[0][0] == "PAGE_DEPTH"
    assert_whole(home)


def test_an_answer_that_is_too_large_for_one_page_is_cut_again(home):
    endpoint = an_endpoint(paging={"type": "NONE", "page_size": 100, "stop": ["ONE_PAGE"]})
    del endpoint["request"]["query"]["offset"]

    def heavy(asked):
        found = between(SPREAD, asked)
        padding = "x" * (1_100_000 if len(found) > 20 else 10)
        return 200, {"items": found, "total": len(found), "padding": padding}

    with listening(heavy) as server:
        home.apply(a_source(server.url, {"http": {"max_body_mb": 1}}, works=endpoint))
        ends = harvest(home, rounds=6)

    assert ends[0] == "RESLICED"
    reasons = {row[0] for row in home.rows("SELECT reason_code FROM ing_reslice_request")}
    assert reasons == {"RESPONSE_SIZE"}
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE status_code = 'FAILED'") == 0
    assert_whole(home)


def test_a_total_above_the_cap_is_cut_before_the_second_page(home):
    endpoint = an_ordered()
    endpoint["cap"] = {"max": 30}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home, rounds=6)

        assert [one["offset"] for one in server.asked][:2] == ["0", "0"]
    assert home.rows("SELECT reason_code FROM ing_reslice_request")[0][0] == "RESULT_CAP"
    assert_whole(home)


def test_a_slice_that_cannot_be_cut_finer_fails_loudly_and_is_no_success(home):
    endpoint = an_endpoint(
        paging={"max_pages": 1}, window={"safety_lag": "1d", "max_span": "1d", "min_span": "1d"}
    )
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home, rounds=2)

    assert [one.status_code for one in slices(home)] == ["FAILED"]
    assert "cannot be cut any finer" in home.one("SELECT record_remarks FROM ing_reslice_request")
    assert end_state(home, "example").cursor is None


LATE = [{**item, "updated": stamp(1439).replace(":00Z", ":59Z")} for item in works(45)]
CROWDED = [*works(20), *LATE[20:]]  # twenty-five in the last second of the day


def crowded(asked):
    found, start = between(CROWDED, asked), int(asked["offset"])
    return 200, {"items": found[start : start + 10], "total": len(found)}


@pytest.mark.parametrize(
    ("limit", "is_cut"), [({"slice_requests": 4}, False), ({"max_pages": 3}, True)]
)
def test_a_rest_that_cannot_be_cut_is_no_reason_to_fail(home, limit, is_cut):
    endpoint = an_ordered(**({} if is_cut else limit))
    endpoint["paging"] |= limit if is_cut else {}
    with listening(crowded) as server:
        home.apply(a_source(server.url, works=endpoint))
        ends = harvest(home, rounds=4)

    assert "FAILED" not in ends
    assert ("RESLICED" in ends) == is_cut
    assert records(home) == ids(45)
    assert end_state(home, "example").cursor == day(1)
