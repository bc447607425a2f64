import json
from datetime import date, datetime

import pytest

from patra_ingest.errors import PlanError
from patra_ingest.expr.query import MAX_CHARS, And, Atom, Const, Not, Or, parse_query
from patra_ingest.expr.query_issues import Code, QueryRefused
from patra_ingest.model.codes import ExprOp, MatchType

HEART = {"term": {"field": "tiab", "value": "heart"}}


def refused(query):
    with pytest.raises(QueryRefused) as caught:
        parse_query(query)
    return caught.value.issues


def nested(levels):
    query = HEART
    for _ in range(levels - 1):
        query = {"and": [query]}
    return query


@pytest.mark.parametrize(
    ("query", "node"),
    [
        pytest.param(
            HEART,
            Atom(ExprOp.TERM, "term", "tiab", ("heart",), MatchType.PHRASE),
            id="a term is a phrase unless it says otherwise",
        ),
        pytest.param(
            {"in": {"field": "id", "values": ["a", 7]}},
            Atom(ExprOp.IN, "in", "id", ("a", "7")),
            id="numbers are text",
        ),
        pytest.param(
            {"range": {"field": "d", "from": date(2023, 1, 1)}},
            Atom(ExprOp.RANGE, "range", "d", ("2023-01-01", None)),
            id="a date as YAML reads it, and an open end",
        ),
        pytest.param(
            {"exists": {"field": "abstract"}},
            Atom(ExprOp.EXISTS, "exists", "abstract"),
            id="exists",
        ),
        pytest.param(
            {"token": {"field": "id", "kind": "PMID", "value": "7"}},
            Atom(ExprOp.TOKEN, "token", "id", ("7",), kind="pmid"),
            id="a token's kind is lower case",
        ),
        pytest.param({"const": False}, Const(False), id="a constant"),
        pytest.param({"not": {"not": {"const": True}}}, Const(True), id="two NOTs are none"),
        pytest.param(
            {"or": [{"const": True}, {"not": {"const": True}}]},
            Or((Const(True), Not(Const(True), "or[1].not"))),
            id="groups keep their order",
        ),
    ],
)
def test_a_query_is_read_from_values_and_from_json_alike(query, node):
    assert parse_query(query) == node
    assert parse_query(json.dumps(query, default=str)) == node


@pytest.mark.parametrize(
    ("query", "path", "said"),
    [
        pytest.param({}, "", "no node", id="nothing"),
        pytest.param([HEART], "", "no node", id="a list"),
        pytest.param({**HEART, "const": True}, "", "no node", id="two nodes in one"),
        pytest.param({"And": [HEART]}, "And", "did you mean and?", id="a near word"),
        pytest.param({"near": {}}, "near", "there are: and, const", id="no near word"),
        pytest.param({7: {}}, "7", "is no node", id="a number for a node"),
        pytest.param({"and": []}, "and", "at least one", id="an empty group"),
        pytest.param({"or": HEART}, "or", "needs a list", id="a group without a list"),
        pytest.param({"not": [HEART]}, "not", "no node", id="a list after NOT"),
        pytest.param({"const": 1}, "const", "neither true nor false", id="1 is not true"),
        pytest.param({"term": "heart"}, "term", "needs an object", id="a bare term"),
        pytest.param(
            {"term": {**HEART["term"], "mach": "ANY"}}, "term.mach", "mean match?", id="a typo"
        ),
        pytest.param({"term": {"field": "a"}}, "term.value", "None is no text", id="no value"),
        pytest.param({"term": {"value": "a"}}, "term.field", "None is no text", id="no field"),
        pytest.param(
            {"term": {**HEART["term"], "match": "PHRASES"}},
            "term.match",
            "mean PHRASE?",
            id="a wrong match",
        ),
        pytest.param(
            {"term": {"field": "a", "value": "\ud800"}}, "term.value", "half a char", id="surrogate"
        ),
        pytest.param(
            {"in": {"field": "a", "values": "b"}}, "in.values", "is no list", id="no list"
        ),
        pytest.param(
            {"in": {"field": "a", "values": ["b", None]}}, "in.values[1]", "no text", id="a null"
        ),
        pytest.param(
            {"range": {"field": "a", "from": datetime(2023, 1, 1)}},  # noqa: DTZ001
            "range.from",
            "has no time zone",
            id="a naive time",
        ),
        pytest.param("{", "", "is no JSON", id="broken JSON"),
        pytest.param('{"const": true, "const": false}', "", "stands twice", id="a key twice"),
        pytest.param(
            '{"range": {"field": "a", "from": NaN}}', "", "NaN is no JSON", id="not a number"
        ),
        pytest.param("[" * 60_000, "", "is no JSON", id="brackets without end"),
    ],
)
def test_what_is_no_query_is_refused_with_its_place(query, path, said):
    (issue,) = refused(query)

    assert (issue.code, issue.path) == (Code.QUERY_SHAPE, path)
    assert said in f"{issue.message} {issue.remedy}"


def test_every_problem_is_told_at_once_and_the_refusal_is_for_a_person():
    issues = refused({"and": [{"trem": {}}, {"or": [{"term": {"feild": "a", "value": "b"}}]}]})

    assert [issue.path for issue in issues] == [
        "and[0].trem",
        "and[1].or[0].term.feild",
        "and[1].or[0].term.field",
    ]
    assert issubclass(QueryRefused, PlanError)
    assert "did you mean term?" in str(QueryRefused(issues))


def test_sixteen_levels_are_read_and_seventeen_are_not():
    assert isinstance(parse_query(nested(16)), And)
    assert [issue.code for issue in refused(nested(17))] == [Code.QUERY_LIMIT]


def test_a_query_that_holds_itself_ends():
    query = {"and": [HEART]}
    query["and"].append(query)

    assert {issue.code for issue in refused(query)} == {Code.QUERY_LIMIT}


def test_five_hundred_nodes_are_read_and_one_more_is_not():
    assert isinstance(parse_query({"or": [HEART] * 499}), Or)
    assert [issue.message for issue in refused({"or": [HEART] * 5000})] == [
        "has more than 500 nodes"
    ]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"term": {"field": "a", "value": "b" * MAX_CHARS}}, id="one long value"),
        pytest.param({"in": {"field": "a", "values": ["b"] * MAX_CHARS}}, id="many short ones"),
        pytest.param(
            '{"term": {"field": "a", "value": "' + "b" * MAX_CHARS + '"}}', id="long JSON"
        ),
    ],
)
def test_a_query_is_never_longer_than_it_may_be(query):
    (issue,) = refused(query)

    assert issue.code == Code.QUERY_LIMIT


def test_a_refusal_of_very_many_problems_stays_readable():
    issues = refused({"in": {"field": "a", "values": [None] * 5000}})

    assert len(issues) == 5000
    assert len(str(QueryRefused(issues))) < 4000
    assert "and 4980 more" in str(QueryRefused(issues))
