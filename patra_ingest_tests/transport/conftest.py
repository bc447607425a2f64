"""An upstream on the loopback that answers, fails and lies on demand."""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zstandard

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.permit import Permit
from patra_ingest.transport.client import Transport
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.transport.desk import Desk
from patra_ingest_tests.transport.packed import ENCODINGS, PACKED


class Upstream(ThreadingHTTPServer):
    """Counts what reached it; `url` is its address, `answers` replace those of /scripted."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[str] = []
        self.told: list[dict[str, str]] = []  # headers, and the body under its own name
        self.answers: list[tuple[int, object, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what some tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Upstream)
        self.sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.seen.append(self.path)
        self.server.told.append({**dict(self.headers), "body": self.sent})
        name = urlsplit(self.path).path.strip("/").split("/")  # a proxy is told the whole URL
        getattr(self, f"_{name[0] or 'echo'}")(*name[1:])

    do_POST = do_HEAD = do_GET

    def _answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for header, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _echo(self) -> None:
        told = {"path": self.path, "headers": dict(self.headers), "body": self.sent}
        self._answer(json.dumps(told).encode(), X_Upstream="here", Set_Cookie="a=b")

    def _scripted(self) -> None:
        """The next of `answers`; the last one for good."""
        assert isinstance(self.server, Upstream)
        answers = self.server.answers
        status, tree, headers = answers.pop(0) if len(answers) > 1 else answers[0]
        self._answer(json.dumps(tree).encode(), status, **headers)

    def _status(self, code: str) -> None:
        self._answer(b"no", int(code), Retry_After="7", Location="/")

    def _packed(self, name: str, status: str = "200") -> None:
        encoding = ENCODINGS.get(name, name)
        self._answer(PACKED[name], int(status), Content_Encoding=encoding)

    def _halved(self, name: str) -> None:
        half = PACKED[name][: len(PACKED[name]) // 2]
        self._answer(half, Content_Encoding=ENCODINGS.get(name, name))

    def _bomb(self, encoding: str, megabytes: str) -> None:
        """So many megabytes of nothing, packed, and sent without saying how long it is."""
        packer = zlib.compressobj(wbits=31) if encoding == "gzip" else None
        packer = packer or zstandard.ZstdCompressor().compressobj()
        self.send_response(200)
        self.send_header("Content-Encoding", encoding)
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(int(megabytes)):
            self.wfile.write(packer.compress(bytes(1_000_000)))
        self.wfile.write(packer.flush())
        self.close_connection = True

    def _badgzip(self) -> None:
        self._answer(b"this is not gzip", Content_Encoding="gzip")

    def _truncated(self) -> None:
        self._answer(b"half", Content_Length="8")
        self.close_connection = True

    def _huge(self) -> None:
        self._answer(b"", Content_Length="99999999999")
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


def serving() -> Iterator[Upstream]:
    with Upstream() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    yield from serving()


@pytest.fixture
def another() -> Iterator[Upstream]:
    """A second upstream: another port is another place."""
    yield from serving()


@pytest.fixture
def transport() -> Iterator[Transport]:
    with Transport(SystemClock(), "patra-tests/1", max_body_bytes=4096 * 4) as opened:
        yield opened


@pytest.fixture
def gate(sqlite_db: Db) -> RateGate:
    return RateGate(sqlite_db, SystemClock(), "tests")


@pytest.fixture
def permit(gate: RateGate) -> Callable[[], Permit]:
    """A function that hands out a fresh permit."""
    return lambda: gate.acquire("tests", Limits(1000, burst=1000))


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str) -> Iterator[Desk]:
    """A desk whose every clock is the one that the test moves."""
    clock = FakeClock()
    db = open_db(sqlite_url, clock=clock)
    with Transport(clock, "patra-tests/1") as opened:
        gate = RateGate(db, clock, "tests")
        yield Desk({}, tmp_path / "home" / "credentials", clock, gate, opened)
    db.close()
