"""The sandbox as an ASGI application: `/works` for its callers, `/__…` for whoever watches."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import Any
from urllib.parse import parse_qs

from patra_ingest.clock import Clock
from patra_ingest.sandbox import answers
from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.bodies import Bodies
from patra_ingest.sandbox.queries import Refusal, read_query
from patra_ingest.sandbox.tally import Tally
from patra_ingest.sandbox.world import World

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_UNLIMITED = 10_000  # what we announce as our limit when we have none


class App:
    """Answers requests for the works of one world and keeps a tally of them."""

    def __init__(self, world: World, behaviour: Behaviour, clock: Clock) -> None:
        self._world = world
        self._bodies = Bodies(world)
        self._behaviour = behaviour
        self._tally = Tally(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"].startswith("/__"):
            await self._answer_watcher(scope, send)
        else:
            await self._answer_caller(scope, send)

    async def _answer_caller(self, scope: Scope, send: Send) -> None:
        number = self._tally.arrive()
        status, size = 0, 0  # what is noted when there never was an answer
        try:
            answer = self._decide(scope, number)
            if self._behaviour.latency_ms:
                await asyncio.sleep(self._behaviour.latency_ms / 1000)
            headers = self._headers(scope, answer)
            if self._behaviour.gzip and b"gzip" in _header(scope, b"accept-encoding"):
                answer = replace(answer, body=gzip.compress(answer.body, compresslevel=1))
                headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            status, size = answer.status, len(answer.body)
            await _send(send, answer, headers)
        finally:
            self._tally.leave(status, size)

    def _decide(self, scope: Scope, number: int) -> Answer:
        """Return what this request deserves: a refusal of its rate, a failure, or its answer."""
        behaviour = self._behaviour
        limit = behaviour.throttle_per_second
        if limit and not self._tally.try_grant(limit):
            return answers.answer_throttled()
        if behaviour.fail_every and number % behaviour.fail_every == 0:
            return answers.answer_unavailable()
        if scope["method"] != "GET" or scope["path"] != "/works":
            return answers.answer_not_found()
        query = read_query(self._world, scope["query_string"].decode("latin-1"))
        if isinstance(query, Refusal):
            return answers.answer_refusal(query)
        self._tally.note_page(query.page_key)
        return answers.answer_page(self._bodies, query)

    def _headers(self, scope: Scope, answer: Answer) -> Headers:
        limit = self._behaviour.throttle_per_second or _UNLIMITED
        introduced = b"mailto" in scope["query_string"] or b"mailto:" in _header(
            scope, b"user-agent"
        )
        return [
            (b"access-control-allow-origin", b"*"),
            (b"x-api-pool", b"polite" if introduced else b"public"),
            (b"x-rate-limit-limit", b"%d" % limit),
            (b"x-rate-limit-interval", b"1s"),
            *answer.headers,
        ]

    async def _answer_watcher(self, scope: Scope, send: Send) -> None:
        match scope["method"], scope["path"]:
            case "GET", "/__truth":
                await self._send_truth(scope, send)
                return
            case "GET", "/__health":
                answer = answers.answer_json({"status": "ok"})
            case "GET", "/__stats":
                answer = answers.answer_json(self._tally.report())
            case "POST", "/__reset":
                self._tally.reset()
                answer = answers.answer_json({"status": "ok"})
            case _:
                answer = answers.answer_not_found()
        await _send(send, answer, [])

    async def _send_truth(self, scope: Scope, send: Send) -> None:
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        try:
            first, past = (_read_bound(asked.get(name)) for name in ("from", "to"))
        except ValueError as error:
            await _send(send, answers.answer_json({"error": str(error)}, status=400), [])
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in answers.write_truth(self._world, self._world.within(first, past)):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def _read_bound(values: list[str] | None) -> int | None:
    """Return the first whole second at or after an instant; works have whole seconds only."""
    if not values:
        return None
    at = datetime.fromisoformat(values[0])
    return ceil((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def _header(scope: Scope, name: bytes) -> bytes:
    pairs: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return next((value for key, value in pairs if key == name), b"")


async def _send(send: Send, answer: Answer, headers: Headers) -> None:
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
