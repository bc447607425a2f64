"""UPDATE candidates: who comes first, what is settled with it, and how ids become slices."""

from datetime import timedelta

import pytest

from patra_ingest.model.bounds import IdSet
from patra_ingest.model.keys import item_key
from patra_ingest.model.window import Window
from patra_ingest.planner.candidates import Candidate, Chosen, Why, choose, cut_ids, stale_share
from patra_ingest_tests.builders import START, days


def found(why, *ids, endpoint="works", row=None):
    return [Candidate(endpoint, name, why, row) for name in ids]


def chosen(*ids, endpoint="works"):
    return [Chosen(endpoint, name, Why.STALE) for name in ids]


@pytest.mark.parametrize(
    ("total", "window", "refresh_days", "share"),
    [
        (3000, days(0, 1), 30, 100),
        (3001, days(0, 1), 30, 101),
        (1, days(0, 1), 30, 1),
        (0, days(0, 1), 30, 0),
        (3000, days(0, 15), 30, 1500),
        (3000, days(0, 60), 30, 3000),
        (3000, Window(START, START + timedelta(minutes=15)), 30, 2),
        (10**12, Window(START, START + timedelta(microseconds=1)), 10**9, 1),
        (10**12, days(0, 36_500), 1, 10**12),
    ],
)
def test_each_window_gets_its_share_of_the_records_rounded_up(total, window, refresh_days, share):
    assert stale_share(total, window, refresh_days) == share


def test_the_shares_of_all_days_are_all_records():
    assert sum(stale_share(1001, days(n, n + 1), 30) for n in range(30)) >= 1001


def test_the_most_urgent_come_first_and_the_rest_keep_their_order():
    candidates = [
        *found(Why.STALE, "s2", "s1"),
        *found(Why.SHAPE, "f2", "f1"),
        *found(Why.QUARANTINE, "q1", row=1),
        *found(Why.SIGNAL, "b", "a", row=2),
    ]

    picked = choose(candidates, frozenset(), 100)

    assert [one.provider_id for one in picked] == ["b", "a", "q1", "f2", "f1", "s2", "s1"]


def test_a_record_is_chosen_once_for_its_best_reason_and_settles_all_its_rows():
    candidates = [
        *found(Why.STALE, "a"),
        *found(Why.QUARANTINE, "a", row=7),
        *found(Why.SIGNAL, "a", row=9),
        *found(Why.SIGNAL, "a", row=4),
        *found(Why.QUARANTINE, "a", row=4),
        *found(Why.SIGNAL, "a", row=9),
    ]

    assert choose(candidates, frozenset(), 100) == [
        Chosen("works", "a", Why.SIGNAL, signals=(4, 9), quarantined=(4, 7))
    ]


def test_the_same_id_of_two_endpoints_is_two_records():
    candidates = [*found(Why.SIGNAL, "a", row=1), *found(Why.SIGNAL, "a", endpoint="new", row=2)]

    picked = choose(candidates, {("works", "a")}, 100)

    assert picked == [Chosen("new", "a", Why.SIGNAL, signals=(2,))]


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (-1, 0), (2, 2), (3, 3), (9, 3)])
def test_no_more_than_the_limit_is_chosen(limit, count):
    assert len(choose(found(Why.STALE, "a", "b", "c"), frozenset(), limit)) == count


def test_what_is_already_asked_for_takes_no_place():
    candidates = [*found(Why.SIGNAL, "a", row=1), *found(Why.STALE, "b", "c")]

    assert choose(candidates, {("works", "a")}, 1) == chosen("b")


def test_ids_are_cut_into_sorted_ranges_per_endpoint():
    ids = [*chosen("c", "a", "b"), *chosen("a", endpoint="new"), *chosen("a")]

    assert cut_ids(ids, 2, None) == [
        IdSet("new", ("a",), None),
        IdSet("works", ("a", "b"), None),
        IdSet("works", ("c",), None),
    ]


def test_with_buckets_the_hash_of_an_id_decides_where_it_goes():
    names = [f"id{n}" for n in range(40)]
    slices = cut_ids(chosen(*names), 5, 4)

    assert [one.bucket for one in slices] == sorted(one.bucket for one in slices)
    for one in slices:
        assert {int.from_bytes(item_key(name)) % 4 for name in one.ids} == {one.bucket}
        assert len(one.ids) <= 5
    assert sorted(name for one in slices for name in one.ids) == sorted(names)


def test_a_bucket_does_not_depend_on_who_else_is_chosen():
    (alone,) = cut_ids(chosen("10.1/a"), 200, 16)
    among = cut_ids(chosen("10.1/a", *(f"id{n}" for n in range(99))), 200, 16)

    assert [one.bucket for one in among if "10.1/a" in one.ids] == [alone.bucket]


def test_nothing_chosen_is_no_slice():
    assert choose([], frozenset(), 10) == []
    assert cut_ids([], 10, None) == cut_ids([], 10, 3) == []
