"""What is sent for one page: every place a value may go, and what is refused before it is sent."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from patra_ingest.errors import RequestRejected
from patra_ingest.executor.asking import Asking
from patra_ingest.executor.paging import Page
from patra_ingest.executor.request import render
from patra_ingest.expr.query_rules import QueryBook
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.transport.messages import Request
from patra_ingest_tests.builders import NOON, a_declaration, a_spec, days

BOOK = QueryBook.model_validate(
    {
        "syntax": "LUCENE",
        "fields": {"text": {"type": "TEXT"}},
        "capabilities": {"text": {"ops": ["TERM"], "matches": ["ANY"]}},
        "rules": [{"field": "text", "op": "TERM", "template": "{{v}}"}],
        "params": {"query": "q"},
    }
)
ANTS = {"term": {"field": "text", "value": 'ants" OR bees', "match": "ANY"}}


def asked(page=None, **more):
    return Asking(days(3, 5), page or Page(), 7, 1, "me@example.org", NOON, **more)


def rendered(page=None, more=None, **request):
    query = {"f": "${window.from|date}/${window.last|date}", **request.pop("query", {})}
    spec = a_spec(
        request={"query": query, **request},
        window={"granularity": "DAY"},
        paging={"token_param": "cursor"},
        **(more or {}),
    )
    return render(spec, asked(page))


def sent(request: Request):
    return dict(parse_qsl(urlsplit(request.full_url).query, keep_blank_values=True))


def test_a_page_is_asked_for_with_its_window_its_size_and_its_token():
    request = rendered(Page(2, token="AoE/+x=="))

    assert (request.method, urlsplit(request.full_url).path) == ("GET", "/works")
    assert sent(request) == {"f": "2025-09-04/2025-09-05", "rows": "50", "cursor": "AoE/+x=="}
    assert request.headers["X-Ingest-Correlation-Id"]


@pytest.mark.parametrize(
    ("base", "path", "address"),
    [
        ("https://example.org/api/", "/works", "https://example.org/api/works"),
        ("https://example.org/oai", "", "https://example.org/oai"),
        ("https://example.org/oai/", "", "https://example.org/oai/"),
        ("https://example.org/oai", "https://other.example/x", "https://other.example/x"),
    ],
)
def test_a_path_is_put_behind_the_address_and_none_leaves_it_as_it_is(base, path, address):
    request = rendered(base_url=base, path=path)

    assert request.full_url.partition("?")[0] == address


@pytest.mark.parametrize(
    ("page", "names"), [(Page(), {"prefix", "verb"}), (Page(2, token="t"), {"token", "verb"})]
)
def test_the_first_page_and_the_next_may_send_different_parameters(page, names):
    spec = a_spec(
        request={
            "query": {"verb": "List"},
            "first": {"prefix": "${window.from|date}-${window.last|date}"},
            "next": {"token": "${page.token}"},
        },
        window={"granularity": "DAY"},
        paging={"size_param": None, "size_policy": "SERVER", "stop": ["NO_TOKEN"]},
    )

    assert sent(render(spec, asked(page))).keys() == names


def test_who_we_are_goes_with_every_request_and_nobody_is_left_out():
    more = {"http": {"query": {"mailto": "${identity.contact}"}, "headers": {"From": "us"}}}
    request = rendered(more=more)
    alone = render(a_spec(**more), Asking(days(3, 5), Page(), 7, 1, "", NOON))

    assert (sent(request)["mailto"], request.headers["From"]) == ("me@example.org", "us")
    assert "mailto" not in sent(alone)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        pytest.param(
            {"clauses": ["a:${window.from|date}", "b:${split}"]}, "a:2025-09-04", id="one"
        ),
        pytest.param({"clauses": ["(${query})", "${split}"]}, None, id="all are null"),
        pytest.param({"clauses": ["x", "y", "z"], "join": " AND "}, "x AND y AND z", id="joined"),
        pytest.param({"value": "${split}"}, None, id="a value that is null"),
        pytest.param(
            {"value": "${window.from|date}", "pattern": "[0-9-]+"}, "2025-09-04", id="fits"
        ),
    ],
)
def test_a_clause_without_its_value_is_dropped_whole(param, value):
    then = [{"by": "VALUE", "clause": "${value}", "values": ["a", "b"]}]
    spec = a_spec(
        request={"query": {"q": param, "f": "${window.from} ${window.last}"}},
        cap={"max": 9, "then": then} if "split" in str(param) else {},
        window={"granularity": "DAY"},
        paging={"token_param": "c"},
    )

    assert sent(render(spec, asked())).get("q") == value


@pytest.mark.parametrize(
    ("param", "said"),
    [
        ({"value": "${params.topic}", "required": True}, "q is required and has no value"),
        ({"value": "${window.from|date}", "pattern": "x+"}, "which does not match x+"),
    ],
)
def test_what_the_pack_did_not_mean_is_not_sent(param, said):
    with pytest.raises(RequestRejected, match=said.replace("+", r"\+")):
        rendered(query={"q": param})


def test_a_value_may_stand_in_the_path_the_headers_and_a_form():
    request = rendered(
        path="/${window.from|date}/works",
        method="POST",
        headers={"X-Day": "${window.last|date}"},
        accept="application/json",
        form={"db": "pubmed", "size": "${page.size}"},
    )

    assert request.url.endswith("/2025-09-04/works")
    assert (request.headers["X-Day"], request.headers["Accept"]) == (
        "2025-09-05",
        "application/json",
    )
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert dict(parse_qsl(request.body.decode())) == {"db": "pubmed", "size": "50"}


def test_a_json_body_keeps_kinds_and_leaves_out_what_is_null():
    request = rendered(
        method="POST",
        body={
            "criteria": {"from": "${window.from|date}", "topic": "${params.topic}"},
            "limit": "${page.size}",
            "years": [2025, "${params.year}"],
            "deep": True,
        },
    )

    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.body) == {
        "criteria": {"from": "2025-09-04"},
        "limit": 50,
        "years": [2025],
        "deep": True,
    }


@pytest.mark.parametrize(("length", "method"), [(10, "GET"), (2000, "POST")])
def test_a_question_that_is_too_long_for_a_url_is_posted(length, method):
    request = rendered(query={"q": "x" * length}, post_when_longer=1500)

    assert request.method == method
    if method == "POST":
        assert dict(parse_qsl(request.body.decode()))["q"] == "x" * length
        assert "?" not in request.full_url


@pytest.mark.parametrize(("length", "path"), [(10, "/works"), (2000, "/worksPOST")])
def test_a_long_question_may_be_posted_elsewhere(length, path):
    request = rendered(query={"q": "x" * length}, post_when_longer=1500, post_path="/worksPOST")

    assert urlsplit(request.full_url).path == path


def test_characters_may_be_sent_as_they_are():
    plain = rendered(query={"search": {"value": "[20260101+TO+20260131]", "keep": "+"}})

    assert "search=%5B20260101+TO+20260131%5D" in plain.full_url


def test_selected_fields_are_one_parameter():
    spec = a_spec(
        request={"select": {"param": "fl", "fields": ["id", "updated", "title"]}},
    )

    assert sent(render(spec, asked()))["fl"] == "id,updated,title"


def test_the_query_of_a_trigger_is_a_parameter_of_its_own_and_cannot_break_out():
    declaration = a_declaration()
    bound = type(declaration)(**{**vars(declaration), "book": BOOK})
    spec = compile_spec(bound, Overrides(query=ANTS)).spec

    assert sent(render(spec, asked()))["q"] == spec.query.text
    assert spec.query.text.count('"') == spec.query.text.count('\\"') == 1


def test_a_query_that_looks_like_a_template_stays_text():
    declaration = a_declaration()
    bound = type(declaration)(**{**vars(declaration), "book": BOOK})
    query = {"term": {"field": "text", "value": "${identity.contact}", "match": "ANY"}}

    request = render(compile_spec(bound, Overrides(query=query)).spec, asked())

    assert "me@example.org" not in sent(request)["q"]
