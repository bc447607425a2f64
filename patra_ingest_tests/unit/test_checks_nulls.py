"""What is sent: a null leaves no hole in a text, and a Z stands behind UTC only."""

import pytest

from patra_ingest.spec.checks import templates
from patra_ingest_tests.unit.check_packs import (
    Case,
    PackForm,
    a_search,
    a_token_walk,
    assert_refused,
    changed,
    problems_of,
    with_a_book,
)

WORKS = "endpoints.works"
QUERY = f"{WORKS}.request.query"
CONTACT = "${identity.contact}"
TOKYO = {f"{WORKS}.window.zone": "Asia/Tokyo"}
WITH_Z = "yyyy-MM-ddTHH:mm:ssZ"
CUT = {"by": "PREFIX", "alphabet": "ab", "clause": "name:${value}"}


def a_hole(what, place, said, hole, **more):
    """Return the case of a value that may be null inside a longer text."""
    return Case(
        templates.what_may_be_null_stands_alone,
        what,
        {place: said, **more.pop("besides", {})},
        more.pop("path", place),
        f"{hole} may be null inside a longer text",
        "make it a clause, or write ${name?}",
        **more,
    )


def late(what, change, path, remedy):
    said = "writes Z behind the clock of Asia/Tokyo"
    return Case(templates.utc_is_written_in_utc, what, change, path, said, remedy)


CASES = (
    a_hole("a contact", f"{QUERY}.who", "mailto:${identity.contact}", CONTACT),
    a_hole("a contact, in full", f"{QUERY}.who", {"value": "m ${identity.contact}"}, CONTACT),
    a_hole("a query", f"{QUERY}.q", "(${query}) AND a", "${query}", pack=with_a_book),
    a_hole("a query with a function", f"{QUERY}.q", "a ${query|lower}", "${query|lower}"),
    a_hole("what a query became", f"{QUERY}.q", "a ${asked.f}", "${asked.f}", pack=with_a_book),
    a_hole(
        "a split",
        f"{QUERY}.q",
        "a AND ${split}",
        "${split}",
        besides={f"{WORKS}.cap": {"max": 100, "then": [CUT]}},
    ),
    a_hole(
        "a token that the first page has not",
        f"{QUERY}.at",
        "t-${page.token}",
        "${page.token}",
        pack=a_token_walk,
    ),
    a_hole(
        "a header",
        "http.headers",
        {"X-Who": "a ${identity.contact}"},
        CONTACT,
        path="http.headers.X-Who",
    ),
    a_hole(
        "a text of a body",
        f"{WORKS}.request.body",
        {"a": ["b ${query}"]},
        "${query}",
        besides={f"{WORKS}.request.method": "POST"},
    ),
    late(
        "the format of the window",
        {**TOKYO, f"{WORKS}.window.format": WITH_Z},
        f"{WORKS}.window.format",
        "drop the Z",
    ),
    late(
        "a format in a template",
        {**TOKYO, f"{QUERY}.to": f"${{window.last|format('{WITH_Z}')}}"},
        f"{QUERY}.to",
        "use |iso, or drop Z",
    ),
    late(
        "a format in a template, by the zone of the source",
        {
            "provenance.timezone": "Asia/Tokyo",
            f"{QUERY}.to": f"${{window.last|format('{WITH_Z}')}}",
        },
        f"{QUERY}.to",
        "use |iso, or drop Z",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("${identity.contact}", id="alone"),
        pytest.param("mailto:${identity.contact?}", id="where nothing may stand"),
        pytest.param("mailto:${identity.contact|default('nobody')}", id="with a default"),
        pytest.param({"clauses": ["mailto:${identity.contact}"]}, id="in a clause"),
        pytest.param("from ${window.from|iso}", id="what is never null"),
    ],
)
def test_a_value_may_be_null_where_no_hole_is_left(sqlite_template, said):
    assert problems_of(sqlite_template, changed(a_search(), {f"{QUERY}.who": said})) == ()


def test_a_token_that_every_page_has_may_stand_in_a_text(sqlite_template):
    change = {f"{QUERY}.at": "t-${page.token}", f"{WORKS}.paging.initial_token": "*"}
    assert problems_of(sqlite_template, changed(a_token_walk(), change)) == ()


def in_tokyo(written: str) -> PackForm:
    return changed(a_search(), {**TOKYO, f"{QUERY}.to": written})


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(in_tokyo("${window.last|iso}"), id="iso"),
        pytest.param(in_tokyo("${window.last|format('yyyy-MM-ddTHH:mm:ss')}"), id="no Z"),
        pytest.param(in_tokyo(f"${{window.last|zone('UTC')|format('{WITH_Z}')}}"), id="UTC there"),
        pytest.param(changed(a_search(), {f"{WORKS}.window.format": WITH_Z}), id="UTC anyway"),
    ],
)
def test_a_z_may_stand_behind_utc(sqlite_template, form):
    assert problems_of(sqlite_template, form) == ()
