"""Covered and missing: together the window, and nothing twice."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, merge
from patra_ingest.planner.coverage import COVERS, HOLES, STANDING, Cover, cover, missing
from patra_ingest_tests.builders import DAY, START, days

MONTH = days(0, 30)
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
        for number, window in enumerate(part for hole in holes for part in hole.split(DAY))
    ]

    assert missing(MONTH, [*slices, *filled]) == []


@given(some_slices(), st.randoms(use_true_random=False))
def test_the_order_of_the_slices_does_not_matter(slices, dice):
    shuffled = list(slices)
    dice.shuffle(shuffled)

    assert missing(MONTH, shuffled) == missing(MONTH, slices)


GRID = 12
STEPS = Window(hour(0), hour(GRID))


@st.composite
def steps_of_a_grid(draw):
    """Facts whose edges lie on a small grid, some beyond both its ends, some without a slice."""
    edges = st.tuples(st.integers(-3, GRID + 2), st.integers(1, 6))
    spans = draw(st.lists(edges, max_size=8))
    ids = st.one_of(st.none(), st.integers(0, 5))
    return [
        CoveredWindow(
            draw(ids),
            Window(hour(first), hour(first + length)),
            draw(st.sampled_from(list(SliceStatus))),
        )
        for first, length in spans
    ]


def look_at_one_step(number, facts):
    """Return the cover of one step of the grid and the slices that give it, by looking at all."""
    there = [fact for fact in facts if fact.window.contains(hour(number))]
    for kind in Cover:
        given_by = [fact for fact in there if COVERS[fact.status] is kind]
        if given_by:
            return kind, {fact.slice_id for fact in given_by} - {None}
    return Cover.MISSING, set()


@given(some_slices())
def test_the_intervals_tile_the_window_and_neighbours_differ(slices):
    intervals = cover(MONTH, slices)

    assert (intervals[0].window.start, intervals[-1].window.end) == (MONTH.start, MONTH.end)
    for left, right in pairwise(intervals):
        assert left.window.end == right.window.start
        assert left.cover != right.cover


@given(steps_of_a_grid())
def test_every_step_has_the_best_cover_and_every_interval_the_slices_that_give_it(facts):
    expected = [look_at_one_step(number, facts) for number in range(GRID)]

    for interval in cover(STEPS, facts):
        steps = [n for n in range(GRID) if interval.window.contains(hour(n))]
        assert {expected[n][0] for n in steps} == {interval.cover}
        assert set(interval.slices) == set().union(*(expected[n][1] for n in steps))
        assert len(interval.slices) == len(set(interval.slices))


@given(some_slices())
def test_what_is_planned_again_is_exactly_what_coverage_calls_a_hole(slices):
    holes = [interval.window for interval in cover(MONTH, slices) if interval.cover in HOLES]

    assert missing(MONTH, slices) == merge(holes)


@given(some_slices(), st.randoms(use_true_random=False))
def test_coverage_does_not_depend_on_the_order_of_the_slices(slices, dice):
    shuffled = list(slices)
    dice.shuffle(shuffled)

    assert cover(MONTH, shuffled) == cover(MONTH, slices)
