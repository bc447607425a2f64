"""How the rest of a slice that proved too big is cut again."""

from datetime import timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra_ingest.model.bounds import Bounds, IdSet, PageRange, SplitPart
from patra_ingest.model.window import Window, floor_to, parse_instant
from patra_ingest.planner.bisection import cut_again
from patra_ingest.spec.snapshot import CapSpec
from patra_ingest.spec.splits import NumberSplit, PrefixSplit, ValueSplit
from patra_ingest_tests.builders import a_window, days
from patra_ingest_tests.properties.test_planning import (
    DAY,
    MICROSECOND,
    SPEC,
    instants,
    later,
    some_windows,
)

NUMBERS = NumberSplit(by="NUMBER", clause="${from}:${to}", lowest=1, highest=10)
VALUES = ValueSplit(by="VALUE", clause="${value}", values=("journal", "book", "other"))
LETTERS = PrefixSplit(by="PREFIX", clause="${value}*", alphabet="ab", depth=2)


def a_source(*then, most=None, **window):
    changed = {"window": a_window(**window), "cap": CapSpec(max=most, then=then)}
    return SPEC.model_copy(update=changed)


def windows(rest, spec, total=None):
    return [part.window for part in cut_again(Bounds(rest), total, spec)]


def parts(rest, spec, total=None):
    return [part.splits[-1] for part in cut_again(rest, total, spec)]


@pytest.mark.parametrize(
    ("total", "most", "expected"),
    [
        pytest.param(None, 1000, [days(0, 4), days(4, 8)], id="halves, for nobody counted"),
        pytest.param(5000, None, [days(0, 4), days(4, 8)], id="halves, for nothing limits it"),
        pytest.param(801, 1000, [days(0, 4), days(4, 8)], id="two at least"),
        pytest.param(3200, 1000, [days(n, n + 2) for n in (0, 2, 4, 6)], id="as many as it takes"),
        pytest.param(10**9, 1000, [days(n, n + 1) for n in range(8)], id="not below the floor"),
    ],
)
def test_a_window_is_cut_into_as_many_parts_as_cap_and_count_ask_for(total, most, expected):
    spec = a_source(most=most, granularity="DAY", min_span=86_400)

    assert windows(days(0, 8), spec, total) == expected


def test_a_window_is_never_cut_into_more_than_64_parts():
    assert len(windows(days(0, 300), a_source(most=10, min_span=1), 10**9)) == 64


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(119, [119]), (120, [60, 60]), (160, [60, 100]), (180, [60, 60, 60])],
)
def test_a_window_of_two_floors_is_cut_also_when_more_parts_were_wanted(minutes, expected):
    start = days(0, 1).start
    spec = a_source(VALUES, most=100, min_span=3600)

    found = windows(Window(start, start + timedelta(minutes=minutes)), spec, 10_000)

    if expected == [minutes]:
        expected = expected * len(VALUES.values)
    assert [one.duration / timedelta(minutes=1) for one in found] == expected


def test_a_day_that_begins_at_one_is_a_whole_day():
    # Midnight of 2017-10-15 did not exist in Sao Paulo.
    two_days = Window(parse_instant("2017-10-15T03:00Z"), parse_instant("2017-10-17T02:00Z"))
    spec = a_source(granularity="DAY", min_span=86_400, zone="America/Sao_Paulo")

    assert [one.end for one in windows(two_days, spec)] == [
        parse_instant("2017-10-16T02:00Z"),
        parse_instant("2017-10-17T02:00Z"),
    ]


def test_the_second_dimension_begins_where_time_ends():
    rest = Bounds(days(0, 1))
    spec = a_source(NUMBERS, VALUES, granularity="DAY", min_span=86_400)

    first, second = cut_again(rest, None, spec)
    single = cut_again(Bounds(days(0, 1), splits=(SplitPart(0, 7, 7),)), None, spec)

    assert first == Bounds(days(0, 1), splits=(SplitPart(0, 1, 5),))
    assert second == Bounds(days(0, 1), splits=(SplitPart(0, 6, 10),))
    assert [part.splits for part in single] == [
        (SplitPart(0, 7, 7), SplitPart(1, value=value)) for value in VALUES.values
    ]


def test_a_slice_that_is_split_already_is_split_further_and_keeps_its_window():
    rest = Bounds(days(0, 8), splits=(SplitPart(0, 1, 10),))

    assert parts(rest, a_source(NUMBERS)) == [SplitPart(0, 1, 5), SplitPart(0, 6, 10)]
    assert {part.window for part in cut_again(rest, None, a_source(NUMBERS))} == {days(0, 8)}


def test_prefixes_grow_letter_by_letter_down_to_their_depth():
    spec = a_source(LETTERS, granularity="DAY", min_span=86_400)
    rest = Bounds(days(0, 1))

    assert [part.value for part in parts(rest, spec)] == ["a", "b"]
    rest = Bounds(days(0, 1), splits=(SplitPart(0, value="b"),))
    assert [part.value for part in parts(rest, spec)] == ["ba", "bb"]
    assert cut_again(Bounds(days(0, 1), splits=(SplitPart(0, value="ba"),)), None, spec) == []


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (Bounds(pages=PageRange(1, 6)), [PageRange(1, 3), PageRange(3, 6)]),
        (Bounds(pages=PageRange(5, 7)), [PageRange(5, 6), PageRange(6, 7)]),
        (Bounds(pages=PageRange(5, 6)), []),
        (Bounds(pages=PageRange(5)), []),
    ],
)
def test_pages_are_halved_down_to_one_and_an_open_end_is_not_cut(rest, expected):
    assert [part.pages for part in cut_again(rest, 10**6, SPEC)] == expected


@pytest.mark.parametrize(
    ("ids", "expected"),
    [("abcde", ["ab", "cde"]), ("ab", ["a", "b"]), ("a", []), ("", [])],
)
def test_ids_are_halved_down_to_one_and_stay_in_their_bucket(ids, expected):
    rest = Bounds(ids=IdSet("works", tuple(ids), bucket=3), partition="bio")

    halves = cut_again(rest, None, SPEC)

    assert ["".join(half.ids.ids) for half in halves] == expected
    assert all((half.ids.bucket, half.partition) == (3, "bio") for half in halves)


splits = st.one_of(
    st.builds(
        lambda low, more: NumberSplit(by="NUMBER", clause="c", lowest=low, highest=low + more),
        st.integers(-5, 5),
        st.integers(1, 9),
    ),
    st.builds(
        lambda count: ValueSplit(by="VALUE", clause="c", values=tuple("xyz"[:count])),
        st.integers(2, 3),
    ),
    st.builds(
        lambda depth: PrefixSplit(by="PREFIX", clause="c", alphabet="ab", depth=depth),
        st.integers(1, 2),
    ),
)


def leaves(rest, counted, spec, depth=0):
    """Return the parts of the parts, as long as there are any."""
    assert depth < 40
    parts = cut_again(rest, counted, spec)
    assert len(parts) != 1
    assert len(set(parts)) == len(parts)
    assert rest not in parts
    return [leaf for part in parts for leaf in leaves(part, counted, spec, depth + 1)] or [rest]


def points(rule, parts):
    """Return every number or text that the parts of one split stand for."""
    if isinstance(rule, NumberSplit):
        return sorted(n for part in parts for n in range(part.low, part.high + 1))
    return sorted(part.value for part in parts)


def everything(rule):
    if isinstance(rule, NumberSplit):
        return list(range(rule.lowest, rule.highest + 1))
    if isinstance(rule, ValueSplit):
        return sorted(rule.values)
    return ["a", "b"] if rule.depth == 1 else ["aa", "ab", "ba", "bb"]


def is_long_enough(window, spec):
    zone, floor = ZoneInfo(spec.zone), spec.min_span
    days = [edge for edge in (window.start, window.end) if floor_to(edge, DAY, zone) == edge]
    if len(days) == 2 and not floor % DAY:
        first, last = (edge.astimezone(zone).date() for edge in days)
        return last - first >= floor
    return later(window.start, floor, zone) <= window.end


def can_be_cut(window, spec):
    """Try every point of the grid."""
    edges = [
        part.end
        for part in window.split_aligned(MICROSECOND, spec.granularity, ZoneInfo(spec.zone))
    ]
    halves = [(Window(window.start, edge), Window(edge, window.end)) for edge in edges[:-1]]
    return any(all(is_long_enough(half, spec) for half in pair) for pair in halves)


@settings(deadline=None, max_examples=150)
@given(st.data(), some_windows(), st.lists(splits, max_size=2), st.none() | st.integers(1, 5000))
def test_cutting_again_and_again_tiles_the_window_and_every_second_dimension(
    data, window, rules, counted
):
    cap = CapSpec(max=data.draw(st.none() | st.integers(1, 1000)), then=tuple(rules))
    spec = SPEC.model_copy(update={"window": window, "cap": cap})
    start = data.draw(instants(window))
    rest = Bounds(Window(start, start + window.min_span * data.draw(st.floats(0.3, 6))))

    found = leaves(rest, counted, spec)

    windows = sorted({leaf.window for leaf in found})
    assert (windows[0].start, windows[-1].end) == (rest.window.start, rest.window.end)
    assert all(left.end == right.start for left, right in pairwise(windows))
    assert not any(can_be_cut(one, window) for one in windows)
    if len(windows) > 1:
        assert all(is_long_enough(one, window) for one in windows)
    for one in windows:
        assert_all_split([leaf.splits for leaf in found if leaf.window == one], rules)


def assert_all_split(parts, rules, number=0):
    """Every point of a dimension is there once, and under each of them those of the next one."""
    if number == len(rules):
        assert parts == [()] if number == 0 else all(len(one) == number for one in parts)
        return
    own = sorted({one[number] for one in parts}, key=lambda part: (part.low or 0, part.value or ""))
    assert {part.rule for part in own} == {number}
    assert points(rules[number], own) == everything(rules[number])
    for part in own:
        assert_all_split([one for one in parts if one[number] == part], rules, number + 1)
