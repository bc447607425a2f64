"""A value that JSON does not have costs its own item, and never becomes another one in silence."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.decoding import BodyUnreadable, decode, read_tree
from patra_ingest.executor.history import require_shape
from patra_ingest.executor.malformed import MalformedItem, read_malformed
from patra_ingest.executor.mapping import map_items
from patra_ingest.spec.places import NextPlace
from patra_ingest.spec.words import BodyFormat
from patra_ingest_tests.builders import a_response, a_spec

SPEC = a_spec()
AT = b'"updated": "2025-09-02T10:00:00Z"'
GOOD = b'{"id": "good", ' + AT + rb', "title": "a\nb \u00e9"}'
NOT_UNICODE = "holds a character that is not Unicode"


def an_item(title, name=b'"bad"'):
    return b'{"id": ' + name + b", " + AT + b', "title": ' + title + b"}"


def a_page(*items, more=b""):
    return b'{"items": [' + b", ".join(items) + b'], "total": 2' + more + b"}"


def decoded(body, spec=SPEC, **headers):
    answer = a_response(body, **headers)
    return decode(answer, read_tree(answer, spec.response), spec, spec.paging, {})


def mapped(body, spec=SPEC, **headers):
    return map_items(decoded(body, spec, **headers).items, spec, "UTC", None)


VALUES = [
    pytest.param(rb'"x\ud800y"', "$.title", NOT_UNICODE, "x�y", id="half a character"),
    pytest.param(b'"Zo\xe9"', "$.title", NOT_UNICODE, "Zo�", id="a byte"),
    pytest.param(b"NaN", "$.title", "NaN is not JSON", "NaN", id="NaN"),
    pytest.param(b'{"n": [1, -Infinity]}', "$.title.n[1]", "-Infinity is not JSON", "-Infinity",
                 id="no number"),
    pytest.param(b"1e999", "$.title", "the number is too large", "1e999", id="a large number"),
    pytest.param(b'"a\tb"', "$.title", "holds the raw control character U+0009", "a�b",
                 id="a control character"),
    pytest.param(b'{"\xff": 1}', "$.title.�", NOT_UNICODE, "�", id="a name"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "path", "reason", "shown"), VALUES)
def test_an_item_with_a_malformed_value_is_bad_and_the_others_are_records(
    value, path, reason, shown
):
    found = mapped(a_page(GOOD, an_item(value)))

    (record,), (bad,) = found.records, found.bad
    assert orjson.loads(record.payload) == orjson.loads(GOOD), "as the strict reading has it"
    assert (bad.item_no, bad.provider_id, bad.path) == (2, "bad", path)
    assert (bad.reason, bad.value) == (reason, shown)
    assert shown in bad.fragment
    assert bad.fragment.isprintable()
    assert found.ids == ["good", "bad"]


@pytest.mark.parametrize(("value", "path", "reason", "shown"), VALUES)
def test_a_line_with_a_malformed_value_is_one_bad_item(value, path, reason, shown):
    lines = SPEC.response.model_copy(update={"format": BodyFormat.NDJSON, "items": ("$",)})
    spec = SPEC.model_copy(update={"response": lines, "paging": None})

    found = mapped(b"\n".join([GOOD, an_item(value), GOOD]), spec)

    assert len(found.records) == 2
    assert [(bad.item_no, bad.path, bad.reason) for bad in found.bad] == [(2, path, reason)]


def test_an_id_that_is_malformed_is_no_id():
    (bad,) = mapped(a_page(GOOD, an_item(b'"t"', name=rb'"a\ud800"'))).bad

    assert (bad.provider_id, bad.path, bad.value) == (None, "$.id", "a�")


def test_a_byte_that_does_not_fit_a_declared_charset_costs_its_item():
    body = a_page('{"id": "good", "title": "日本"}'.encode("shift_jis"), an_item(b'"\xff"'))

    found = decoded(body, content_type="application/json; charset=shift_jis").items

    assert found[0]["title"] == "日本"
    assert isinstance(found[1], MalformedItem)


def test_a_page_of_nothing_but_malformed_items_is_a_source_that_has_changed():
    page = decoded(a_page(an_item(b"NaN", b'"a"'), an_item(b"NaN", b'"b"')))

    with pytest.raises(EndpointHalted, match=r"every one of 2 items fails at \$.title \(NaN"):
        require_shape(page, map_items(page.items, SPEC, "UTC", None))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(a_page(GOOD, more=b', "next": "t\xff"'), id="the next token"),
        pytest.param(a_page(GOOD, an_item(b"NaN"), more=b', "total": NaN'), id="the total too"),
        pytest.param(b'{"message": "\xff"}', id="no items at all"),
    ],
)
def test_what_is_malformed_beside_the_items_is_a_broken_answer(body):
    with pytest.raises(BodyUnreadable, match="malformed in it is not in its items alone"):
        decoded(body)


def test_a_malformed_last_item_that_says_what_is_next_is_a_broken_answer():
    place = NextPlace(last_item="$.id")
    by_last = SPEC.paging.model_copy(update={"next_token": place})
    spec = SPEC.model_copy(update={"paging": by_last})

    assert decoded(a_page(an_item(b"NaN"), GOOD), spec).next == "good"
    with pytest.raises(BodyUnreadable):
        decoded(a_page(GOOD, an_item(b"NaN")), spec)


@pytest.mark.parametrize("cut", [b'", "title": "\xff', b"NaN}", b"]"])
def test_a_body_that_is_cut_off_is_a_broken_answer(cut):
    whole = a_page(GOOD, an_item(b'"\xff"'), an_item(b"NaN"))

    with pytest.raises(BodyUnreadable):
        decoded(whole[: whole.rindex(cut)])


def test_a_body_that_is_nested_too_deeply_is_a_broken_answer():
    deep = b"[" * 5000 + b"NaN" + b"]" * 5000

    with pytest.raises(BodyUnreadable):
        decoded(a_page(GOOD, an_item(deep)))


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(values, st.booleans())
def test_what_is_sound_is_read_as_the_strict_reading_has_it(value, is_ascii):
    text = json.dumps(value, ensure_ascii=is_ascii)

    found = read_malformed(f'[{text}, "a\0"]'.encode())

    assert repr(found[0]) == repr(orjson.loads(text))
