"""Templates: a failing pack for every rule about what a request is made of."""

import pytest

from patra_ingest.spec.checks import templates
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.unit.check_packs import (
    UPDATE,
    Case,
    a_search,
    assert_refused,
    changed,
    problems_of,
)

QUERY = "endpoints.works.request.query"
PATH = "endpoints.works.request.path"
BY_DAY = "${window.last|format('yyyy-MM-dd')}"

CASES = (
    Case(
        templates.templates_parse,
        "an unknown name in the query",
        {f"{QUERY}.sort": "${order}"},
        "endpoints.works.request.query.sort",
        "${order} is not known here",
        "known names: asked, identity.contact",
    ),
    Case(
        templates.templates_parse,
        "a place that is not closed",
        {"endpoints.works.request.path": "/works/${page.size"},
        "endpoints.works.request.path",
        "has no end; close it",
        "correct the template",
    ),
    Case(
        templates.templates_parse,
        "a function that is not on the list",
        {f"{QUERY}.size": "${page.size|eval}"},
        "endpoints.works.request.query.size",
        "there is no function eval",
        "correct the template",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in a clause",
        {f"{QUERY}.q": {"clauses": ["a", "${b}"]}},
        "endpoints.works.request.query.q",
        "${b} is not known here",
        "known names:",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in a header",
        {"endpoints.works.request.headers": {"X-Who": "${me}"}},
        "endpoints.works.request.headers.X-Who",
        "${me} is not known here",
        "identity.contact",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in what every request carries",
        {"http.query": {"mailto": "${mail}"}},
        "http.query.mailto",
        "${mail} is not known here",
        "identity.contact",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in a body",
        {"endpoints.works.request.method": "POST", "endpoints.works.request.body": {"a": ["${b}"]}},
        "endpoints.works.request.body",
        "${b} is not known here",
        "known names:",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in an echo",
        {"endpoints.works.response.expect": [{"path": "$.q", "equals": "${echo}"}]},
        "endpoints.works.response.expect.0.equals",
        "${echo} is not known here",
        "known names:",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in a probe",
        {"endpoints.works.cap": {"max": 100, "probe": {"query": {"rows": "${none}"}}}},
        "endpoints.works.cap.probe.query.rows",
        "${none} is not known here",
        "known names:",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in the form of a probe",
        {"endpoints.works.cap": {"max": 100, "probe": {"form": {"rows": "${none}"}}}},
        "endpoints.works.cap.probe.form.rows",
        "${none} is not known here",
        "known names:",
    ),
    Case(
        templates.templates_parse,
        "an unknown name in the body of a probe",
        {"endpoints.works.cap": {"max": 100, "probe": {"body": {"rows": "${none}"}}}},
        "endpoints.works.cap.probe.body",
        "${none} is not known here",
        "known names:",
    ),
    Case(
        templates.patterns_parse,
        "a pattern that is no pattern",
        {f"{QUERY}.q": {"value": "a", "pattern": "("}},
        "endpoints.works.request.query.q.pattern",
        "'(' is not a regular expression",
        "correct the pattern",
    ),
    Case(
        templates.patterns_parse,
        "a pattern that can run without end",
        {f"{QUERY}.q": {"value": "a", "pattern": "(a+)+$"}},
        "endpoints.works.request.query.q.pattern",
        "can run without end",
        "correct the pattern",
    ),
    Case(
        templates.patterns_parse,
        "a pattern of what every request carries",
        {"http.query": {"mailto": {"value": "a", "pattern": "("}}},
        "http.query.mailto.pattern",
        "'(' is not a regular expression",
        "correct the pattern",
    ),
    Case(
        templates.patterns_parse,
        "a pattern of a probe",
        {
            "endpoints.works.cap": {
                "max": 9,
                "probe": {"query": {"q": {"value": "a", "pattern": "("}}},
            }
        },
        "endpoints.works.cap.probe.query.q.pattern",
        "'(' is not a regular expression",
        "correct the pattern",
    ),
    Case(
        templates.times_show_the_grain,
        "seconds that a template writes in days",
        {f"{QUERY}.to": BY_DAY},
        "endpoints.works.request.query.to",
        "yyyy-MM-dd does not show the SECOND",
        "write it finer",
    ),
    Case(
        templates.times_show_the_grain,
        "hours that a template writes as a date",
        {f"{QUERY}.to": "${window.last|date}", "endpoints.works.window.granularity": "HOUR"},
        "endpoints.works.request.query.to",
        "date does not show the HOUR",
        "say a coarser window.granularity",
    ),
    Case(
        templates.times_show_the_grain,
        "seconds that a clause writes in minutes of another zone",
        {f"{QUERY}.q": {"clauses": ["since ${window.from|zone('Asia/Tokyo')|format('HH:mm')}"]}},
        "endpoints.works.request.query.q",
        "HH:mm does not show the SECOND",
        "write it finer",
    ),
    Case(
        templates.values_in_the_path_are_segments,
        "a path that a person can lead elsewhere",
        {PATH: "/works/${params.set}"},
        "endpoints.works.request.path",
        "${params.set} may hold a slash",
        "add |segment to it",
    ),
    Case(
        templates.values_in_the_path_are_segments,
        "a path that the ids of a source can lead elsewhere",
        {PATH: "/works/${ids|join(',')}", QUERY: {}, "endpoints.works.operations": ["UPDATE"]},
        "endpoints.works.request.path",
        "${ids|join(',')} may hold a slash",
        "add |segment to it",
        operation=UPDATE,
    ),
    Case(
        templates.parameters_are_used,
        "a parameter that changes nothing",
        {},
        "--set params.color",
        "no template of this endpoint uses it",
        "or use ${params.color} in the pack",
        asked=Overrides(params={"color": "red"}),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


@pytest.mark.parametrize("asked", [Overrides(), Overrides(params={"set": "a/b"})])
def test_a_parameter_of_the_pack_may_be_given_or_not(sqlite_template, asked):
    form = changed(a_search(), {PATH: "/works/${params.set|segment}"})
    assert problems_of(sqlite_template, form, asked=asked) == ()


def test_days_may_be_written_in_days(sqlite_template):
    by_day = {f"{QUERY}.to": BY_DAY, "endpoints.works.window.granularity": "DAY"}
    assert problems_of(sqlite_template, changed(a_search(), by_day)) == ()
