"""What is asked and what is answered, as values. Pure, and shy: their `repr` shows no secret."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import quote

from patra_ingest.transport.redact import redact_url


@dataclass(frozen=True)
class Timeouts:
    """Seconds of patience: for the connection, for each silence, and for the whole answer.

    `total` (plus one silence) stays below the life of a permit, or another worker
    takes our place in flight while we still hold the line.
    """

    connect: float = 10.0
    read: float = 30.0
    total: float = 80.0


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

    @property
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

    def _encoded(self, pairs: Sequence[tuple[str, str]]) -> str:
        return "&".join(
            f"{quote(name, safe='')}={quote(value, safe=self.plain.get(name, ''))}"
            for name, value in pairs
        )

    @property
    def shown_url(self) -> str:
        """The URL as it may be stored and logged."""
        return redact_url(self.full_url)

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
