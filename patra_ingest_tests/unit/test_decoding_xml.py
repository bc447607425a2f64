"""XML answers: elements are items, one or many; a large body gives what a small one gives."""

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.decoding import BodyUnreadable, decode, plain, read_tree
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.value import compile_value
from patra_ingest.expr.xml_stream import find_trails, stream_xml
from patra_ingest.expr.xml_tree import read_xml
from patra_ingest.spec.places import NextPlace, Total
from patra_ingest.spec.words import BodyFormat
from patra_ingest_tests.builders import a_response
from patra_ingest_tests.unit.test_decoding import SPEC, reading

OAI = "http://www.openarchives.org/OAI/2.0/"
LISTED = b"""<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">
  <responseDate>2025-09-20T12:00:00Z</responseDate>
  <ListRecords>
    <record><header><identifier>oai:a:1</identifier></header><metadata><dc>1</dc></metadata></record>
    <record><header status="deleted"><identifier>oai:a:2</identifier></header></record>
    <resumptionToken completeListSize="1,204">
      tok/2+
    </resumptionToken>
  </ListRecords>
</OAI-PMH>"""
PUBMED = b"""<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
 "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation><PMID Version="1">10</PMID><Article>
<ArticleTitle>Of 1.73 m<sup>2</sup></ArticleTitle></Article></MedlineCitation></PubmedArticle>
<PubmedBookArticle><BookDocument><PMID Version="2">11</PMID></BookDocument></PubmedBookArticle>
<PubmedArticle><MedlineCitation><PMID Version="1">12</PMID></MedlineCitation></PubmedArticle>
<DeleteCitation><PMID Version="1">7</PMID><PMID Version="1">8</PMID></DeleteCitation>
</PubmedArticleSet>"""
SET = "$.PubmedArticleSet."


def as_xml(*items, **words):
    return reading(format=BodyFormat.XML, items=items, **words)


def decoded(body, spec, stream_from, paging=None):
    response = a_response(body, content_type="text/xml")
    tree = read_tree(response, spec.response, stream_from)
    return decode(response, tree, spec, paging, {})


@pytest.fixture(params=[0, 10**9], ids=["streamed", "whole"])
def stream_from(request):
    return request.param


def test_several_kinds_of_elements_are_items_and_the_deleted_stand_beside(stream_from):
    items = (SET + "PubmedArticle", SET + "PubmedBookArticle")
    page = decoded(PUBMED, as_xml(*items, tombstones=SET + "DeleteCitation.PMID"), stream_from)

    pmid = compile_value(["$.MedlineCitation.PMID", "$.BookDocument.PMID"])
    assert pmid.column(page.items) == ["10", "12", "11"]
    title = compile_path("$.MedlineCitation.Article.ArticleTitle")
    assert title.first(page.items[0]) == "Of 1.73 m2"
    assert page.gone == ("7", "8")
    assert plain(page.items[1]).startswith("<PubmedArticle")


def test_totals_and_tokens_are_read_from_elements_and_attributes(stream_from):
    token = "$.o:OAI-PMH.o:ListRecords.o:resumptionToken"
    paging = SPEC.paging.model_copy(
        update={
            "next_token": NextPlace(path=token),
            "total": Total(path=token + ".@completeListSize"),
        }
    )
    spec = as_xml("$.o:OAI-PMH.o:ListRecords.o:record", namespaces={"o": OAI})
    page = decoded(LISTED, spec, stream_from, paging)

    assert (len(page.items), page.total, page.next) == (2, 1204, "tok/2+")
    assert compile_path("$.o:header.@status").column(page.items) == [None, "deleted"]


@pytest.mark.parametrize(
    ("body", "items", "texts"),
    [
        (b"<r><a><b>1</b></a></r>", ("$.r.a.b",), ["1"]),
        (b"<r><a><b>1</b><b>2</b></a></r>", ("$.r.a.b[*]",), ["1", "2"]),
        (b"<r><a><b>1</b></a><a><b>2</b></a></r>", ("$.r.a.b",), ["1", "2"]),
        (b"<r><a><b>1</b><b t='x'>2</b></a></r>", ("$.r.a.b[?(@.@t == 'x')]",), ["2"]),
        (b"<r><a/></r>", ("$.r.a.b",), []),
        (b"<r><a/></r>", ("$.r.a.b[?(@.@t == 'x')]",), []),
        (b"<r><a/></r>", ("$.r.a.b", "$.r.c.d"), []),
        (b"<r><c><d>1</d></c></r>", ("$.r.a.b", "$.r.c.d"), ["1"]),
        (b"<r/>", ("$.r.b",), []),
        (b"<r><a><x/></a></r>", ("$.r.a..b",), []),
        (b"<r><b i='1'/><b i='2'/></r>", ("$.r.b.@i",), ["1", "2"]),
    ],
)
def test_one_element_many_and_none_are_the_same_kind_of_list(body, items, texts, stream_from):
    found = decoded(body, as_xml(*items), stream_from).items

    assert [one if isinstance(one, str) else one.text for one in found] == texts


@pytest.mark.parametrize(
    ("body", "items", "words"),
    [
        (b"<r/>", ("$.r.a.b",), {}),
        (b"<error>quota</error>", ("$.r.a",), {}),
        (b"<error>quota</error>", ("$.r",), {}),
        (b"<r/>", ("$..b",), {}),
        (b"<r/>", ("$.r.a.b", "$.r.c.d"), {}),
        (b"<r/>", ("$.r.b",), {"single": True}),
        (b"<r/>", ("$.r.a.b",), {"null_is_empty": True}),
    ],
)
def test_a_missing_parent_halts_the_endpoint(body, items, words, stream_from):
    with pytest.raises(EndpointHalted, match=r"there is no (list|item) at \$"):
        decoded(body, as_xml(*items, **words), stream_from)


def test_an_empty_element_is_there_and_a_missing_one_is_not(stream_from):
    assert decoded(b"<r><a/></r>", as_xml("$.r.a", require=("$.r.a",)), stream_from).items
    with pytest.raises(EndpointHalted, match=r"nothing at \$\.r\.count"):
        decoded(b"<r><a/></r>", as_xml("$.r.a", require=("$.r.count",)), stream_from)


BAD = [b"<r><a>", b"<r><a></r>", b"<r><a>\xff</a></r>", b"<r><a>&x;</a></r>", b"r", b"<r>\x00</r>"]


@pytest.mark.parametrize("body", BAD)
def test_a_broken_body_is_unreadable_in_whichever_way_it_is_read(body, stream_from):
    with pytest.raises(BodyUnreadable, match="the body is not XML"):
        decoded(body, as_xml("$.r.a"), stream_from)


def test_a_streamed_body_reads_no_file_and_expands_no_bomb(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("CANARY")
    laughs = '<!ENTITY l0 "lolololol">' + "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)
    )
    for declared in (f"<!ENTITY l9 SYSTEM '{secret.as_uri()}'>", laughs):
        with pytest.raises(BodyUnreadable) as caught:
            decoded(f"<!DOCTYPE r [{declared}]><r><a>&l9;</a></r>".encode(), as_xml("$.r.a"), 0)
        assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("paths", "trails"),
    [
        (("$.r.a",), {("r", "a")}),
        (("$.r.a[*]", "$.r.b[?(@.c)]"), {("r", "a"), ("r", "b")}),
        (("$.o:r.o:a-b",), {("o:r", "o:a-b")}),
        (("$.r.a", "$.r.a.b", "$.r.ab"), {("r", "a"), ("r", "ab")}),
        (("$.r",), set()),
        (("$..a", "$.r.*", "$.r..a", "$['r'].a", "$"), set()),
    ],
)
def test_items_are_packed_where_names_alone_lead_to_them(paths, trails):
    assert find_trails(paths) == trails


TEXTS = st.text("ab <&>\"'\r\n\t é\u00a0]", max_size=6)
NAMES = st.sampled_from(["a", "b", "c", "p:a", "q:b"])
HEAD = '<r xmlns:p="urn:one" xmlns:q="urn:two"><a>'


def _written(name, attributes, parts):
    said = "".join(f" {key}={quoteattr(text)}" for key, text in attributes.items())
    return f"<{name}{said}>{''.join(parts)}</{name}>"


def _element(content):
    attributes = st.dictionaries(st.sampled_from(["i", "p:j", "xml:lang"]), TEXTS, max_size=2)
    return st.builds(_written, NAMES, attributes, st.lists(content, max_size=4))


LEAVES = TEXTS.map(lambda text: escape(text, {"\r": "&#13;"})) | st.sampled_from(
    ["<!-- n -->", "<?p i?>", "<![CDATA[<a>]]>", "&#9;", "\r\n"]
)
MARKUP = st.recursive(LEAVES | _element(LEAVES), _element, max_leaves=12)
PATHS = [
    "$.r.a",
    "$.r.a.b",
    "$.r.a.x:a",
    "$..b",
    "$.r.*",
    "$.r.a[0].b",
    "$.r.a.@i",
    "$.r.a.a.b",
    "$",
]
PATHS += ["$.r.a[?(@.b)].b", "$.r.a.y:b.@x:j"]
ITEMS = st.lists(st.sampled_from(PATHS), min_size=1, max_size=3, unique=True)


@settings(max_examples=80, deadline=None)
@given(st.lists(MARKUP, max_size=6), st.sampled_from([1, 7, 100_000]), ITEMS)
@example(["<b>1</b>", "x", "<a><b>2</b></a>"], 1, ["$.r.a.b", "$.r.a.a.b"])
def test_a_streamed_body_is_the_same_tree_as_one_read_at_once(parts, chunk, items):
    body = f"{HEAD}{''.join(parts)}</a>{''.join(parts)}</r>".encode()
    spaces = {"x": "urn:one", "y": "urn:two"}
    whole, streamed = (
        read_xml(body, spaces),
        stream_xml(body, spaces, find_trails(items), chunk),
    )

    for path in map(compile_path, PATHS):
        assert path.all(streamed) == path.all(whole)
        assert [*map(seen, path.nodes(streamed))] == [*map(seen, path.nodes(whole))]


def seen(node):
    """Return everything that can be read of a node."""
    if isinstance(node, str):
        return node
    below = [seen(child) for child in node.children]
    named = [child.name for child in node.named("a")]
    return node.name, node.attributes, node.text, named, node.to_text(), below
