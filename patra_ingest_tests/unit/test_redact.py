"""Whatever is written down has passed here: a canary secret must never come out."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.transport.redact import redact_headers, redact_text, redact_url

CANARY = "s3cr3tCANARY"
BASIC = base64.b64encode(f"user:{CANARY}".encode()).decode()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apikey", "apiKey", "API-KEY", "api.key", "key", "token", "access_token",
        "accessToken", "refresh_token", "insttoken", "password", "passwd", "pwd", "client_secret",
        "secret", "signature", "sig", "X-Amz-Signature", "X-Amz-Credential",
        "X-Amz-Security-Token", "Key-Pair-Id", "auth", "sid", "jsessionid", "auth%5Btoken%5D",
        "subscription-key", "api%5Fkey",
    ],
)  # fmt: skip
def test_a_secret_parameter_is_hidden_and_its_neighbours_are_not(name):
    url = f"https://h.example/v1/works?rows=5&{name}={CANARY}&cursor=AoE%2F%2Bx%3D%3D"

    assert (
        redact_url(url) == f"https://h.example/v1/works?rows=5&{name}=***&cursor=AoE%2F%2Bx%3D%3D"
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example/p?resumptionToken=a/1/2&pageToken=x&continuation_token=y&cursorMark=*",
        "https://h.example/p?filter=from-index-date:2026-01-01T00:00:00,type:key&monkey=1&keyword=k",
        "https://h.example/doi/10.1000/a:b=c;d?term=%28%222026%2F01%22%5BEDAT%5D%29&&empty=&flag",
        "https://h.example:8443/p?q=a+b%20c#page-2",
        "/relative?x=1",
        "",
    ],
)
def test_a_url_without_secrets_stays_as_it_is(url):
    assert redact_url(url) == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"https://user:{CANARY}@h.example/p", "https://***@h.example/p"),
        (f"https://{CANARY}@h.example:8443/p", "https://***@h.example:8443/p"),
        (f"https://u:{CANARY}@x@h.example/p", "https://***@h.example/p"),
        (
            "https://h.example/?mailto=jane.doe@lib.example",
            "https://h.example/?mailto=j…@lib.example",
        ),
        ("https://h.example/?email=jane%40lib.example", "https://h.example/?email=j…@lib.example"),
        (
            f"https://h.example/#access_token={CANARY}&x=1",
            "https://h.example/#access_token=***&x=1",
        ),
        (f"https://h.example/p;jsessionid={CANARY}", "https://h.example/p;jsessionid=***"),
        (
            "https://h.example/?next=" + quote(f"https://i.example/?a=1&key={CANARY}", safe=""),
            "https://h.example/?next=https://i.example/%3Fa=1%26key=***",
        ),
        (f"https://[broken/?api_key={CANARY}", "https://[broken/?api_key=***"),
    ],
)
def test_redact_url(url, expected):
    assert redact_url(url) == expected


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-API-Key", "x-apikey",
        "X-ELS-APIKey", "X-ELS-Insttoken", "Crossref-Plus-API-Token", "X-Auth-Token",
        "Ocp-Apim-Subscription-Key", "X-CSRF-Token", "X-Client-Secret", "X-Hub-Signature",
    ],
)  # fmt: skip
def test_a_secret_header_is_hidden(name):
    assert redact_headers({name: CANARY}) == {name.lower(): "***"}


def test_other_headers_are_kept_but_for_the_secrets_inside():
    assert redact_headers(
        {
            "Link": f'<https://h.example/?page=2&api_key={CANARY}>; rel="next"',
            "User-Agent": "patra/1 (mailto:jane@lib.example)",
            "X-RateLimit-Remaining": "9",
            "ETag": 'W/"key-1"',
            "WWW-Authenticate": 'Bearer realm="h", error="invalid_token"',
        }
    ) == {
        "link": '<https://h.example/?page=2&api_key=***>; rel="next"',
        "user-agent": "patra/1 (mailto:j…@lib.example)",
        "x-ratelimit-remaining": "9",
        "etag": 'W/"key-1"',
        "www-authenticate": 'Bearer realm="h", error="invalid_token"',
    }


@pytest.mark.parametrize(
    "text",
    [
        f'{{"error":"API key invalid","api-key":"{CANARY}","type":"api key","status":"unknown"}}',
        f"{{'client_secret': '{CANARY}'}}",
        f'"{{\\"access_token\\":\\"{CANARY}\\"}}"',
        f"<error><api_key>{CANARY}</api_key></error>",
        f"GET https://h.example/p?a=b&key={CANARY} HTTP/1.1",
        f"connect to ftp://me:{CANARY}@h.example failed",
        f"Authorization: Basic {BASIC}",
        f"Authorization: Whatever {CANARY} and {CANARY}",
        f'"authorization": "ApiKey {CANARY}"',
        f"sent Bearer {CANARY}.",
        f"Cookie: a=1; session={CANARY}\nHost: h.example",
        f"next=https%3A%2F%2Fh.example%2F%3Fapi_key%3D{CANARY}%26a%3D1",
        f"password = {CANARY}",
        f'api_key="{CANARY} with a blank"',
        f"url: http://h.example/?api_key={CANARY}",
        f"{JWT} was refused",
        f'{{"api_key": "{CANARY}',
        f"<client_secret>{CANARY}",
    ],
)
def test_no_canary_leaves_a_text(text):
    clean = redact_text(text)

    assert CANARY not in clean
    assert BASIC not in clean
    assert JWT not in clean
    assert "***" in clean
    assert redact_text(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Basic research on token economies: key findings",
        '{"key": "ref1", "unstructured": "Smith 2020", "token": "page2", "DOI": "10.1/x"}',
        "Retry after 30 seconds; see https://h.example/limits?x=1",
        "<Key>kept</Key><ArticleTitle>A key: a token</ArticleTitle>",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert redact_text(text) == text


def test_a_text_is_cut_after_it_was_redacted():
    clean = redact_text(f"{'x' * 90} api_key={CANARY * 30} {'y' * 90}", limit=100)

    assert clean == "x" * 90 + " api_key=…"


def test_a_body_of_megabytes_costs_no_more_than_its_beginning():
    assert len(redact_text("a" * 64_000_000)) == 1024


@given(st.text(), st.text())
def test_hiding_twice_is_hiding_once(before, after):
    url = redact_url(f"https://h.example/p?{before}&api_key={CANARY}&{after}")
    text = redact_text(f"{before} api_key={CANARY} {after}", None)

    assert redact_url(url) == url
    assert redact_text(text, None) == text


secrets = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=8, max_size=40)


@given(secrets, st.sampled_from(["api_key", "access_token", "password", "sig"]), st.text())
def test_any_secret_is_hidden_wherever_it_stands(secret, name, around):
    url = f"https://h.example/?{quote(around, safe='')}={quote(around, safe='')}&{name}="

    assert redact_url(url + quote(secret)).endswith(f"&{name}=***")
    assert redact_url(url + quote(secret) + "&page=2").endswith(f"&{name}=***&page=2")
