import pytest

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_functions import TRANSFORMS
from patra_ingest.expr.query_issues import Code, QueryRefused
from patra_ingest.expr.query_render import render_query
from patra_ingest.expr.query_rules import QueryBook
from patra_ingest.model.codes import EndpointOperation, Transform

FIELDS = {"a": "KEYWORD", "b": "KEYWORD", "day": "DATE", "at": "DATETIME", "p": "KEYWORD"}


def a_book(**different):
    """A book in which `a` and `b` are query text, `p` and `day` are parameters."""
    book = {
        "syntax": "LUCENE",
        "fields": {name: {"type": kind} for name, kind in FIELDS.items()},
        "capabilities": {
            "a": {"ops": ["TERM", "IN", "EXISTS", "TOKEN"], "exists": True},
            "b": {"ops": ["TERM"]},
            "p": {"ops": ["TERM", "IN"]},
            "day": {"ops": ["RANGE"], "range": "DATE"},
            "at": {"ops": ["RANGE"], "range": "DATETIME"},
        },
        "rules": [
            {"field": "a", "op": "TERM", "template": "a:{{v}}"},
            {"field": "b", "op": "TERM", "template": "b:{{v}}"},
            {"field": "a", "op": "IN", "item_template": "a:{{item}}"},
            {"field": "a", "op": "EXISTS", "template": "has:{{field}}"},
            {"field": "a", "op": "TOKEN", "template": "{{kind}}:{{v}}"},
            {"field": "at", "op": "RANGE", "template": "at:[{{from}} TO {{to}}}"},
            {"field": "p", "op": "TERM", "emit": "PARAMS", "params": {"p": "{{v}}"}},
            {"field": "p", "op": "IN", "emit": "PARAMS", "params": {"p": "{{item}}"}},
            {
                "field": "day",
                "op": "RANGE",
                "emit": "PARAMS",
                "params": {"from": "{{from}}", "to": "{{to}}"},
            },
        ],
        "params": {"query": "q", "from": "since", "to": "until", "p": "p"},
    }
    return QueryBook.model_validate(book | different)


BOOK = a_book()


def plus(rule, **different):
    """The book with one more rule."""
    return a_book(rules=[*BOOK.model_dump()["rules"], rule], **different)


def renamed(**params):
    return a_book(params={"query": "q", "from": "since", "to": "until", "p": "p"} | params)


def term(field, value="x", match="PHRASE"):
    return {"term": {"field": field, "value": value, "match": match}}


def no(node):
    return {"not": node}


A, B, P = term("a"), term("b"), term("p")
DAY = {"range": {"field": "day", "from": "2023-01-01", "to": "2023-02-01"}}


def asked(query, book=BOOK, **options):
    return render_query(parse_query(query), book, **options)


def refused(query, book=BOOK, **options):
    with pytest.raises(QueryRefused) as caught:
        asked(query, book, **options)
    return [(issue.code, issue.path) for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (A, "a:x"),
        ({"and": [A, B]}, "a:x AND b:x"),
        ({"or": [A, B]}, "a:x OR b:x"),
        ({"and": [A, {"or": [A, B]}]}, "a:x AND (a:x OR b:x)"),
        ({"or": [A, {"and": [A, B]}]}, "a:x OR (a:x AND b:x)"),
        ({"and": [A, {"and": [B, {"and": [A]}]}]}, "a:x AND b:x AND a:x"),
        ({"or": [{"or": [A, B]}, A]}, "a:x OR b:x OR a:x"),
        ({"and": [no(A), B]}, "b:x AND NOT a:x"),
        ({"and": [B, no({"or": [A, B]})]}, "b:x AND NOT (a:x OR b:x)"),
        ({"and": [B, no({"and": [A, no(B)]})]}, "b:x AND NOT (a:x AND NOT b:x)"),
        ({"and": [A, {"and": [no(B), no(A)]}]}, "a:x AND NOT b:x AND NOT a:x"),
        ({"or": [A, {"and": [B, no(A)]}]}, "a:x OR (b:x AND NOT a:x)"),
        ({"and": [B, no(no(A))]}, "b:x AND a:x"),
        ({"and": [A, {"const": True}]}, "a:x"),
        ({"or": [A, {"const": False}]}, "a:x"),
        ({"and": [A, no({"const": False})]}, "a:x"),
        ({"and": [A, {"or": [B, {"const": True}]}]}, "a:x"),
        ({"or": [A, {"const": True}]}, None),
        ({"const": True}, None),
        ({"in": {"field": "a", "values": ["x"]}}, "a:x"),
        ({"in": {"field": "a", "values": ["x", "y"]}}, "a:x OR a:y"),
        ({"and": [B, {"in": {"field": "a", "values": ["x", "y"]}}]}, "b:x AND (a:x OR a:y)"),
        ({"exists": {"field": "a"}}, "has:a"),
        ({"token": {"field": "a", "kind": "pmid", "value": "x y"}}, "pmid:(x y)"),
        (
            {"range": {"field": "at", "from": "2023-01-01", "to": "2023-01-01T02:00:00.5+01:00"}},
            "at:[2023-01-01T00:00:00Z TO 2023-01-01T01:00:00.500000Z}",
        ),
        (term("a", "{{field}} {{v}}"), r"a:(\{\{field\}\} \{\{v\}\})"),
    ],
    ids=str,
)
def test_clauses_are_put_together_with_the_parentheses_they_need(query, text):
    rendered = asked(query)

    assert rendered.text == text
    assert rendered.params == ({} if text is None else {"q": text})


@pytest.mark.parametrize(
    ("query", "issues"),
    [
        ({"const": False}, [(Code.QUERY_NEVER, "")]),
        ({"and": [A, no({"const": True})]}, [(Code.QUERY_NEVER, "")]),
        ({"or": [A, P]}, [(Code.PARAMS_NESTED, "or[1].term")]),
        ({"and": [A, no(P)]}, [(Code.PARAMS_NESTED, "and[1].not.term")]),
        ({"and": [P, P]}, [(Code.PARAM_COUNT_LIMIT, "params.p")]),
        ({"or": [A, no(B)]}, [(Code.NOT_ALONE, "or")]),
        ({"and": [no(A), DAY]}, [(Code.NOT_ALONE, "and")]),
        ({"and": [A, {"or": [A, no(B)]}]}, [(Code.NOT_ALONE, "and[1].or")]),
        (
            {"range": {"field": "at", "from": "2023-01-01"}},
            [(Code.RANGE_OPEN, "range")],
        ),
        (term("a", "<>"), [(Code.VALUE_NOT_EXPRESSIBLE, "term")]),
        (
            {"and": [{"or": [P, B]}, no(P)]},
            [
                (Code.PARAMS_NESTED, "and[0].or[0].term"),
                (Code.PARAMS_NESTED, "and[1].not.term"),
            ],
        ),
    ],
    ids=str,
)
def test_what_cannot_be_said_is_refused(query, issues):
    assert refused(query) == issues


@pytest.mark.parametrize(
    ("rule", "query", "text"),
    [
        ({"match": "ANY", "template": "any:{{v}}"}, term("a", match="ANY"), "any:x"),
        ({"match": "ANY", "template": "any:{{v}}"}, term("a", match="EXACT"), "a:x"),
        ({"value_type": "STRING", "template": "s:{{v}}"}, A, "s:x"),
        ({"value_type": "DATE", "template": "d:{{v}}"}, A, "a:x"),
        ({"negated": True, "template": "-a:{{v}}"}, {"and": [B, no(A)]}, "b:x AND -a:x"),
        ({"negated": True, "template": "-a:{{v}}"}, no(A), "-a:x"),
        ({"negated": False, "template": "+a:{{v}}"}, {"and": [A, no(A)]}, "+a:x AND NOT a:x"),
        (
            {"template": "t:{{v}} OR u:{{v}}", "match": "PHRASE"},
            {"and": [A, B]},
            "(t:x OR u:x) AND b:x",
        ),
        (
            {"template": "(t:{{v}} OR u:{{v}})", "match": "PHRASE"},
            {"and": [A, B]},
            "(t:x OR u:x) AND b:x",
        ),
    ],
    ids=str,
)
def test_the_closest_rule_writes_the_atom(rule, query, text):
    assert asked(query, plus({"field": "a", "op": "TERM", **rule})).text == text


def test_a_field_with_both_kinds_of_rule_is_text_only_where_a_parameter_cannot_stand():
    book = plus({"field": "p", "op": "TERM", "template": "p:{{v}}"})

    assert asked({"and": [A, P]}, book).params == {"q": "a:x", "p": "x"}
    assert asked({"or": [A, P]}, book).params == {"q": "a:x OR p:x"}
    assert asked({"and": [A, no(P)]}, book).params == {"q": "a:x AND NOT p:x"}


@pytest.mark.parametrize(
    ("param", "query", "sent"),
    [
        ({"name": "P"}, P, {"P": "x"}),
        ({"name": "P", "value": "${value|upper}"}, P, {"P": "X"}),
        ({"name": "P", "repeat": True}, {"and": [P, P]}, {"P": ["x", "x"]}),
        ({"name": "P", "transform": "LIST_JOIN"}, {"and": [P, P]}, {"P": "x,x"}),
        ({"name": "P", "default": "d", "transform": "LIST_JOIN"}, {"const": True}, {"P": "d"}),
        ({"name": "P", "required": True, "default": 7}, {"const": True}, {"P": "7"}),
        ({"name": "P", "transform": "IDENTITY"}, term("p", "x, y"), {"P": r"(x\, y)"}),
    ],
    ids=str,
)
def test_a_parameter_is_named_and_shaped_by_its_rule(param, query, sent):
    assert asked(query, renamed(p=param)).params == sent


def test_each_item_of_a_list_may_be_a_parameter_of_its_own():
    query = {"in": {"field": "p", "values": ["x", "y"]}}

    assert asked(query, renamed(p={"name": "p", "repeat": True})).params == {"p": ["x", "y"]}
    assert asked(query, renamed(p={"name": "p", "transform": "LIST_JOIN"})).params == {"p": "x,y"}


@pytest.mark.parametrize(
    ("book", "query", "options", "code"),
    [
        (renamed(p={"name": "p", "transform": "NO"}), P, {}, Code.TRANSFORM_NOTFOUND),
        (
            renamed(to={"name": "t", "transform": "PUBMED_DATETYPE"}), DAY, {}, Code.TRANSFORM_VALUE
        ),
        (renamed(p={"name": "p", "value": "${value|date}"}), P, {}, Code.TRANSFORM_VALUE),
        (renamed(p={"name": "p", "required": True}), A, {}, Code.PARAM_REQUIRED),
        (renamed(p="q"), {"and": [A, P]}, {}, Code.QUERY_BRIDGE_DUP),
        (BOOK, A, {"taken": {"q"}}, Code.QUERY_BRIDGE_DUP),
        (BOOK, A, {"given": {"limit": "5"}}, Code.PARAM_MAP_MISSING),
        (a_book(params={"p": "p"}), A, {}, Code.PARAM_MAP_MISSING),
        (a_book(params={"query": "q"}), P, {}, Code.PARAM_MAP_MISSING),
        (a_book(rules=()), A, {}, Code.RENDER_RULE_MISSING),
        (a_book(max_query_length=2), A, {}, Code.QUERY_LEN_MAX),
        (plus({"field": "a", "op": "TERM", "match": "PHRASE", "template": "{{v}}",
               "function": "NO"}), A, {}, Code.FN_NOTFOUND),
        (plus({"field": "a", "op": "TERM", "match": "PHRASE", "template": "{{v}}",
               "function": "PUBMED_DATETYPE"}), A, {}, Code.FN_VALUE),
        (plus({"field": "a", "op": "TERM", "match": "PHRASE", "template": "{{what}}"}), A, {},
         Code.TEMPLATE),
        (plus({"field": "a", "op": "TERM", "match": "PHRASE", "template": "{{v}}",
               "escape": "NONE"}), A, {}, Code.ESCAPE_UNSAFE),
    ],
)  # fmt: skip
def test_a_gap_in_the_book_refuses_the_query(book, query, options, code):
    assert code in [found for found, _ in refused(query, book, **options)]


def test_problems_of_all_stages_are_told_at_once():
    broken = {"and": [term("a", ""), {"or": [P, term("c")]}, term("a", "<>"), A]}

    assert refused(broken, renamed(p={"name": "p", "required": True}), taken={"q"}) == [
        (Code.TERM_BLANK, "and[0].term.value"),
        (Code.FIELD_NOT_FOUND, "and[1].or[1].term.field"),
        (Code.PARAMS_NESTED, "and[1].or[0].term"),
        (Code.VALUE_NOT_EXPRESSIBLE, "and[2].term"),
        (Code.QUERY_BRIDGE_DUP, "params.query"),
    ]


def test_given_keys_are_mapped_like_those_of_the_query():
    book = renamed(limit={"name": "rows", "required": True, "location": "HEADER"})

    rendered = asked(A, book, given={"limit": "5"}, taken={"cursor"})

    assert rendered.params == {"q": "a:x", "rows": "5"}
    assert rendered.locations == {"q": "QUERY", "rows": "HEADER"}


def test_every_transform_of_the_dictionary_is_known():
    assert set(TRANSFORMS) == set(Transform)


def test_an_endpoint_s_own_parameters_beat_those_for_all():
    params = [
        {"key": "query", "name": "one", "endpoint": "works"},
        {"key": "query", "name": "all"},
        {"key": "query", "name": "ids", "operation": "DETAIL"},
    ]
    book = a_book(params=params)

    def name(*narrowed):
        return list(asked(A, book.narrowed(*narrowed)).params)

    assert name(EndpointOperation.SEARCH, "works") == ["one"]
    assert name(EndpointOperation.SEARCH, "members") == ["all"]
    assert name(EndpointOperation.DETAIL) == ["ids"]
