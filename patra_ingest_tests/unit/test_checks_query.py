"""The query book: a failing pack for every rule about what may be asked."""

import pytest

from patra_ingest.spec.checks import query
from patra_ingest_tests.unit.check_packs import Case, assert_refused, with_a_book

BOOK = "expressions"
RULE = {"field": "title", "op": "TERM", "template": "title:{{quoted}}"}
CAN = {"ops": ["TERM"], "matches": ["PHRASE"], "supports_not": False}
BY_HAND = 'title:"{{v}}"'

CASES = (
    Case(
        query.the_book_is_complete,
        "a capability of no field",
        {f"{BOOK}.capabilities.author": CAN},
        "expressions.capabilities.author",
        "author is not in the dictionary of fields",
        "title",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a range over nothing",
        {f"{BOOK}.capabilities.title": {**CAN, "ops": ["TERM", "RANGE"]}},
        "expressions.capabilities.title",
        "allows RANGE over nothing",
        "say range: DATE",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "what may be asked and cannot be written",
        {f"{BOOK}.capabilities.title": {**CAN, "ops": ["TERM", "IN"]}},
        "expressions.capabilities.title.ops",
        "no rule writes IN",
        "add one, or forbid it",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a rule that leaves the value out",
        {f"{BOOK}.rules": [{**RULE, "template": "title:*"}]},
        "expressions.rules[0]",
        "leaves the value out",
        "use {{quoted}}",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a rule with an unknown place",
        {f"{BOOK}.rules": [{**RULE, "template": "{{quoted}}{{x}}"}]},
        "expressions.rules[0]",
        "{{x}} is no placeholder there",
        "quoted",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a rule with its own quotes",
        {f"{BOOK}.rules": [{**RULE, "template": BY_HAND}]},
        "expressions.rules[0]",
        "puts its own quotes round a value",
        "use {{quoted}}",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a rule with an unknown function",
        {f"{BOOK}.rules": [{**RULE, "function": "SHOUT"}]},
        "expressions.rules[0]",
        "there is no function SHOUT",
        "TO_EXCLUSIVE_MINUS_1D",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a rule whose values can break out",
        {f"{BOOK}.syntax": "NONE"},
        "expressions.rules[0]",
        "does not keep a value inside its clause",
        "use PUBMED or LUCENE",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a parameter that is mapped nowhere",
        {f"{BOOK}.params": {"text": "q"}},
        "expressions.rules[0]",
        "query is mapped nowhere",
        "text",
        pack=with_a_book,
    ),
    Case(
        query.the_book_is_complete,
        "a transform that is not there",
        {f"{BOOK}.params": {"query": {"name": "q", "transform": "SHOUT"}}},
        "expressions.params.query",
        "there is no transform SHOUT",
        "FILTER_JOIN",
        pack=with_a_book,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)
