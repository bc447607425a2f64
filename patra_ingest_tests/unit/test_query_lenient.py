"""A lenient caller gets a wider question with warnings, never a narrower one, never all of it."""

import pytest

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_issues import QueryRefused
from patra_ingest.expr.query_render import render_query
from patra_ingest.expr.query_rules import QueryBook

BOOK = QueryBook.model_validate(
    {
        "everything": "*:*",
        "fields": {name: {"type": "KEYWORD"} for name in ("a", "b", "unwritten", "unmapped")},
        "capabilities": {
            "a": {"ops": ["TERM"]},
            "b": {"ops": ["TERM"], "supports_not": False},
            "unwritten": {"ops": ["TERM"]},
            "unmapped": {"ops": ["TERM"]},
        },
        "rules": [
            {"field": "a", "op": "TERM", "template": "a:{{v}}"},
            {"field": "b", "op": "TERM", "template": "b:{{v}}"},
            {"field": "unmapped", "op": "TERM", "emit": "PARAMS", "params": {"nowhere": "{{v}}"}},
        ],
        "params": {"query": "q"},
    }
)
A, B, UNWRITTEN, UNMAPPED = (
    {"term": {"field": name, "value": "x"}} for name in ("a", "b", "unwritten", "unmapped")
)


def asked(query, lenient):
    return render_query(parse_query(query), BOOK, lenient=lenient)


CASES = [
    ({"and": [A, UNWRITTEN]}, "a:x", "W-RENDER-RULE-MISSING"),
    ({"and": [A, UNMAPPED]}, "a:x", "W-PARAM-MAP-MISSING"),
    ({"and": [A, {"not": B}]}, "a:x", "W-NOT-SKIPPED"),
    ({"and": [A, {"or": [B, UNWRITTEN]}]}, "a:x", "W-RENDER-RULE-MISSING"),
    ({"or": [A, {"and": [B, UNWRITTEN]}]}, "a:x OR b:x", "W-RENDER-RULE-MISSING"),
    ({"and": [A, {"not": {"and": [A, UNWRITTEN]}}]}, "a:x", "W-RENDER-RULE-MISSING"),
    ({"and": [A, {"not": {"and": [A, {"not": B}]}}]}, "a:x", "W-NOT-SKIPPED"),
    ({"and": [{"not": A}, UNWRITTEN]}, "*:* AND NOT a:x", "W-RENDER-RULE-MISSING"),
]


@pytest.mark.parametrize(("query", "text", "code"), CASES, ids=str)
def test_a_clause_is_let_go_only_where_that_widens_the_question(query, text, code):
    rendered = asked(query, lenient=True)

    assert rendered.text == text
    assert [issue.code for issue in rendered.warnings] == [code]


@pytest.mark.parametrize("query", [query for query, _, _ in CASES], ids=str)
def test_by_default_the_same_questions_are_refused(query):
    with pytest.raises(QueryRefused):
        asked(query, lenient=False)


@pytest.mark.parametrize(
    "query", [UNWRITTEN, {"and": [UNWRITTEN, {"not": B}]}, {"or": [A, UNWRITTEN]}], ids=str
)
def test_a_question_of_which_nothing_is_left_is_refused_even_then(query):
    with pytest.raises(QueryRefused, match="E-QUERY-EMPTIED"):
        asked(query, lenient=True)


def test_a_wrong_value_is_refused_even_then():
    with pytest.raises(QueryRefused, match="E-TERM-BLANK"):
        asked({"and": [A, {"term": {"field": "a", "value": ""}}]}, lenient=True)
