"""Where a redirect may lead, and what goes along."""

from dataclasses import replace

import pytest

from patra_ingest.spec.snapshot import HttpSpec
from patra_ingest.spec.words import Redirects
from patra_ingest.transport.messages import Request, Response
from patra_ingest.transport.redirects import find_redirect
from patra_ingest_tests.builders import NOON

HOME = "https://api.example/v1/works?page=2"
KEY = "K-1234567"


def http(redirects="SAME_HOST", *hosts):
    return HttpSpec(
        connect_timeout="5s",
        read_timeout="5s",
        total_timeout="10s",
        max_body_mb=1,
        redirects=Redirects(redirects),
        redirect_hosts=hosts,
        allow_insecure_http=False,
        verify_tls=True,
        compression=True,
        http2=False,
        retry_after="RESPECT",
    )


def moved(to, status=302):
    return Response(status, {"location": to} if to else {}, b"", 0.1, HOME, NOON)


def asked(**changes):
    request = Request(
        "GET",
        HOME,
        (("k", KEY), ("api_key", "old-secret")),
        {"Authorization": "Bearer T", "X-Mine": KEY, "Cookie": "a=b", "Accept": "text/xml"},
        hidden=frozenset({KEY}),
        signed=frozenset({"k"}),
    )
    return replace(request, **changes)


def led_to(to, policy=None, **changes):
    found = find_redirect(asked(**changes), moved(to), policy or http())
    return found and found.full_url


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("/v2/works?page=2", "https://api.example/v2/works?page=2"),
        ("other#part", "https://api.example/v1/other"),
        ("?page=3", "https://api.example/v1/works?page=3"),
        ("//api.example/x", "https://api.example/x"),
        ("https://API.example:443/x", "https://API.example:443/x"),
    ],
)
def test_a_redirect_on_the_same_host_is_followed_with_everything(to, expected):
    found = find_redirect(asked(), moved(to), http())

    assert found.full_url == expected
    assert found.headers == asked().headers
    assert (found.hops, found.hidden) == (1, asked().hidden)


@pytest.mark.parametrize(
    ("to", "policy"),
    [
        pytest.param("/x", http("REFUSE"), id="refused by the pack"),
        pytest.param("https://other.example/x", http(), id="another host"),
        pytest.param("https://api.example:8443/x", http(), id="another port"),
        pytest.param("https://sub.api.example/x", http(), id="a host below"),
        pytest.param("https://api.example.evil/x", http(), id="a host that looks alike"),
        pytest.param("https://third.example/x", http("LISTED", "other.example"), id="not listed"),
        pytest.param(
            "https://other.example:1/x", http("LISTED", "other.example"), id="a port not listed"
        ),
        pytest.param("http://api.example/x", http(), id="down to http"),
        pytest.param(
            "http://other.example/x", http("LISTED", "other.example"), id="listed, but http"
        ),
        pytest.param("https://me:pw@api.example/x", http(), id="a user in the address"),
        pytest.param("ftp://api.example/x", http(), id="another protocol"),
        pytest.param("https://[broken/x", http(), id="no address"),
        pytest.param("https://api.example:port/x", http(), id="no port"),
        pytest.param("", http(), id="no location"),
    ],
)
def test_a_redirect_that_is_not_allowed_is_not_followed(to, policy):
    assert led_to(to, policy) is None


@pytest.mark.parametrize(
    "changes",
    [{"method": "POST"}, {"method": "PUT"}, {"body": b"{}"}, {"hops": 3}],
    ids=["POST", "PUT", "a body", "the fourth"],
)
def test_only_the_first_three_of_get_and_head_are_followed(changes):
    assert led_to("/x", **changes) is None
    assert led_to("/x", method="HEAD", hops=2) == "https://api.example/x"


@pytest.mark.parametrize("status", [200, 300, 304, 305, 404])
def test_only_a_move_is_a_redirect(status):
    assert find_redirect(asked(), moved("/x", status), http()) is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_move_is_followed(status):
    assert find_redirect(asked(), moved("/x", status), http()).url == "https://api.example/x"


def test_credentials_do_not_follow_to_another_host():
    to = f"https://other.example/x?page=2&k={KEY}&api_key=old-secret&again={KEY}"

    found = find_redirect(asked(), moved(to), http("LISTED", "other.example"))

    assert found.full_url == "https://other.example/x?page=2"
    assert found.headers == {"Accept": "text/xml"}
    assert KEY not in repr(found)


def test_an_address_that_the_other_host_has_signed_stays_whole():
    to = "https://store.example/file?X-Amz-Signature=abc123&token=theirs"

    assert led_to(to, http("LISTED", "store.example")) == to


def test_a_host_may_be_listed_with_its_port_and_http_may_rise_to_https():
    listed = http("LISTED", "other.example:8443")

    assert led_to("https://other.example:8443/x", listed) == "https://other.example:8443/x"
    assert led_to("https://api.example/x", url="http://api.example/y") == "https://api.example/x"
    assert led_to("https://api.example/x", url="http://api.example:99/y") is None


def test_a_followed_redirect_is_a_request_with_a_permit_of_its_own(
    upstream, another, transport, permit
):
    upstream.answers = [(302, {}, {"Location": f"{another.url}/?a=1"})]
    request = Request("GET", f"{upstream.url}/scripted", (("k", KEY),), {"X-Api-Key": KEY})
    host = another.url.partition("//")[2]

    first = transport.send(request, permit())
    followed = find_redirect(request, first, http("LISTED", host))
    second = transport.send(followed, permit())

    assert (first.status, second.status) == (302, 200)
    assert another.seen == ["/?a=1"]
    assert "X-Api-Key" not in another.told[0]
