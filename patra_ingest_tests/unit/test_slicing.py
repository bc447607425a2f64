"""How holes are cut into slices."""

from datetime import timedelta
from itertools import pairwise

import pytest

from patra_ingest.model.window import Window
from patra_ingest.planner.slicing import cut
from patra_ingest_tests.builders import a_window, day, days

HOUR = timedelta(hours=1)


def slices(*holes, **window):
    return list(cut(holes, a_window(**window)))


def test_a_hole_is_cut_into_spans_of_at_most_the_declared_length():
    assert slices(days(0, 3)) == [days(0, 1), days(1, 2), days(2, 3)]
    assert slices(days(0, 3), max_span=2 * 86_400) == [days(0, 2), days(2, 3)]


def test_every_hole_is_tiled_for_itself():
    assert slices(days(0, 1), days(5, 7)) == [days(0, 1), days(5, 6), days(6, 7)]


def test_no_hole_no_slice():
    assert slices() == []


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("granularity", ["SECOND", "HOUR", "DAY"])
@pytest.mark.parametrize("span", [3600, 5 * 3600, 86_400, 7 * 86_400])
def test_slices_tile_without_gap_or_overlap_also_when_the_clocks_change(zone, granularity, span):
    autumn = Window(day(40), day(80))  # New York leaves summer time on 2025-11-02

    parts = slices(autumn, zone=zone, granularity=granularity, max_span=span)

    assert (parts[0].start, parts[-1].end) == (autumn.start, autumn.end)
    assert all(left.end == right.start for left, right in pairwise(parts))


def test_a_day_of_the_source_is_never_cut():
    parts = slices(days(0, 2), granularity="DAY", max_span=3600)

    assert parts == [days(0, 1), days(1, 2)]
