"""The one way to the upstreams: `send(request, permit)`, one request for one permit.

A status code is not judged here; whatever kept an answer from arriving whole is Unreachable.
Redirects are answers, too: `redirects.find_redirect` says where one leads, and the request to go
there needs a permit of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Self

import httpx

from patra_ingest.clock import Clock
from patra_ingest.errors import PageTooBig, RequestRejected, Unreachable
from patra_ingest.rate.permit import Permit
from patra_ingest.transport.messages import Options, Request, Response
from patra_ingest.transport.pools import Pools
from patra_ingest.transport.quiet import keep_quiet, quiet_about
from patra_ingest.transport.redact import redact_text, redact_url
from patra_ingest.transport.unpacking import ANNOUNCED, DamagedBody, UnknownEncoding, unpacker

MAX_BODY_BYTES = 64 * 1024 * 1024
_BAD_URL = (httpx.UnsupportedProtocol, httpx.InvalidURL)
_BAD_VALUE = (httpx.LocalProtocolError, UnicodeError)


class Transport:
    """Connection pools shared by all threads of a process."""

    def __init__(self, clock: Clock, user_agent: str, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._clock = clock
        self._max_body_bytes = max_body_bytes
        self._pools = Pools(user_agent)
        keep_quiet()

    def prepare(self, request: Request) -> None:
        """Open what the request needs before its permit is asked for: that takes its time.

        Raises RequestRejected if its proxy cannot be used.
        """
        self._pools.client(request.options)

    def send(self, request: Request, permit: Permit) -> Response:
        """Use `permit` up and return the answer, whatever its status.

        Raises Unreachable when no whole answer came, PageTooBig when it is larger than we are
        ready to take, RequestRejected when the request cannot be sent as it is or its answer is
        packed in a way we did not ask for.
        """
        permit.use()
        began = self._clock.monotonic()
        # `from None`: the original errors carry the request with its secrets.
        try:
            with quiet_about(request.hidden):
                return self._exchange(request, began)
        except _BAD_URL as error:
            seen = _seen(error, request)
            raise RequestRejected(f"{_target(request)} cannot be sent: {seen}") from None
        except _BAD_VALUE:  # the error shows the value, which may be a key
            raise RequestRejected(
                f"{_target(request)} cannot be sent: a parameter or one of the headers "
                f"{sorted(request.headers)} holds what HTTP forbids, such as a line break"
            ) from None
        except UnknownEncoding as error:
            raise RequestRejected(
                f"{_target(request)} answered with a {error}; we asked for {ANNOUNCED}. "
                "Declare http.compression: false to ask for plain bodies"
            ) from None
        except (httpx.RequestError, DamagedBody) as error:
            waited = self._clock.monotonic() - began
            raise Unreachable(
                f"{_target(request)} failed after {waited:.1f} s: {_seen(error, request)}",
                timed_out=isinstance(error, httpx.TimeoutException),
            ) from None

    def _exchange(self, request: Request, began: float) -> Response:
        timeouts = request.timeouts
        with self._pools.client(request.options).stream(
            request.method,
            request.full_url,
            headers=_headers(request),
            content=request.body,
            timeout=httpx.Timeout(timeouts.read, connect=timeouts.connect),
        ) as answer:
            limit = request.options.max_body_bytes or self._max_body_bytes
            reading = _Reading(answer, request, limit, self._clock, began + timeouts.total)
            body = reading.whole_body()
            headers = MappingProxyType(dict(answer.headers.items()))
        return Response(
            status=answer.status_code,
            headers=headers,
            body=body,
            elapsed=self._clock.monotonic() - began,
            url=request.shown_url,
            received_at=self._clock.now(),
            wire_bytes=reading.wire_bytes,
            hidden=request.hidden,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pools.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass
class _Reading:
    """A body on its way in, under a limit for its bytes and one for its time."""

    answer: httpx.Response
    request: Request
    limit: int
    clock: Clock
    until: float
    wire_bytes: int = 0
    body_bytes: int = 0

    def whole_body(self) -> bytes:
        """Return the body unpacked, or raise as soon as it cannot be taken whole."""
        told = self.answer.headers.get("content-length", "")
        if told.isdecimal() and self.request.method != "HEAD":
            self._require_room(int(told))
        pieces = []
        for piece in self._unpacked():
            pieces.append(piece)
            self.body_bytes += len(piece)
            self._require_room(self.body_bytes)
        return b"".join(pieces)

    def _unpacked(self) -> Iterator[bytes]:
        try:
            return unpacker(self.answer.headers.get("content-encoding", ""))(self._wire())
        except UnknownEncoding:
            if self.answer.status_code < 400:
                raise
            return self._wire()  # an error is told by its status, its body stays as it came

    def _wire(self) -> Iterator[bytes]:
        for piece in self.answer.iter_raw():
            self.wire_bytes += len(piece)
            self._require_room(self.wire_bytes)
            self._require_time()
            yield piece

    def _require_room(self, size: int) -> None:
        if size > self.limit:
            raise PageTooBig(
                f"{_target(self.request)} answered more than {self.limit} bytes (read so far: "
                f"{self.wire_bytes} on the wire, {self.body_bytes} unpacked); ask for smaller pages"
            )

    def _require_time(self) -> None:
        if self.clock.monotonic() > self.until:
            raise Unreachable(
                f"{_target(self.request)} was still sending after "
                f"{self.request.timeouts.total:g} s ({self.wire_bytes} bytes so far)",
                timed_out=True,
            )


def _headers(request: Request) -> dict[str, str]:
    if any(name.lower() == "accept-encoding" for name in request.headers):
        return dict(request.headers)
    return {"Accept-Encoding": _accepted(request.options), **request.headers}


def _accepted(options: Options) -> str:
    return ANNOUNCED if options.compression else "identity"


def _target(request: Request) -> str:
    where = redact_url(request.hide(request.url)).partition("?")[0].partition("://")
    return f"{request.method} {where[2] or where[0]}"


def _seen(error: Exception, request: Request) -> str:
    return redact_text(request.hide(f"{type(error).__name__}: {error}"), 300)
