import contextlib
import json
import logging
import socket
import ssl
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.clock import SystemClock
from patra_ingest.errors import RequestRejected, TransientError
from patra_ingest.transport.client import Transport
from patra_ingest.transport.messages import Request, Timeouts

CANARY = "CANARY-8f3a"
PAIRS = (
    ("page[cursor]", "AoE/+x=="),
    ("q", "a b"),
    ("filter", "from-index-date:2026-01-01T00:00:00,until-index-date:2026-01-02"),
    ("term", '("2026/01/01"[EDAT] AND é&ß?#%26)'),
    ("q", "twice"),
    ("empty", ""),
)


def echo(answer):
    return json.loads(answer.body)


def sent_pairs(url):
    return tuple(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def test_parameters_arrive_as_they_were_given(upstream, transport, permit):
    answer = transport.send(Request("GET", upstream.url, PAIRS), permit())

    assert sent_pairs(echo(answer)["path"]) == PAIRS


def test_parameters_join_those_the_url_already_has(upstream, transport, permit):
    request = Request("GET", f"{upstream.url}/?cursor=a%2Bb%3D%3D&x=1#part", (("y", "+"),))

    answer = transport.send(request, permit())

    assert echo(answer)["path"] == "/?cursor=a%2Bb%3D%3D&x=1&y=%2B"


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_any_text_survives_the_query(pairs):
    url = Request("GET", "https://h.example/p?a=1", tuple(pairs)).full_url

    assert sent_pairs(url) == (("a", "1"), *pairs)
    assert url.isascii()


def test_an_answer_is_whole_and_plain(upstream, transport, permit):
    answer = transport.send(Request("GET", upstream.url, (("api_key", CANARY),)), permit())

    assert answer.status == 200
    assert answer.headers["x-upstream"] == "here"
    assert answer.url == f"{upstream.url}?api_key=***"
    assert answer.elapsed >= 0
    assert answer.received_at.tzinfo is UTC


def test_headers_and_body_are_sent(upstream, transport, permit):
    headers = {"X-Ingest-Correlation-Id": "c-1", "Content-Type": "application/json"}

    answer = transport.send(Request("POST", upstream.url, (), headers, b'{"ids":[1]}'), permit())

    told = echo(answer)
    assert told["headers"]["X-Ingest-Correlation-Id"] == "c-1"
    assert told["headers"]["User-Agent"] == "patra-tests/1"
    assert told["body"] == '{"ids":[1]}'


@pytest.mark.parametrize("status", [204, 301, 302, 400, 404, 429, 500, 503])
def test_every_status_is_an_answer(upstream, transport, permit, status):
    answer = transport.send(Request("GET", f"{upstream.url}/status/{status}"), permit())

    assert (answer.status, answer.headers["retry-after"]) == (status, "7")
    assert len(upstream.seen) == 1  # a redirect is not followed


def test_cookies_are_not_kept(upstream, transport, permit):
    for _ in range(2):
        answer = transport.send(Request("GET", upstream.url), permit())

    assert "Cookie" not in echo(answer)["headers"]


def test_no_request_leaves_without_its_own_permit(upstream, transport, permit):
    request = Request("GET", upstream.url)
    used = permit()
    transport.send(request, used)

    with pytest.raises(RuntimeError, match="used or released before"):
        transport.send(request, used)
    with pytest.raises(TypeError, match="not handed out by a rate gate"):
        transport.send(request, replace(permit(), seal=object()))
    with pytest.raises(TypeError):
        transport.send(request)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/drop", "RemoteProtocolError"),
        ("/truncated", "RemoteProtocolError"),
        ("/garbage", "RemoteProtocolError"),
        ("/badgzip", "DamagedBody"),
        ("/slow", "ReadTimeout"),
        ("/drip", "was still sending after 0.2 s"),
    ],
)
def test_half_an_answer_is_none(upstream, transport, permit, path, said):
    patience = Timeouts(connect=1, read=0.5, total=0.2 if path == "/drip" else 20)
    request = Request("GET", upstream.url + path, timeouts=patience)

    with pytest.raises(TransientError, match=said) as caught:
        transport.send(request, permit())

    assert f"GET 127.0.0.1:{upstream.server_port}{path} " in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_closed_port_is_a_transient_error(transport, permit):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/works"

        with pytest.raises(TransientError, match=r"failed after \d+\.\d s: ConnectError"):
            transport.send(Request("GET", url), permit())


def test_an_unknown_host_is_a_transient_error(transport, permit):
    with pytest.raises(TransientError, match=r"GET no-such-host\.invalid/ failed"):
        transport.send(Request("GET", "http://no-such-host.invalid/"), permit())


def test_a_certificate_nobody_signed_is_a_transient_error(tmp_path, transport, permit):
    with _tls_server(tmp_path) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"

        with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
            transport.send(Request("GET", url), permit())


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"url": "ftp://h.example/"}, id="scheme"),
        pytest.param({"url": "/works"}, id="no host"),
        pytest.param({"url": "http://h.example:port/"}, id="port"),
        pytest.param({"params": (("q", "\ud800"),)}, id="half a character"),
        pytest.param({"headers": {"X-Name": f"{CANARY}\nb"}}, id="a line break in a header"),
        pytest.param({"headers": {"X-Name": f"{CANARY}é"}}, id="a header that is not ASCII"),
    ],
)
def test_what_cannot_be_sent_is_rejected_for_good(upstream, transport, permit, wrong):
    with pytest.raises(RequestRejected, match="cannot be sent") as caught:
        transport.send(replace(Request("GET", upstream.url), **wrong), permit())

    assert upstream.seen == []
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_threads_share_a_transport_without_mixing_answers(upstream, transport, permit):
    permits = [permit() for _ in range(80)]

    def ask(number):
        request = Request("GET", upstream.url, (("n", str(number)),))
        return sent_pairs(echo(transport.send(request, permits[number]))["path"])

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(80)))

    assert answers == [(("n", str(number)),) for number in range(80)]


def test_a_proxy_in_the_environment_is_not_for_the_loopback(upstream, permit, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Transport(SystemClock(), "patra-tests/1") as opened:
        assert opened.send(Request("GET", upstream.url), permit()).status == 200


@pytest.mark.parametrize("path", ["/", "/drop", "/garbage", "/slow"])
def test_no_secret_reaches_a_log_a_message_or_a_trace(upstream, transport, permit, caplog, path):
    caplog.set_level(logging.DEBUG)
    # Dagster's migrations switch off every logger they do not know, also in the tests before us.
    logging.getLogger("httpx").disabled = False
    request = Request(
        "GET",
        f"{upstream.url}{path}?key={CANARY}".replace("://", f"://me:{CANARY}@"),
        (("api_key", CANARY),),
        {"Authorization": f"Bearer {CANARY}", "X-API-Key": CANARY},
        timeouts=Timeouts(read=0.2),
    )
    try:
        told = repr(transport.send(request, permit()))
    except TransientError:
        told = traceback.format_exc()

    assert CANARY not in told + repr(request) + caplog.text
    if path == "/":
        assert "HTTP Request: GET" in caplog.text


def _tls_server(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "self-signed.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):  # the client hangs up
            context.wrap_socket(connection, server_side=True).close()

    threading.Thread(target=serve, daemon=True).start()
    return server
