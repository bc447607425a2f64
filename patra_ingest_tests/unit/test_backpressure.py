"""Doing less at once when something is too much, and more again when it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.backpressure import (
    WINDOW,
    Sample,
    Signals,
    Thresholds,
    decide,
    sample_of,
)
from patra_ingest.executor.ease import Pace
from patra_ingest.ledger.tasks import Partition

GOOD = {"reqCount": 1, "retryCount": 0, "429Count": 0, "latencyMs": 40.0}
THROTTLED = {"reqCount": 2, "retryCount": 1, "429Count": 1, "latencyMs": 40.0}
A, B = Partition("a", "works", "HARVEST"), Partition("b", "works", "HARVEST")


def after(*samples):
    signals = Signals()
    for sample in samples:
        signals = signals.adding(sample)
    return signals


QUIET = Sample(requests=1, latency_ms=100.0, database_ms=5.0)


@pytest.mark.parametrize(
    ("samples", "trouble"),
    [
        ([], None),
        ([QUIET] * WINDOW, None),
        ([QUIET] * 48 + [Sample(1, throttled=1)] * 2, None),
        ([QUIET] * 47 + [Sample(1, throttled=1)] * 3, "too many 429"),
        ([QUIET] * 49 + [Sample(1, errors=1)], None),
        ([QUIET] * 48 + [Sample(1, errors=1)] * 2, "too many errors"),
        ([QUIET] * 9 + [Sample(1, throttled=1)], None),
        ([QUIET] * 8 + [Sample(1, throttled=1)] * 2, "too many 429"),
        ([Sample(1, throttled=1)] * 9, None),
        ([Sample(1, latency_ms=3000.0)] * 10, None),
        ([Sample(1, latency_ms=3000.1)] * 10, "slow pages"),
        ([Sample(1, latency_ms=9000.0)] * 9, None),
        ([Sample(database_ms=200.0)] * 10, None),
        ([Sample(database_ms=200.1)] * 10, "slow ledger"),
        ([Sample(1, latency_ms=9000.0)] * 9 + [Sample(1, errors=1)], None),
    ],
)
def test_each_threshold_must_be_passed_by_enough_evidence(samples, trouble):
    assert after(*samples).trouble == trouble


@pytest.mark.parametrize(
    ("allowed", "samples", "expected"),
    [
        (8, [QUIET] * 10, 8),
        (8, [QUIET] * WINDOW, 8),
        (5, [QUIET] * WINDOW, 6),
        (5, [QUIET] * (WINDOW - 1), 5),
        (8, [Sample(1, errors=1)] * 10, 4),
        (3, [Sample(1, errors=1)] * 10, 1),
        (1, [Sample(1, errors=1)] * 10, 1),
        (99, [Sample(1, errors=1)] * 10, 4),
    ],
)
def test_trouble_halves_and_a_quiet_window_adds_one(allowed, samples, expected):
    assert decide(allowed, 8, after(*samples)) == expected


def test_the_stats_of_a_batch_are_read_as_they_are_written():
    retried = {"reqCount": 4, "retryCount": 3, "429Count": 1, "latencyMs": 12.5}

    assert sample_of(retried) == Sample(4, throttled=1, errors=2, latency_ms=12.5)
    assert sample_of({}) == Sample(1)


def pace_of(lanes=8):
    changes = []
    return Pace(lanes, Thresholds(), lambda what, why: changes.append((what, why))), changes


def test_a_bad_source_is_given_less_and_the_others_lose_nothing():
    pace, changes = pace_of()
    for _ in range(10):
        pace.see_batch(A, THROTTLED)
        pace.see_batch(B, GOOD)

    assert (pace.of(A), pace.of(B), pace.lanes) == (4, 8, 8)
    assert changes == [("a/works HARVEST", "too many 429")]
    assert pace.closed({A: 4, B: 7}) == {A}
    assert pace.closed({A: 3, B: 8}) == {B}


def test_what_was_lowered_is_raised_step_by_step_and_not_above_what_was_asked_for():
    pace, changes = pace_of(4)
    for _ in range(10):
        pace.see_end(A, TaskEnd.FAILED)
    steps = [pace.of(A)]
    for _ in range(4 * WINDOW):
        pace.see_batch(A, GOOD)
        if pace.of(A) != steps[-1]:
            steps.append(pace.of(A))

    assert steps == [2, 3, 4]
    assert changes == [("a/works HARVEST", "too many errors")] + [("a/works HARVEST", None)] * 2


def test_one_burst_is_punished_once():
    pace, _ = pace_of(8)
    for _ in range(10):
        pace.see_batch(A, THROTTLED)
    for _ in range(9):
        pace.see_batch(A, GOOD)

    assert pace.of(A) == 4


def test_a_slow_ledger_takes_lanes_from_all():
    pace, changes = pace_of(4)
    for _ in range(10):
        pace.see_ledger(0.25)

    assert (pace.lanes, pace.of(A)) == (2, 4)
    assert changes == [("lanes", "slow ledger")]


def test_slow_commits_count_as_a_slow_ledger():
    pace, _ = pace_of(4)
    for _ in range(10):
        pace.see_batch(A, {**GOOD, "commitMs": 900.0})

    assert (pace.lanes, pace.of(A)) == (2, 4)


@pytest.mark.parametrize(
    ("end", "allowed"),
    [(end, 4 if end in (TaskEnd.FAILED, TaskEnd.RELEASED) else 8) for end in TaskEnd],
)
def test_only_bad_ends_count_against_a_source(end, allowed):
    pace, _ = pace_of(8)
    for _ in range(10):
        pace.see_end(A, end)

    assert pace.of(A) == allowed


a_sample = st.builds(
    Sample,
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.floats(0, 9000),
    st.none() | st.floats(0, 900),
)


@given(st.lists(a_sample, max_size=120), st.integers(1, 16), st.integers(1, 64))
def test_whatever_happens_at_least_one_runs_and_never_more_than_configured(
    samples, configured, allowed
):
    signals = Signals()
    for sample in samples:
        signals = signals.adding(sample)
        before, allowed = allowed, decide(allowed, configured, signals)
        assert 1 <= allowed <= configured
        assert allowed <= before + 1
    assert len(signals.samples) <= WINDOW
