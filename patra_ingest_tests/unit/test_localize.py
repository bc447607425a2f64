"""What a spec asks for one slice."""

from datetime import timedelta

import pytest

from patra_ingest.expr.template import compile_template
from patra_ingest.model import keys
from patra_ingest.model.bounds import Bounds, IdSet, PageRange, SplitPart, read_bounds
from patra_ingest.model.codes import Operation
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.planner.derivation import Derivation
from patra_ingest.spec.localize import localize, query_window, reading_of, window_variables
from patra_ingest.spec.slice_spec import lookback_of, slice_spec
from patra_ingest_tests.builders import a_spec, day, days

DAYS = days(3, 5)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("window", "start", "last"),
    [
        pytest.param({}, day(3), day(5) - SECOND, id="the last second inside"),
        pytest.param({"granularity": "DAY"}, day(3), day(4), id="the last day inside"),
        pytest.param({"upper_bound": "EXCLUSIVE"}, day(3), day(5), id="an end that is left out"),
        pytest.param(
            {"lower_bound": "EXCLUSIVE"},
            day(3) - SECOND,
            day(5) - SECOND,
            id="a start that is left out",
        ),
        pytest.param({"overlap": "1h"}, day(3) - 3600 * SECOND, day(5) - SECOND, id="overlap"),
    ],
)
def test_the_bounds_of_a_request(window, start, last):
    end = "window.to" if window.get("upper_bound") == "EXCLUSIVE" else "window.last"
    query = {"q": f"${{window.from}} ${{{end}}}", "c": "${page.token}"}
    variables = window_variables(a_spec(window=window, request={"query": query}).window, DAYS)

    assert {name: bound.at for name, bound in variables.items()} == {
        "from": start,
        "to": day(5),
        "last": last,
    }


def test_the_bounds_are_written_by_the_clock_and_the_format_of_the_source():
    spec = a_spec(window={"granularity": "DAY", "zone": "America/New_York", "format": "yyyy/MM/dd"})
    winter = Window(parse_instant("2026-01-10T05:00Z"), parse_instant("2026-01-12T05:00Z"))
    variables = {"window": window_variables(spec.window, winter)}

    for template, text in (
        ("${window.from}", "2026/01/10"),
        ("${window.last|date}", "2026-01-11"),
        ("${window.to|format('yyyyMMddHHmm')}", "202601120000"),
        ("${window.from|iso}", "2026-01-10T05:00:00Z"),
    ):
        assert compile_template(template).render(variables) == text


@pytest.mark.parametrize(
    ("start", "end", "last"),
    [
        pytest.param("2026-03-07T05:00Z", "2026-03-09T04:00Z", "2026-03-08T05:00Z", id="23 hours"),
        pytest.param("2026-10-31T04:00Z", "2026-11-02T05:00Z", "2026-11-01T04:00Z", id="25 hours"),
    ],
)
def test_the_last_day_is_asked_for_also_when_the_clocks_change(start, end, last):
    spec = a_spec(window={"granularity": "DAY", "zone": "America/New_York"}).window
    window = Window(parse_instant(start), parse_instant(end))

    assert window_variables(spec, window)["last"].at == parse_instant(last)


def test_the_last_moment_is_never_before_the_first():
    short = a_spec(window={"granularity": "DAY"}).window
    hour = days(3, 4).split(timedelta(hours=1)).__next__()

    assert window_variables(short, hour)["last"].at == day(3)


def a_slice(spec=None, no=0, **more):
    return Derivation(spec or a_spec()).slice(no, Bounds(DAYS), **more)


@pytest.mark.parametrize(
    ("overlap", "lookback", "asked"),
    [
        pytest.param("1d", 0 * DAY, days(2, 5), id="overlap alone"),
        pytest.param("0s", 2 * DAY, days(1, 5), id="lookback alone"),
        pytest.param("1d", 2 * DAY, days(1, 5), id="the longer one is the lookback"),
        pytest.param("2d", 1 * DAY, days(1, 5), id="the longer one is the overlap"),
    ],
)
def test_overlap_and_lookback_widen_the_question_and_not_the_slice(overlap, lookback, asked):
    spec = a_spec(window={"overlap": overlap})
    found = a_slice(spec, lookback=lookback)

    assert query_window(spec.window, DAYS, lookback) == asked
    assert window_variables(spec.window, DAYS, lookback)["from"].at == asked.start
    assert found.window == DAYS
    assert lookback_of(found.spec) == lookback
    assert found.expr_hash == a_slice().expr_hash
    assert found.signature == a_slice().signature


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(DAYS),
        Bounds(DAYS, partition="bio", splits=(SplitPart(0, 1, 99), SplitPart(1, value="a"))),
        Bounds(pages=PageRange(1, 201)),
        Bounds(pages=PageRange(201)),
        Bounds(ids=IdSet("works", ("a", "b"))),
        Bounds(ids=IdSet("works", ("a", "b"), bucket=3)),
    ],
)
def test_a_slice_spec_leads_back_to_its_bounds(bounds):
    assert read_bounds(slice_spec(a_spec(), bounds, priority=5)) == bounds


def hash_of(spec, window=DAYS):
    return keys.expr_hash(localize(reading_of(spec), slice_spec(spec, Bounds(window), 5)))


@pytest.mark.parametrize(
    "groups",
    [
        {"paging": {"page_size": 51}},
        {"response": {"items": "$.other"}},
        {"endpoint": {"fields": []}},
        {"request": {"path": "/other"}},
    ],
    ids=lambda groups: next(iter(groups)),
)
def test_a_change_of_what_is_asked_or_how_it_is_read_changes_the_hash(groups):
    assert hash_of(a_spec(**groups)) != hash_of(a_spec())


def test_another_window_another_hash_another_speed_the_same():
    assert hash_of(a_spec(), days(3, 6)) != hash_of(a_spec())
    assert hash_of(a_spec(rate={"per_second": 99}, retry={"max_attempts": 9})) == hash_of(a_spec())


def test_the_same_slice_has_the_same_signature_in_every_plan():
    update = a_spec().model_copy(update={"operation": Operation.UPDATE})

    assert a_slice(no=0).signature == a_slice(no=7).signature != a_slice(update).signature
