"""No text of a person ever changes the shape of the question, and the shape means the same."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.expr.query import And, Atom, Const, Node, Not, Or, parse_query
from patra_ingest.expr.query_issues import QueryRefused
from patra_ingest.expr.query_render import render_query
from patra_ingest.expr.query_rules import QueryBook
from patra_ingest_tests.unit.test_query_sources import CROSSREF, EPMC, PUBMED, dates, term

TRICKS = [
    *('"', "'", "\\", "(", ")", "[", "]", "{", "}", ":", ",", "#", "|", "&", "&&", "!", "-", "+"),
    *(
        "*",
        "?",
        "<",
        ">",
        "~",
        "^",
        "/",
        "“",
        "”",
        "＂",
        "［",
        "\n",
        "\r\n",
        "\t",
        "\x00",
        "\u2028",
    ),
    *(" AND ", " OR ", " NOT ", "AND", "OR", "NOT", " TO ", "[TIAB]", '"[TI] OR "x"[TI]', "{{v}}"),
    *("{{from}}", "TITLE:", ") OR (", "all[sb]", '\\"', "\\\\", "doi:", ",type:book", " ", "é"),
]
texts = st.lists(st.sampled_from([*TRICKS, "a", "heart"]) | st.text(max_size=3), max_size=8).map(
    "".join
)
words = texts.map(lambda text: f"{text}a1")  # something is left, whatever is neutralised

_PUBMED = re.compile(
    r'(?P<Q>"[^"]*")|(?P<T>\[[^\[\]]*\])|(?P<mark>[()\[\]":,#|&])|(?P<W>[^\s()\[\]":,#|&]+)'
)
_LUCENE = re.compile(
    r'(?P<Q>"(?:[^"\\]|\\.)*")|(?P<F>TITLE:)|(?P<W>(?:\\.|[^\s+\-&|!(){}\[\]^"~*?:\\/<>=])+)|'
    r"(?P<mark>\S)",
    re.DOTALL,
)


def shape(text, grammar):
    """The tokens of a query: a run of words is W, a quoted text Q, a tag T, a field F."""
    kinds = []
    for token in grammar.finditer(text):
        is_operator = token[0] in ("AND", "OR", "NOT") or token.lastgroup == "mark"
        kind = token[0] if is_operator else token.lastgroup
        kinds += [] if kinds and kind == kinds[-1] == "W" else [kind]
    return " ".join(kinds).replace("F ( W )", "F W")


def question(field, one, two, three, four):
    either = {"in": {"field": field, "values": [three, four]}}
    return {"and": [term(field, one, "ANY"), term(field, two), {"not": term(field, one)}, either]}


def asked(query, book):
    return render_query(parse_query(query), book)


@given(words, words, words, words)
def test_pubmed_reads_exactly_the_clauses_of_the_query(one, two, three, four):
    text = asked(question("tiab", one, two, three, four), PUBMED).text

    assert shape(text, _PUBMED) == "W T AND Q T AND ( Q T OR Q T ) NOT Q T"
    assert re.findall(r"\[.*?\]", text) == ["[TIAB]"] * 5
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)


@given(words, words, words, words)
def test_lucene_reads_exactly_the_clauses_of_the_query(one, two, three, four):
    text = asked(question("title", one, two, three, four), EPMC).text

    assert shape(text, _LUCENE) == "F W AND F Q AND ( F W OR F W ) AND NOT F Q"


@given(st.lists(words, min_size=1, max_size=4))
def test_crossref_reads_exactly_the_filters_of_the_query_or_the_query_is_refused(values):
    query = {"and": [{"in": {"field": "doi", "values": values}}, dates("publication_date")]}
    if any("," in value for value in values):
        with pytest.raises(QueryRefused, match="E-VALUE-NOT-EXPRESSIBLE"):
            asked(query, CROSSREF)
        return

    pairs = [pair.split(":", 1) for pair in asked(query, CROSSREF).params["filter"].split(",")]

    assert [name for name, _ in pairs] == ["doi"] * len(values) + [
        "from-pub-date",
        "until-pub-date",
    ]
    assert all(said.endswith("a1") for _, said in pairs[: len(values)])


def codes_of(act):
    """The codes of a refusal; nothing when it went well."""
    try:
        act()
    except QueryRefused as refused:
        return [issue.code for issue in refused.issues]
    return []


@given(texts, st.sampled_from([(PUBMED, "tiab"), (EPMC, "title"), (CROSSREF, "text")]))
def test_any_text_is_asked_for_or_refused_and_never_asks_for_everything(value, source):
    book, field = source
    for match in ("ANY", "PHRASE"):
        query = term(field, value, match)
        codes = codes_of(lambda query=query: asked(query, book))
        assert codes in ([], ["E-TERM-BLANK"], ["E-VALUE-NOT-EXPRESSIBLE"])
        assert codes or asked(query, book).text


plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
names = st.sampled_from(
    ["and", "or", "not", "const", "term", "in", "field", "value", "values", "x"]
)
rubble = st.recursive(
    plain, lambda t: st.lists(t, max_size=3) | st.dictionaries(names, t, max_size=3), max_leaves=12
)


@given(rubble)
def test_whatever_is_sent_is_a_query_or_a_refusal(raw):
    assert codes_of(lambda: parse_query(raw)) or isinstance(parse_query(raw), Node)


LETTERS = "abcd"


def a_book(syntax, **capabilities):
    """A book that writes every letter as itself."""
    usual = {letter: {"ops": ["EXISTS"], "exists": True} for letter in LETTERS}
    return QueryBook.model_validate(
        {
            "syntax": syntax,
            "everything": "all",
            "fields": {letter: {"type": "TEXT"} for letter in LETTERS},
            "capabilities": usual | capabilities,
            "rules": [{"field": x, "op": "EXISTS", "template": "{{field}}"} for x in LETTERS],
            "params": {"query": "q"},
        }
    )


trees = st.recursive(
    st.sampled_from([{"exists": {"field": letter}} for letter in LETTERS])
    | st.just({"const": True}),
    lambda tree: st.one_of(
        st.builds(lambda nodes: {"and": nodes}, st.lists(tree, min_size=1, max_size=3)),
        st.builds(lambda nodes: {"or": nodes}, st.lists(tree, min_size=1, max_size=3)),
        st.builds(lambda node: {"not": node}, tree),
    ),
    max_leaves=8,
)


def meant(node, true):
    match node:
        case And(children):
            return all(meant(child, true) for child in children)
        case Or(children):
            return any(meant(child, true) for child in children)
        case Not(child):
            return not meant(child, true)
        case Const(value):
            return value
        case Atom():
            return node.field in true


def read_pubmed(text, true):
    """Evaluate strictly from left to right, every operator between two operands."""
    tokens = re.findall(r"[()]|\w+", text)

    def operand():
        token = tokens.pop(0)
        if token == "(":
            value = line()
            assert tokens.pop(0) == ")"
            return value
        assert token not in ("AND", "OR", "NOT")
        return token == "all" or token in true

    def line():
        value = operand()
        while tokens and tokens[0] != ")":
            operator, other = tokens.pop(0), operand()
            value = {
                "AND": value and other,
                "OR": value or other,
                "NOT": value and not other,
            }[operator]
        return value

    value = line()
    assert not tokens
    return value


def read_lucene(text, true):
    """Evaluate as Python would, whose and, or and not bind the way Lucene's are meant to."""
    names = {letter: letter in true for letter in LETTERS} | {"all": True}
    return eval(re.sub("AND|OR|NOT", lambda word: word[0].lower(), text), {}, names)


def outcomes(query, text, read):
    for size in range(len(LETTERS) + 1):
        for true in itertools.combinations(LETTERS, size):
            yield meant(query, true), text is None or read(text, true)


@pytest.mark.parametrize(("syntax", "read"), [("PUBMED", read_pubmed), ("LUCENE", read_lucene)])
@given(raw=trees)
def test_the_text_means_what_the_query_means(syntax, read, raw):
    query, book = parse_query(raw), a_book(syntax)
    if codes := codes_of(lambda: render_query(query, book)):
        assert codes == ["E-QUERY-NEVER"]
        assert not any(wanted for wanted, _ in outcomes(query, None, read))
        return

    text = render_query(query, book).text

    assert all(wanted == said for wanted, said in outcomes(query, text, read))


WITHOUT_B = a_book("LUCENE", c={"ops": ["EXISTS"], "exists": True, "supports_not": False})
WITHOUT_B = WITHOUT_B.model_copy(
    update={"rules": tuple(rule for rule in WITHOUT_B.rules if rule.field != "b")}
)


@given(trees)
def test_a_lenient_question_never_loses_what_was_asked_for(raw):
    query = parse_query(raw)
    if codes := codes_of(lambda: render_query(query, WITHOUT_B, lenient=True)):
        assert codes[0] in ("E-QUERY-NEVER", "E-QUERY-EMPTIED")
        return

    rendered = render_query(query, WITHOUT_B, lenient=True)

    results = list(outcomes(query, rendered.text, read_lucene))
    assert all(said for wanted, said in results if wanted)
    if not rendered.warnings:
        assert all(wanted == said for wanted, said in results)


FLAG = {"op": "EXISTS", "emit": "PARAMS", "params": {"flag": "{{field}}"}}
BROKEN = QueryBook.model_validate(
    {
        **a_book("LUCENE").model_dump(exclude={"rules", "params"}),
        "rules": [
            {"field": "a", "op": "EXISTS", "template": "{{field}}"},
            {"field": "b", "op": "EXISTS", "template": "{{field}}", "function": "NO"},
            {"field": "c", **FLAG},
            {"field": "d", **FLAG, "params": {"flag": "{{field}}", "lost": "{{field}}"}},
            {"field": "d", "op": "EXISTS", "negated": True, "template": "all AND NOT {{field}}"},
        ],
        "params": {"query": "q", "flag": "flag", "lost": {"name": "lost", "transform": "NO"}},
    }
)


@given(st.lists(trees, min_size=1, max_size=4))
def test_a_lenient_question_never_loses_what_a_broken_book_cannot_send(raw):
    query = parse_query({"and": raw})
    refusal = {"E-QUERY-NEVER", "E-QUERY-EMPTIED", "E-PARAMS-NESTED"}
    if codes := codes_of(lambda: render_query(query, BROKEN, lenient=True)):
        assert codes[0] in refusal
        return

    rendered = render_query(query, BROKEN, lenient=True)

    flags = [rendered.params["flag"]] if "flag" in rendered.params else []
    said = " and ".join([f"({rendered.text or 'all'})", *flags])
    results = list(outcomes(query, said, read_lucene))
    assert all(said for wanted, said in results if wanted)
    if not rendered.warnings:
        assert all(wanted == said for wanted, said in results)
