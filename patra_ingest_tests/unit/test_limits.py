"""When the rest of a slice is better cut again, and what that rest is."""

from datetime import timedelta

import pytest

from patra_ingest.executor.history import History
from patra_ingest.executor.limits import (
    find_excess,
    find_rest,
    find_spent,
    is_cuttable,
    remaining,
)
from patra_ingest.model.bounds import Bounds, PageRange
from patra_ingest.model.window import Window
from patra_ingest_tests.builders import START, a_spec, days
from patra_ingest_tests.unit.working import a_search, a_work

AT_SIX = START + timedelta(hours=6, seconds=7, milliseconds=500)
ORDERED = {"order": "ASC", "order_by": "updated"}


def a_batch(**more):
    plain = {"itemsCount": 50, "idKeys": "", "reqCount": 1, "429Count": 0, "total": 900}
    return {**plain, "latencyMs": 10.0, "waitedMs": 0.0, "observedMax": AT_SIX, **more}


def walked(count, **more):
    return History.of([a_batch(**more) for _ in range(count)])


def ordered(bounds=None, expected=None, window=None, **planning):
    spec = a_spec(paging=ORDERED, planning=planning, window={"zone": "UTC", **(window or {})})
    return a_work(spec, bounds, expected_requests=expected)


def reason(work, history):
    excess = find_excess(work, history)
    return (excess.reason, excess.total) if excess else None


@pytest.mark.parametrize(
    ("work", "history", "expected"),
    [
        pytest.param(ordered(slice_requests=3), walked(2), None, id="requests are left"),
        pytest.param(ordered(slice_requests=3), walked(3), "BUDGET", id="the last was sent"),
        pytest.param(
            ordered(slice_requests=3), walked(1, reqCount=3), "BUDGET", id="retries cost, too"
        ),
        pytest.param(ordered(slice_time="1s"), walked(9, latencyMs=100), None, id="time is left"),
        pytest.param(
            ordered(slice_time="1s"), walked(10, latencyMs=100), "BUDGET", id="time is up"
        ),
        pytest.param(
            ordered(slice_time="1s"), walked(2, waitedMs=600), "BUDGET", id="waiting is time"
        ),
        pytest.param(ordered(), walked(99), None, id="nothing was declared nor expected"),
        pytest.param(ordered(expected=5), walked(20), None, id="four times as deep"),
        pytest.param(ordered(expected=5), walked(21), "PAGE_DEPTH", id="deeper than that"),
        pytest.param(ordered(expected=1), walked(19), None, id="too few to judge by"),
        pytest.param(ordered(), walked(20, **{"429Count": 1}), "THROTTLED", id="turned away"),
        pytest.param(
            ordered(),
            History.of([a_batch(**{"429Count": 1}), *walked(19).batches]),
            None,
            id="once",
        ),
    ],
)
def test_a_slice_has_its_budget(work, history, expected):
    assert reason(work, history) == (expected and (expected, 900))


def test_without_an_order_only_a_declared_budget_counts():
    spec = a_spec(planning={"slice_requests": 30})
    work = a_work(spec, expected_requests=1)

    assert reason(work, walked(29, **{"429Count": 9})) is None
    assert reason(work, walked(30)) == ("BUDGET", 900)
    assert remaining(work, walked(30)) == {}, "the whole slice"


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(Bounds(Window(START, START + timedelta(seconds=1))), id="at the floor"),
        pytest.param(Bounds(pages=PageRange(1, 9)), id="pages"),
    ],
)
def test_what_cannot_be_cut_has_a_budget_for_each_attempt(bounds):
    work, history = ordered(bounds, slice_requests=3, slice_time="1s"), walked(9)
    assert not is_cuttable(work, bounds)
    assert reason(work, history) is None

    assert find_spent(work, history) is None, "earlier attempts took that"
    for _ in range(3):
        assert find_spent(work, history) is None
        history.add(a_batch())
    assert find_spent(work, history).startswith("3 requests are all")
    slow = walked(9)
    slow.add(a_batch(latencyMs=400.0, waitedMs=600.0))
    assert find_spent(work, slow) == "0:00:01 is all that planning.slice_time allows"


def test_the_rest_begins_with_the_whole_grain_of_the_newest_item():
    rest = find_rest(ordered(), History.of([a_batch(observedMax=START), a_batch(), a_batch()]))

    assert rest.window == Window(AT_SIX.replace(microsecond=0), START + timedelta(days=1))
    by_hour = find_rest(ordered(window={"granularity": "HOUR"}), walked(2))
    assert by_hour.window.start == START + timedelta(hours=6)


def test_the_rest_keeps_what_else_the_slice_is_cut_by():
    bounds = Bounds(days(0, 1), partition="de")

    assert find_rest(ordered(bounds), walked(2)).partition == "de"


def test_times_are_read_as_the_ledger_keeps_them():
    rest = find_rest(ordered(), walked(2, observedMax="2025-09-01T06:00:07.500000Z"))

    assert rest.window.start == AT_SIX.replace(microsecond=0)


@pytest.mark.parametrize(
    ("work", "history"),
    [
        pytest.param(a_work(), walked(2), id="no order"),
        pytest.param(a_work(a_search()), walked(2), id="details come in any order"),
        pytest.param(ordered(), walked(2, observedMax=None), id="no times"),
        pytest.param(ordered(), walked(0), id="no page"),
        pytest.param(ordered(), walked(1), id="no page went on from there"),
        pytest.param(ordered(), walked(3, ordered=False), id="the source keeps no order"),
        pytest.param(ordered(), walked(2, observedMax=START), id="still at its beginning"),
        pytest.param(ordered(), walked(2, observedMax=START + timedelta(days=2)), id="beyond it"),
        pytest.param(ordered(Bounds(pages=PageRange(1, 9))), walked(2), id="pages have no time"),
    ],
)
def test_a_rest_that_is_not_known_is_not_guessed(work, history):
    assert find_rest(work, history) is None
    assert remaining(work, history) == {}


@pytest.mark.parametrize(("consistency", "is_known"), [("UNSTABLE", False), ("STABLE_SORT", True)])
def test_numbered_pages_that_may_shift_prove_nothing(consistency, is_known):
    numbered = {**ORDERED, "type": "OFFSET", "next_token": None, "stop": ["EMPTY_PAGE"]}
    spec = a_spec(
        request={"query": {"from": "${window.from|iso}", "to": "${window.last|iso}"}},
        paging={**numbered, "offset_param": "start", "consistency": consistency},
    )

    assert (find_rest(a_work(spec), walked(2)) is not None) == is_known


def test_a_rest_too_short_to_be_cut_is_not_handed_to_the_planner():
    end = START + timedelta(days=1)
    history = walked(2, observedMax=end - timedelta(seconds=1))

    assert remaining(ordered(), history) == {}
    assert reason(ordered(slice_requests=1), history) is None, "one more page and it is done"
    earlier = walked(2, observedMax=end - timedelta(seconds=2))
    assert remaining(ordered(), earlier)["bounds"]["time"]["from"].startswith("2025-09-01T23:59:58")
