"""What is asked: addresses, methods, secrets, selected fields."""

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from patra_ingest.expr.value import compile_value
from patra_ingest.model.codes import HttpMethod, InboundLocation
from patra_ingest.spec.freeze import PLACED, paths_of
from patra_ingest.spec.policies import ApiKey
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.secrets import (
    find_secret_params,
    find_secrets_in_cap,
    find_secrets_in_credential,
    find_secrets_in_http,
    find_secrets_in_partitions,
    find_secrets_in_request,
)
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import Redirects, duration_text

_MAX_TIMEOUT = timedelta(seconds=120)
_FIRST_NAME = re.compile(r"""\$\.?\[?['"]?([^.'"\[\]]+)""")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", re.ASCII)
_PLAIN_PATH = re.compile(r"/[\w./~%-]*", re.ASCII)
_SENT = ("query", "first", "next", "form")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def required_values(subject: Subject) -> Iterator[Problem]:
    """Without these nothing can be asked or read."""
    shaped = subject.shaped
    for path, value, remedy in (
        ("request.base_url", shaped.request.base_url, "give the provenance a base_url"),
        ("request.path", shaped.request.path is not None, "give the endpoint a path, or ''"),
        ("response.items", shaped.response.items, "say where the items are, as $.message.items"),
        ("response.id", shaped.response.id, "say where an item's id is, for example $.DOI"),
    ):
        if not value:
            yield Problem(path, "is missing", remedy)
    if shaped.paging.type is None and not subject.by_ids:
        yield Problem("paging.type", "is missing", "say how it pages: TOKEN, OFFSET, … or NONE")


def addresses_are_https(subject: Subject) -> Iterator[Problem]:
    """Plain HTTP only where it is allowed, and only on this machine."""
    address = subject.shaped.request.base_url or ""
    path = subject.shaped.request.path or ""
    for where, text in (("request.base_url", address), ("request.path", path)):
        if text and (where == "request.base_url" or "://" in text.split("${")[0]):
            yield from _address(subject, where, text)


def _address(subject: Subject, where: str, text: str) -> Iterator[Problem]:
    host, scheme = _host(text), text.partition(":")[0].lower()
    allowed = subject.shaped.http.allow_insecure_http
    if scheme not in ("http", "https") or not host:
        yield Problem(where, f"{text!r:.80} is no web address", "use https://…")
    elif scheme == "http" and not allowed:
        yield Problem(where, "is not HTTPS", "use https, or http.allow_insecure_http: true")
    elif scheme == "http" and host not in _LOOPBACK:
        yield Problem(
            "http.allow_insecure_http", "is meant for this machine only", "use https for a host"
        )


def paths_stay_on_their_host(subject: Subject) -> Iterator[Problem]:
    """A path is put behind the address: without a slash it would become a part of the host."""
    base, path = subject.shaped.request.base_url or "", subject.shaped.request.path or ""
    if path and not path.lower().startswith(("/", "http://", "https://")):
        yield Problem("request.path", f"{path!r:.60} does not begin with /", "write /works")
    if "?" in base or "#" in base:
        yield Problem("request.base_url", "holds more than an address", "move it to the request")
    if "#" in path:
        yield Problem("request.path", "holds a #, which is never sent", "write it as %23")


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def no_secret_is_written_down(subject: Subject) -> Iterator[Problem]:
    """A pack and a trigger are stored, shown and kept."""
    yield from find_secrets_in_request(subject.shaped.request)
    yield from find_secrets_in_http(subject.shaped.http)
    yield from find_secrets_in_cap(subject.shaped.cap)
    yield from find_secrets_in_partitions(subject.shaped.endpoint.partitions)
    for named in subject.declaration.credentials:
        yield from find_secrets_in_credential(named.place, named.credential)
    yield from find_secret_params(subject.params)


def timeouts_are_bounded(subject: Subject) -> Iterator[Problem]:
    """No request holds a lane for longer than two minutes."""
    for key in ("connect_timeout", "read_timeout", "total_timeout"):
        value = getattr(subject.shaped.http, key)
        if not timedelta(0) < value <= _MAX_TIMEOUT:
            shown = duration_text(value)
            yield Problem(f"http.{key}", f"{shown} is out of bounds", "stay above 0 and up to 120s")
    http = subject.shaped.http
    read, total = http.read_timeout or _MAX_TIMEOUT, http.total_timeout or _MAX_TIMEOUT
    if total < read <= _MAX_TIMEOUT:
        yield Problem("http.total_timeout", "is shorter than read_timeout", "make it longer")


def redirects_name_their_hosts(subject: Subject) -> Iterator[Problem]:
    """A list of hosts and the policy that reads it belong together."""
    http = subject.shaped.http
    if (http.redirects == Redirects.LISTED) != bool(http.redirect_hosts):
        yield Problem(
            "http.redirects",
            "LISTED and redirect_hosts belong together",
            "list the hosts, or choose REFUSE or SAME_HOST",
        )
    for host in http.redirect_hosts or ():
        if not _HOST.fullmatch(host):
            yield Problem(
                "http.redirect_hosts", f"{host!r:.60} is no host", "write api.example.org"
            )


def tls_is_verified(subject: Subject) -> Iterator[Problem]:
    """Only this machine may go without a certificate."""
    host = _host(subject.shaped.request.base_url or "")
    if subject.shaped.http.verify_tls is False and host not in _LOOPBACK:
        yield Problem("http.verify_tls", "is off for another machine", "remove it")


def bodies_fit_the_method(subject: Subject) -> Iterator[Problem]:
    """A GET has no body, and a request has one body at most."""
    request = subject.shaped.request
    has_body = request.body is not None or request.form is not None
    if request.method not in (HttpMethod.GET, HttpMethod.POST):
        yield Problem("request.method", f"{request.method} is no question", "use GET or POST")
    if request.method == HttpMethod.GET and has_body:
        yield Problem("request.method", "GET carries no body", "use POST, or send it in the query")
    if request.body is not None and request.form is not None:
        yield Problem("request.form", "stands beside a JSON body", "send one of them")
    if request.post_when_longer and request.method != HttpMethod.GET:
        yield Problem("request.post_when_longer", "is for a GET only", "remove it")
    if request.post_path and not request.post_when_longer:
        yield Problem("request.post_path", "nothing is posted there", "say post_when_longer, too")
    if request.post_path and not _PLAIN_PATH.fullmatch(request.post_path):
        yield Problem("request.post_path", "is no plain path", "write it as /search")


def parameters_are_set_once(subject: Subject) -> Iterator[Problem]:
    """A parameter that two places set would lose one of them."""
    shaped = subject.shaped
    own = [name for part in _SENT for name in getattr(shaped.request, part) or {}]
    sent = {*own, *(shaped.http.query or {})}
    for name in sorted(set(own) & (shaped.http.query or {}).keys()):
        yield Problem(f"http.query.{name}", "the request sets it, too", "choose one of both")
    if shaped.request.select and shaped.request.select.param in sent:
        name = shaped.request.select.param
        yield Problem("request.select.param", f"{name} is set already", "choose one of both")
    for key, variable in PLACED:
        placed = getattr(shaped.paging, key)
        if placed in sent and not subject.uses(variable.strip("${}")):
            yield Problem(f"paging.{key}", f"{placed} is set already", "remove it from the request")
    for named in subject.credentials:
        own_key = named.credential
        in_query = isinstance(own_key, ApiKey) and own_key.location == InboundLocation.QUERY
        if isinstance(own_key, ApiKey) and in_query and own_key.field in sent:
            yield Problem(
                f"{named.place}.field", f"{own_key.field} is set already", "remove the other"
            )


def selected_fields_hold_what_is_read(subject: Subject) -> Iterator[Problem]:
    """A source that sends only selected fields must be asked for the ones we read."""
    response, select = subject.shaped.response, subject.shaped.request.select
    sent = select.names() if select else frozenset(response.default_fields or ())
    if not sent:
        return
    where = "request.select" if select else "response.default_fields"
    for key in ("id", "asked", "version", "updated_at"):
        for path in _paths(getattr(response, key)):
            yield from _selected(path, sent, f"response.{key}", where)
    for field in subject.shaped.endpoint.fields or ():
        for path in _paths(field.path):
            yield from _selected(path, sent, f"endpoint.fields.{field.name}", where)
    for key in ("deleted", "retracted", "skip", "usable"):
        said = getattr(response, key)
        path = said if isinstance(said, str) else said and said.path
        if path:
            yield from _selected(path, sent, f"response.{key}", where)


def _paths(said: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if said is None:
        return ()
    try:
        return compile_value(paths_of(said)).paths
    except ValueError:
        return ()  # reported by the check of the paths


def _selected(path: str, sent: frozenset[str], where: str, by: str) -> Iterator[Problem]:
    found = _FIRST_NAME.match(path)
    first = found[1] if found else None
    if first and first not in sent:
        yield Problem(
            where, f"{path} is not among the fields that are sent", f"add {first} to {by}"
        )


CHECKS = (
    required_values,
    addresses_are_https,
    paths_stay_on_their_host,
    no_secret_is_written_down,
    timeouts_are_bounded,
    redirects_name_their_hosts,
    tls_is_verified,
    bodies_fit_the_method,
    parameters_are_set_once,
    selected_fields_hold_what_is_read,
)
