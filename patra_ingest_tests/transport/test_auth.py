"""Which credential a request carries, where, and what happens when there is none."""

import base64
import json
from datetime import timedelta
from urllib.parse import parse_qsl

import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, Throttled
from patra_ingest.transport.messages import Request
from patra_ingest_tests.transport.desk import spec_of

SECRET = "s3cr3t/+CANARY"
URL = "https://h.example/works"
KEY = {"type": "API_KEY", "field": "k", "secret": "env:KEY"}
ONE = {"type": "BEARER", "secret": "env:ONE"}
TWO = {"type": "BEARER", "secret": "env:TWO"}
HOUR = timedelta(hours=1)


def sent(request):
    return Request("POST", URL).with_body("POST", *request)


JSON = sent((b'{"ids":[1],"size":5}', "application/json; charset=utf-8"))
FORM = sent((b"ids=1%2C2&size=5", "application/x-www-form-urlencoded"))


@pytest.fixture
def keyed(desk):
    desk.secrets.update({"env:KEY": SECRET, "env:ONE": "first-token", "env:TWO": "second-token"})
    return desk


def signed(desk, credential, request=None):
    return desk.auth.sign(request or Request("GET", URL), spec_of(mine=credential), "lib")


def names(desk, auth, times):
    return [desk.auth.sign(Request("GET", URL), auth, "lib").credential_name for _ in range(times)]


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("credential", "header", "value"),
    [
        ({**KEY, "location": "HEADER", "field": "x-api-key"}, "x-api-key", SECRET),
        (
            {**KEY, "location": "HEADER", "field": "Crossref-Plus-API-Token", "prefix": "Bearer "},
            "Crossref-Plus-API-Token",
            f"Bearer {SECRET}",
        ),
        ({"type": "BEARER", "secret": "env:KEY"}, "Authorization", f"Bearer {SECRET}"),
        ({"type": "BASIC", "username": "env:KEY"}, "Authorization", basic(f"{SECRET}:")),
        (
            {"type": "BASIC", "username": "env:ONE", "password": "env:KEY"},
            "Authorization",
            basic(f"first-token:{SECRET}"),
        ),
    ],
)
def test_a_credential_travels_in_its_header(keyed, credential, header, value):
    request = Request("GET", URL, headers={header.lower(): "old", "Accept": "a"})

    done = signed(keyed, credential, request)

    assert done.request.headers == {"Accept": "a", header: value}
    assert done.credential_name == "mine"
    assert set(done.request.shown_headers.values()) == {"a", "***"}


def test_a_key_in_the_query_replaces_the_one_a_next_url_has(keyed):
    request = Request("GET", f"{URL}?cursor=a%2Bb&k=old", (("k", "older"), ("rows", "5")))

    done = signed(keyed, {**KEY, "prefix": "v1:"}, request).request

    assert done.full_url == f"{URL}?cursor=a%2Bb&rows=5&k=v1%3As3cr3t%2F%2BCANARY"
    assert done.shown_url == f"{URL}?cursor=a%2Bb&rows=5&k=v1%3A***"
    assert done.strip(f"{URL}?cursor=c&k=v1:{SECRET}") == f"{URL}?cursor=c"


def test_a_key_in_the_body_joins_what_is_there(keyed):
    in_body = {**KEY, "location": "BODY"}

    tree = signed(keyed, in_body, JSON).request
    form = signed(keyed, in_body, FORM).request
    alone = signed(keyed, in_body, Request("POST", URL)).request

    assert json.loads(tree.body) == {"ids": [1], "size": 5, "k": SECRET}
    assert form.body == b"ids=1%2C2&size=5&k=s3cr3t%2F%2BCANARY"
    assert parse_qsl(alone.body.decode()) == [("k", SECRET)]
    assert alone.headers["Content-Type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "request_body", [(b"[1]", "application/json"), (b"{", "text/json"), (b"<a/>", "text/xml")]
)
def test_a_body_that_can_hold_no_key_is_rejected(keyed, request_body):
    with pytest.raises(RequestRejected, match="a key cannot be put into a body"):
        signed(keyed, {**KEY, "location": "BODY"}, sent(request_body))


def test_no_credential_leaves_the_request_as_it_is(desk):
    request = Request("GET", URL)

    assert desk.auth.sign(request, spec_of(), "lib").request is request
    assert desk.auth.sign(request, spec_of(mine=KEY), "lib").credential_name is None


def test_a_required_credential_that_is_missing_is_named_by_its_reference(desk):
    closed = spec_of(
        required=True, mine=KEY, user={"type": "BASIC", "username": "env:U", "password": "file:p"}
    )
    desk.secrets["env:U"] = SECRET

    with pytest.raises(EndpointHalted, match=r"mine needs env:KEY; user needs file:p") as caught:
        desk.auth.sign(Request("GET", URL), closed, "lib")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        pytest.param(spec_of(one=ONE, two=TWO), "one", id="as listed"),
        pytest.param(spec_of(one=ONE, two={**TWO, "preferred": True}), "two", id="preferred"),
        pytest.param(
            spec_of(chosen="one", one=ONE, two={**TWO, "preferred": True}), "one", id="chosen"
        ),
        pytest.param(
            spec_of(none={**ONE, "secret": "env:NONE"}, two=TWO), "two", id="the one that is there"
        ),
    ],
)
def test_the_first_usable_credential_is_taken(keyed, auth, expected):
    assert names(keyed, auth, 2) == [expected, expected]


def test_credentials_in_turn_share_the_requests(keyed):
    auth = spec_of(rotation="IN_TURN", one=ONE, none={**ONE, "secret": "env:NONE"}, two=TWO)

    assert names(keyed, auth, 4) == ["one", "two", "one", "two"]


def test_a_refused_credential_makes_way_for_the_next_and_then_for_nobody(keyed):
    auth = spec_of(required=True, one=ONE, two=TWO)
    first = keyed.auth.sign(Request("GET", URL), auth, "lib")

    assert keyed.auth.renew(auth, first) is True
    second = keyed.auth.sign(Request("GET", URL), auth, "lib")
    assert second.credential_name == "two"
    assert keyed.auth.renew(auth, second) is False
    with pytest.raises(EndpointHalted, match="one was refused; two was refused"):
        keyed.auth.sign(Request("GET", URL), auth, "lib")


def test_a_new_secret_lifts_the_refusal(keyed):
    auth = spec_of(one=ONE)
    keyed.auth.renew(auth, keyed.auth.sign(Request("GET", URL), auth, "lib"))
    assert names(keyed, auth, 1) == [None]

    keyed.secrets["env:ONE"] = "another-token"

    assert names(keyed, auth, 1) == ["one"]


def test_a_refusal_by_one_source_says_nothing_about_another(keyed):
    auth = spec_of(one=ONE)
    keyed.auth.renew(auth, keyed.auth.sign(Request("GET", URL), auth, "elsewhere"))

    assert names(keyed, auth, 1) == ["one"]


def test_a_credential_without_quota_rests_until_it_has_some(keyed):
    auth = spec_of(chosen="one", one=ONE, two=TWO)
    now, request = keyed.clock.now(), Request("GET", URL)

    assert keyed.auth.exhaust(auth, keyed.auth.sign(request, auth, "lib"), now + HOUR)
    assert not keyed.auth.exhaust(auth, keyed.auth.sign(request, auth, "lib"), now + 2 * HOUR)
    with pytest.raises(Throttled, match="quota of every credential of lib is used up") as caught:
        keyed.auth.sign(request, auth, "lib")
    assert caught.value.retry_at == now + HOUR
    keyed.clock.at = now + HOUR
    assert names(keyed, auth, 1) == ["one"]


def test_a_plan_that_never_counted_on_a_credential_goes_on_without(keyed):
    auth = spec_of(one=ONE)
    first = keyed.auth.sign(Request("GET", URL), auth, "lib")
    keyed.auth.exhaust(auth, first, keyed.clock.now() + HOUR)

    assert names(keyed, auth, 1) == [None]


def test_an_anonymous_request_has_nothing_to_renew(keyed):
    auth = spec_of()

    assert keyed.auth.renew(auth, keyed.auth.sign(Request("GET", URL), auth, "lib")) is False
