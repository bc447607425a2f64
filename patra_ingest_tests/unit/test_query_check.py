import pytest

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_check import check_query
from patra_ingest.expr.query_rules import QueryBook

BOOK = QueryBook.model_validate(
    {
        "fields": {
            "title": {"type": "TEXT"},
            "journal": {"type": "KEYWORD"},
            "id": {"type": "TOKEN"},
            "day": {"type": "DATE"},
            "at": {"type": "DATETIME"},
            "cited": {"type": "NUMBER"},
            "open": {"type": "BOOLEAN"},
            "secret": {"type": "TEXT", "exposable": False},
            "unasked": {"type": "TEXT"},
        },
        "capabilities": {
            "title": {
                "ops": ["TERM", "IN", "EXISTS"],
                "negatable_ops": ["TERM"],
                "matches": ["PHRASE"],
                "min_length": 2,
                "max_length": 5,
                "pattern": "[a-z ]+",
                "in_max": 2,
            },
            "journal": {"ops": ["TERM", "RANGE", "EXISTS"], "supports_not": False, "exists": True},
            "id": {"ops": ["TOKEN"], "token_kinds": ["pmid"], "token_pattern": "[0-9]+"},
            "day": {
                "ops": ["RANGE", "TERM"],
                "range": "DATE",
                "open_start": False,
                "min": "1900-01-01",
                "max": "2023-12-31",
            },
            "at": {"ops": ["RANGE"], "range": "DATETIME", "open_end": False},
            "cited": {
                "ops": ["RANGE"],
                "range": "NUMBER",
                "min": 0,
                "max": 10,
                "closed_at_infinity": True,
            },
            "open": {"ops": ["TERM"], "case_sensitive": True, "allow_blank": False},
            "secret": {"ops": ["TERM"]},
        },
    }
)


def term(field, value="abc", **more):
    return {"term": {"field": field, "value": value, **more}}


def listed(*values):
    return {"in": {"field": "title", "values": list(values)}}


def span(field, start=None, end=None):
    return {"range": {"field": field, "from": start, "to": end}}


def found(query):
    return [(issue.code, issue.path) for issue in check_query(parse_query(query), BOOK)]


@pytest.mark.parametrize(
    "query",
    [
        term("title"),
        listed("ab", "cd"),
        {"not": term("title")},
        {"exists": {"field": "journal"}},
        {"token": {"field": "id", "kind": "PMID", "value": "12"}},
        span("day", "1900-01-01", "2024-01-01"),
        span("day", "2023-12-31"),
        span("at", None, "2023-01-01T12:00:00+01:00"),
        span("cited", 0, 10),
        span("cited", "*", "2.5"),
        term("day", "2023-01-01"),
        term("open", True, case_sensitive=True),
        {"const": True},
    ],
    ids=str,
)
def test_what_the_capabilities_allow_passes(query):
    assert found(query) == []


@pytest.mark.parametrize(
    ("query", "code", "path"),
    [
        (term("titel"), "E-FIELD-NOT-FOUND", "term.field"),
        (term("secret"), "E-FIELD-NOT-FOUND", "term.field"),
        (term("unasked"), "E-FIELD-NOT-FOUND", "term.field"),
        (span("title", "a", "b"), "E-OP-NOT-ALLOWED", "range"),
        ({"exists": {"field": "title"}}, "E-OP-NOT-ALLOWED", "exists"),
        ({"not": listed("ab")}, "E-NOT-UNSUPPORTED", "not.in"),
        ({"not": {"and": [term("journal")]}}, "E-NOT-UNSUPPORTED", "not.and[0].term"),
        (term("title", match="ANY"), "E-TERM-MATCH", "term.match"),
        (term("title", case_sensitive=True), "E-TERM-CASE", "term.case_sensitive"),
        (term("title", " \n"), "E-TERM-BLANK", "term.value"),
        (term("title", "a"), "E-TERM-LEN-MIN", "term.value"),
        (term("title", "abcdef"), "E-TERM-LEN-MAX", "term.value"),
        (term("title", "abc\n"), "E-TERM-PATTERN", "term.value"),
        (term("title", "AB"), "E-TERM-PATTERN", "term.value"),
        (term("day", "yesterday"), "E-TERM-TYPE", "term.value"),
        (term("day", "2023-02-30"), "E-TERM-TYPE", "term.value"),
        (term("open", "maybe"), "E-TERM-TYPE", "term.value"),
        (listed(), "E-IN-EMPTY", "in.values"),
        (listed("ab", "ab", "ab"), "E-IN-SIZE", "in.values"),
        (listed("ab", ""), "E-TERM-BLANK", "in.values[1]"),
        (span("journal", "a", "b"), "E-RANGE-KIND", "range"),
        (span("day", "2023-01-01T00:00:00Z", "2023-02-01"), "E-RANGE-KIND", "range.from"),
        (span("day", "2023-1-1"), "E-RANGE-KIND", "range.from"),
        (span("at", None, "2023-01-01T00:00:00"), "E-RANGE-KIND", "range.to"),
        (span("cited", "1e3"), "E-RANGE-KIND", "range.from"),
        (span("cited", "1", "ten"), "E-RANGE-KIND", "range.to"),
        (span("cited"), "E-RANGE-OPEN", "range"),
        (span("cited", "*", "*"), "E-RANGE-OPEN", "range"),
        (span("day", None, "2023-01-01"), "E-RANGE-OPEN", "range.from"),
        (span("day", "2023-01-01", "*"), "E-RANGE-OPEN", "range.to"),
        (span("at", "2023-01-01"), "E-RANGE-OPEN", "range.to"),
        (span("day", "2023-01-02", "2023-01-02"), "E-RANGE-ORDER", "range.to"),
        (span("day", "2023-01-02", "2023-01-01"), "E-RANGE-ORDER", "range.to"),
        (span("day", "1899-12-31"), "E-RANGE-MIN", "range.from"),
        (span("day", "2023-01-01", "2024-01-02"), "E-RANGE-MAX", "range.to"),
        (span("cited", "-0.1", 5), "E-RANGE-MIN", "range.from"),
        (span("cited", 5, "10.1"), "E-RANGE-MAX", "range.to"),
        ({"token": {"field": "id", "kind": "doi", "value": "1"}}, "E-TOKEN-KIND", "token.kind"),
        (
            {"token": {"field": "id", "kind": "pmid", "value": "x"}},
            "E-TOKEN-PATTERN",
            "token.value",
        ),
        ({"token": {"field": "id", "kind": "pmid", "value": " "}}, "E-TERM-BLANK", "token.value"),
    ],
    ids=str,
)
def test_what_they_do_not_allow_is_named_with_its_place(query, code, path):
    assert found(query) == [(code, path)]


def test_all_issues_of_a_query_come_in_its_own_order_with_a_remedy():
    query = {"and": [term("titel"), {"or": [term("title", "A"), span("cited", 11, 10)]}]}

    issues = check_query(parse_query(query), BOOK)

    assert [str(issue).split(":")[0] for issue in issues] == [
        "E-FIELD-NOT-FOUND at and[0].term.field",
        "E-TERM-LEN-MIN at and[1].or[0].term.value",
        "E-TERM-PATTERN at and[1].or[0].term.value",
        "E-RANGE-MAX at and[1].or[1].range.from",
        "E-RANGE-ORDER at and[1].or[1].range.to",
    ]
    assert issues[0].remedy == "did you mean title?"


@pytest.mark.parametrize(
    ("capability", "said"),
    [
        ({"ops": ["RANGE"], "min": "1900-01-01"}, "min needs a range"),
        ({"ops": ["RANGE"], "range": "DATE", "min": 1900}, "'1900' is no date"),
        ({"ops": ["TERM"], "pattern": "("}, "no regular expression"),
        ({"ops": []}, "at least 1 item"),
        ({"ops": ["TERM"], "minlength": 3}, "Extra inputs"),
        ({"ops": ["TERM"], "in_max": -1}, "greater than or equal to 0"),
    ],
)
def test_a_capability_that_makes_no_sense_is_refused_when_it_is_read(capability, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        QueryBook.model_validate({"capabilities": {"a": capability}})
