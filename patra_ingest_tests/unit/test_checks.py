"""Every rule of the checklist, with a declaration that breaks it."""

import pytest

from patra_ingest.spec.checks import find_problems
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.merge import merge
from patra_ingest.spec.shapes import shape
from patra_ingest_tests.builders import a_declaration

BY_OFFSET = {"type": "OFFSET", "stop": ["SHORT_PAGE"]}
OFFSET_QUERY = {"query": {"from": "${window.from}", "offset": "${page.offset}"}}


def problems(params=frozenset(), **groups):
    merged, wrong = shape(merge(a_declaration(**groups), Overrides()))
    return wrong or find_problems(merged, params)


def test_a_valid_declaration_has_no_problem():
    assert problems() == []
    assert problems(paging=BY_OFFSET, request=OFFSET_QUERY) == []


@pytest.mark.parametrize(
    ("groups", "path", "reason"),
    [
        ({"request": {"base_url": None}}, "request.base_url", "is missing"),
        ({"request": {"path": None}}, "request.path", "is missing"),
        ({"response": {"items_path": None}}, "response.items_path", "is missing"),
        ({"response": {"id_path": None}}, "response.id_path", "is missing"),
        ({"rate": {"key": None}}, "rate.key", "is missing"),
        ({"request": {"base_url": "ftp://x.org"}}, "request.base_url", "is no web address"),
        ({"request": {"base_url": "https://"}}, "request.base_url", "is no web address"),
        ({"request": {"base_url": "http://x.org"}}, "request.base_url", "is not HTTPS"),
        (
            {"request": {"base_url": "http://x.org"}, "http": {"allow_insecure_http": True}},
            "http.allow_insecure_http",
            "is meant for this machine only",
        ),
        ({"http": {"connect_timeout_ms": 0}}, "http.connect_timeout_ms", "0 ms is out of bounds"),
        ({"http": {"read_timeout_ms": -1}}, "http.read_timeout_ms", "is out of bounds"),
        ({"http": {"total_timeout_ms": 120_001}}, "http.total_timeout_ms", "is out of bounds"),
        ({"paging": {"stop": []}}, "paging.stop", "lists no rule"),
        ({"paging": {"next_token_path": None}}, "paging.next_token", "TOKEN paging needs it"),
        (
            {"paging": {**BY_OFFSET, "stop": ["NO_TOKEN"]}, "request": OFFSET_QUERY},
            "paging.stop",
            "OFFSET pages hand out no token",
        ),
        (
            {"paging": {"stop": ["TOTAL_REACHED"], "total_path": None}},
            "paging.total",
            "TOTAL_REACHED needs it",
        ),
        ({"paging": {"page_size": 0}}, "paging.page_size", "is out of bounds"),
        ({"paging": {"page_size": 10_001}}, "paging.page_size", "is out of bounds"),
        ({"paging": {"next_token_path": "$.["}}, "paging.next_token_path", "cannot be read"),
        ({"paging": {"total_path": "$["}}, "paging.total_path", "cannot be read"),
        ({"response": {"items_path": "$.a["}}, "response.items_path", "cannot be read"),
        ({"response": {"deleted_path": "$.a["}}, "response.deleted_path", "cannot be read"),
        (
            {"mapping": {"fields": [{"name": "title", "path": "$.["}]}},
            "fields.title",
            "cannot be read",
        ),
        (
            {"request": {"query": {"q": "${window.from}${page.token}${page.tokn}"}}},
            "request.query.q",
            "page.tokn",
        ),
        ({"request": {"headers": {"x": "${secret.key}"}}}, "request.headers.x", "secret.key"),
        ({"request": {"path": "/${oops"}}, "request.path", "${"),
        (
            {"request": {"query": {"from": "${window.from}"}}},
            "request.query",
            "never uses ${page.token}",
        ),
        (
            {"request": {"query": {"cursor": "${page.token}"}}},
            "request.query",
            "never uses ${window.from}",
        ),
        ({"window": {"safety_lag": -1}}, "window.safety_lag", "cannot be negative"),
        ({"window": {"overlap": -1}}, "window.safety_lag", "cannot be negative"),
        ({"window": {"max_span": 0}}, "window.max_span", "is shorter than a second"),
        (
            {"window": {"watermark_source": "RECORD_MAX"}},
            "window.watermark_source",
            "only WINDOW_END can be checked here",
        ),
        ({"window": {"zone": "Mars/Phobos"}}, "window.zone", "Mars/Phobos"),
        ({"response": {"updated_at_path": None}}, "response.updated_at", "is missing"),
        ({"rate": {"per_second": 0}}, "rate.per_second", "must be more than zero"),
        ({"rate": {"burst": -1}}, "rate.burst", "must be more than zero"),
        ({"rate": {"cost": 0}}, "rate.cost", "must be more than zero"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts", "must be at least 1"),
    ],
)
def test_a_problem_names_the_place_the_reason_and_the_remedy(groups, path, reason):
    (found,) = problems(**groups)

    assert found.path == path
    assert reason in found.reason
    assert found.remedy
    assert str(found) == f"{found.path}: {found.reason} ({found.remedy})"


def test_a_missing_kind_of_paging_is_said_once_per_consequence():
    found = problems(paging={"type": None})

    assert [(p.path, p.reason) for p in found] == [("paging.type", "is missing")]


def test_insecure_http_is_for_the_loopback():
    for url in ("http://127.0.0.1:8765", "http://localhost", "http://[::1]:80"):
        local = {"request": {"base_url": url}, "http": {"allow_insecure_http": True}}
        assert problems(**local) == []


def test_a_parameter_of_the_trigger_is_a_known_name():
    query = {"query": {"q": "${params.topic}", "f": "${window.from}", "c": "${page.token}"}}

    assert problems(frozenset({"topic"}), request=query) == []
    assert [p.path for p in problems(request=query)] == ["request.query.q"]


def test_hash_needs_no_update_time():
    assert problems(response={"updated_at_path": None}, mapping={"changed": "HASH"}) == []


def test_all_problems_are_reported_at_once():
    found = problems(
        rate={"cost": 0, "burst": 0}, paging={"page_size": 0}, http={"read_timeout_ms": 0}
    )

    assert len(found) == 4
