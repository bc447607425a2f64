"""What no check ever sees: the language itself refuses it when the pack is read."""

import pytest

from patra_ingest.errors import PackError
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.unit.check_packs import GONE, a_search, changed, problems_of

WORKS = "endpoints.works"
TWICE = [{"name": "a", "path": "$.a"}, {"name": "a", "path": "$.b"}]
NO_TIME = "is no length of time"


@pytest.mark.parametrize(
    ("place", "value", "path", "reason", "remedy"),
    [
        (f"{WORKS}.fields", TWICE, "", "does not fit", "a is there twice; give each field its own"),
        (f"{WORKS}.paging.token_life", "0s", "", "'0s' does not fit", NO_TIME),
        ("rate.min_interval", "0ms", "", "'0ms' does not fit", NO_TIME),
        ("rate.quotas", [{"limit": 1, "per": "0d"}], ".0.per", "'0d' does not fit", NO_TIME),
        ("retry.breaker", {"failures": 1, "cooldown": "0s"}, ".cooldown", "'0s'", NO_TIME),
        (f"{WORKS}.window.safety_lag", "-1h", "", "'-1h' does not fit", "is not a duration"),
        (f"{WORKS}.window.safety_lag", 60, "", "60 does not fit", "write a duration with its unit"),
        (f"{WORKS}.paging.page_size", 0, "", "0 does not fit", "greater than or equal to 1"),
        (f"{WORKS}.paging.size_policy", "BIG", "", "'BIG' does not fit", "'OBEYED', 'FIXED'"),
        (f"{WORKS}.intended", ["NOPE"], ".0", "'NOPE' does not fit", "'NO_TOTAL'"),
        (f"{WORKS}.operations", ["PLAN"], ".PLAN", "'PLAN' does not fit", "Known: HARVEST"),
        (f"{WORKS}.names", {"ofset": "o"}, ".ofset", "is not a known key", "did you mean offset?"),
    ],
)
def test_the_refusal_says_where_why_and_what_to_do(place, value, path, reason, remedy):
    [(found, why, what_to_do)] = refusals({place: value})
    assert found == place + path
    assert reason in why
    assert remedy in what_to_do


def test_all_that_does_not_fit_is_said_at_once():
    wrong = {f"{WORKS}.paging.page_size": 0, "http.connect_timeout": "soon", "rates": {}}
    assert {place for place, _, _ in refusals(wrong)} == wrong.keys()


def test_an_endpoint_has_names_for_its_parameters_and_no_params(sqlite_template):
    own = {"offset": "start"}
    sent = {f"{WORKS}.request.query.offset": GONE}
    assert problems_of(sqlite_template, changed(a_search(), {**sent, f"{WORKS}.names": own})) == ()
    [(place, reason, _)] = refusals({**sent, f"{WORKS}.params": own})
    assert (place, reason) == (f"{WORKS}.params", "is not a known key")


def refusals(change) -> list[tuple[str, str, str]]:
    """Return place, reason and remedy of everything that does not fit."""
    with pytest.raises(PackError) as refused:
        parse_pack(PackText("the case", changed(a_search(), change), {}))
    listed = refused.value.what.partition("the pack language: ")[2].removesuffix(").")
    problems = (problem.partition(": ") for problem in listed.split("); "))
    return [(place, *said.partition(" (")[::2]) for place, _, said in problems]
