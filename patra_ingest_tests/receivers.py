"""Those who are told: a webhook and a Redis on the loopback, real to the last byte of protocol."""

import json
import socketserver
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str]]
Judge = Callable[[list[dict[str, Any]]], Reply]


class Webhook(ThreadingHTTPServer):
    """Answers every batch as `judge` says; keeps what it accepted and what it was sent."""

    daemon_threads = True

    def __init__(self, judge: Judge) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.judge = judge
        self.batches: list[list[dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.accepted: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def keys(self) -> list[str]:
        """Return the ids of what was accepted, in order."""
        return [one["payload"]["id"] for one in self.accepted]

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what some tests do."""


class _Posted(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        assert isinstance(self.server, Webhook)
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.batches.append(batch)
        self.server.headers.append({"path": self.path, **dict(self.headers)})
        status, headers = self.server.judge(batch)
        if status == 0:  # falls over in the middle
            self.close_connection = True
            return
        if 200 <= status < 300:
            self.server.accepted += batch
        said = b"api_key=CANARY-77 was not right" if status >= 400 else b""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(said)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def webhook(judge: Judge = lambda _: (204, {})) -> Iterator[Webhook]:
    """Run a webhook for the length of the block."""
    with Webhook(judge) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@dataclass
class Redis:
    """A Redis that knows AUTH, SELECT, PING and XADD; `refuse` may answer an XADD with an error."""

    password: str | None = None
    refuse: Callable[[str], str | None] = lambda _: None
    hang_up_after: int = 10**9  # entries
    streams: dict[tuple[int, str], list[dict[str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/2?stream=changes"

    def entries(self) -> list[dict[str, str]]:
        return self.streams[2, "changes"]


class _Served(socketserver.StreamRequestHandler):
    redis: Redis

    def handle(self) -> None:
        self.redis.connections += 1
        self.db, self.is_in = 0, self.redis.password is None
        while words := self._words():
            answer = self._answer(words)
            if answer is None:
                return
            self.wfile.write(answer)

    def _words(self) -> list[str]:
        line = self.rfile.readline()
        if not line.startswith(b"*"):
            return []
        words = []
        for _ in range(int(line[1:])):
            size = int(self.rfile.readline()[1:])
            words.append(self.rfile.read(size + 2)[:-2].decode())
        return words

    def _answer(self, words: list[str]) -> bytes | None:
        name = words[0]
        if name == "AUTH":
            self.is_in = words[-1] == self.redis.password
            return b"+OK\r\n" if self.is_in else b"-WRONGPASS invalid username-password pair\r\n"
        if not self.is_in:
            return b"-NOAUTH Authentication required.\r\n"
        if name == "SELECT":
            self.db = int(words[1])
            return b"+OK\r\n"
        return b"+PONG\r\n" if name == "PING" else self._append(words)

    def _append(self, words: list[str]) -> bytes | None:
        stream = self.redis.streams[self.db, words[1]]
        if len(stream) >= self.redis.hang_up_after:
            return None
        entry = dict(zip(words[3::2], words[4::2], strict=True))
        if said := self.redis.refuse(entry["message"]):
            return f"-{said}\r\n".encode()
        stream.append(entry)
        name = f"1700000000000-{len(stream)}".encode()
        return b"$%d\r\n%b\r\n" % (len(name), name)


@contextmanager
def redis(**habits: Any) -> Iterator[Redis]:
    """Run a Redis for the length of the block."""
    one = Redis(**habits)
    handler = type("Handler", (_Served,), {"redis": one})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        one.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield one
        server.shutdown()
