"""A request with its credential put in: key, bearer token, user and password. Pure.

What is returned knows its secrets and shows them to nobody but the upstream.
"""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import orjson

from patra_ingest.errors import RequestRejected
from patra_ingest.model.codes import InboundLocation
from patra_ingest.spec.policies import ApiKey
from patra_ingest.transport.hiding import strip_url
from patra_ingest.transport.messages import Request

FORM = "application/x-www-form-urlencoded"


def with_key(request: Request, key: ApiKey, secret: str) -> Request:
    """Return the request with an API key where the source looks for it."""
    value = key.prefix + secret
    match key.location:
        case InboundLocation.HEADER:
            return with_header(request, key.field, key.prefix, secret)
        case InboundLocation.QUERY:
            return with_param(request, key.field, value).hiding(secret)
        case InboundLocation.BODY:
            return _with_field(request, key.field, value).hiding(secret)


def with_header(request: Request, name: str, prefix: str, secret: str) -> Request:
    """Return the request with a secret in a header."""
    return request.with_headers({name: prefix + secret}).hiding(secret)


def with_param(request: Request, name: str, value: str) -> Request:
    """Return the request with one more parameter; one of that name, in the URL too, is replaced."""
    url = strip_url(request.url, (), (name,)) if "?" in request.url else request.url
    kept = tuple(pair for pair in request.params if pair[0] != name)
    signed = request.signed | {name}
    return replace(request, url=url, params=(*kept, (name, value)), signed=signed)


def with_user(request: Request, user: str, password: str) -> Request:
    """Return the request with a user and a password (RFC 7617)."""
    pair = b64encode(f"{user}:{password}".encode()).decode()
    signed = request.with_headers({"Authorization": f"Basic {pair}"})
    return signed.hiding(user, password, pair)


def _with_field(request: Request, name: str, value: str) -> Request:
    kind = next((v for k, v in request.headers.items() if k.lower() == "content-type"), FORM)
    if "json" in kind.lower():
        tree = _object(request.body or b"{}")
        return replace(request, body=orjson.dumps({**tree, name: value}))
    if not kind.lower().startswith(FORM):
        raise RequestRejected(f"a key cannot be put into a body of {kind:.60}")
    # The rest of the form stays as it was written, to the last percent sign.
    key = Request("POST", "").with_form("POST", [(name, value)], FORM).body or b""
    body = request.body + b"&" + key if request.body else key
    return request.with_body(request.method, body, FORM)


def _object(body: bytes) -> dict[str, Any]:
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        tree = None
    if not isinstance(tree, dict):
        raise RequestRejected("a key cannot be put into a body that is no JSON object")
    return tree
