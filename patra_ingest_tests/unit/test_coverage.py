"""What a namespace already has and what it still lacks, as intervals and as a picture."""

from datetime import timedelta

import pytest

from patra_ingest.cli.coverage_strip import CELLS, fill_cells, mark_cursor, write_shares
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import STANDING, Cover, Interval, cover, missing, refilled
from patra_ingest_tests.builders import day, days

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


def fact(number, first, past, status):
    return CoveredWindow(number, days(first, past), SliceStatus(status))


def read(intervals):
    """Return intervals as days: (first, past, cover, slices)."""
    return [
        ((i.window.start - MONTH.start).days, (i.window.end - MONTH.start).days, i.cover, i.slices)
        for i in intervals
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("PENDING", "LIVE"),
        ("READY", "LIVE"),
        ("DISPATCHED", "LIVE"),
        ("EXECUTING", "LIVE"),
        ("SUCCEEDED", "SUCCEEDED"),
        ("FAILED", "FAILED"),
        ("PARTIAL", "FAILED"),
        ("CANCELLED", "FAILED"),
    ],
)
def test_every_status_of_a_slice_has_its_cover(status, kind):
    assert cover(MONTH, [fact(7, 0, 30, status)]) == [Interval(MONTH, Cover(kind), (7,))]


def test_where_nobody_ever_planned_is_missing():
    assert cover(MONTH, []) == [Interval(MONTH, Cover.MISSING)]


def test_neighbours_with_one_cover_are_one_interval_with_all_their_slices():
    facts = [
        fact(3, 5, 10, "READY"),
        fact(1, 0, 2, "SUCCEEDED"),
        fact(2, 2, 5, "SUCCEEDED"),
        fact(4, 10, 12, "EXECUTING"),
        fact(5, 12, 13, "FAILED"),
        fact(6, 13, 14, "CANCELLED"),
    ]

    assert read(cover(MONTH, facts)) == [
        (0, 5, "SUCCEEDED", (1, 2)),
        (5, 12, "LIVE", (3, 4)),
        (12, 14, "FAILED", (5, 6)),
        (14, 30, "MISSING", ()),
    ]


def test_a_second_attempt_hides_the_first_where_it_reaches():
    facts = [
        fact(1, 0, 30, "FAILED"),
        fact(2, 5, 10, "SUCCEEDED"),
        fact(3, 8, 20, "READY"),
        fact(4, 6, 7, "FAILED"),
    ]

    assert read(cover(MONTH, facts)) == [
        (0, 5, "FAILED", (1,)),
        (5, 10, "SUCCEEDED", (2,)),
        (10, 20, "LIVE", (3,)),
        (20, 30, "FAILED", (1,)),
    ]


def test_what_reaches_beyond_the_window_is_cut_and_what_only_touches_it_is_not_there():
    facts = [
        fact(1, -5, 3, "SUCCEEDED"),
        fact(2, 28, 40, "FAILED"),
        fact(3, -9, 0, "SUCCEEDED"),
        fact(4, 30, 31, "SUCCEEDED"),
    ]

    assert read(cover(MONTH, facts)) == [
        (0, 3, "SUCCEEDED", (1,)),
        (3, 28, "MISSING", ()),
        (28, 30, "FAILED", (2,)),
    ]


def test_a_part_that_is_claimed_but_not_cut_yet_is_live_and_has_no_slice():
    claimed = CoveredWindow(None, days(10, 30), SliceStatus.PENDING)

    assert read(cover(MONTH, [fact(1, 0, 12, "READY"), claimed])) == [(0, 30, "LIVE", (1,))]
    assert missing(MONTH, [claimed]) == [days(0, 10)]
    assert refilled(MONTH, [claimed]) == []


def test_a_slice_with_a_done_and_an_open_part_is_named_in_both():
    facts = [fact(1, 0, 4, "SUCCEEDED"), fact(1, 4, 10, "PARTIAL")]

    assert read(cover(days(0, 10), facts)) == [(0, 4, "SUCCEEDED", (1,)), (4, 10, "FAILED", (1,))]


@pytest.mark.parametrize("position", range(0, CELLS * 5, 37))
def test_no_hole_is_too_short_to_be_seen(position):
    window = days(0, 365)
    start = window.start + position * window.duration / (CELLS * 5)
    hole = Window(start, start + timedelta(seconds=1))
    done = [Interval(part, Cover.SUCCEEDED) for part in window.minus([hole])]

    cells = fill_cells(window, [*done, Interval(hole, Cover.FAILED)])

    assert len(cells) == CELLS
    assert [n for n, kind in enumerate(cells) if kind is Cover.FAILED] == [position // 5]


@pytest.mark.parametrize(
    ("statuses", "seen"),
    [
        (["SUCCEEDED", "READY"], "LIVE"),
        (["READY", "SUCCEEDED", None], "MISSING"),
        (["FAILED", None, "SUCCEEDED", "READY"], "FAILED"),
        ([None, "READY", "FAILED"], "FAILED"),
    ],
)
def test_a_cell_shows_the_worst_that_is_in_it(statuses, seen):
    window = days(0, len(statuses))
    facts = [fact(n, n, n + 1, status) for n, status in enumerate(statuses) if status]

    assert fill_cells(window, cover(window, facts), cells=1) == [Cover(seen)]


def test_the_picture_keeps_its_proportions_and_never_rounds_a_part_away():
    assert fill_cells(days(0, 6), cover(days(0, 6), []), cells=3) == [Cover.MISSING] * 3
    assert mark_cursor(days(0, 4), day(2), cells=40) == " " * 20 + "▲ cursor"
    assert mark_cursor(days(0, 4), day(4), cells=40).endswith("cursor ▲")
    assert len(mark_cursor(days(0, 4), day(4), cells=40)) == 40
    tiny = dict.fromkeys(Cover, 0.0) | {Cover.SUCCEEDED: 1e6, Cover.FAILED: 1.0}
    assert write_shares(tiny) == (
        "█ SUCCEEDED >99.9 %   ▒ LIVE 0.0 %   ✗ FAILED <0.1 %   · MISSING 0.0 %"
    )
