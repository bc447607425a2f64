"""The one way to the upstreams: `send(request, permit)`, one request for one permit.

A status code is not judged here; whatever kept an answer from arriving whole is a TransientError.
Redirects are answers, too: following one would send a second request that no permit allowed.
"""

import logging
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from types import MappingProxyType, TracebackType
from typing import Self

import httpx

from patra_ingest.clock import Clock
from patra_ingest.errors import RequestRejected, TransientError
from patra_ingest.rate.gate import Permit
from patra_ingest.transport.messages import Request, Response
from patra_ingest.transport.redact import redact_text, redact_url

MAX_BODY_BYTES = 64 * 1024 * 1024
_BAD_URL = (httpx.UnsupportedProtocol, httpx.InvalidURL)
_BAD_VALUE = (httpx.LocalProtocolError, UnicodeError)
# A proxy named in the environment is for the world outside, never for the sandbox beside us.
_DIRECT: Mapping[str, httpx.BaseTransport | None] = {
    "all://127.0.0.1": None,
    "all://localhost": None,
    "all://[::1]": None,
}


class Transport:
    """A connection pool shared by all threads of a process."""

    def __init__(self, clock: Clock, user_agent: str, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._clock = clock
        self._max_body_bytes = max_body_bytes
        self._client = httpx.Client(
            headers={"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"},
            follow_redirects=False,
            # Longer than the pause between two requests to a slow source: TLS once, not each time.
            limits=httpx.Limits(max_keepalive_connections=50, keepalive_expiry=30.0),
            mounts=_DIRECT,
        )
        # httpx logs every URL it asks for, httpcore (when debugging) headers and raw bytes.
        logging.getLogger("httpx").addFilter(_without_secrets)
        logging.getLogger("httpcore").setLevel(logging.INFO)
        # Each request says all there is to say; a cookie would be a part that nobody recorded.
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def send(self, request: Request, permit: Permit) -> Response:
        """Use `permit` up and return the answer, whatever its status.

        Raises TransientError when no whole answer came, RequestRejected when the request cannot
        be sent as it is or its answer is larger than we are ready to take.
        """
        permit.use()
        began = self._clock.monotonic()
        # `from None`: the original errors carry the request with its secrets.
        try:
            return self._exchange(request, began)
        except _BAD_URL as error:
            raise RequestRejected(f"{_target(request)} cannot be sent: {_seen(error)}") from None
        except _BAD_VALUE:  # the error shows the value, which may be a key
            raise RequestRejected(
                f"{_target(request)} cannot be sent: a parameter or one of the headers "
                f"{sorted(request.headers)} holds what HTTP forbids, such as a line break"
            ) from None
        except httpx.RequestError as error:
            waited = self._clock.monotonic() - began
            raise TransientError(
                f"{_target(request)} failed after {waited:.1f} s: {_seen(error)}"
            ) from None

    def _exchange(self, request: Request, began: float) -> Response:
        timeouts = request.timeouts
        with self._client.stream(
            request.method,
            request.full_url,
            headers=dict(request.headers),
            content=request.body,
            timeout=httpx.Timeout(timeouts.read, connect=timeouts.connect),
        ) as answer:
            body = self._read(answer, request, began + timeouts.total)
            headers = MappingProxyType(dict(answer.headers.items()))
        return Response(
            status=answer.status_code,
            headers=headers,
            body=body,
            elapsed=self._clock.monotonic() - began,
            url=request.shown_url,
            received_at=self._clock.now(),
        )

    def _read(self, answer: httpx.Response, request: Request, until: float) -> bytes:
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > self._max_body_bytes:
                raise RequestRejected(
                    f"{_target(request)} answered more than {self._max_body_bytes} bytes; "
                    "ask for smaller pages"
                )
            if self._clock.monotonic() > until:
                raise TransientError(
                    f"{_target(request)} was still sending after {request.timeouts.total:g} s "
                    f"({len(body)} bytes so far)"
                )
        return bytes(body)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact_text(record.getMessage(), None), ()
    return True


def _target(request: Request) -> str:
    where = redact_url(request.url).partition("?")[0].partition("://")
    return f"{request.method} {where[2] or where[0]}"


def _seen(error: Exception) -> str:
    return redact_text(f"{type(error).__name__}: {error}", 300)
