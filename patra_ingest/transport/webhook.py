"""A sink that posts messages as a JSON array to an HTTP address.

2xx accepts all of them. A 4xx that speaks of what was sent refuses it for good, a 5xx may not be
meant for ever; what speaks of the address, of us or of the line is nobody's fault among them.
The address may hold a secret in any of its parts: only its host is ever shown.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import httpx

from patra_ingest.clock import Clock
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.transport.delivery import (
    Answer,
    Published,
    Refused,
    batch_name,
    envelope,
    refused,
)
from patra_ingest.transport.retry_after import read_retry_after

# Redirected, not let in, not here, too fast, or nobody behind the gateway.
_OF_ALL = frozenset({401, 403, 404, 405, 407, 408, 410, 421, 425, 426, 429, 502, 503, 504})
_LONGEST_PAUSE = timedelta(days=1)
_SHOWN_CHARS = 300
_READ_BYTES = 65536
_NOT_THERE = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError),
    httpx.UnsupportedProtocol,
)
# A proxy named in the environment is for the world outside.
_LOOPBACK = ("all://127.0.0.1", "all://localhost", "all://[::1]")


class WebhookSink:
    """One HTTP address."""

    def __init__(self, url: str, clock: Clock, user_agent: str) -> None:
        self._url = _parsed(url)
        self._clock = clock
        self.shown = f"{self._url.scheme}://{self._url.netloc.decode()}/…"
        # The path too: another filter may have hidden a parameter of the address before us.
        paths = {self._url.path, self._url.raw_path.decode().partition("?")[0]} - {"", "/"}
        self._secrets = (*{url, str(self._url)}, *paths)
        self._client = httpx.Client(
            headers={"User-Agent": user_agent, "Content-Type": "application/json"},
            follow_redirects=False,
            timeout=httpx.Timeout(30.0, connect=10.0, write=10.0),
            mounts=dict.fromkeys(_LOOPBACK),
        )
        logging.getLogger("httpx").addFilter(self._without_address)
        logging.getLogger("httpcore").setLevel(logging.INFO)

    def publish(self, messages: Sequence[Message]) -> list[Answer]:
        """Post the messages in one request; they are accepted or refused together."""
        name = batch_name(messages)
        body = b"[" + b",".join(envelope(message) for message in messages) + b"]"
        return [self._post(name, body)] * len(messages)

    def _post(self, name: str, body: bytes) -> Answer:
        headers = {"X-Ingest-Outbox-Batch": name}
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers) as answer:
                said = _beginning(answer)
                return Published(name) if answer.is_success else self._judged(answer, said)
        except _NOT_THERE as error:
            why = f"{self.shown} cannot be reached: {type(error).__name__}"
            return refused("UNREACHABLE", why, of_all=True)
        except httpx.RequestError as error:
            # The messages arrived, and one of them may be what it choked on.
            why = f"{self.shown} gave no answer: {type(error).__name__}"
            return refused("NO_ANSWER", why)

    def _judged(self, answer: httpx.Response, said: str) -> Refused:
        status = answer.status_code
        of_all = status < 400 or status in _OF_ALL
        return refused(
            f"HTTP_{status}",
            f"{self.shown} answered {status}: {self._clean(said)}",
            for_good=400 <= status < 500 and not of_all,
            of_all=of_all,
            retry_at=_pause(answer.headers.get("Retry-After"), self._clock.now()),
        )

    def _without_address(self, record: logging.LogRecord) -> bool:
        # httpx logs every address it asks.
        record.msg, record.args = self._clean(record.getMessage()), ()
        return True

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, self.shown)
        return text

    def close(self) -> None:
        """Close every connection."""
        self._client.close()
        logging.getLogger("httpx").removeFilter(self._without_address)


def _parsed(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise PersonMustAct("The webhook's address is no URL.", "Give https://HOST/PATH.")
    return parsed


def _beginning(answer: httpx.Response) -> str:
    """Return the first words of an answer; its status has been read, the rest matters less."""
    read = bytearray()
    with suppress(httpx.RequestError):
        for chunk in answer.iter_bytes():
            read += chunk
            if len(read) > _READ_BYTES:
                break
    return read.decode(errors="replace")[:_SHOWN_CHARS]


def _pause(header: str | None, now: datetime) -> datetime | None:
    """Return until when a Retry-After wants silence; what is past, or no time, asks nothing."""
    at = read_retry_after(header or "", now)
    return min(at, now + _LONGEST_PAUSE) if at is not None and at > now else None
