"""Which layer wins, and that every value knows where it came from."""

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.spec.declaration import Declaration, Layer, Overrides
from patra_ingest.spec.merge import merge
from patra_ingest.spec.platform import PLATFORM

LAYERS = [
    Layer("provenance example", {"rate": {"burst": 2, "cost": 2, "key": "p"}}),
    Layer("endpoint works", {"rate": {"burst": 3, "cost": 3}}),
    Layer("reg_prov_rate_limit_cfg #4", {"rate": {"burst": 4}}),
]


def found(result, path):
    group, _, key = path.partition(".")
    return result.values.get(group, {}).get(key)


def merged(layers=LAYERS, **trigger):
    declaration = Declaration("example", "works", Operation.HARVEST, tuple(layers))
    return merge(declaration, Overrides(trigger))


@pytest.mark.parametrize(
    ("path", "value", "origin"),
    [
        ("rate.per_second", 1.0, "platform"),
        ("rate.key", "p", "provenance example"),
        ("rate.cost", 3, "endpoint works"),
        ("rate.burst", 4, "reg_prov_rate_limit_cfg #4"),
    ],
)
def test_the_higher_layer_wins_key_by_key(path, value, origin):
    result = merged()

    assert (found(result, path), result.origins[path]) == (value, origin)


def test_the_trigger_wins_over_everything():
    result = merged(rate={"burst": 9})

    assert (found(result, "rate.burst"), result.origins["rate.burst"]) == (9, "trigger")
    assert found(result, "rate.cost") == 3


def test_a_null_inherits_and_a_zero_does_not():
    result = merged([*LAYERS, Layer("row", {"rate": {"burst": None, "cost": 0}})])

    assert found(result, "rate.burst") == 4
    assert found(result, "rate.cost") == 0


def test_a_list_is_replaced_whole():
    result = merged(paging={"stop": ["SHORT_PAGE"]})

    assert found(result, "paging.stop") == ["SHORT_PAGE"]


def test_every_value_has_an_origin_and_every_origin_a_value():
    result = merged(rate={"burst": 9})
    paths = {f"{group}.{key}" for group, keys in result.values.items() for key in keys}

    assert paths == set(result.origins)


def test_the_defaults_of_the_platform_stay_as_they_are():
    before = {group: dict(keys) for group, keys in PLATFORM.items()}

    merged(rate={"per_second": 99}, retry={"max_attempts": 1})

    assert before == PLATFORM


def test_what_nobody_declares_is_none():
    assert found(merged(), "response.items") is None
    assert found(merged(), "nothing.here") is None


def test_maps_are_laid_over_each_other_name_by_name_and_a_null_takes_one_away():
    lower = Layer("endpoint works", {"request": {"query": {"a": "1", "b": "2"}}})
    result = merged([lower], request={"query": {"b": None, "c": "3"}})

    assert found(result, "request.query") == {"a": "1", "b": None, "c": "3"}


def test_the_endpoints_own_parameter_names_win_over_its_rows():
    named = Layer("endpoint works", {"names": {"size": "rows", "ids": "id"}}, "endpoints.works.")
    row = Layer("row #1", {"paging": {"size_param": "limit"}, "batching": {"ids_param": "x"}})
    result = merged([named, row])

    assert found(result, "paging.size_param") == "rows"
    assert found(result, "batching.ids_param") == "id"
    assert result.origins["paging.size_param"] == "endpoint works"
    assert result.place("paging.size_param") == "endpoints.works.names.size"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("rate.burst", "rate.burst"),
        ("paging.stop", "endpoints.works.paging.stop"),
        ("endpoint.fields.title", "endpoints.works.fields.title"),
        ("request.base_url", "provenance.base_url"),
        ("http.read_timeout", "--set http.read_timeout"),
        ("expressions.rules[0]", "expressions.rules[0]"),
    ],
)
def test_a_path_is_named_by_its_place_in_the_pack(path, place):
    result = merged(http={"read_timeout": "5s"})

    assert result.place(path) == place
