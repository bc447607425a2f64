"""What a namespace already has, and what it still lacks."""

import pytest

from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.planner.coverage import STANDING, missing, refilled
from patra_ingest_tests.builders import days

MONTH = days(0, 30)


def covered(*spans, status=SliceStatus.SUCCEEDED):
    return [CoveredWindow(no, days(*span), status) for no, span in enumerate(spans, start=1)]


@pytest.mark.parametrize(
    ("spans", "holes"),
    [
        pytest.param([], [(0, 30)], id="nothing yet"),
        pytest.param([(0, 30)], [], id="everything"),
        pytest.param([(0, 10)], [(10, 30)], id="the beginning"),
        pytest.param([(20, 30)], [(0, 20)], id="the end"),
        pytest.param([(5, 10), (10, 12), (20, 25)], [(0, 5), (12, 20), (25, 30)], id="holes"),
        pytest.param([(20, 25), (5, 22)], [(0, 5), (25, 30)], id="overlapping, in any order"),
        pytest.param([(-9, 3), (28, 40), (50, 60)], [(3, 28)], id="reaching beyond"),
    ],
)
def test_the_holes_are_what_no_slice_covers(spans, holes):
    assert missing(MONTH, covered(*spans)) == [days(*hole) for hole in holes]


@pytest.mark.parametrize("status", SliceStatus)
def test_only_a_slice_that_is_done_or_in_work_stands_for_its_window(status):
    stands = missing(MONTH, covered((0, 30), status=status)) == []

    assert stands == (status in STANDING)


@pytest.mark.parametrize("status", ["FAILED", "PARTIAL", "CANCELLED"])
def test_a_slice_that_ended_badly_is_a_hole(status):
    slices = covered((0, 10)) + covered((10, 20), status=SliceStatus(status))

    assert missing(MONTH, slices) == [days(10, 30)]


def test_a_new_slice_names_the_failed_ones_it_replaces():
    failed = covered((0, 10), (10, 20), (20, 30), status=SliceStatus.FAILED)

    assert refilled(days(15, 20), failed) == [2]
    assert refilled(days(5, 25), failed) == [1, 2, 3]
    assert refilled(days(10, 20), covered((10, 20))) == []
