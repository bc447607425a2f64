"""What leaves as a recording has no secret and no mail address, and is otherwise what it was."""

import json
from urllib.parse import quote

import pytest
from lxml import etree

from patra_ingest.transport.scrub import Scrubber

KEY = "CANARY-8f3a91/c0ffee+0123"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param(f"a {KEY} b", "a REDACTED b", id="a known secret"),
        pytest.param(f"?x={quote(KEY, safe='')}", "?x=REDACTED", id="… percent-encoded"),
        pytest.param('{"password": 12}', '{"password": "REDACTED"}', id="a number stays JSON"),
        pytest.param('{"access_token":"a\\"b"}', '{"access_token":"REDACTED"}', id="a quoted one"),
        pytest.param(r'"{\"api_key\": \"x\"}"', r'"{\"api_key\": \"REDACTED\"}"', id="inner JSON"),
        pytest.param("<d:secret>x</d:secret>", "<d:secret>REDACTED</d:secret>", id="a tag"),
        pytest.param('<a apikey="x" n="1">', '<a apikey="REDACTED" n="1">', id="an attribute"),
        pytest.param(
            "https://u:p@s3.example.org/f?X-Amz-Signature=ab&amp;page=2&sig=7",
            "https://s3.example.org/f?X-Amz-Signature=REDACTED&amp;page=2&sig=REDACTED",
            id="a signed address",
        ),
        pytest.param("Bearer abc123def", "Bearer REDACTED", id="a bearer's token"),
        pytest.param("eyJhbGciOi.eyJzdWIi.c2ln", "REDACTED", id="a JSON web token"),
        pytest.param("to Jane.Doe@Example.org.", "to REDACTED-1.", id="a mail address"),
        pytest.param(
            "a@b.example, c%40d.example, e\\u0040f.example, g&#64;h.example, A@B.EXAMPLE",
            "REDACTED-1, REDACTED-2, REDACTED-3, REDACTED-4, REDACTED-1",
            id="mail addresses in many writings",
        ),
        pytest.param("oai:x@y.example:7", "oai:REDACTED-1:7", id="an id that looks like one"),
    ],
)
def test_a_secret_and_a_mail_address_are_taken_out(text, clean):
    assert Scrubber(frozenset({KEY})).text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        '{"next-cursor": "AoJx+/=", "token": "PCOA3", "resumptionToken": "a!b", "key": "k1"}',
        "Marketing authorization: a review of basic FGF-2, bearer molecules and token economies",
        "*** p < 0.05; pkg@1.2.3; 5 @ 10 mM; doi:10.5555/a@b",
        "Müller, 伟 <jats:italic>x</jats:italic> https://example.org/a?page=2&rows=5",
    ],
)
def test_what_is_no_secret_stays_byte_for_byte(text):
    scrubber = Scrubber(frozenset({KEY, "k"}))

    assert scrubber.text(text) == text
    assert scrubber.body(text.encode()) == text.encode()
    assert scrubber.counts.total() == 0


def test_a_body_is_read_in_its_charset_and_still_is_what_it_was():
    tree = {"who": "é@müller.example", "api_key": 5, "n": [1.10, "ünïcode"]}
    clean = Scrubber().body(json.dumps(tree, ensure_ascii=False).encode())
    assert json.loads(clean) == {**tree, "who": "REDACTED-1", "api_key": "REDACTED"}

    xml = '<?xml version="1.0" encoding="utf-16"?><a mail="a@b.example">ü</a>'
    found = etree.fromstring(Scrubber().body(xml.encode("utf-16")))
    assert (found.get("mail"), found.text) == ("REDACTED-1", "ü")


def test_an_address_keeps_where_its_page_begins_and_loses_who_asks():
    url = (
        f"https://u:p@api.example.org/v1/a%20b?mailto=a%40b.example&api_key={KEY}&token=P%2B1&c=%2A"
    )

    clean = Scrubber().url(url, {"P+1"})

    asked = "mailto=REDACTED-1&api_key=REDACTED&token=P%2B1&c=%2A"
    assert clean == f"https://api.example.org/v1/a%20b?{asked}"
    assert "token=REDACTED" in Scrubber().url(url)
