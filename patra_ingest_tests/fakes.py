"""What tests may pretend: time, an upstream, and a sudden death. The database is always real."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import Connection, event

from patra_ingest.ledger.db import Db
from patra_ingest_tests.builders import NOON


class FakeClock:
    """A clock that stands still until it is told to move; whoever sleeps moves it."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=max(seconds, 0.0))

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.sleep(seconds)
        return event.is_set()


Asked = dict[str, str]
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class FakeUpstream(ThreadingHTTPServer):
    """A real server on the loopback whose answers are one function of what was asked."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, FakeUpstream)
        parts = urlsplit(self.path)
        asked = {**dict(parse_qsl(parts.query)), "path": parts.path}
        self.server.asked.append(asked)
        status, tree, *headers = self.server.answer(asked)
        body = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or [{}])[0]}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def upstream(answer: Callable[[Asked], Answer]) -> Iterator[FakeUpstream]:
    """Run a pretend source for the length of the block."""
    with FakeUpstream(answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class Died(BaseException):
    """The process is gone: nobody catches this to tidy up."""


@contextmanager
def dying(db: Db, reason: Callable[[str], bool]) -> Iterator[list[str]]:
    """Die before the first statement that `reason` names; yields the statements so far."""
    seen: list[str] = []

    def look(_tx: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(" ".join(statement.split()))
        if reason(seen[-1]):
            raise Died(seen[-1])

    event.listen(db.engine, "before_cursor_execute", look)
    try:
        yield seen
    finally:
        event.remove(db.engine, "before_cursor_execute", look)


def wait_until(claim: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what `claim` answers as soon as it is true; fail when that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := claim()):
        assert time.monotonic() < deadline, f"{claim} did not come true within {seconds} s"
        time.sleep(0.02)
    return found
