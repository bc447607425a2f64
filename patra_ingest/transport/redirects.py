"""Where a redirect leads, if we follow it at all. Pure.

A followed redirect is one more request: it passes the rate gate with a permit of its own.
"""

from dataclasses import replace
from urllib.parse import SplitResult, parse_qsl, urljoin, urlsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.spec.snapshot import HttpSpec
from patra_ingest.spec.words import Redirects
from patra_ingest.transport.hiding import holds_secret, strip_url
from patra_ingest.transport.messages import Request, Response
from patra_ingest.transport.redact import HIDDEN, redact_headers

MAX_HOPS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}


def find_redirect(request: Request, response: Response, http: HttpSpec) -> Request | None:
    """Return the request a redirect asks for, or None: it is not to be followed.

    Followed are GET and HEAD, at most three times in a row, never from https to http, and only
    where the spec allows. Credentials do not go along to another host.
    """
    place = response.headers.get("location", "").strip()
    if response.status not in _MOVED or not place or not _may_move(request):
        return None
    here, there = _parts(request.url), _parts(place, request.full_url)
    if here is None or there is None or not _is_allowed(here, there, http):
        return None
    moved = replace(request, url=there._replace(fragment="").geturl(), params=())
    moved = replace(moved, plain={}, hops=request.hops + 1)
    return moved if _is_same_place(here, there) else _without_credentials(moved, request)


def _may_move(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and request.body is None and request.hops < MAX_HOPS


def _parts(url: str, base: str = "") -> SplitResult | None:
    try:
        parts = urlsplit(urljoin(base, url))
        has_host = parts.scheme in _PORTS and bool(parts.hostname) and _port(parts) > 0
    except ValueError:
        return None
    return parts if has_host else None


def _is_allowed(here: SplitResult, there: SplitResult, http: HttpSpec) -> bool:
    # A user and a password in a Location are not ours to send.
    if "@" in there.netloc or (here.scheme == "https" and there.scheme == "http"):
        return False
    if http.redirects is Redirects.REFUSE:
        return False
    if _is_same_place(here, there):
        return True
    listed = {host.lower() for host in http.redirect_hosts}
    is_listed = there.hostname in listed and _port(there) == _PORTS[there.scheme]
    return http.redirects is Redirects.LISTED and (is_listed or there.netloc.lower() in listed)


def _is_same_place(here: SplitResult, there: SplitResult) -> bool:
    """Same host and port, or the step from http to https on their usual ports."""
    if here.hostname != there.hostname:
        return False
    stays = (here.scheme, _port(here)) == (there.scheme, _port(there))
    rises = (here.scheme, _port(here), there.scheme, _port(there)) == ("http", 80, "https", 443)
    return stays or rises


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _without_credentials(moved: Request, asked: Request) -> Request:
    shown = redact_headers(moved.headers)
    headers = {
        name: value
        for name, value in moved.headers.items()
        if shown[name.lower()] != HIDDEN and not holds_secret(value, moved.hidden)
    }
    # Only what was ours: the other host's own signed address must arrive as it was written.
    url = strip_url(moved.url, moved.hidden | _sent_secrets(asked), moved.signed)
    return replace(moved, url=url, headers=headers)


def _sent_secrets(asked: Request) -> frozenset[str]:
    pairs = parse_qsl(urlsplit(asked.full_url).query)
    return frozenset(value for name, value in pairs if is_secret_name(name, as_parameter=True))
