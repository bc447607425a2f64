"""What is asked and what is answered, as values. Pure, and shy: their `repr` shows no secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    @property
    def full_url(self) -> str:
        """The URL as it is sent, secrets included."""
        base = self.url.partition("#")[0]
        if not self.params:
            return base
        # Everything but letters, digits and -._~ is encoded: +, / and = survive any decoder.
        pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.params]
        return base + ("&" if "?" in base else "?") + "&".join(pairs)

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
