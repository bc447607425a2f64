"""Ids that were asked for, held against what came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.two_phase import Reconciled, combine, halves, hold_against, reconcile
from patra_ingest_tests.builders import a_spec, an_item
from patra_ingest_tests.unit.working import a_rule

SPEC = a_spec()


def came(*names, gone=(), places=None):
    items = [None if name is None else an_item(name) for name in names]
    return Decoded(items, gone=tuple(gone), places=places)


def held(asked, decoded, call=SPEC, **rule):
    found = reconcile(tuple(asked), decoded, call, a_rule(**rule))
    return [item["id"] for item in found.items], found.missing, found.merged


@pytest.mark.parametrize(
    ("asked", "decoded", "rule", "expected"),
    [
        pytest.param("abc", came(*"abc"), {}, (list("abc"), (), {}), id="all came"),
        pytest.param("abc", came(*"cab"), {}, (list("cab"), (), {}), id="in any order"),
        pytest.param("abc", came("a"), {}, (["a"], ("b", "c"), {}), id="two are missing"),
        pytest.param("ab", came("a", None), {}, (["a"], ("b",), {}), id="a null is no item"),
        pytest.param("ab", came("a", gone="b"), {}, (["a"], (), {}), id="gone is an answer"),
        pytest.param(
            "ab", came("a", "x"), {}, (["a", "x"], ("b",), {}), id="a stranger answers no"
        ),
        pytest.param(
            "ab",
            came("a", "x"),
            {"aliases": True},
            (["a", "x"], (), {"b": "x"}),
            id="nobody else can have become the other",
        ),
        pytest.param(
            "abc",
            came("a", "x"),
            {"aliases": True},
            (["a", "x"], ("b", "c"), {}),
            id="either of two may have",
        ),
        pytest.param(
            "abc",
            came("a", None, "y"),
            {"positional": True, "aliases": True},
            (["a", "y"], ("b",), {"c": "y"}),
            id="the place tells who became whom",
        ),
        pytest.param(
            "abc",
            came("a", "y"),
            {"positional": True},
            (["a", "y"], ("b", "c"), {}),
            id="too few places tell nothing",
        ),
        pytest.param(
            "ab",
            came("a", "y", places=("a", "b")),
            {"aliases": True},
            (["a", "y"], (), {"b": "y"}),
            id="the key of an item tells, too",
        ),
        pytest.param("ab", came(), {}, ([], ("a", "b"), {}), id="nothing came"),
    ],
)
def test_ids_are_held_against_what_came(asked, decoded, rule, expected):
    assert held(asked, decoded, **rule) == expected


def test_an_item_may_say_which_id_it_answers():
    call = a_spec(response={"asked": "$.was"})
    decoded = Decoded([an_item("new", was="old"), an_item("b", was="b")])

    assert held(["old", "b"], decoded, call, aliases=True) == (["new", "b"], (), {"old": "new"})


def test_a_number_answers_for_the_id_it_is():
    assert held(["7"], Decoded([an_item(7)]))[1] == ()


def test_the_second_answer_completes_the_first():
    first = Reconciled([1], ("b", "c"), {"a": "x"})
    again = Reconciled([2], ("c",), {"b": "y"})

    assert combine(first, again) == Reconciled([1, 2], ("c",), {"a": "x", "b": "y"})


def test_what_nobody_asked_for_is_put_aside_and_counted():
    mapped = map_items([an_item("a"), an_item("x"), an_item("m")], SPEC, "UTC", None)

    kept = hold_against(["a", "b"], mapped, ["m"])

    assert [record.provider_id for record in kept.records] == ["a", "m"]
    assert [(bad.provider_id, bad.reason) for bad in kept.bad] == [("x", "nobody asked for it")]
    assert len(kept.records) + len(kept.bad) == 3


@given(st.lists(st.text(min_size=1), min_size=2, unique=True).map(tuple))
def test_halves_are_both_there_and_smaller(ids):
    first, second = halves(ids)

    assert first + second == ids
    assert first
    assert second


NAMES = st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1)


@given(NAMES, st.lists(st.sampled_from("abcdefghijxyz")), st.booleans(), st.booleans())
def test_every_id_is_answered_or_missing(asked, answered, positional, aliases):
    rule = a_rule(positional=positional, aliases=aliases)

    found = reconcile(tuple(asked), came(*answered), SPEC, rule)

    assert len(found.items) == len(answered)
    assert set(found.missing) <= set(asked)
    assert not set(found.missing) & set(found.merged)
    own = {item["id"] for item in found.items}
    if not positional:
        assert set(asked) <= own | set(found.missing) | set(found.merged)
