"""What an error means for its task, and the numbers that must add up."""

from datetime import timedelta

import pytest

from patra_ingest.errors import (
    BadRecord,
    EndpointHalted,
    RequestRejected,
    SliceIncomplete,
    SliceMustRestart,
    Throttled,
    TransientError,
)
from patra_ingest.executor.outcome import MAX_TASK_RETRIES, batch_stats, judge_failure
from patra_ingest.model.run_stats import run_stats
from patra_ingest_tests.builders import NOON

LATER = NOON + timedelta(minutes=5)
CHANGES = {"inserted": 3, "updated": 2, "unchanged": 1, "stale": 1, "deleted": 1}


def page(items, **more):
    numbers = {"reqCount": 1, "retryCount": 0, "429Count": 0, "latencyMs": 10.0, "hasNext": True}
    return {"itemsCount": items, **numbers, **CHANGES, **more}


@pytest.mark.parametrize(
    ("error", "code", "comes_back", "counts", "halts"),
    [
        pytest.param(Throttled(LATER), "THROTTLED", True, False, False, id="waiting is no failure"),
        pytest.param(TransientError("x"), "L1", True, True, False, id="transient comes back"),
        pytest.param(SliceIncomplete("x"), "INCOMPLETE", True, True, False, id="so does a hole"),
        pytest.param(RequestRejected("x"), "L2", False, True, False, id="rejected is final"),
        pytest.param(EndpointHalted("x"), "L4", False, True, True, id="halted stops the endpoint"),
        pytest.param(BadRecord("$.a", "x"), "REFUSED", False, True, False, id="refused is final"),
        pytest.param(KeyError("x"), "INTERNAL", False, True, False, id="our own fault is final"),
    ],
)
def test_every_error_has_its_consequence(error, code, comes_back, counts, halts):
    failure = judge_failure(error, 0, NOON)

    assert (failure.code, failure.due is not None) == (code, comes_back)
    assert (failure.counts_as_retry, failure.halts) == (counts, halts)


def test_a_throttled_task_is_due_when_the_upstream_said():
    assert judge_failure(Throttled(LATER), 99, NOON).due == LATER


@pytest.mark.parametrize("error", [TransientError("busy"), SliceIncomplete("short")])
def test_pauses_double_and_end(error):
    pauses = [judge_failure(error, tries, NOON).due - NOON for tries in range(MAX_TASK_RETRIES)]
    last = judge_failure(error, MAX_TASK_RETRIES, NOON)

    assert pauses == [timedelta(seconds=s) for s in (30, 60, 120)]
    assert last.due is None
    assert "after 3 retries" in last.message


def test_a_walk_that_must_restart_does_so_at_once_but_only_once():
    died = SliceMustRestart("the token has died")

    assert judge_failure(died, 0, NOON).due == NOON
    assert judge_failure(died, 0, NOON).counts_as_retry
    assert judge_failure(died, 1, NOON).due == NOON + timedelta(seconds=60)
    assert judge_failure(died, MAX_TASK_RETRIES, NOON).due is None


def test_an_error_without_words_has_at_least_its_name():
    assert judge_failure(RequestRejected(), 0, NOON).message == "RequestRejected"
    assert judge_failure(ZeroDivisionError("0/0"), 0, NOON).message == "ZeroDivisionError: 0/0"


def test_the_parts_of_a_batch_add_up_to_what_was_seen():
    stats = batch_stats(page(11), quarantined=2, out_of_window=1)

    assert (stats["skipped"], stats["failed"]) == (3, 2)
    assert (stats["quarantined"], stats["outOfWindow"]) == (2, 1)


@pytest.mark.parametrize("items", [10, 12])
def test_a_batch_that_does_not_add_up_is_never_written(items):
    with pytest.raises(AssertionError, match=f"{items} items seen, 11 accounted for"):
        batch_stats(page(items), quarantined=2, out_of_window=1)


def test_a_run_sums_its_batches():
    first = batch_stats(page(11, latencyMs=10.0, late=1), 2, 1)
    second = batch_stats(page(8, latencyMs=30.0, hasNext=False, retryCount=2), 0, 0)

    stats = run_stats([first, second])

    assert (stats["itemsCount"], stats["inserted"], stats["retryCount"]) == (19, 6, 2)
    assert (stats["pagesVisited"], stats["hasNextLast"]) == (2, False)
    assert (stats["avgLatencyMs"], stats["maxLatencyMs"]) == (20.0, 30.0)
    assert (stats["skipped"], stats["failed"], stats["late"]) == (5, 2, 1)


@pytest.mark.parametrize(
    ("action", "key"), [("qpsDownshift", "rateAdjusted"), ("circuitOpen", "circuitOpen")]
)
def test_what_was_done_for_one_batch_is_told_of_the_run(action, key):
    calm = batch_stats(page(8), 0, 0)
    healed = batch_stats(page(8, selfHealing={action: True}), 0, 0)

    assert run_stats([calm])[key] is False
    assert run_stats([calm, healed, calm])[key] is True


def test_a_run_without_batches_has_numbers_too():
    stats = run_stats([])

    assert (stats["itemsCount"], stats["avgLatencyMs"], stats["hasNextLast"]) == (0, None, False)
