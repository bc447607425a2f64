"""What no check ever sees: the language itself refuses it when the pack is read."""

import pytest

from patra_ingest.errors import PackError
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.unit.check_packs import GONE, HARVEST, a_search, changed, problems_of

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
        (f"{WORKS}.partitions", {"a": {"set": [1]}}, ".a.set", "does not fit", "valid string"),
        (f"{WORKS}.response.single", "one", "", "'one' does not fit", "a valid boolean"),
        (f"{WORKS}.response.asked", 7, "", "7 does not fit", "a valid string"),
        (f"{WORKS}.names", {"ofset": "o"}, ".ofset", "is not a known key", "did you mean offset?"),
    ],
)
def test_the_refusal_says_where_why_and_what_to_do(place, value, path, reason, remedy):
    [(found, why, what_to_do)] = refusals({place: value})
    assert found == place + path
    assert reason in why
    assert remedy in what_to_do


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("0 3 * *", "has five fields: minute hour day month weekday"),
        ("0 3 * * * *", "has five fields: minute hour day month weekday"),
        ("@daily", "has five fields: minute hour day month weekday"),
        ("", "has five fields: minute hour day month weekday"),
        ("60 * * * *", "'60' is no field of a cron expression"),
        ("0 24 * * *", "'24' is no field of a cron expression"),
        ("0 0 0 * *", "'0' is no field of a cron expression"),
        ("0 0 32 * *", "'32' is no field of a cron expression"),
        ("0 0 * 13 *", "'13' is no field of a cron expression"),
        ("0 0 * * 8", "'8' is no field of a cron expression"),
        ("1,2,61 * * * *", "'1,2,61' is no field of a cron expression"),
        ("0 9-24 * * *", "'9-24' is no field of a cron expression"),
        ("-1 * * * *", "'-1' is no field of a cron expression"),
        ("soon 3 * * *", "'soon' is no field of a cron expression"),
    ],
)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_a_schedule_that_no_clock_can_keep_is_refused(cron, reason, long):
    said = {"cron": cron, "enabled": False} if long else cron
    [(place, shown, why)] = refusals({f"{WORKS}.schedule": {"HARVEST": said}})
    assert place == f"{WORKS}.schedule.HARVEST.cron"
    assert shown == f"{cron!r} does not fit"
    assert reason in why


@pytest.mark.parametrize(
    "cron",
    ["0 3 * * *", "*/15 * * * *", "0-59/5 0,12 1-15/2 JAN MON-FRI", "59 23 31 12 7", "0 0 1 1 0"],
)
def test_a_schedule_is_read_as_it_is_written(cron):
    schedule = {f"{WORKS}.schedule": {"HARVEST": cron}}
    assert parsed(schedule).endpoints["works"].schedule[HARVEST].cron == cron


@pytest.mark.parametrize(
    ("operations", "scheduled", "named"),
    [
        (GONE, ["UPDATE"], "UPDATE"),
        (["BACKFILL"], ["HARVEST"], "HARVEST"),
        (["BACKFILL"], ["BACKFILL", "UPDATE", "HARVEST"], "UPDATE, HARVEST"),
    ],
)
def test_an_operation_that_is_not_declared_cannot_be_scheduled(operations, scheduled, named):
    change = {f"{WORKS}.operations": operations}
    change |= {f"{WORKS}.schedule": dict.fromkeys(scheduled, "0 3 * * *")}
    [(place, _, why)] = refusals(change)
    assert place.startswith(WORKS)
    assert why == f"schedule: {named} is not among the operations"


@pytest.mark.parametrize("kept", ["&", "=", "#", " ", "\t", "+&"])
def test_what_divides_parameters_cannot_be_kept(kept):
    found = refusals({f"{WORKS}.request.query.q": {"value": "a", "keep": kept}})
    reasons = {place: (shown, why) for place, shown, why in found}
    shown, why = reasons[f"{WORKS}.request.query.q.keep"]
    assert shown == f"{kept!r} does not fit"
    assert "should match pattern" in why


@pytest.mark.parametrize("kept", ["", "+", "+:/*"])
def test_what_divides_nothing_may_be_kept(kept):
    form = {f"{WORKS}.request.query.q": {"value": "a", "keep": kept}}
    assert parsed(form).endpoints["works"].request.query["q"].keep == kept


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        (f"{WORKS}.paging.pagesize", "did you mean page_size?"),
        ("rate.vendor.per_secnd", "did you mean per_second?"),
        (f"{WORKS}.response.update_at", "did you mean updated_at?"),
        (f"{WORKS}.paging.limit", "remove it"),
        (f"{WORKS}.window.lag", "remove it"),
        (f"{WORKS}.paging.colour", "remove it"),
    ],
)
def test_a_deep_key_is_compared_with_others_only_when_one_is_close(place, hint):
    assert refusals({place: 1}) == [(place, "is not a known key", hint)]


def test_a_partition_may_have_a_null():
    partitions = {"all": {"set": None}, "new": {"set": "1"}}
    assert parsed({f"{WORKS}.partitions": partitions}).endpoints["works"].partitions == partitions


def test_all_that_does_not_fit_is_said_at_once():
    wrong = {f"{WORKS}.paging.page_size": 0, "http.connect_timeout": "soon", "rates": {}}
    assert {place for place, _, _ in refusals(wrong)} == wrong.keys()


def test_an_endpoint_has_names_for_its_parameters_and_no_params(sqlite_template):
    own = {"offset": "start"}
    sent = {f"{WORKS}.request.query.offset": GONE}
    assert problems_of(sqlite_template, changed(a_search(), {**sent, f"{WORKS}.names": own})) == ()
    [(place, reason, _)] = refusals({**sent, f"{WORKS}.params": own})
    assert (place, reason) == (f"{WORKS}.params", "is not a known key")


def parsed(change):
    return parse_pack(PackText("the case", changed(a_search(), change), {}))


def refusals(change) -> list[tuple[str, str, str]]:
    """Return place, reason and remedy of everything that does not fit."""
    with pytest.raises(PackError) as refused:
        parsed(change)
    listed = refused.value.what.partition("the pack language: ")[2].removesuffix(").")
    problems = (problem.partition(": ") for problem in listed.split("); "))
    return [(place, *said.partition(" (")[::2]) for place, _, said in problems]
