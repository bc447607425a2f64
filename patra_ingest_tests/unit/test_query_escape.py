import pytest

from patra_ingest.expr.query_escape import quoted, written
from patra_ingest.expr.query_rules import Syntax

PUBMED, LUCENE, FILTER, NONE = Syntax


@pytest.mark.parametrize(
    ("syntax", "value", "bare", "in_quotes"),
    [
        (PUBMED, "heart failure", "heart failure", '"heart failure"'),
        (PUBMED, 'a" OR b[TI]', "a or b TI", '"a OR b TI"'),
        (PUBMED, "x) NOT (y", "x not y", '"x) NOT (y"'),
        (PUBMED, "2020:2023[dp]", "2020 2023 dp", '"2020:2023 dp"'),
        (PUBMED, "#1 AND “a”", "1 and a", '"#1 AND a"'),
        (PUBMED, "Smith, J | K", "Smith J K", '"Smith, J | K"'),
        (PUBMED, "a\nAND\tb\x00", "a and b", '"a AND b"'),
        (PUBMED, "x O\u00adR\ufeff y", "x or y", '"x OR y"'),
        (PUBMED, "Oregon ANDes", "Oregon ANDes", '"Oregon ANDes"'),
        (LUCENE, "heart", "heart", '"heart"'),
        (LUCENE, "heart failure", "(heart failure)", '"heart failure"'),
        (LUCENE, 'a" OR b:c', r"(a\" or b\:c)", r'"a\" OR b:c"'),
        (LUCENE, "x) AND (y", r"(x\) and \(y)", '"x) AND (y"'),
        (LUCENE, "back\\", "back\\\\", '"back\\\\"'),
        (LUCENE, "[1 TO 2} <3", r"(\[1 TO 2\} 3)", '"[1 TO 2} <3"'),
        (LUCENE, "a&&b||!c*?~^/", r"a\&\&b\|\|\!c\*\?\~\^\/", '"a&&b||!c*?~^/"'),
        (FILTER, "10.1000/a:b(c)", "10.1000/a:b(c)", '"10.1000/a:b(c)"'),
        (FILTER, 'a"b', 'a"b', '"a b"'),
        (NONE, "a, b:c\r\nx", "a, b:c x", '"a, b:c x"'),
        (NONE, 'a"b', 'a"b', '"a b"'),
    ],
)
def test_a_value_stays_in_its_clause(syntax, value, bare, in_quotes):
    assert (written(syntax, value), quoted(syntax, value)) == (bare, in_quotes)


@pytest.mark.parametrize(
    ("syntax", "value"),
    [(PUBMED, '"[]'), (FILTER, "a,b"), (FILTER, ","), (NONE, "\x00"), (LUCENE, "\x00\x01")],
)
def test_a_value_that_cannot_be_said_is_refused_bare_and_quoted(syntax, value):
    for how in (written, quoted):
        with pytest.raises(ValueError, match=r"comma|nothing|blank"):
            how(syntax, value)


def test_a_blank_can_be_said_in_quotes_only():
    assert quoted(LUCENE, "  ") == '""'
    with pytest.raises(ValueError, match="a blank has no form"):
        written(LUCENE, "  ")
