"""The frontier: a cursor passes no gap, whatever finishes first."""

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.cursor.frontier import frontier
from patra_ingest.model.window import Window
from patra_ingest_tests.builders import days

MONTH = days(0, 30)
widths = st.timedeltas(min_value=timedelta(hours=5), max_value=timedelta(days=9))


@st.composite
def slices_and_done(draw):
    slices = list(MONTH.split(draw(widths)))
    return slices, draw(st.sets(st.sampled_from(slices)))


@given(slices_and_done())
def test_the_frontier_never_passes_an_unfinished_slice(case):
    slices, done = case

    reached = frontier(MONTH.start, done)

    assert all(s.start >= reached for s in slices if s not in done)


@given(slices_and_done())
def test_the_frontier_leaves_no_finished_slice_that_it_could_reach(case):
    slices, done = case
    reached = frontier(MONTH.start, done)

    following = [s for s in slices if s.start == reached]

    assert not set(following) & done
    assert reached == MONTH.start or any(s.end == reached for s in done)


@given(slices_and_done(), st.randoms(use_true_random=False))
def test_the_order_in_which_slices_finish_does_not_matter(case, dice: random.Random):
    _, done = case
    shuffled = sorted(done)
    dice.shuffle(shuffled)

    assert frontier(MONTH.start, shuffled) == frontier(MONTH.start, done)


@given(slices_and_done(), st.data())
def test_one_more_finished_slice_never_moves_it_back(case, data):
    slices, done = case
    more = data.draw(st.sampled_from(slices))

    assert frontier(MONTH.start, done | {more}) >= frontier(MONTH.start, done)


@given(slices_and_done())
def test_step_by_step_or_at_once_it_ends_in_the_same_place(case):
    _, done = case
    reached = MONTH.start

    for slice_ in done:
        reached = frontier(reached, {slice_})
    reached = frontier(reached, done)

    assert reached == frontier(MONTH.start, done)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=8), st.integers(0, 40))
def test_overlapping_windows_count_as_one_span(spans, origin):
    done = [days(first, first + length) for first, length in spans]
    start = days(origin, origin + 1).start

    reached = frontier(start, done)

    assert reached >= start
    assert reached == start or Window(start, reached).minus(done) == []
