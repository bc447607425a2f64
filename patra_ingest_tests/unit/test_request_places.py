"""Where a walk asks next: addresses that were handed out, details, ids, times, counts."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.asking import Asking
from patra_ingest.executor.paging import Page
from patra_ingest.executor.request import render, render_probe
from patra_ingest.model.codes import HttpMethod
from patra_ingest.spec.parts import Probe
from patra_ingest.spec.places import Param
from patra_ingest_tests.builders import NOON, a_spec, days
from patra_ingest_tests.unit.working import a_search

HERE = "https://api.example.org"
WINDOW = {"from": "${window.from|iso}", "to": "${window.last|iso}"}


def asked(page=None, **more):
    return Asking(days(3, 5), page or Page(), 7, 1, "me@example.org", NOON, **more)


def sent(request):
    return parse_qs(urlsplit(request.full_url).query, keep_blank_values=True)


def by_address(base=HERE, **paging):
    walk = {"type": "URL", "next_token": None, "next_url": "$.next", "stop": ["NO_TOKEN"]}
    return a_spec(
        request={"query": WINDOW, "base_url": base, "next": {"later": "1"}},
        http={"query": {"mailto": "${identity.contact}"}},
        paging={**walk, **paging},
    )


def follow(address, **paging):
    return render(by_address(**paging), asked(Page(2, token=address)))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (f"{HERE}/works?after=10", "/works"),
        ("/v2/works?after=10", "/v2/works"),
        ("?after=10", "/works"),
        ("more?after=10", "/more"),
    ],
)
def test_an_address_is_followed_from_where_it_was_handed_out(address, place):
    request = follow(address)

    parts = urlsplit(request.full_url)
    assert (f"{parts.scheme}://{parts.netloc}", parts.path) == (HERE, place)
    assert sent(request)["after"] == ["10"]


def test_what_an_address_has_lost_is_given_back_and_what_it_carries_is_left_alone():
    request = follow("/works?after=10&rows=7&from=")

    assert sent(request) == {
        "after": ["10"],
        "rows": ["7"],
        "from": [""],
        "to": ["2025-09-05T23:59:59Z"],
        "mailto": ["me@example.org"],
        "later": ["1"],
    }


def test_without_restoring_only_who_we_are_is_added():
    assert sent(follow("/works?after=10", restore_params=False)) == {
        "after": ["10"],
        "mailto": ["me@example.org"],
    }


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example.org/works",
        "http://api.example.org/works",
        "https://api.example.org:8443/works",
        "//evil.example.org/works",
        "https://api.example.org@evil.example.org/works",
        "https://api.example.org.evil.org/works",
        "ftp://api.example.org/works",
        "file:///etc/passwd",
        "https://me:CANARY@api.example.org/works",
    ],
)
def test_an_address_elsewhere_is_not_followed_and_shows_no_password(address):
    with pytest.raises(EndpointHalted, match=r"name the host in paging\.url_hosts") as refusal:
        follow(address)
    assert "CANARY" not in str(refusal.value)


def test_another_host_may_be_named_but_never_without_tls():
    there = "https://pages.example.org/works?after=10"

    assert follow(there, url_hosts=["pages.example.org"]).url == there
    with pytest.raises(EndpointHalted):
        follow(there.replace("https", "http"), url_hosts=["pages.example.org"])


def test_the_first_page_of_a_walk_by_address_is_written_from_the_pack():
    request = render(by_address(), asked())

    assert request.url == f"{HERE}/works"
    assert "later" not in sent(request)


def test_a_walk_by_time_asks_from_the_last_item_on_without_its_overlap():
    spec = a_spec(
        request={"query": WINDOW},
        paging={"type": "TIME", "next_token": None, "order": "ASC", "stop": ["SHORT_PAGE"]},
        window={"zone": "UTC", "overlap": "1h"},
    )

    first = sent(render(spec, asked()))
    second = sent(render(spec, asked(Page(2, token="2025-09-04T10:00:05.000000Z"))))

    assert first["from"] == ["2025-09-03T23:00:00Z"]
    assert second["from"] == ["2025-09-04T10:00:05Z"]
    assert first["to"] == second["to"] == ["2025-09-05T23:59:59Z"]


def test_a_smaller_page_is_asked_for_by_its_size():
    assert sent(render(a_spec(), asked(Page(2, token="t", size=25))))["rows"] == ["25"]


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        ("${ids|join(',')}", ["a,b"]),
        (Param(value="${ids}", repeat=True), ["a", "b"]),
    ],
)
def test_details_are_asked_for_by_id_at_their_own_place(param, expected):
    spec = a_search()
    own = spec.detail.request.model_copy(
        update={"path": "/fetch", "query": {"id": param, "size": "${page.size}"}}
    )
    detail = spec.detail.model_copy(update={"request": own})

    request = render(
        spec.model_copy(update={"detail": detail}), asked(ids=("a", "b"), details=True)
    )

    assert urlsplit(request.full_url).path == "/fetch"
    assert sent(request) == {"id": expected, "size": ["2"]}, "its batch, not the search's page"


def test_a_body_of_ids_keeps_them_as_a_list():
    spec = a_search()
    own = spec.detail.request.model_copy(
        update={"method": HttpMethod.POST, "query": {}, "body": {"ids": "${ids}"}}
    )
    detail = spec.detail.model_copy(update={"request": own})

    request = render(
        spec.model_copy(update={"detail": detail}), asked(ids=("a", "b"), details=True)
    )

    assert request.body == b'{"ids":["a","b"]}'


def test_a_probe_asks_like_the_first_page_with_what_it_changes():
    probe = Probe(query={"rows": "0", "cursor": None, "facet": "x"})

    request = render_probe(a_spec(), probe, asked())

    assert sent(request) == {
        "from": ["2025-09-04T00:00:00Z"],
        "to": ["2025-09-05T23:59:59Z"],
        "rows": ["0"],
        "facet": ["x"],
    }


def test_every_request_says_which_batch_it_belongs_to():
    spec = a_spec(http={"idempotency_header": "X-Once"})
    first = render(spec, asked()).headers
    second = render(spec, replace(asked(), batch_no=2)).headers

    assert first["X-Ingest-Correlation-Id"] == first["X-Once"] == "ing-7-1"
    assert second["X-Ingest-Correlation-Id"] == "ing-7-2"
