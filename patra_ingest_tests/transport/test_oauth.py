"""OAuth 2: one token for many requests, renewed in time, refused aloud."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import parse_qs

import pytest

from patra_ingest.errors import EndpointHalted, Throttled, TransientError
from patra_ingest.model.lineage import CORRELATION
from patra_ingest.transport.messages import Request
from patra_ingest_tests.transport.desk import spec_of

SECRETS = {"env:ID": "client 1", "env:SECRET": "s3cr3t/+CANARY", "env:REFRESH": "refresh-0-CANARY"}
GRANTED = {"token_type": "bearer", "expires_in": 600}
BASIC = "Basic " + base64.b64encode(b"client%201:s3cr3t%2F%2BCANARY").decode()
OK: dict[str, str] = {}
REFUSED = (401, {"error": "invalid_client"}, OK)


@pytest.fixture
def shop(desk, upstream):
    desk.secrets.update(SECRETS)
    desk.url = f"{upstream.url}/scripted"
    return desk


def grants(upstream, *lives):
    upstream.answers = [
        (200, {**GRANTED, "access_token": f"token-{number}-CANARY", "expires_in": life}, OK)
        for number, life in enumerate(lives, 1)
    ]


def spec(desk, **more):
    oauth = {"type": "OAUTH2", "token_url": desk.url, "client_id": "env:ID"}
    return spec_of(required=True, mine={**oauth, "client_secret": "env:SECRET", **more})


def sign(desk, auth=None):
    return desk.auth.sign(Request("GET", "https://h.example/"), auth or spec(desk), "lib")


def token(signed):
    return signed.request.headers["Authorization"]


def forms(upstream):
    return [{k: v[0] for k, v in parse_qs(told["body"]).items()} for told in upstream.told]


def test_a_token_request_says_which_batch_needs_the_token(shop, upstream):
    grants(upstream, 600)
    needs = Request("GET", "https://h.example/", headers={CORRELATION: "ing-7-3"})

    shop.auth.sign(needs, spec(shop), "lib")
    sign(shop)

    (told,) = upstream.told
    assert told[CORRELATION] == "ing-7-3"


def test_a_token_is_fetched_with_client_credentials(shop, upstream):
    grants(upstream, 600)

    signed = sign(shop, spec(shop, scope="/read-public", audience="api"))

    assert token(signed) == "Bearer token-1-CANARY"
    assert signed.request.shown_headers == {"authorization": "***"}
    asked = {"grant_type": "client_credentials", "scope": "/read-public", "audience": "api"}
    assert forms(upstream) == [asked]
    assert upstream.told[0]["Authorization"] == BASIC


def test_a_token_request_passes_the_rate_gate(shop, upstream):
    grants(upstream, *(0.02 for _ in range(8)))
    began = shop.clock.now()

    for _ in range(8):
        sign(shop)
        shop.clock.sleep(0.1)

    assert len(upstream.seen) == 8
    assert shop.clock.now() - began > timedelta(seconds=2.5)  # five at once, then one a second


@pytest.mark.parametrize(
    ("life", "ahead", "kept", "renewed"),
    [
        (600, {}, 539, 540),
        (600, {"refresh_ahead": "100s"}, 499, 500),
        (20, {}, 9, 10),
        ("600", {}, 539, 540),
        (None, {}, 3539, 3540),
        (0, {}, 3539, 3540),
        (631138518, {}, 86400 * 364, 86400 * 365),
        (1e300, {}, 86400 * 364, 86400 * 365),
        ("soon", {}, 3539, 3540),
    ],
)
def test_a_token_is_kept_until_shortly_before_its_end(shop, upstream, life, ahead, kept, renewed):
    grants(upstream, life, 600)
    auth = spec(shop, **ahead)
    began = shop.clock.now()
    seen = [token(sign(shop, auth))]
    for seconds in (kept, renewed):
        shop.clock.at = began + timedelta(seconds=seconds)
        seen.append(token(sign(shop, auth)))

    assert [text[7:14] for text in seen] == ["token-1", "token-1", "token-2"]


def test_many_threads_cause_one_fetch(shop, upstream):
    grants(upstream, 600)
    start = threading.Barrier(16)

    def work(_):
        start.wait()
        return token(sign(shop))

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(work, range(16))) == {"Bearer token-1-CANARY"}
    assert len(upstream.seen) == 1


def test_an_endpoint_that_wants_the_secret_in_the_form_gets_it_there_from_then_on(shop, upstream):
    granted = (200, {**GRANTED, "access_token": "token-1", "expires_in": 10}, OK)
    upstream.answers = [REFUSED, granted]

    sign(shop)
    shop.clock.sleep(20)
    sign(shop)

    in_form = {"client_id": "client 1", "client_secret": SECRETS["env:SECRET"]}
    assert [form.items() >= in_form.items() for form in forms(upstream)] == [False, True, True]
    assert "Authorization" not in upstream.told[2]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (REFUSED, EndpointHalted, "401 invalid_client for the credential mine"),
        (
            (400, {"error": "invalid_grant"}, OK),
            EndpointHalted,
            r"400 invalid_grant .*\(lib, env:ID",
        ),
        ((401, "who?", OK), EndpointHalted, "answered 401 for the credential mine"),
        ((403, {}, OK), EndpointHalted, "answered 403"),
        ((302, {}, {"Location": "/login"}), EndpointHalted, "answered 302"),
        ((200, {"error": "invalid_scope"}, OK), EndpointHalted, "200 invalid_scope"),
        ((400, {"error": "s3cr3t/+CANARY!"}, OK), EndpointHalted, "400 error for"),
        ((500, {}, OK), TransientError, "answered 500"),
        ((503, {}, OK), TransientError, "answered 503"),
        ((200, "<html>", OK), TransientError, "but without a token"),
        ((200, {"access_token": ""}, OK), TransientError, "but without a token"),
        ((429, {}, {"Retry-After": "30"}), Throttled, "answered 429"),
        ((503, {}, {"Retry-After": "30"}), Throttled, "answered 503"),
        ((429, {}, OK), Throttled, "answered 429"),
    ],
)
def test_every_refusal_has_its_level_and_shows_no_secret(shop, upstream, answer, kind, said):
    upstream.answers = [answer]

    with pytest.raises(kind, match=said) as caught:
        sign(shop)

    assert type(caught.value) is kind
    assert "CANARY" not in str(caught.value)


def test_a_throttled_token_endpoint_is_left_alone(shop, upstream):
    upstream.answers = [(429, {}, {"Retry-After": "300"})]
    until = shop.clock.now() + timedelta(seconds=300)

    for _ in range(2):
        with pytest.raises(Throttled) as caught:
            sign(shop)
        assert timedelta(0) <= caught.value.retry_at - until < timedelta(minutes=1)

    assert len(upstream.seen) == 1


def test_a_token_is_used_to_its_end_when_it_cannot_be_renewed(shop, upstream):
    grants(upstream, 600)
    sign(shop)
    upstream.answers = [(500, {}, OK)]

    shop.clock.sleep(590)
    assert token(sign(shop)) == "Bearer token-1-CANARY"
    shop.clock.sleep(10)
    with pytest.raises(TransientError):
        sign(shop)


def test_a_refused_token_is_renewed_once_for_all_threads(shop, upstream):
    grants(upstream, 600, 600, 600)
    auth = spec(shop)
    first, same = sign(shop, auth), sign(shop, auth)

    assert shop.auth.renew(auth, first) is True
    second = sign(shop, auth)
    assert shop.auth.renew(auth, same) is True  # it was sent before the new token came
    assert token(sign(shop, auth)) == token(second) == "Bearer token-2-CANARY"


def test_a_token_that_is_refused_when_new_ends_the_credential(shop, upstream):
    grants(upstream, 600, 600, 600)
    auth = spec(shop)
    shop.auth.renew(auth, sign(shop, auth))

    assert shop.auth.renew(auth, sign(shop, auth)) is False
    with pytest.raises(EndpointHalted, match="mine was refused"):
        sign(shop, auth)


def test_a_token_that_worked_for_a_while_is_renewed_again(shop, upstream):
    grants(upstream, 3600, 3600, 3600)
    auth = spec(shop)
    shop.auth.renew(auth, sign(shop, auth))
    second = sign(shop, auth)
    shop.clock.sleep(301)

    assert shop.auth.renew(auth, second) is True
    assert token(sign(shop, auth)) == "Bearer token-3-CANARY"


def test_a_client_that_is_refused_makes_way_for_another_credential(shop, upstream, caplog):
    upstream.answers = [REFUSED]
    shop.secrets["env:KEY"] = "key-CANARY"
    key = {"type": "API_KEY", "field": "k", "secret": "env:KEY"}
    both = spec(shop).credentials + spec_of(spare=key).credentials
    auth = spec(shop).model_copy(update={"credentials": both})

    assert [sign(shop, auth).credential_name for _ in range(2)] == ["spare", "spare"]
    assert "the next credential is tried" in caplog.text
    assert "CANARY" not in caplog.text
    assert len(upstream.seen) == 2  # the header and the form, once
