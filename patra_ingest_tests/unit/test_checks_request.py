"""What is asked: a failing pack for every rule about addresses, methods and fields."""

import pytest

from patra_ingest.spec.checks import request
from patra_ingest_tests.unit.check_packs import (
    GONE,
    Case,
    a_search,
    assert_refused,
    changed,
    problems_of,
    with_a_key,
)

SELECT = "endpoints.works.request.select"
READ = ["id", "updated", "title"]


CASES = (
    Case(
        request.required_values,
        "no address",
        {"provenance.base_url": ""},
        "provenance.base_url",
        "is missing",
        "give the provenance a base_url",
    ),
    Case(
        request.required_values,
        "no path",
        {"endpoints.works.request.path": GONE},
        "endpoints.works.request.path",
        "is missing",
        "give the endpoint a path",
    ),
    Case(
        request.required_values,
        "no items",
        {"endpoints.works.response.items": GONE},
        "endpoints.works.response.items",
        "is missing",
        "say where the items are",
    ),
    Case(
        request.required_values,
        "no id",
        {"endpoints.works.response.id": GONE},
        "endpoints.works.response.id",
        "is missing",
        "say where an item's id is",
    ),
    Case(
        request.required_values,
        "no kind of paging",
        {"endpoints.works.paging": {"page_size": 10}},
        "endpoints.works.paging.type",
        "is missing",
        "say how it pages",
    ),
    Case(
        request.addresses_are_https,
        "plain HTTP",
        {"provenance.base_url": "http://api.example.org"},
        "provenance.base_url",
        "is not HTTPS",
        "use https",
    ),
    Case(
        request.addresses_are_https,
        "another protocol",
        {"provenance.base_url": "ftp://api.example.org"},
        "provenance.base_url",
        "'ftp://api.example.org' is no web address",
        "use https://…",
    ),
    Case(
        request.addresses_are_https,
        "plain HTTP to another machine",
        {"provenance.base_url": "http://api.example.org", "http.allow_insecure_http": True},
        "http.allow_insecure_http",
        "is meant for this machine only",
        "use https for a host",
    ),
    Case(
        request.addresses_are_https,
        "an endpoint elsewhere, in plain",
        {"endpoints.works.request.path": "http://elsewhere.example.org/works"},
        "endpoints.works.request.path",
        "is not HTTPS",
        "use https",
    ),
    Case(
        request.paths_stay_on_their_host,
        "a path that would become a part of the host",
        {"endpoints.works.request.path": ".elsewhere.example.org/works"},
        "endpoints.works.request.path",
        "'.elsewhere.example.org/works' does not begin with /",
        "write /works",
    ),
    Case(
        request.paths_stay_on_their_host,
        "a path that begins with what a trigger says",
        {"endpoints.works.request.path": "${params.set|segment}/works"},
        "endpoints.works.request.path",
        "does not begin with /",
        "write /works",
    ),
    Case(
        request.paths_stay_on_their_host,
        "an address with a query of its own",
        {"provenance.base_url": "https://api.example.org?a=b"},
        "provenance.base_url",
        "holds more than an address",
        "move it to the request",
    ),
    Case(
        request.paths_stay_on_their_host,
        "an address with a fragment",
        {"endpoints.works.request.base_url": "https://api.example.org/#a"},
        "endpoints.works.request.base_url",
        "holds more than an address",
        "move it to the request",
    ),
    Case(
        request.paths_stay_on_their_host,
        "a path whose end is never sent",
        {"endpoints.works.request.path": "/works#all"},
        "endpoints.works.request.path",
        "holds a #, which is never sent",
        "write it as %23",
    ),
    Case(
        request.timeouts_are_bounded,
        "no time to connect",
        {"http.connect_timeout": "0s"},
        "http.connect_timeout",
        "0s is out of bounds",
        "stay above 0 and up to 120s",
    ),
    Case(
        request.timeouts_are_bounded,
        "more than two minutes to read",
        {"endpoints.works.http.read_timeout": "121s"},
        "endpoints.works.http.read_timeout",
        "2m1s is out of bounds",
        "stay above 0 and up to 120s",
    ),
    Case(
        request.timeouts_are_bounded,
        "an hour in all",
        {"http.total_timeout": "1h"},
        "http.total_timeout",
        "1h is out of bounds",
        "stay above 0 and up to 120s",
    ),
    Case(
        request.timeouts_are_bounded,
        "less time in all than to read",
        {"http.read_timeout": "60s", "http.total_timeout": "5s"},
        "http.total_timeout",
        "is shorter than read_timeout",
        "make it longer",
    ),
    Case(
        request.timeouts_are_bounded,
        "less time in all than to read, where nobody said how much",
        {"endpoints.works.http": {"read_timeout": "90s"}},
        "endpoints.works.http.total_timeout",
        "is shorter than read_timeout",
        "make it longer",
    ),
    Case(
        request.redirects_name_their_hosts,
        "an address where a host belongs",
        {"http": {"redirects": "LISTED", "redirect_hosts": ["https://cdn.example.org/a"]}},
        "http.redirect_hosts",
        "'https://cdn.example.org/a' is no host",
        "write api.example.org",
    ),
    Case(
        request.redirects_name_their_hosts,
        "listed hosts that are not listed",
        {"http.redirects": "LISTED"},
        "http.redirects",
        "LISTED and redirect_hosts belong together",
        "list the hosts",
    ),
    Case(
        request.redirects_name_their_hosts,
        "hosts that nobody looks at",
        {"endpoints.works.http.redirect_hosts": ["cdn.example.org"]},
        "endpoints.works.http.redirects",
        "LISTED and redirect_hosts belong together",
        "or choose REFUSE or SAME_HOST",
    ),
    Case(
        request.tls_is_verified,
        "no certificate asked of another machine",
        {"http.verify_tls": False},
        "http.verify_tls",
        "is off for another machine",
        "remove it",
    ),
    Case(
        request.bodies_fit_the_method,
        "a request that changes the source",
        {"endpoints.works.request.method": "DELETE"},
        "endpoints.works.request.method",
        "DELETE is no question",
        "use GET or POST",
    ),
    Case(
        request.bodies_fit_the_method,
        "a GET with a body",
        {"endpoints.works.request.body": {"size": "${page.size}"}},
        "endpoints.works.request.method",
        "GET carries no body",
        "use POST",
    ),
    Case(
        request.bodies_fit_the_method,
        "two bodies",
        {
            "endpoints.works.request.method": "POST",
            "endpoints.works.request.body": {"size": "${page.size}"},
            "endpoints.works.request.form": {"size": "${page.size}"},
        },
        "endpoints.works.request.form",
        "stands beside a JSON body",
        "send one of them",
    ),
    Case(
        request.bodies_fit_the_method,
        "a POST that would become a POST",
        {"endpoints.works.request.method": "POST", "endpoints.works.request.post_when_longer": 9},
        "endpoints.works.request.post_when_longer",
        "is for a GET only",
        "remove it",
    ),
    Case(
        request.parameters_are_set_once,
        "selected fields under a name that is taken",
        {SELECT: {"param": "from", "fields": READ}},
        "endpoints.works.request.select.param",
        "from is set already",
        "choose one of both",
    ),
    Case(
        request.parameters_are_set_once,
        "selected fields under a name that only the first page sends",
        {SELECT: {"param": "fl", "fields": READ}, "endpoints.works.request.first": {"fl": "id"}},
        "endpoints.works.request.select.param",
        "fl is set already",
        "choose one of both",
    ),
    Case(
        request.parameters_are_set_once,
        "a key under a name that every request carries",
        {
            "auth.credentials.k.location": "QUERY",
            "auth.credentials.k.field": "mailto",
            "http.query": {"mailto": "${identity.contact}"},
        },
        "auth.credentials.k.field",
        "mailto is set already",
        "remove the other",
        pack=with_a_key,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_problem_says_where_why_and_what_to_do(sqlite_template, case):
    assert_refused(sqlite_template, case)


def test_plain_http_to_this_machine_is_fine_where_it_is_allowed(sqlite_template):
    change = {"provenance.base_url": "http://127.0.0.1:9", "http.allow_insecure_http": True}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()


@pytest.mark.parametrize("address", ["https://[api.example.org", "https://", "api.example.org"])
def test_an_address_that_cannot_be_read_is_a_problem_like_any_other(sqlite_template, address):
    [problem] = problems_of(sqlite_template, changed(a_search(), {"provenance.base_url": address}))
    assert problem == f"provenance.base_url: {address!r} is no web address (use https://…)"


@pytest.mark.parametrize("path", ["https://elsewhere.example.org/works", ""])
def test_a_path_may_be_an_address_of_its_own_or_the_base_itself(sqlite_template, path):
    change = {"endpoints.works.request.path": path}
    assert problems_of(sqlite_template, changed(a_search(), change)) == ()
