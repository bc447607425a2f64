"""Candidates: whatever is found, each record is asked for once, and nobody is asked for twice."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.model.window import Window
from patra_ingest.planner.candidates import Candidate, Why, choose, cut_ids, stale_share
from patra_ingest_tests.builders import DAY, START

endpoints = st.sampled_from(["changed", "new", "works"])
ids = st.text(min_size=1, max_size=3)
reasons = st.sampled_from(list(Why))
rows = st.none() | st.integers(1, 20)
candidates = st.lists(st.builds(Candidate, endpoints, ids, reasons, rows), max_size=40)
live = st.frozensets(st.tuples(endpoints, ids), max_size=10)
limits = st.integers(0, 50)
sizes = st.integers(1, 7)
buckets = st.none() | st.integers(1, 5)
URGENCY = list(Why)


def key(one):
    return one.endpoint, one.provider_id


@given(candidates, live, limits)
def test_each_is_chosen_once_and_none_that_is_live_and_no_more_than_the_limit(found, taken, limit):
    wanted = {key(one) for one in found} - taken
    picked = [key(one) for one in choose(found, taken, limit)]

    assert len(picked) == len(set(picked)) == min(limit, len(wanted))
    assert set(picked) <= wanted


@given(candidates, live, limits)
def test_nobody_who_is_left_out_was_more_urgent(found, taken, limit):
    picked = choose(found, taken, limit)
    places = [URGENCY.index(one.why) for one in picked]
    chosen = {key(one) for one in picked}
    left = [one for one in found if key(one) not in chosen | taken]

    assert places == sorted(places)
    if picked:
        assert all(URGENCY.index(one.why) >= places[-1] for one in left)


@given(candidates, live)
def test_every_row_of_a_chosen_record_is_settled_and_no_other(found, taken):
    for one in choose(found, taken, 50):
        own = [c for c in found if key(c) == key(one) and c.row_id is not None]
        assert set(one.signals) == {c.row_id for c in own if c.why is Why.SIGNAL}
        assert set(one.quarantined) == {c.row_id for c in own if c.why is Why.QUARANTINE}
        assert one.why == min((c.why for c in found if key(c) == key(one)), key=URGENCY.index)


@given(candidates, sizes, buckets)
def test_every_id_is_in_exactly_one_slice(found, size, parts):
    chosen = choose(found, frozenset(), 50)
    cut = cut_ids(chosen, size, parts)

    asked = Counter((one.endpoint, name) for one in cut for name in one.ids)
    assert asked == Counter(map(key, chosen))
    assert all(1 <= len(one.ids) <= size for one in cut)


@given(candidates, sizes, buckets)
def test_slices_of_one_bucket_are_ranges_that_do_not_overlap(found, size, parts):
    cut = cut_ids(choose(found, frozenset(), 50), size, parts)

    assert all(list(one.ids) == sorted(one.ids) for one in cut)
    for one, following in pairwise(cut):
        if (one.endpoint, one.bucket) == (following.endpoint, following.bucket):
            assert one.ids[-1] < following.ids[0]
            assert len(one.ids) == size, "only the last range may be short"


@given(candidates, sizes, buckets, st.randoms(use_true_random=False))
def test_the_order_of_the_chosen_does_not_matter(found, size, parts, dice):
    chosen = choose(found, frozenset(), 50)
    shuffled = list(chosen)
    dice.shuffle(shuffled)

    assert cut_ids(shuffled, size, parts) == cut_ids(chosen, size, parts)


@given(st.integers(0, 10**9), st.integers(1, 400), st.integers(1, 400))
def test_windows_that_tile_the_refresh_time_reach_every_record(total, pieces, refresh_days):
    span = refresh_days * DAY
    edges = [START + span * n / pieces for n in range(pieces + 1)]
    shares = [stale_share(total, Window(*edge), refresh_days) for edge in pairwise(edges)]

    assert total <= sum(shares) <= total + pieces
    assert all(0 <= share <= total for share in shares)
