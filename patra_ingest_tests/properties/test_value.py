from contextlib import suppress
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patra_ingest.expr.path import compile_path
from patra_ingest.expr.time_pattern import time_pattern
from patra_ingest.expr.value import VALUE_CALLS, compile_value
from patra_ingest.expr.xml_tree import read_xml


class Guarded:
    """An object that notices every attempt to look inside it."""

    def __getattribute__(self, name):
        if name != "__class__":
            pytest.fail(f"a value expression reached for {name}")
        return object.__getattribute__(self, name)

    def __repr__(self):
        return "guarded"


ITEM = {
    "a": {"b": "2024-01-02", "object": Guarded(), "none": None},
    "list": ["a", 1, None, Guarded(), {"b": 2}],
    "n": 1.5,
    "object": Guarded(),
}
XML = read_xml(b"<a v='1'><b>2024</b><b/>x<c><Year>2024</Year></c></a>", {})
TREES = {"item": ITEM, "xml": XML, "list": [ITEM], "null": None, "text": "text"}
paths = (
    st.sampled_from(["$", "$.a", "$.a.b", "$.a.none", "$.a.object", "$.list", "$.list[*]", "$.n"])
    | st.sampled_from(["$.object", "$.zz", "$.a.__class__", "$.object.secret", "$.object['x','y']"])
    | st.sampled_from(["$..b", "$.a.@v", "$.a.c", "$.list[0:3]", "$.object.`len`", "$..*"])
    | st.sampled_from(["$.list[?(@.b == 2)]", "$.list[?(@ == 'a')]", "$.*[?(@.b)]"])
)
arguments = st.sampled_from(
    ["", "()", "('x')", "(';')", "('UTC')", "('(a)')", "('UTC','yyyy')"]
) | st.sampled_from(["('$.b')", "('${$.b}-${$.object?}')", "('$.object','$')"])
calls = st.lists(
    st.builds("|{}{}".format, st.sampled_from([*VALUE_CALLS, "eval"]), arguments), max_size=3
).map("".join)
found = st.builds("{}{}".format, paths, calls)
likely = found | st.lists(st.builds("${{{}}}".format, found) | st.just("x"), max_size=3).map(
    "".join
)
unlikely = st.text(alphabet="${}|().'\"ab, -[]?@*\\", max_size=20)


@given(st.lists(likely | unlikely, max_size=3), st.sampled_from([*TREES]))
@example(["$.object['x','y']"], "item")
@example(["$..`len`"], "item")
def test_an_expression_gives_a_plain_value_or_a_value_error_and_reaches_nothing(said, tree):
    with suppress(ValueError):
        value = compile_value(said).find(TREES[tree])
        assert value is None or isinstance(value, str | int | float | list | dict | datetime)
        assert not isinstance(value, datetime) or value.tzinfo is not None


@given(likely)
def test_every_path_an_expression_uses_is_told(said):
    with suppress(ValueError):
        value = compile_value(said)
        assert all(text in said and compile_path(text) for text in value.paths)


names = st.sampled_from(["a", "b", "c-d"])
texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=5)
elements = st.recursive(
    st.tuples(names, st.dictionaries(names, texts, max_size=2), st.lists(texts, max_size=1)),
    lambda below: st.tuples(
        names, st.dictionaries(names, texts, max_size=2), st.lists(texts | below, max_size=4)
    ),
    max_leaves=10,
)


def written(element):
    name, attributes, content = element
    listed = "".join(f" {key}={quoteattr(text)}" for key, text in attributes.items())
    inside = "".join(escape(c) if isinstance(c, str) else written(c) for c in content)
    return f"<{name}{listed}>{inside}</{name}>"


def all_text(element):
    return "".join(c if isinstance(c, str) else all_text(c) for c in element[2])


def descendants(element, name):
    """The elements of that name below, each parent's before any of its grandchildren's."""
    children = [child for child in element[2] if not isinstance(child, str)]
    yield from (child for child in children if child[0] == name)
    for child in children:
        yield from descendants(child, name)


@given(elements)
def test_what_was_written_as_xml_is_read_as_it_was(element):
    (root,) = read_xml(written(element).encode(), {}).children
    children = [child for child in element[2] if not isinstance(child, str)]

    assert root.text == all_text(element)
    assert root.attributes == element[1]
    assert [child.name for child in root.children] == [child[0] for child in children]
    assert read_xml(root.to_text().encode(), {}).to_text() == root.to_text()


@given(elements, names)
def test_a_path_through_xml_finds_each_element_once_and_in_order(element, name):
    (root,) = read_xml(written(element).encode(), {}).children
    children = [child for child in element[2] if not isinstance(child, str) and child[0] == name]

    assert compile_path(f"$.{name}").all(root) == [all_text(child) for child in children]
    assert compile_path(f"$..{name}").all(root) == [
        all_text(child) for child in descendants(element, name)
    ]
    assert compile_path(f"$.{name}[?(@.@a)].@a").all(root) == [
        child[1]["a"] for child in children if "a" in child[1]
    ]


@given(st.binary(max_size=40) | texts.map(str.encode) | texts.map(lambda t: f"<a>{t}</a>".encode()))
def test_any_bytes_are_xml_or_a_value_error(body):
    with suppress(ValueError):
        read_xml(body, {}).to_text()


@given(
    st.datetimes(min_value=datetime(1000, 1, 1)),  # noqa: DTZ001
    st.sampled_from(
        ["yyyyMMddHHmmssSSSSSS", "yyyy-MM-ddTHH:mm:ss.SSSSSS", "ss:mm:HH SSSSSS dd.MM.yyyy"]
    ),
)
def test_a_time_is_read_as_it_was_written(at, pattern):
    assert time_pattern(pattern).read(time_pattern(pattern).write(at)) == at


@given(st.text("ab é\u00a0\u2003\u200b\t\n\x0b\x1c\x85\u3000", max_size=8) | st.text())
def test_a_collapsed_text_has_one_blank_between_its_words(text):
    assert compile_value("$|collapse").find(text) == " ".join(text.split())
