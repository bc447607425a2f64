"""Which layer wins, and that every value knows where it came from."""

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.spec.declaration import Declaration, Layer, Overrides
from patra_ingest.spec.merge import PLATFORM, merge

LAYERS = [
    Layer("provenance example", {"rate": {"burst": 2, "cost": 2, "key": "p"}}),
    Layer("endpoint works", {"rate": {"burst": 3, "cost": 3}}),
    Layer("reg_prov_rate_limit_cfg #4", {"rate": {"burst": 4}}),
]


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

    assert (result.find(path), result.origins[path]) == (value, origin)


def test_the_trigger_wins_over_everything():
    result = merged(rate={"burst": 9})

    assert (result.find("rate.burst"), result.origins["rate.burst"]) == (9, "trigger")
    assert result.find("rate.cost") == 3


def test_a_null_inherits_and_a_zero_does_not():
    result = merged([*LAYERS, Layer("row", {"rate": {"burst": None, "cost": 0}})])

    assert result.find("rate.burst") == 4
    assert result.find("rate.cost") == 0


def test_a_list_is_replaced_whole():
    result = merged(paging={"stop": ["SHORT_PAGE"]})

    assert result.find("paging.stop") == ["SHORT_PAGE"]


def test_every_value_has_an_origin_and_every_origin_a_value():
    result = merged(rate={"burst": 9})
    paths = {f"{group}.{key}" for group, keys in result.values.items() for key in keys}

    assert paths == set(result.origins)


def test_the_defaults_of_the_platform_stay_as_they_are():
    before = {group: dict(keys) for group, keys in PLATFORM.values.items()}

    merged(rate={"per_second": 99}, retry={"max_attempts": 1})

    assert before == PLATFORM.values


def test_what_nobody_declares_is_none():
    assert merged().find("response.items_path") is None
    assert merged().find("nothing.here") is None
