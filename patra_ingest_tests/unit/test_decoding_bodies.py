"""Bodies of every format become trees; what is something else says so and is asked for again."""

import orjson
import pytest

from patra_ingest.errors import EndpointHalted, TransientError
from patra_ingest.executor.decoding import BodyUnreadable, plain, read_tree
from patra_ingest.expr.path import compile_path
from patra_ingest.model.keys import content_hash
from patra_ingest.spec.words import BodyFormat
from patra_ingest_tests.builders import a_response, a_spec

JSON = a_spec().response
FORMATS = {
    name: JSON.model_copy(update={"format": BodyFormat(name), "items": ("$.set.item",)})
    for name in ("JSON", "NDJSON", "CSV", "XML")
}

PAGE = b"<html><body>busy</body></html>"
XHTML = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/xhtml1.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>URI Too Long</title></head></html>"""
NOTE = b"<!-- load balancer 7 -->\n<!DOCTYPE HTML>\n<html></html>"


def read(name, body, content_type=None, status=200):
    headers = {} if content_type is None else {"content_type": content_type}
    return read_tree(a_response(body, status, **headers), FORMATS[name])


@pytest.mark.parametrize(
    ("name", "body", "tree"),
    [
        ("JSON", b'{"items": [{"id": 1}]}', {"items": [{"id": 1}]}),
        ("JSON", b" [1]\n", [1]),
        ("NDJSON", b'{"id": 1}\n{"id": 2}\n', [{"id": 1}, {"id": 2}]),
        ("NDJSON", b'{"id": 1}\r\n\r\n{"id": 2}', [{"id": 1}, {"id": 2}]),
        ("NDJSON", '"a\u2028b"\n'.encode(), ["a\u2028b"]),
        ("NDJSON", b"", []),
        ("NDJSON", b"\n", []),
        ("CSV", b"id,t\n1,One\n2,Two\n", [{"id": "1", "t": "One"}, {"id": "2", "t": "Two"}]),
        ("CSV", b'id,t\r\n1,"a, ""b""\nc"\r\n', [{"id": "1", "t": 'a, "b"\nc'}]),
        ("CSV", b"\xef\xbb\xbfid\n007\n", [{"id": "007"}]),
        ("CSV", b"id,t\n\n1,x\n\n", [{"id": "1", "t": "x"}]),
        ("CSV", b"id,t", []),
        ("CSV", b"id,t\n1," + b"x" * 200_000, [{"id": "1", "t": "x" * 200_000}]),
    ],
)  # fmt: skip
def test_a_body_is_read_in_its_format(name, body, tree):
    assert read(name, body) == tree


@pytest.mark.parametrize("kind", [None, "text/html", "text/plain", "text/javascript", "image/png"])
def test_the_body_decides_what_it_is_and_not_the_header(kind):
    assert read("JSON", b'{"a": 1}', kind) == {"a": 1}
    assert read("NDJSON", b'{"a": 1}', kind) == [{"a": 1}]
    assert read("XML", b"<set/>", kind).children[0].name == "set"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "page", [PAGE, XHTML, NOTE, b"\xef\xbb\xbf\n <!doctype html>x", PAGE.upper()]
)
@pytest.mark.parametrize("kind", ["text/html", "application/json", None])
def test_an_html_page_is_never_data(name, page, kind):
    with pytest.raises(BodyUnreadable, match="it is an HTML page"):
        read(name, page, kind)


def test_a_page_in_utf_16_is_an_html_page_too():
    with pytest.raises(BodyUnreadable, match="it is an HTML page"):
        read("XML", XHTML.decode().replace("UTF-8", "UTF-16").encode("utf-16"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("body", [b"Rate exceeded.", b"Rate exceeded.\n", b"upstream timed out"])
def test_a_sentence_is_never_data(name, body):
    with pytest.raises(BodyUnreadable, match="that is not"):
        read(name, body, "text/plain")


@pytest.mark.parametrize("name", ["JSON", "XML", "CSV"])
@pytest.mark.parametrize("body", [b"", b" \n"])
def test_an_empty_body_is_never_zero_items(name, body):
    with pytest.raises(BodyUnreadable, match="the body is empty"):
        read(name, body)


def test_no_lines_are_an_answer_only_with_status_200():
    with pytest.raises(BodyUnreadable, match="the body is empty"):
        read("NDJSON", b"", status=206)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("body", [b"", b"\n"])
def test_an_empty_page_for_people_is_never_zero_items(name, body):
    with pytest.raises(BodyUnreadable, match=r"200 with text/html.*the body is empty"):
        read(name, body, "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("JSON", b'{"items": [', "not JSON"),
        ("JSON", b'{"items": [nan]}', "not JSON"),
        ("JSON", b"NaN", "not JSON"),
        ("JSON", b"<set/>", "not JSON"),
        ("NDJSON", b'{"id": 1}\n{"id"\n{"id": 3}\n', r"not JSON Lines \(line 2: "),
        ("NDJSON", b'{"id": 1}\n\n{"id": 2', r"line 3: "),
        ("NDJSON", b'{"id": 1} {"id": 2}', r"line 1: "),
        ("CSV", b"id,t\n1,a\n2\n", "ends in line 3 has 1 columns, the header 2"),
        ("CSV", b'id,t\n1,"a\nb"\n2,a,b\n', "ends in line 4 has 3 columns, the header 2"),
        ("CSV", b'id,t\n1,"cut off', "line 2: unexpected end of data"),
        ("CSV", b'id,t\n1,"a"b\n', "line 2: "),
        ("CSV", b'{"error": "quota"}', "it is HTML, XML or JSON"),
        ("CSV", b"<p>Down for maintenance, sorry</p>", "it is HTML, XML or JSON"),
        ("CSV", b"Down\nfor maintenance\n", "its first line is 'Down', and no header"),
        ("XML", b"<set><item></set>", "not XML"),
        ("XML", b"<set><item/>", "not XML"),
        ("XML", b'{"a": 1}', "not XML"),
    ],
)
def test_a_broken_body_says_where_it_is_broken(name, body, reason):
    with pytest.raises(BodyUnreadable, match=reason):
        read(name, body)


def test_text_that_is_declared_as_html_is_no_table():
    with pytest.raises(BodyUnreadable, match="it is HTML"):
        read("CSV", b"id,t\n1,x\n", "text/html")


def test_the_error_says_what_came_from_where_and_holds_no_secret():
    body = b"sorry, ?api_key=CANARY is over its limit, " + b"x" * 5000

    with pytest.raises(TransientError) as caught:
        read("JSON", body, "text/plain", 203)

    said = str(caught.value)
    assert said.startswith("https://api.example.org/works answered 203 with text/plain that is not")
    assert "sorry" in said
    assert "CANARY" not in said
    assert len(said) < 1000


@pytest.mark.parametrize("body", [b"id,t,id\n1,a,2\n", b",\n1,2\n"])
def test_two_columns_of_one_name_halt_the_endpoint(body):
    with pytest.raises(EndpointHalted, match=r"api\.example\.org/works .* more than once"):
        read("CSV", body)


def test_a_table_without_the_id_halts_the_endpoint():
    with pytest.raises(EndpointHalted, match=r"no column holds the id \(id\): \['doi', 'title'\]"):
        read("CSV", b"doi,title\n")
    with pytest.raises(BodyUnreadable):  # what comes with an error is no change of shape
        read("CSV", b"code,message\n", status=429)


@pytest.mark.parametrize(
    "paths", [("$.doi", "$.pmid"), ("${$.doi}:${$.v?}",), ("$['doi']",), ("$",)]
)
def test_a_table_needs_one_of_the_columns_the_id_may_come_from(paths):
    spec = FORMATS["CSV"].model_copy(update={"id": paths})

    assert read_tree(a_response(b"doi,title\n"), spec) == []


WORD = "Zoë – Ærø"


@pytest.mark.parametrize(
    "charset", ["utf-8", "UTF8", '"utf-8"', "cp1252", "mac-roman", "utf-16", "nonsense"]
)
def test_the_charset_of_the_header_is_honoured(charset):
    encoding = charset.strip('"') if charset != "nonsense" else "utf-8"
    kind = f"text/plain; charset={charset}"

    assert read("JSON", f'{{"t": "{WORD}"}}'.encode(encoding), kind) == {"t": WORD}
    assert read("NDJSON", f'"{WORD}"\n"b"'.encode(encoding), kind) == [WORD, "b"]
    assert read("CSV", f"id\n{WORD}\n".encode(encoding), kind) == [{"id": WORD}]
    assert read("XML", f"<set>{WORD}</set>".encode(encoding), kind).text == WORD


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("kind", [None, "text/csv; charset=iso-8859-1"])
def test_a_byte_order_mark_wins_over_the_header(encoding, kind):
    assert read("JSON", f'["{WORD}"]'.encode(encoding), kind) == [WORD]
    assert read("NDJSON", f'"{WORD}"\n'.encode(encoding), kind) == [WORD]
    assert read("CSV", f"id\n{WORD}\n".encode(encoding), kind) == [{"id": WORD}]


def test_the_declaration_of_xml_wins_over_the_header():
    body = f'<?xml version="1.0" encoding="ISO-8859-1"?><set>{WORD[:3]}</set>'.encode("latin-1")

    assert read("XML", body, "text/xml; charset=utf-8").text == "Zoë"
    assert read("XML", b"\n " + body, "text/xml; charset=utf-16").text == "Zoë"


@pytest.mark.parametrize(
    ("name", "body", "charset", "named"),
    [
        ("JSON", b'["\xe9"]', "utf-16", "utf-16"),
        ("NDJSON", b'["\xe9"]', "utf-16", "utf-16"),
        ("CSV", b'["\xe9"]', "utf-16", "utf-16"),
        ("CSV", b'["\xff\xfe"]', "shift_jis", "shift_jis"),
    ],
)
def test_bytes_that_do_not_fit_the_charset_name_it(name, body, charset, named):
    with pytest.raises(BodyUnreadable, match=rf"does not fit the charset {named}"):
        read(name, body, f"text/plain; charset={charset}")


@pytest.mark.parametrize("name", ["JSON", "NDJSON", "CSV"])
def test_bytes_that_are_not_utf_8_are_never_guessed_at(name):
    with pytest.raises(BodyUnreadable, match=r"(?i)utf-8"):
        read(name, b'"Zo\xe9"')


def test_an_xml_item_is_stored_and_hashed_in_a_form_that_no_other_item_has():
    def item(text):
        (root,) = compile_path("$.item").nodes(read("XML", f"<item>{text}</item>".encode()))
        return plain(root)

    mixed = item('<t a="1">5<sup>2</sup> m</t>')
    assert mixed == '<item><t a="1">5<sup>2</sup> m</t></item>'
    assert orjson.loads(orjson.dumps(mixed)) == mixed
    indented = "\n  <a/>\n  <b>x</b>\n"
    assert item(indented) == item("<a/><b>x</b>") == "<item><a/><b>x</b></item>"
    assert item("<i>Homo</i> <i>sapiens</i>") == "<item><i>Homo</i> <i>sapiens</i></item>"
    told_apart = ["<a/><b/>", "<b/><a/>", "a<i>b</i>b", "ab<i>b</i>", "<a>1</a>", "<a b='1'/>", " "]
    assert len({content_hash(item(text)) for text in told_apart}) == len(told_apart)


def test_an_item_that_is_json_already_stays_as_it_is():
    item = {"id": 1, "tags": [None]}

    assert plain(item) is item
