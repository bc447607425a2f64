"""Whether a question written again is the one whose digest was kept. Pure.

Left out of the comparison is what differs by itself: credentials, who we say we are, the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.executor.asking import Asking
from patra_ingest.executor.digests import request_digest
from patra_ingest.executor.request import render
from patra_ingest.model.codes import InboundLocation
from patra_ingest.spec.policies import ApiKey, Custom
from patra_ingest.spec.snapshot import AuthSpec, CallSpec, SpecSnapshot
from patra_ingest.transport.redact import HIDDEN

_SOMEBODY_ELSE = "x@elsewhere.example"
_ANOTHER_TIME = timedelta(days=1234, seconds=5678)
Digest = Mapping[str, Any]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Aside:
    """What is not held against a request: parameters by name, and parts that move as a whole."""

    names: frozenset[str] = frozenset()
    is_place: bool = False
    is_body: bool = False
    takes_more: bool = False  # a signer may add parameters that nobody knows


def aside_of(spec: SpecSnapshot, call: CallSpec, asking: Asking) -> Aside:
    """Return what two renderings of one question need not share."""
    own = request_digest(render(spec, asking))
    later = replace(asking, contact=_SOMEBODY_ELSE, tool="another", now=asking.now + _ANOTHER_TIME)
    other = request_digest(render(spec, later))
    moving = {name for name, _ in set(pairs_of(own)) ^ set(pairs_of(other))}
    keys = [each.credential for each in call.auth.credentials]
    return Aside(
        frozenset(moving | signed_names(call.auth)),
        own["urlTemplate"] != other["urlTemplate"],
        own.get("bodyHash") != other.get("bodyHash") or any(map(_signs_body, keys)),
        any(isinstance(key, Custom) for key in keys),
    )


def signed_names(auth: AuthSpec) -> set[str]:
    """Return the query parameters that signing puts into a request."""
    keys = [each.credential for each in auth.credentials]
    return {
        key.field
        for key in keys
        if isinstance(key, ApiKey) and key.location is InboundLocation.QUERY
    }


def _signs_body(key: object) -> bool:
    if isinstance(key, Custom):
        return True
    return isinstance(key, ApiKey) and key.location is InboundLocation.BODY


def find_unlike(kept: Digest, own: Digest, aside: Aside) -> list[str]:
    """Return the parts in which two digests differ; none when they are one question."""
    parts = []
    if kept.get("method") != own["method"]:
        parts.append("method")
    if not aside.is_place and kept.get("urlTemplate") != own["urlTemplate"]:
        parts.append("url")
    if not _are_alike(_shown(kept, aside), _shown(own, aside), aside):
        parts.append("query")
    if not aside.is_body and kept.get("bodyHash") != own.get("bodyHash"):
        parts.append("body")
    return parts


def _are_alike(kept: Pairs, own: Pairs, aside: Aside) -> bool:
    return set(own) <= set(kept) if aside.takes_more else kept == own


def _shown(digest: Digest, aside: Aside) -> Pairs:
    return [
        (name, value)
        for name, value in pairs_of(digest)
        if name not in aside.names and value != HIDDEN
    ]


def pairs_of(digest: Digest) -> Pairs:
    """Return the parameters of a request in their order, repeated ones too."""
    return parse_qsl(urlsplit(str(digest.get("url", ""))).query, keep_blank_values=True)


def hidden_names(url: str) -> Sequence[str]:
    """Return the parameters of an address whose values were hidden before it was stored."""
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    return [name for name, value in pairs if value == HIDDEN]
