"""How a request travels: through a proxy, without verified TLS, over HTTP/1.1."""

import logging
import traceback

import pytest

from patra_ingest.errors import RequestRejected, TransientError
from patra_ingest.transport.messages import Options, Request, options_of
from patra_ingest_tests.transport.test_client import _tls_server
from patra_ingest_tests.transport.test_redirects import http


def test_a_spec_says_how_its_requests_travel():
    spec = http().model_copy(
        update={"max_body_mb": 2, "verify_tls": False, "compression": False, "proxy": "http://p:1"}
    )

    assert options_of(http()) == Options(max_body_bytes=1024 * 1024)
    assert options_of(spec) == Options(2 * 1024 * 1024, False, False, "http://p:1", False)


def test_a_proxy_of_the_spec_is_used_also_for_the_loopback(upstream, another, transport, permit):
    request = Request("GET", f"{upstream.url}/?a=1", options=Options(proxy=another.url))

    transport.send(request, permit())

    assert (another.seen, upstream.seen) == ([f"{upstream.url}/?a=1"], [])


@pytest.mark.parametrize("proxy", ["gopher://u:CANARY@p.example", "http://p:port"])
def test_a_proxy_that_cannot_be_used_is_rejected_without_its_password(
    upstream, transport, permit, proxy
):
    with pytest.raises(RequestRejected, match=r"http.proxy .* cannot be used") as caught:
        transport.send(Request("GET", upstream.url, options=Options(proxy=proxy)), permit())

    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


def test_a_certificate_nobody_signed_is_taken_only_when_asked_to(tmp_path, transport, permit):
    with _tls_server(tmp_path) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"

        # The server hangs up after the handshake: that it came so far is what is shown.
        with pytest.raises(TransientError) as caught:
            transport.send(Request("GET", url, options=Options(verify_tls=False)), permit())

    assert "CERTIFICATE" not in str(caught.value)


def test_http2_is_said_once_to_be_missing(upstream, transport, permit, caplog):
    logging.getLogger("patra_ingest.transport.pools").disabled = False
    transport._pools._has_http2 = False
    for _ in range(2):
        answer = transport.send(Request("GET", upstream.url, options=Options(http2=True)), permit())

    assert answer.status == 200
    assert caplog.text.count("HTTP/1.1 is spoken") == 1


def test_pools_are_shared_by_requests_that_travel_alike(upstream, transport, permit):
    for options in (Options(), Options(compression=False), Options(max_body_bytes=99_999)):
        transport.send(Request("GET", upstream.url, options=options), permit())

    assert len(transport._pools._clients) == 1
