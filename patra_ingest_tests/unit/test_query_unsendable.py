"""What no parameter can carry is an error; a lenient caller lets the whole clause go instead."""

import pytest

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_issues import QueryRefused
from patra_ingest.expr.query_render import render_query
from patra_ingest.expr.query_rules import QueryBook

LETTERS = ("p", "q", "r", "s")
FLAGS = [
    {"field": letter, "op": op, "emit": "PARAMS", "params": {letter: place}}
    for letter in LETTERS
    for op, place in (("TERM", "{{v}}"), ("IN", "{{item}}"))
]
SPAN = {"field": "day", "op": "RANGE", "emit": "PARAMS"}


def a_book(**params):
    """A book whose letters are parameters; `a` is text, `lost` and `gone` call what is nowhere."""
    names = ("a", "lost", "gone", "wrong", *LETTERS)
    terms = {name: {"ops": ["TERM", "IN"]} for name in names}
    usual = {
        "query": "query",
        "p": "P",
        "q": {"name": "Q", "transform": "LIST_JOIN"},
        "r": {"name": "R", "repeat": True},
        "s": {"name": "S", "transform": "NOWHERE"},
        "kind": "kind",
        "from": "from",
        "to": {"name": "to", "transform": "NOWHERE"},
    }
    return QueryBook.model_validate(
        {
            "everything": "*:*",
            "fields": {name: {"type": "KEYWORD"} for name in names} | {"day": {"type": "DATE"}},
            "capabilities": terms | {"day": {"ops": ["RANGE"], "range": "DATE"}},
            "rules": [
                {"field": "a", "op": "TERM", "template": "a:{{v}}"},
                {"field": "wrong", "op": "TERM", "template": "{{what}}"},
                {"field": "lost", "op": "TERM", "template": "{{v}}{{dt}}", "function": "NO"},
                {
                    "field": "gone",
                    "op": "TERM",
                    "emit": "PARAMS",
                    "params": {"p": "{{v}}"},
                    "function": "NO",
                },
                {**SPAN, "params": {"kind": "day", "from": "{{from}}", "to": "{{to}}"}},
                *FLAGS,
            ],
            "params": usual | params,
        }
    )


def one(field, value="x"):
    return {"term": {"field": field, "value": value}}


def some(field):
    return {"in": {"field": field, "values": ["x", "y"]}}


A, LOST, GONE, P, Q, R, S = map(one, ("a", "lost", "gone", "p", "q", "r", "s"))
DAY = {"range": {"field": "day", "from": "2023-01-01", "to": "2023-02-01"}}
UNKNOWN, COUNT, REPEAT = (
    "W-FN-OR-TRANSFORM-NOTFOUND",
    "W-PARAM-COUNT-LIMIT",
    "W-MULTI-REPEAT-NOTSUPPORTED",
)
TEXT = {"query": "a:x"}

# The query, what is sent, the warnings, and the errors of a caller who is not lenient.
UNSENDABLE = [
    ({"and": [A, LOST]}, TEXT, [UNKNOWN], ["E-FN-NOTFOUND", "E-TEMPLATE"]),
    ({"and": [A, GONE]}, TEXT, [UNKNOWN], ["E-FN-NOTFOUND"]),
    ({"and": [A, {"or": [A, LOST]}]}, TEXT, [UNKNOWN], ["E-FN-NOTFOUND", "E-TEMPLATE"]),
    ({"and": [A, {"not": LOST}]}, TEXT, [UNKNOWN], ["E-FN-NOTFOUND", "E-TEMPLATE"]),
    (
        {"and": [A, {"not": {"and": [A, LOST]}}]},
        TEXT,
        [UNKNOWN],
        ["E-FN-NOTFOUND", "E-TEMPLATE"],
    ),
    ({"and": [A, S]}, TEXT, [UNKNOWN], ["E-TRANSFORM-NOTFOUND"]),
    ({"and": [P, S]}, {"P": "x"}, [UNKNOWN], ["E-TRANSFORM-NOTFOUND"]),
    ({"and": [A, S, S]}, TEXT, [UNKNOWN, UNKNOWN], ["E-TRANSFORM-NOTFOUND"]),
    ({"and": [A, DAY]}, TEXT, [UNKNOWN], ["E-TRANSFORM-NOTFOUND"]),
    ({"and": [P, one("p", "y")]}, {"P": "x"}, [COUNT], ["E-PARAM-COUNT-LIMIT"]),
    ({"and": [P, P, P, A]}, TEXT | {"P": "x"}, [COUNT, COUNT], ["E-PARAM-COUNT-LIMIT"]),
    ({"and": [A, some("p")]}, TEXT, [REPEAT], ["E-PARAM-COUNT-LIMIT"]),
    ({"and": [some("p"), P]}, {"P": "x"}, [REPEAT], ["E-PARAM-COUNT-LIMIT"]),
    ({"and": [P, some("p")]}, {"P": "x"}, [REPEAT], ["E-PARAM-COUNT-LIMIT"]),
    (
        {"and": [P, P, some("p"), S, LOST]},
        {"P": "x"},
        [COUNT, REPEAT, UNKNOWN, UNKNOWN],
        ["E-FN-NOTFOUND", "E-TEMPLATE", "E-PARAM-COUNT-LIMIT", "E-TRANSFORM-NOTFOUND"],
    ),
    ({"and": [Q, some("q")]}, {"Q": "x,x,y"}, [], []),
    ({"and": [R, some("r")]}, {"R": ["x", "x", "y"]}, [], []),
]


@pytest.mark.parametrize(("query", "sent", "codes", "_errors"), UNSENDABLE, ids=str)
def test_a_clause_that_cannot_be_sent_goes_whole(query, sent, codes, _errors):
    rendered = render_query(parse_query(query), a_book(), lenient=True)

    assert rendered.params == sent
    assert [issue.code for issue in rendered.warnings] == codes


def codes_of(query, book, **options):
    """The codes of the refusal, or none."""
    try:
        render_query(parse_query(query), book, **options)
    except QueryRefused as refused:
        return [issue.code for issue in refused.issues]
    return []


@pytest.mark.parametrize(("query", "_sent", "_codes", "errors"), UNSENDABLE, ids=str)
def test_by_default_a_clause_that_cannot_be_sent_is_an_error(query, _sent, _codes, errors):
    assert codes_of(query, a_book()) == errors


def test_a_warning_says_which_clause_is_gone_and_why():
    query = parse_query({"and": [P, one("p", "y"), some("p"), S, LOST]})

    assert [str(issue) for issue in render_query(query, a_book(), lenient=True).warnings] == [
        "W-PARAM-COUNT-LIMIT at and[1].term: would make P stand 2 times, which can be sent once"
        " (ask in several queries)",
        "W-MULTI-REPEAT-NOTSUPPORTED at and[2].in: needs P 2 times, which can be sent once"
        " (ask for one value, or in several queries)",
        "W-FN-OR-TRANSFORM-NOTFOUND at and[3].term: there is no transform NOWHERE (there are:"
        " IDENTITY, TO_EXCLUSIVE_MINUS_1D, PUBMED_DATETYPE, LIST_JOIN, FILTER_JOIN)",
        "W-FN-OR-TRANSFORM-NOTFOUND at and[4].term: there is no function NO (there are:"
        " PUBMED_DATETYPE, PUBMED_DAYS, TO_EXCLUSIVE_MINUS_1D)",
    ]


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        (LOST, [UNKNOWN]),
        (S, [UNKNOWN]),
        (some("p"), [REPEAT]),
        ({"and": [S, LOST, some("p")]}, [UNKNOWN, UNKNOWN, REPEAT]),
        ({"or": [A, LOST]}, [UNKNOWN]),
    ],
    ids=str,
)
def test_nothing_but_unsendable_clauses_is_refused_even_then(query, codes):
    assert codes_of(query, a_book(), lenient=True) == ["E-QUERY-EMPTIED", *codes]


BROKEN_TEXT = {"name": "query", "transform": "NOWHERE"}


def test_the_text_goes_whole_when_its_parameter_cannot_take_it():
    book = a_book(query=BROKEN_TEXT)
    rendered = render_query(parse_query({"and": [A, P]}), book, lenient=True)

    assert (rendered.text, rendered.params) == (None, {"P": "x"})
    assert [(issue.code, issue.path) for issue in rendered.warnings] == [(UNKNOWN, "")]
    assert codes_of(A, book, lenient=True) == ["E-QUERY-EMPTIED", UNKNOWN]
    assert codes_of({"and": [A, P]}, book) == ["E-TRANSFORM-NOTFOUND"]


def test_the_text_goes_whole_when_no_parameter_carries_it():
    whole = a_book()
    others = tuple(rule for rule in whole.params if rule.key != "query")
    book = whole.model_copy(update={"params": others})
    rendered = render_query(parse_query({"and": [A, P]}), book, lenient=True)

    assert (rendered.text, rendered.params) == (None, {"P": "x"})
    assert [issue.code for issue in rendered.warnings] == ["W-PARAM-MAP-MISSING"]
    assert codes_of(A, book, lenient=True) == ["E-QUERY-EMPTIED", "W-PARAM-MAP-MISSING"]


@pytest.mark.parametrize(
    ("query", "given", "sent", "codes"),
    [
        (A, {"s": "5"}, TEXT, [UNKNOWN]),
        (A, {"nowhere": "5"}, TEXT, ["W-PARAM-MAP-MISSING"]),
        ({"and": [A, S]}, {"s": "5"}, TEXT, [UNKNOWN, UNKNOWN]),
        ({"and": [A, P]}, {"p": "5"}, TEXT | {"P": "5"}, [COUNT]),
        ({"and": [A, R]}, {"r": "5"}, TEXT | {"R": ["5", "x"]}, []),
    ],
    ids=str,
)
def test_a_given_value_is_sent_before_a_clause_or_let_go_with_a_warning(query, given, sent, codes):
    rendered = render_query(parse_query(query), a_book(), given=given, lenient=True)

    assert rendered.params == sent
    assert [issue.code for issue in rendered.warnings] == codes


FALLBACK = {"name": "S", "transform": "NOWHERE", "default": "narrow"}


@pytest.mark.parametrize(
    ("params", "query", "sent"),
    [
        ({"s": FALLBACK}, A, TEXT | {"S": "narrow"}),
        ({"s": FALLBACK}, {"and": [A, S]}, TEXT),
        ({"p": {"name": "P", "default": "narrow"}}, {"and": [A, GONE]}, TEXT),
        ({"kind": {"name": "kind", "default": "narrow"}}, {"and": [A, DAY]}, TEXT),
        ({"s": FALLBACK | {"default": "*:*"}}, {"and": [A, S]}, TEXT),
        ({"query": BROKEN_TEXT | {"default": "narrow"}}, {"and": [A, P]}, {"P": "x"}),
        ({"query": BROKEN_TEXT | {"default": "*:*"}}, {"and": [A, P]}, {"P": "x", "query": "*:*"}),
    ],
    ids=str,
)
def test_no_default_takes_the_place_of_what_was_let_go(params, query, sent):
    assert render_query(parse_query(query), a_book(**params), lenient=True).params == sent


def test_no_default_takes_the_place_of_a_given_value_either():
    book = a_book(s=FALLBACK)

    assert render_query(parse_query(A), book, given={"s": "5"}, lenient=True).params == TEXT


def test_a_request_that_needs_what_was_let_go_is_refused():
    book = a_book(s=FALLBACK | {"required": True})

    assert codes_of({"and": [A, S]}, book, lenient=True) == ["E-PARAM-REQUIRED", UNKNOWN]


def test_a_wrong_value_or_a_wrong_template_is_refused_even_then():
    book = a_book(p={"name": "P", "transform": "TO_EXCLUSIVE_MINUS_1D"})

    assert codes_of({"and": [A, P]}, book, lenient=True) == ["E-TRANSFORM-VALUE"]
    assert "E-TEMPLATE" in codes_of({"and": [A, one("wrong")]}, book, lenient=True)
