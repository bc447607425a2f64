"""A secret is hidden by its value, under any name and in any spelling."""

import html
import json
import re
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.transport import hiding
from patra_ingest.transport.hiding import hide, hide_in_body, strip_url
from patra_ingest.transport.messages import Request, Response
from patra_ingest_tests.builders import NOON

SECRET = 's3/cr+t "é=&%'
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=30)


def spellings(secret):
    return [
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
        quote(quote(secret, safe=""), safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(secret))[3:-3],
        html.escape(secret),
        html.escape(html.escape(secret)),
    ]


@pytest.mark.parametrize("spelling", sorted(set(spellings(SECRET))))
def test_every_spelling_is_hidden(spelling):
    assert hide(f"see {spelling} there", {SECRET}) == "see *** there"


@given(texts, st.text(), st.text())
def test_no_spelling_of_any_secret_is_left(secret, before, after):
    for spelling in spellings(secret):
        assert spelling not in hide(f"{before}{spelling}{after}", {secret}).replace("***", "\0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?k=abc&q=abcdef", "?k=***&q=abcdef"),
        ("abc", "***"),
        ("?page=1", "?page=1"),
    ],
)
def test_a_short_secret_is_hidden_as_a_whole_word(text, expected):
    assert hide(text, {"abc", ""}) == expected


def test_a_request_shows_its_secret_under_no_name():
    request = Request(
        "GET",
        f"https://h.example/{quote(SECRET, safe='')}/works",
        (("k", SECRET), ("rows", "5")),
        {"X-Custom": f"id {SECRET}", "X-Api-Key": SECRET, "Accept": "application/json"},
        hidden=frozenset({SECRET}),
    )

    assert request.shown_url == "https://h.example/***/works?k=***&rows=5"
    assert repr(request) == f"Request(GET {request.shown_url})"
    assert request.shown_headers == {
        "x-custom": "id ***",
        "x-api-key": "***",
        "accept": "application/json",
    }


def test_an_answer_can_hide_the_key_it_repeats():
    response = Response(
        403, {}, b"", 0.1, "https://h.example/", NOON, hidden=frozenset({"k-123456"})
    )

    assert response.hide("your key k-123456 is blocked") == "your key *** is blocked"
    assert "k-123456" not in repr(response)


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("https://h.example/p?cursor=a%2Bb&k=K-123456", "https://h.example/p?cursor=a%2Bb"),
        ("https://h.example/p?k=other&cursor=x", "https://h.example/p?cursor=x"),
        ("https://h.example/p?again=K%2D123456", "https://h.example/p"),
        ("https://u:p@h.example/p?q=abc", "https://h.example/p?q=abc"),
        ("/relative?k=K-123456&&a=", "/relative?&a="),
        ("https://[broken/K-123456", "https://[broken/***"),
    ],
)
def test_a_stored_url_loses_the_credential_and_nothing_else(url, left):
    request = Request("GET", "", hidden=frozenset({"K-123456", "abc"}), signed=frozenset({"k"}))

    assert request.strip(url) == left


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_a_url_without_a_credential_keeps_its_parameters(pairs):
    url = Request("GET", "https://h.example/p", tuple(pairs)).full_url

    kept = parse_qsl(urlsplit(strip_url(url, {"K-123456-never"})).query, keep_blank_values=True)

    assert kept == pairs


KEY = "K-1234567890/abcdef"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"note": "your key K-1234567890/abcdef"}', b'{"note": "your key ***"}'),
        (b"https://h.example/?k=K-1234567890%2Fabcdef&p=2", b"https://h.example/?k=***&p=2"),
        ("Käse K-1234567890/abcdef".encode(), "Käse ***".encode()),
        (b"\xff\xfe K-1234567890/abcdef \x00", b"\xff\xfe *** \x00"),
        (b"written by librarian", b"written by librarian"),
    ],
)
def test_a_body_loses_the_keys_it_repeats_and_no_words(body, left):
    assert hide_in_body(body, {KEY, "librarian"}) == left


def test_a_body_without_a_key_is_not_copied():
    body = b'{"items": []}'

    assert hide_in_body(body, {KEY}) is body


BASE64 = "Zm9vYmFy/QmF6+MTIzNDU2Nzg5MA=="


@pytest.mark.parametrize(
    "echo",
    [
        pytest.param(BASE64.replace("/", r"\/"), id="PHP's JSON"),
        pytest.param(BASE64.replace("+", r"\u002B"), id="JSON that is safe in HTML"),
        pytest.param(BASE64.replace("=", r"\u003d"), id="the same, in lower case"),
        pytest.param(quote(BASE64), id="percent-encoded but for the slash"),
        pytest.param(BASE64.replace("+", "%2b").replace("=", "%3d"), id="percent-encoded in part"),
        pytest.param(quote(quote(BASE64, safe=""), safe=""), id="percent-encoded twice"),
        pytest.param("".join(f"%{ord(one):02x}" for one in BASE64), id="needlessly encoded"),
        pytest.param("".join(f"&#x{ord(one):x};" for one in BASE64), id="entities"),
        pytest.param("".join(f"&#{ord(one):04d};" for one in BASE64), id="decimal entities"),
        pytest.param(BASE64.replace("Z", r"\u0026#X5A;"), id="an entity escaped in JSON"),
        pytest.param(BASE64.replace("=", "&equals;"), id="a named entity"),
    ],
)
def test_a_body_loses_a_key_in_any_spelling(echo):
    assert hide_in_body(f'{{"echo": "{echo}", "n": "é"}}'.encode(), {BASE64}) == (
        '{"echo": "***", "n": "é"}'.encode()
    )


@pytest.mark.parametrize("spelling", sorted(set(spellings(f"{SECRET}{SECRET}"))))
def test_a_body_loses_a_key_of_strange_characters(spelling):
    assert hide_in_body(f"see {spelling} there".encode(), {SECRET * 2}) == b"see *** there"


def test_a_large_body_without_a_key_is_not_looked_at_closely(monkeypatch):
    body = b'{"url": "https%3A%2F%2Fh.example%2Fa", "title": "Zm9v"}' * 100_000
    monkeypatch.setattr(hiding, "_bytes_pattern", None)

    assert hide_in_body(body, {BASE64}) is body


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"note": "your key k3y-42 ends"}', b'{"note": "your key *** ends"}'),
        (b'{"next": "/p?k=k3y-42&p=2"}', b'{"next": "/p?k=***&p=2"}'),
        (b"/p%3Fk%3Dk3y-42%26p", b"/p%3Fk%3D***%26p"),
        (rb'{"a": "x\nk3y-42", "b": "k\u003dk3y\u002d42"}', rb'{"a": "x\n***", "b": "k\u003d***"}'),
        (b"<k>&#x6B;3y-42</k>", b"<k>***</k>"),
        ("密钥k3y-42无效".encode(), "密钥***无效".encode()),
        (b"ak3y-42 k3y-421 k3y_42", b"ak3y-42 k3y-421 k3y_42"),
    ],
)
def test_a_body_loses_a_short_key_where_it_stands_alone(body, left):
    assert hide_in_body(body, {"k3y-42"}) == left


@pytest.mark.parametrize(
    "word", ["secret", "O'Brien", "me@lib.org", "20250131", "2025-01-31", "k3y"]
)
def test_a_short_word_name_or_number_stays_in_a_body(word):
    body = f'{{"title": "On {word}"}}'.encode()

    assert hide_in_body(body, {word}) is body
