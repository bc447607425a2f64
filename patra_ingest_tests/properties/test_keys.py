import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from patra_ingest.model import keys
from patra_ingest.model.codes import Operation

offsets = st.integers(min_value=-14 * 60, max_value=14 * 60).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
times = st.datetimes(
    min_value=datetime(1900, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    max_value=datetime(2100, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    timezones=offsets,
)
texts = st.text(max_size=6)
numbers = st.integers(min_value=-(2**53), max_value=2**53) | st.floats(
    allow_nan=False, allow_infinity=False
)
scalars = st.none() | st.booleans() | numbers | texts
plain_trees = st.recursive(
    scalars,
    lambda trees: st.lists(trees, max_size=3) | st.dictionaries(texts, trees, max_size=3),
    max_leaves=8,
)
trees = st.recursive(
    scalars | times | st.sampled_from(Operation),
    lambda trees: st.lists(trees, max_size=3) | st.dictionaries(texts, trees, max_size=3),
    max_leaves=8,
)


def rewritten(tree, zone):
    """The same meaning in another notation: names backwards, nulls added, times elsewhere."""
    match tree:
        case dict():
            listed = {name: rewritten(tree[name], zone) for name in reversed(tree)}
            return listed | {f"null {name}": None for name in tree if f"null {name}" not in tree}
        case list():
            return tuple(rewritten(item, zone) for item in tree)
        case datetime():
            return tree.astimezone(zone)
        case float() if math.isfinite(tree):
            return Decimal(repr(tree))
        case _:
            return tree


@given(trees, offsets)
def test_the_order_of_names_nulls_and_the_notation_of_times_do_not_matter(tree, zone):
    assert keys.digest(tree) == keys.digest(rewritten(tree, zone))


@given(trees)
def test_what_was_hashed_can_be_stored_and_hashed_again(tree):
    text = keys.canonical_json(tree)

    assert keys.canonical_json(orjson.loads(text)) == text


@given(st.lists(scalars | times, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_an_array_matters(items, random):
    shuffled = random.sample(items, len(items))
    assume([keys.digest(i) for i in items] != [keys.digest(i) for i in shuffled])

    assert keys.digest(items) != keys.digest(shuffled)


def meaning(tree):
    """A tree as JSON means it: types apart, numbers by value, nulls in mappings absent."""
    match tree:
        case dict():
            members = ((name, meaning(v)) for name, v in tree.items() if v is not None)
            return ("object", frozenset(members))
        case list():
            return ("array", tuple(meaning(item) for item in tree))
        case bool():
            return ("boolean", tree)
        case int() | float():
            return ("number", Decimal(repr(tree)))
        case _:
            return (type(tree).__name__, tree)


@given(plain_trees, plain_trees)
def test_two_values_share_a_key_exactly_when_they_mean_the_same(one, other):
    assert (keys.digest(one) == keys.digest(other)) == (meaning(one) == meaning(other))


@given(st.integers(min_value=-(10**20), max_value=10**20))
def test_a_number_its_text_and_its_truth_are_three_values(number):
    values = [number, str(number), bool(number), [number], {"a": number}]

    assert len({keys.digest(value) for value in values}) == len(values)


@given(st.dictionaries(texts, scalars, max_size=3), st.sampled_from(["budget", "telemetry"]))
def test_no_budget_and_no_estimate_changes_a_signature(slice_spec, name):
    def signature(spec):
        return keys.slice_signature(
            provenance="p", endpoint="e", operation=Operation.UPDATE, expr_hash="h", slice_spec=spec
        )

    assert signature(slice_spec) == signature(slice_spec | {name: {"any": 1}})
    assert signature(slice_spec) != signature(slice_spec | {"bounds": "another"})


@given(st.lists(st.text(alphabet="a:%", max_size=4), min_size=3, max_size=3), st.data())
def test_plan_keys_differ_when_their_parts_do(parts, data):
    others = data.draw(st.permutations(parts))

    def key(provenance, endpoint, campaign):
        return keys.plan_key(
            provenance=provenance,
            operation=Operation.HARVEST,
            endpoint=endpoint,
            window=None,
            expr_proto_hash="h",
            campaign=campaign,
        )

    assert (key(*parts) == key(*others)) == (parts == others)
