"""Elements that are looked into all at once, or while they are read, say what they say alone."""

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.articles import article_set
from patra_ingest.executor.decoding import decode, read_tree
from patra_ingest.executor.looks import looks_of
from patra_ingest.executor.mapping import map_items
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.value import compile_value
from patra_ingest.expr.xml_gather import gather, together
from patra_ingest.expr.xml_stream import Looks, find_trails, stream_xml
from patra_ingest.expr.xml_tree import XmlNode, read_xml
from patra_ingest.model.codes import Operation
from patra_ingest.model.keys import content_hash, text_hash
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest.transport.messages import Response
from patra_ingest_tests.sources.recorded import compiled

SPACES = {"x": "urn:one"}
HEAD = '<r xmlns:p="urn:one" xmlns:q="urn:two">'
TEXTS = st.sampled_from(["", " ", "\n ", "1", "two words", "é&amp;", "2026"])
NAMES = st.sampled_from(["a", "b", "c", "p:a", "q:b"])


def _written(name, attribute, parts):
    return f"<{name}{attribute}>{''.join(parts)}</{name}>"


def _element(content):
    attributes = st.sampled_from(["", ' i="1"', ' i="2" p:j="1"', ' p:i="1"', ' q:i="1"'])
    return st.builds(_written, NAMES, attributes, st.lists(content, max_size=4))


ELEMENTS = st.recursive(TEXTS | _element(TEXTS), _element, max_leaves=14)
ITEMS = st.lists(st.builds(_written, st.just("a"), st.just(""), st.lists(ELEMENTS, max_size=5)))
PATHS = [
    *("$", "$.b", "$.a.b", "$.a.b.c", "$.x:a.b", "$.b[0]", "$.a[0].b[1]", "$.a.b[-1]", "$.*.b"),
    *("$.@i", "$.b.@i", "$.a.b.@x:j", "$.b[?(@.@i == '1')]", "$.a.b[?(@.@i == '1')].c"),
    *("$.b[?(@.c)]", "$.b[?(@.c == 1)].c", "$.a[*].b", "$..b", "$..b.c", "$.a..b", "$..x:a"),
]
VALUES = [
    *("$.b", "$.b|list", "$.a.b|join('; ')", "$.a.b|exists", "${$.b}:${$.c?}", "$.b|ymd"),
    *("$.b|each('$.c')", "$.a|each('${$.b}, ${$.c}', '$.b', '$.c|collapse')"),
    *("$.a|each('$.b|list', '${$.b}%${$.c}')", "$.b|each('$.@i', '$.b.c')", "$.@i", "$.b.@i"),
]


def said(found):
    return [one if isinstance(one, str) else (one.name, one.to_text()) for one in found]


def tried(find, item):
    try:
        return find(item)
    except ValueError as error:
        return str(error)


def items_of(parts):
    (root,) = read_xml(f"{HEAD}{''.join(parts)}</r>".encode(), SPACES).children
    return list(root.children)


NESTED = '<a><a><b i="1">1</b><b>2</b></a><a><b p:i="1">3<c>4</c></b><x/><b i="1"/></a><b/></a>'


@example([NESTED, NESTED], PATHS)
@given(ITEMS, st.lists(st.sampled_from([*PATHS, "$.d"]), min_size=1, unique=True))
def test_paths_that_are_walked_together_lead_where_each_leads_alone(parts, together_walked):
    alone, gathered = items_of(parts), items_of(parts)
    paths = [compile_path(path) for path in together_walked]
    gather(gathered, together(path.xml.trail for path in paths))

    for path in paths:
        for one, other in zip(alone, gathered, strict=True):
            assert said(path.nodes(other)) == said(path.nodes(one)), path.text
            assert path.all(other) == path.all(one)
            assert path.first(other) == path.first(one)


@example([NESTED, NESTED], VALUES)
@given(ITEMS, st.lists(st.sampled_from(VALUES), min_size=1, unique=True))
def test_values_that_are_looked_for_together_are_what_each_finds_alone(parts, texts):
    alone, gathered = items_of(parts), items_of(parts)
    values = [compile_value(text) for text in texts]
    gather(gathered, together(trail for value in values for trail in value.trails))

    for value in values:
        found = [tried(value.find, item) for item in alone]
        column = [
            str(one) if isinstance(one, ValueError) else one for one in value.column(gathered)
        ]
        assert column == found


HARD = ['"', "\\\\", "\t", "\r", "&#13;", "a\nb", "\\u0041", "é\u2003\U0001f600", "&lt;&amp;"]


@given(st.lists(ELEMENTS | st.sampled_from(HARD), max_size=6), st.sampled_from(["", HEAD[2:-1]]))
def test_an_item_is_kept_as_the_json_of_its_text(parts, declared):
    inner = "".join(parts)
    body = (
        f"<r{declared or HEAD[2:-1]}><a>{inner}</a></r>"
        if ":" in inner
        else (f"<r{declared}><a>{inner}</a></r>")
    )
    for document in (
        read_xml(body.encode(), SPACES),
        stream_xml(body.encode(), SPACES, find_trails(["$.r.a"])),
    ):
        (item,) = compile_path("$.r.a").nodes(document)[:1]
        assert item.to_json() == orjson.dumps(item.to_text())
        assert text_hash(item.to_json()) == content_hash(item.to_text())


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.lists(st.sampled_from(VALUES), min_size=1, unique=True), st.sampled_from([1, 50]))
def test_what_is_looked_for_while_a_body_is_read_is_what_is_found_in_it(parts, texts, chunk):
    values = [compile_value(text) for text in texts]
    trails = together(trail for value in values for trail in value.trails)
    looks = Looks({value.text: value.column for value in values}, trails)
    body = f"{HEAD}{''.join(parts)}</r>".encode()

    document = stream_xml(body, SPACES, find_trails(["$.r.a"]), chunk, looks)

    items = compile_path("$.r.a").nodes(document)
    for item in items:
        assert set(item.told) == {value.text for value in values}
    for value in values:
        column = [str(one) if isinstance(one, ValueError) else one for one in value.column(items)]
        assert column == [tried(value.find, item) for item in items_of(parts)]


def test_an_item_that_was_asked_beforehand_is_not_opened_again():
    looks = Looks({"$.b": compile_value("$.b").column}, ("b",))
    body = b"<r>" + b"".join(b"<a><b>%d</b><c/></a>" % n for n in range(200)) + b"</r>"
    document = stream_xml(body, {}, find_trails(["$.r.a"]), looks=looks)
    items = compile_path("$.r.a").nodes(document)
    opened = items[0]._packing.opened.cache_info

    assert compile_value("$.b").column(items) == [str(n) for n in range(200)]
    assert items[7].to_text() == "<a><b>7</b><c/></a>"
    assert opened().misses == 0
    assert compile_value("$.c|count").column(items) == [0] * 200  # nobody has told this
    assert opened().misses == 200


@pytest.fixture(scope="module")
def fetch(sqlite_template):
    return compiled(sqlite_template, read_pack(FOLDER / "pubmed.yaml"), "fetch", Operation.UPDATE)


@pytest.mark.parametrize("first", [0, 400, 990])
def test_a_large_answer_of_pubmed_gives_the_records_that_a_small_one_gives(fetch, first):
    at = datetime(2026, 11, 16, tzinfo=UTC)
    answer = Response(200, {}, article_set(first, 150), 0.1, "https://pubmed.example/", at)
    looks = looks_of(fetch)

    whole, streamed, unprepared = (
        decode(answer, read_tree(answer, fetch.response, limit, looks), fetch, None, {})
        for limit, looks in ((10**9, looks), (0, looks), (0, Looks({}, ())))
    )

    expected = map_items(whole.items, fetch, "UTC", None)
    assert len(expected.records) == 150
    assert expected.bad == []
    assert map_items(streamed.items, fetch, "UTC", None) == expected
    assert map_items(unprepared.items, fetch, "UTC", None) == expected
    assert all(isinstance(item, XmlNode) and item.found is None for item in whole.items)
