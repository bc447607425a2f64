import pytest

from patra_ingest.expr.query_book import book_problems
from patra_ingest.expr.query_rules import QueryBook

TERM = {"field": "a", "op": "TERM", "template": "{{v}}"}
SPAN = {
    "field": "day",
    "op": "RANGE",
    "emit": "PARAMS",
    "params": {"from": "{{from}}", "to": "{{to}}"},
}
A_LIST = {"field": "ids", "op": "IN", "template": "{{items}}", "item_template": "{{item}}"}


def a_book(**different):
    book = {
        "fields": {"a": {"type": "TEXT"}, "day": {"type": "DATE"}, "ids": {"type": "KEYWORD"}},
        "capabilities": {
            "a": {"ops": ["TERM"]},
            "day": {"ops": ["RANGE"], "range": "DATE", "supports_not": False},
            "ids": {"ops": ["IN"]},
        },
        "rules": [TERM, SPAN, A_LIST],
        "params": {"query": "q", "from": "since", "to": "until"},
    }
    return QueryBook.model_validate(book | different)


def rules(*changed):
    """The book with the rules of these fields replaced."""
    fields = {rule["field"] for rule in changed}
    return a_book(rules=[*(r for r in (TERM, SPAN, A_LIST) if r["field"] not in fields), *changed])


def can(field, **different):
    """The book with another capability of one field."""
    usual = a_book().model_dump(exclude_unset=True)["capabilities"]
    return a_book(capabilities=usual | {field: usual[field] | different})


def params(**different):
    return a_book(params={"query": "q", "from": "since", "to": "until"} | different)


def test_a_book_in_order_has_no_problem():
    assert book_problems(a_book()) == []
    assert book_problems(QueryBook()) == []


@pytest.mark.parametrize(
    ("book", "said"),
    [
        pytest.param(
            a_book(fields={"day": {"type": "DATE"}, "ids": {"type": "TEXT"}}),
            "E-FIELD-NOT-FOUND at rules[0].field: a is not in the dictionary",
            id="a field outside the dictionary",
        ),
        pytest.param(
            rules({**TERM, "match": "PHRASE"}),
            "W-RENDER-RULE-MISSING at capabilities.a.ops: no rule writes NOT TERM ANY",
            id="a match no rule writes",
        ),
        pytest.param(
            rules({**TERM, "negated": False}),
            "W-RENDER-RULE-MISSING at capabilities.a.ops: no rule writes NOT TERM",
            id="a NOT no rule writes",
        ),
        pytest.param(
            can("a", ops=["TERM", "IN"]),
            "W-RENDER-RULE-MISSING at capabilities.a.ops: no rule writes IN",
            id="an operator no rule writes",
        ),
        pytest.param(
            can("day", supports_not=True),
            "E-NOT-UNSUPPORTED at capabilities.day.ops: NOT RANGE would have to negate",
            id="a NOT before a parameter",
        ),
        pytest.param(can("day", range="NONE"), "RANGE over nothing", id="a range without kind"),
        pytest.param(can("a", ops=["TERM", "EXISTS"]), "exists: false", id="half an EXISTS"),
        pytest.param(can("a", ops=["IN"]), "no capability allows TERM on a", id="an unused rule"),
        pytest.param(rules(TERM, TERM), "E-BOOK at rules[2]: another rule", id="a rule twice"),
        pytest.param(
            rules({**SPAN, "params": {"since": "{{from}}{{to}}"}}),
            "W-PARAM-MAP-MISSING at rules[2]: since is the provenance's own name",
            id="a vendor's name in a rule",
        ),
        pytest.param(
            rules({**SPAN, "params": {"form": "{{from}}", "to": "{{to}}"}}),
            "form is mapped nowhere (did you mean from?)",
            id="a key without parameter",
        ),
        pytest.param(
            a_book(params={"from": "f", "to": "t"}), "query is mapped nowhere", id="query"
        ),
        pytest.param(rules({**TERM, "function": "NO"}), "E-FN-NOTFOUND at rules[2]", id="function"),
        pytest.param(
            params(to={"name": "t", "transform": "LISTJOIN"}),
            "E-TRANSFORM-NOTFOUND at params.to: there is no transform LISTJOIN (did you mean LIST_",
            id="transform",
        ),
        pytest.param(
            rules({**TERM, "template": "{{v}}{{from}}"}),
            "E-TEMPLATE at rules[2]: {{from}} is no placeholder there, in a rule for TERM",
            id="a placeholder of another operator",
        ),
        pytest.param(
            rules({**A_LIST, "template": "{{item}}"}),
            "{{item}} is no placeholder there, in a rule for IN (did you mean items?)",
            id="an item outside its template",
        ),
        pytest.param(
            rules({**A_LIST, "item_template": "{{item}}{{items}}"}),
            "{{items}} is no placeholder there",
            id="all items inside one",
        ),
        pytest.param(rules({**TERM, "template": "x"}), "leaves the value out", id="no value"),
        pytest.param(
            rules({**SPAN, "params": {"from": "{{from}}"}}), "leaves a bound out", id="no end"
        ),
        pytest.param(rules({**A_LIST, "item_template": "x"}), "leaves the item out", id="no item"),
        pytest.param(
            rules({**A_LIST, "item_template": "a:{{item}} AND b:{{item}}"}),
            "joins inside an item",
            id="an operator inside an item",
        ),
        pytest.param(rules({**TERM, "template": None}), "writes nothing", id="no template"),
        pytest.param(rules({**SPAN, "params": {}}), "writes nothing", id="no parameters"),
        pytest.param(
            rules({**TERM, "template": 't:"{{v}}"'}), "puts its own quotes", id="quotes by hand"
        ),
        pytest.param(
            rules({**TERM, "escape": "CROSSREF_FILTER"}),
            "E-ESCAPE-UNSAFE at rules[2]",
            id="a filter's escape in a query",
        ),
        pytest.param(a_book(syntax="NONE"), "E-ESCAPE-UNSAFE at rules[0]", id="no escape at all"),
        pytest.param(
            a_book(
                rules=[TERM, {**SPAN, "function": "TO_EXCLUSIVE_MINUS_1D"}, A_LIST],
                params={
                    "query": "q",
                    "from": "f",
                    "to": {"name": "t", "transform": "TO_EXCLUSIVE_MINUS_1D"},
                },
            ),
            "is applied by the rule and by the parameter",
            id="a day taken off twice",
        ),
        pytest.param(
            a_book(
                capabilities={"ids": {"ops": ["IN"], "supports_not": False}},
                rules=[{**A_LIST, "emit": "PARAMS", "params": {"filter": "id:{{item}}"}}],
                params={"filter": {"name": "filter", "transform": "FILTER_JOIN"}},
            ),
            "writes each item as a filter of its own",
            id="a list torn into filters",
        ),
        pytest.param(
            a_book(params=[{"key": "query", "name": "q"}, {"key": "query", "name": "r"}]),
            "E-BOOK at params.query: is mapped twice",
            id="a key mapped twice",
        ),
        pytest.param(params(to={"name": "t", "value": "${nope}"}), "${nope} is not", id="a name"),
        pytest.param(params(to={"name": "t", "value": "${value|no}"}), "no function no", id="call"),
        pytest.param(params(to={"name": "t", "value": "x"}), "leaves the value out", id="fixed"),
    ],
)
def test_a_problem_of_a_book_is_found_before_anybody_asks(book, said):
    assert any(said in str(issue) for issue in book_problems(book)), book_problems(book)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"rules": [{**TERM, "templat": "x"}]}, "Extra inputs"),
        ({"rules": [{**TERM, "op": "LIKE"}]}, "Input should be 'TERM'"),
        ({"params": {"Query": "q"}}, "should match pattern"),
        ({"params": {"query": {"name": ""}}}, "at least 1 character"),
        ({"params": {"query": {"nam": "q"}}}, "Field required"),
        ({"fields": {"a": {"type": "STRING"}}}, "Input should be 'DATE'"),
        ({"syntax": "SQL"}, "Input should be 'PUBMED'"),
    ],
    ids=str,
)
def test_a_part_that_does_not_fit_the_pack_language_is_refused(part, said):
    with pytest.raises(ValueError, match=said):
        QueryBook.model_validate(part)


def test_a_field_says_whether_it_holds_dates():
    fields = a_book().fields

    assert (fields["day"].is_date, fields["a"].is_date) == (True, False)
