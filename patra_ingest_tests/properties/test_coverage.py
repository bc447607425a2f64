"""Covered and missing: together the window, and nothing twice."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, merge
from patra_ingest.planner.coverage import STANDING, missing
from patra_ingest.planner.slicing import cut
from patra_ingest_tests.builders import START, a_spec, days

MONTH = days(0, 30)
SPEC = a_spec().window
hours = st.integers(min_value=-100, max_value=900)


def hour(number):
    return START + timedelta(hours=number)


@st.composite
def some_slices(draw):
    spans = draw(st.lists(st.tuples(hours, st.integers(1, 200)), max_size=12))
    statuses = st.sampled_from(list(SliceStatus))
    return [
        CoveredWindow(number, Window(hour(first), hour(first + length)), draw(statuses))
        for number, (first, length) in enumerate(spans)
    ]


@given(some_slices())
def test_covered_and_missing_together_are_the_window(slices):
    holes = missing(MONTH, slices)
    standing = [item.window for item in slices if item.status in STANDING]
    inside = [part for window in standing if (part := window.intersect(MONTH))]

    assert merge([*holes, *inside]) == [MONTH]


@given(some_slices())
def test_nothing_that_stands_is_planned_again(slices):
    standing = [item.window for item in slices if item.status in STANDING]

    for hole in missing(MONTH, slices):
        assert not any(hole.intersect(window) for window in standing)


@given(some_slices())
def test_when_the_holes_are_filled_nothing_is_missing(slices):
    holes = missing(MONTH, slices)
    filled = [
        CoveredWindow(1000 + number, window, SliceStatus.SUCCEEDED)
        for number, window in enumerate(cut(holes, SPEC))
    ]

    assert missing(MONTH, [*slices, *filled]) == []


@given(some_slices(), st.randoms(use_true_random=False))
def test_the_order_of_the_slices_does_not_matter(slices, dice):
    shuffled = list(slices)
    dice.shuffle(shuffled)

    assert missing(MONTH, shuffled) == missing(MONTH, slices)
