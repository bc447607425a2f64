"""Serves recordings over real HTTP on 127.0.0.1: the upstream as somebody once met it.

    with serve_recordings(read_recordings(folder)) as replayer:
        ...  # ask replayer.at("https://api.example.org/v2") instead of that address

Status, body and headers are those of the recording; lengths and encodings are written anew.
Addresses of the recorded hosts are led back here: in `Link`, `Location` and `Content-Location`
always, in a body where they are the link to another page: a recorded path, and where it begins.
A request that nothing answers gets 501 and a sentence that names the closest recordings.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from patra_ingest.sandbox.recorded_answer import (
    Fit,
    Memory,
    Question,
    Rules,
    choose,
    leads_on,
    read_question,
)
from patra_ingest.sandbox.recordings import Recording

_HOST = "127.0.0.1"
# Said anew for every answer, or of no meaning on another line.
_OWN = frozenset(
    (
        *("content-encoding", "content-length", "content-type", "transfer-encoding", "connection"),
        *("keep-alive", "proxy-connection", "trailer", "upgrade", "te", "alt-svc", "set-cookie"),
    )
)
_LINKS = frozenset({"link", "location", "content-location"})


@dataclass(frozen=True)
class Visit:
    """One request as it came, and what answered it; None: nothing did."""

    method: str
    target: str  # path and query
    body: str
    headers: dict[str, str]
    answered_by: str | None
    status: int
    said: str = ""  # why nothing did


class Replayer:
    """A running server of recordings."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Visit] = []  # in the order in which they came

    def at(self, address: str) -> str:
        """Return where to ask instead of an address of the real source: path and query stay."""
        parts = urlsplit(address)
        return self.url + parts.path.rstrip("/") + (f"?{parts.query}" if parts.query else "")

    @property
    def unanswered(self) -> list[Visit]:
        """The requests that no recording answers."""
        return [visit for visit in self.requests if visit.answered_by is None]

    @property
    def served(self) -> list[str]:
        """The names of the recordings that were sent, in order."""
        return [visit.answered_by for visit in self.requests if visit.answered_by is not None]


@contextmanager
def serve_recordings(
    recordings: Sequence[Recording], rules: Rules | None = None
) -> Iterator[Replayer]:
    """Serve recordings for the length of the block, on a free port."""
    server = _Server(recordings, rules or Rules())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.replayer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, recordings: Sequence[Recording], rules: Rules) -> None:
        super().__init__((_HOST, 0), _Handler)
        self.replayer = Replayer(f"http://{_HOST}:{self.server_port}")
        self._recordings = recordings
        self._rules = rules
        self._memory = Memory()
        self._lock = threading.Lock()
        self._lead_back = _leading_back(recordings, rules, self.replayer.url)

    def answer(self, method: str, target: str, headers: dict[str, str], body: str) -> _Answer:
        """Return what was recorded for a request, and note it."""
        asked = read_question(method, target, body)
        with self._lock:
            found = choose(asked, self._recordings, self._memory, self._rules)
            if isinstance(found, Fit):
                own = found.recording
                self._note(Visit(method, target, body, headers, own.name, own.status))
                return self._recorded(own)
            said = _unanswered(asked, found)
            self._note(Visit(method, target, body, headers, None, 501, said))
        return _Answer(501, (("content-type", "text/plain;charset=utf-8"),), said.encode())

    def _note(self, visit: Visit) -> None:
        self.replayer.requests.append(visit)

    def _recorded(self, recording: Recording) -> _Answer:
        kept = [
            (name, self._lead_back(value, True) if name in _LINKS else value)
            for name, value in recording.headers
            if name not in _OWN
        ]
        body = self._lead_back(recording.body.decode("latin-1"), False).encode("latin-1")
        headers = (("content-type", recording.content_type), *kept)
        return _Answer(recording.status, headers, body)

    def handle_error(self, *_: object) -> None:
        """Stay quiet when a client hangs up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def _answer(self) -> None:
        assert isinstance(self.server, _Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer(self.command, self.path, headers, body)
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_HEAD = _answer

    def log_message(self, *_: object) -> None:
        """Say nothing: `requests` tells it all."""


def _leading_back(
    recordings: Sequence[Recording], rules: Rules, url: str
) -> Callable[[str, bool], str]:
    """Return what leads the addresses of recorded hosts to `url`; in a body only those of pages."""
    known = [urlsplit(one.url) for one in recordings if one.url]
    if not known:
        return lambda text, _: text
    hosts = {parts.netloc.removesuffix(":443").removesuffix(":80") for parts in known}
    named = "|".join(re.escape(host) for host in sorted(hosts, key=len, reverse=True))
    address = re.compile(
        rf"https?:(?P<slashes>//|\\/\\/)(?:{named})(?::\d+)?(?P<rest>[^\s\"'<>]*)", re.IGNORECASE
    )
    paths = {parts.path.rstrip("/") for parts in known}

    def to_here(found: re.Match[str], always: bool) -> str:
        rest = unescape(found["rest"].replace("\\/", "/").replace("\\u0026", "&"))
        is_page = rest.partition("?")[0].rstrip("/") in paths and leads_on(rest, rules)
        return (
            url.replace("//", found["slashes"]) + found["rest"] if always or is_page else found[0]
        )

    return lambda text, always: address.sub(lambda found: to_here(found, always), text)


def _unanswered(asked: Question, closest: Sequence[Fit]) -> str:
    listed = "; ".join(f"{one.recording.name} ({', '.join(one.against)})" for one in closest)
    return f"No recording answers {asked.shown:.500}. The closest: {listed or 'there is none'}.\n"
