"""What is asked and what is answered, as values. Pure, and shy: their `repr` shows no secret."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from urllib.parse import quote

from patra_ingest.spec.snapshot import HttpSpec
from patra_ingest.transport.hiding import hide, hide_headers, hide_in_body, strip_url
from patra_ingest.transport.redact import redact_headers, redact_url
from patra_ingest.transport.retry_after import read_retry_after


@dataclass(frozen=True)
class Timeouts:
    """Seconds of patience: for the connection, for each silence, and for the whole answer.

    `total` (plus one silence) stays below the life of a permit, or another worker
    takes our place in flight while we still hold the line.
    """

    connect: float = 10.0
    read: float = 30.0
    total: float = 80.0


@dataclass(frozen=True)
class Options:
    """How a request travels. The limit holds on the wire and, once more, for the unpacked body."""

    max_body_bytes: int | None = None  # None: the transport's own limit
    verify_tls: bool = True
    compression: bool = True
    proxy: str | None = field(default=None, repr=False)
    http2: bool = False


def options_of(http: HttpSpec) -> Options:
    """Return how the requests of a spec travel."""
    limit = http.max_body_mb * 1024 * 1024
    return Options(limit, http.verify_tls, http.compression, http.proxy, http.http2)


@dataclass(frozen=True, repr=False)
class Request:
    """What to ask. Parameters are given plain and in order; `url` may already carry some."""

    method: str
    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeouts: Timeouts = Timeouts()
    plain: Mapping[str, str] = field(default_factory=dict)  # parameter: characters sent as they are
    options: Options = Options()
    hidden: frozenset[str] = frozenset()  # the secrets that signing has put in
    signed: frozenset[str] = frozenset()  # the query parameters that signing has put in
    hops: int = 0  # redirects that led here

    @cached_property
    def full_url(self) -> str:
        """The URL as it is sent, secrets included."""
        base = self.url.partition("#")[0]
        if not self.params:
            return base
        # Everything but letters, digits and -._~ is encoded: +, / and = survive any decoder.
        return base + ("&" if "?" in base else "?") + self._encoded(self.params)

    def with_body(self, method: str, body: bytes, content_type: str) -> "Request":
        """Return the request with a body of its own."""
        headers = {"Content-Type": content_type, **self.headers}
        return replace(self, method=method, body=body, headers=headers)

    def with_form(self, method: str, form: Sequence[tuple[str, str]], kind: str) -> "Request":
        """Return the request with a form as its body."""
        return self.with_body(method, self._encoded(form).encode(), kind)

    def as_form(self, kind: str) -> "Request":
        """Return the same question as a POST: the parameters travel in the body."""
        return replace(self.with_form("POST", self.params, kind), params=())

    def with_headers(self, more: Mapping[str, str]) -> "Request":
        """Return the request with these headers; one of the same name is replaced, in any case."""
        names = {name.lower() for name in more}
        kept = {name: own for name, own in self.headers.items() if name.lower() not in names}
        return replace(self, headers={**kept, **more})

    def hiding(self, *secrets: str) -> "Request":
        """Return the request that shows these secrets to nobody but the upstream."""
        return replace(self, hidden=self.hidden | {secret for secret in secrets if secret})

    def _encoded(self, pairs: Sequence[tuple[str, str]]) -> str:
        return "&".join(
            f"{quote(name, safe='')}={quote(value, safe=self.plain.get(name, ''))}"
            for name, value in pairs
        )

    def hide(self, text: str) -> str:
        """Return `text` without the secrets of this request."""
        return hide(text, self.hidden)

    def strip(self, url: str) -> str:
        """Return a URL of the upstream (its next page) without our credential, to be stored."""
        return strip_url(url, self.hidden, self.signed)

    @cached_property
    def shown_url(self) -> str:
        """The URL as it may be stored and logged."""
        return redact_url(self.hide(self.full_url))

    @property
    def shown_headers(self) -> dict[str, str]:
        """The headers as they may be stored and logged; names in lower case."""
        return redact_headers(hide_headers(self.headers, self.hidden))

    def __repr__(self) -> str:
        return f"Request({self.method} {self.shown_url})"


@dataclass(frozen=True)
class Response:
    """What was answered, whole; header names are lower-case, the body is decompressed."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    elapsed: float  # seconds, from sending to the last byte
    url: str  # without secrets
    received_at: datetime
    wire_bytes: int = 0  # of the body, as they travelled
    hidden: frozenset[str] = field(default=frozenset(), repr=False)  # secrets it may echo

    def hide(self, text: str) -> str:
        """Return `text` without the secrets of the request: sources like to repeat a key."""
        return hide(text, self.hidden)

    def without_keys(self) -> "Response":
        """Return the answer without our keys: whoever is answered with one must not store it."""
        body = hide_in_body(self.body, self.hidden)
        return self if body is self.body else replace(self, body=body)

    @property
    def retry_at(self) -> datetime | None:
        """The instant a Retry-After header names, in seconds or as a date."""
        return read_retry_after(self.headers.get("retry-after", ""), self.received_at)
