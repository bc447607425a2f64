"""The sandbox as an ASGI application: works and faces for callers, `/__…` for who watches."""

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
from patra_ingest.sandbox.behaviour import Behaviour, changed
from patra_ingest.sandbox.bodies import Bodies
from patra_ingest.sandbox.faces.reading import read_ask
from patra_ingest.sandbox.faces.stage import Stage
from patra_ingest.sandbox.faces.table import FACES, answer_face, find_face
from patra_ingest.sandbox.faces.truth import tell_truth
from patra_ingest.sandbox.faces.works import answer_works
from patra_ingest.sandbox.habits.refusals import refuse
from patra_ingest.sandbox.memory import Memory
from patra_ingest.sandbox.shelf import Shelf
from patra_ingest.sandbox.tally import Tally, Visit
from patra_ingest.sandbox.throttle import Throttle
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
        self._clock = clock
        self._tally = Tally(clock)
        self._throttle = Throttle(clock)
        self._behave(behaviour)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"].startswith("/__"):
            await self._answer_watcher(scope, send)
        else:
            await self._answer_caller(scope, receive, send)

    def _behave(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._shelf = Shelf(self._world, behaviour.habits)
        self._memory = Memory()

    def _stage(self) -> Stage:
        newest = int(self._clock.now().timestamp()) if self._behaviour.living else None
        if newest is not None:
            self._shelf.move_to(newest)
        return Stage(self._shelf, self._behaviour, self._memory, self._clock.monotonic(), newest)

    async def _answer_caller(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = self._tally.arrive(_header(scope, b"x-worker").decode("latin-1") or None)
        status, size = 0, 0  # what is noted when there never was an answer
        try:
            body = await _read_body(receive) if scope["method"] == "POST" else b""
            answer = self._decide(scope, body, visit)
            if self._behaviour.latency_ms:
                await asyncio.sleep(self._behaviour.latency_ms / 1000)
            headers = self._headers(scope, answer)
            if self._behaviour.gzip and b"gzip" in _header(scope, b"accept-encoding"):
                answer = replace(answer, body=gzip.compress(answer.body, compresslevel=1))
                headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            status, size = answer.status, len(answer.body)
            await _send(send, answer, headers)
        finally:
            self._throttle.leave(visit)
            self._tally.leave(visit, status, size)

    def _decide(self, scope: Scope, body: bytes, visit: Visit) -> Answer:
        """Return what this request deserves: a refusal of its rate, a failure, or its answer."""
        behaviour = self._behaviour
        now = int(self._clock.now().timestamp())
        refused = refuse(behaviour.habits, visit.number, self._tally.in_flight, now)
        refused = refused or self._throttle.refuse(visit, behaviour)
        if refused is not None:
            return refused
        if behaviour.fail_every and visit.number % behaviour.fail_every == 0:
            return answers.answer_unavailable()
        answer = self._answer(scope, body)
        if answer.page:
            self._tally.note_page(answer.page)
        return answer

    def _answer(self, scope: Scope, body: bytes) -> Answer:
        face, rest = find_face(scope["path"])
        query = scope["query_string"].decode("latin-1")
        if face:
            host = _header(scope, b"host").decode("latin-1")
            ask = read_ask(host, rest, query, body, _header(scope, b"content-type"))
            return answer_face(face, self._stage(), ask)
        if scope["method"] != "GET" or scope["path"] != "/works":
            return answers.answer_not_found()
        return answer_works(self._bodies, self._stage(), query)

    def _headers(self, scope: Scope, answer: Answer) -> Headers:
        introduced = b"mailto" in scope["query_string"] or b"mailto:" in _header(
            scope, b"user-agent"
        )
        return [
            (b"access-control-allow-origin", b"*"),
            (b"x-api-pool", b"polite" if introduced else b"public"),
            *(_limits(self._behaviour) if self._behaviour.tell_limits else ()),
            *answer.headers,
        ]

    async def _answer_watcher(self, scope: Scope, send: Send) -> None:
        asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        named = {name: values[0] for name, values in asked.items()}
        try:
            if (scope["method"], scope["path"]) == ("GET", "/__truth"):
                await self._send_truth(asked, send)
                return
            answer = self._tell(scope["method"], scope["path"], named)
        except ValueError as error:
            answer = answers.answer_json({"error": str(error)}, status=400)
        await _send(send, answer, [])

    def _tell(self, method: str, path: str, named: dict[str, str]) -> Answer:
        match method, path:
            case "GET", "/__health":
                return answers.answer_json({"status": "ok"})
            case "GET", "/__stats":
                return answers.answer_json(self._tally.report())
            case "GET", "/__arrivals":
                return answers.answer_json({"arrivals": self._tally.arrivals()})
            case "POST", "/__reset":
                return self._reset()
            case "POST", "/__behave":
                return self._change(named)
            case _:
                return answers.answer_not_found()

    def _reset(self) -> Answer:
        self._tally.reset()
        self._throttle.reset()
        self._memory = Memory()
        return answers.answer_json({"status": "ok"})

    def _change(self, named: dict[str, str]) -> Answer:
        """Change what is named; with `refuse_next`, `retry_after` is for those refusals alone."""
        refused, seconds = named.pop("refuse_next", None), self._behaviour.retry_after
        if refused is not None:
            seconds = int(named.pop("retry_after", seconds))
        behaviour = changed(self._behaviour, named)
        if refused is not None:
            self._throttle.refuse_next(int(refused), seconds)
        if "habits" in named or "living" in named:
            self._behave(behaviour)
        self._behaviour = behaviour
        return answers.answer_json(behaviour.describe())

    async def _send_truth(self, asked: dict[str, list[str]], send: Send) -> None:
        first, past = (_read_bound(asked.get(name)) for name in ("from", "to"))
        face = asked.get("face", ["works"])[0]
        if face != "works":
            if face not in FACES:
                raise ValueError(f"there is no face {face}; there are {', '.join(FACES)}")
            told = tell_truth(FACES[face], self._stage(), first, past)
            await _send(send, answers.answer_json(told), [])
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        works = self._world.within(first, past, self._stage().newest)
        for piece in answers.write_truth(self._world, works):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def _limits(behaviour: Behaviour) -> Headers:
    rate = behaviour.throttle_per_second or _UNLIMITED
    at_once = behaviour.throttle_in_flight or _UNLIMITED
    return [
        (b"x-rate-limit-limit", b"%d" % rate),
        (b"x-rate-limit-interval", b"1s"),
        (b"x-concurrency-limit", b"%d" % at_once),
    ]


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


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
