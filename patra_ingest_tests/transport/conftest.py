"""An upstream on the loopback that answers, fails and lies on demand."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import Db
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import Permit, RateGate
from patra_ingest.transport.client import Transport


class Upstream(ThreadingHTTPServer):
    """Counts what reached it; `url` is its address."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what some tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Upstream)
        self.server.seen.append(self.path)
        name = self.path.split("?")[0].strip("/").split("/")
        getattr(self, f"_{name[0] or 'echo'}")(*name[1:])

    do_POST = do_GET

    def _answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for header, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _echo(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        told = {"path": self.path, "headers": dict(self.headers), "body": sent.decode()}
        self._answer(json.dumps(told).encode(), X_Upstream="here", Set_Cookie="a=b")

    def _status(self, code: str) -> None:
        self._answer(b"no", int(code), Retry_After="7", Location="/")

    def _gzip(self) -> None:
        self._answer(gzip.compress(b"x" * 5000), Content_Encoding="gzip")

    def _badgzip(self) -> None:
        self._answer(b"this is not gzip", Content_Encoding="gzip")

    def _truncated(self) -> None:
        self._answer(b"half", Content_Length="8")
        self.close_connection = True

    def _drop(self) -> None:
        self.close_connection = True

    def _garbage(self) -> None:
        self.wfile.write(b"api_key=CANARY-8f3a is no HTTP\r\n\r\n")
        self.close_connection = True

    def _slow(self) -> None:
        time.sleep(1.5)
        self._answer(b"late")

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b".")
            time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def transport() -> Iterator[Transport]:
    with Transport(SystemClock(), "patra-tests/1", max_body_bytes=4096 * 4) as opened:
        yield opened


@pytest.fixture
def permit(sqlite_db: Db) -> Callable[[], Permit]:
    """A function that hands out a fresh permit."""
    gate = RateGate(sqlite_db, SystemClock(), "tests")
    return lambda: gate.acquire("tests", Limits(1000, burst=1000))
