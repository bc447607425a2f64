"""What a person types after `--set`."""

import pytest

from patra_ingest.errors import PlanError
from patra_ingest.spec.overrides import parse_overrides


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("paging.page_size=50", 50),
        ("paging.page_size= 50 ", 50),
        (" paging.page_size=50", 50),
        ("paging.page_size=0.5", 0.5),
        ("paging.page_size=true", True),
        ("paging.page_size=[EMPTY_PAGE, SHORT_PAGE]", ["EMPTY_PAGE", "SHORT_PAGE"]),
        ("paging.page_size={a: 1}", {"a": 1}),
        ("paging.page_size=word", "word"),
        ("paging.page_size=https://x.org/?a=b", "https://x.org/?a=b"),
        ("paging.page_size='007'", "007"),
        ("paging.page_size=[", "["),
        ("paging.page_size=a: b: c", "a: b: c"),
        ("paging.page_size=", None),
    ],
)
def test_a_value_is_yaml_or_else_text(text, value):
    assert parse_overrides([text]).values == {"paging": {"page_size": value}}


def test_several_overrides_are_joined_and_the_last_wins():
    overrides = parse_overrides(["rate.burst=1", "rate.cost=2", "retry.jitter=0", "rate.burst=3"])

    assert overrides.values == {"rate": {"burst": 3, "cost": 2}, "retry": {"jitter": 0}}


def test_one_name_of_a_map_is_set_by_its_path():
    overrides = parse_overrides(["request.query.rows='5'", "request.query.sort=", "http.query.a=b"])

    assert overrides.values == {
        "request": {"query": {"rows": "5", "sort": None}},
        "http": {"query": {"a": "b"}},
    }


def test_parameters_stay_text():
    assert parse_overrides(["params.year=2025"]).params == {"year": "2025"}


@pytest.mark.parametrize("text", ["", "x", "rate", "rate=1", "rate.=1", "rate.burst", "=1"])
def test_what_is_no_override_is_refused_with_an_example(text):
    with pytest.raises(PlanError, match=r"is not an override. Write --set group.key=value"):
        parse_overrides([text])


def test_an_unknown_group_is_refused_with_the_known_ones():
    with pytest.raises(
        PlanError, match=r"there is no group 'pagin'. Groups: endpoint, request, names, http"
    ):
        parse_overrides(["pagin.page_size=5"])
