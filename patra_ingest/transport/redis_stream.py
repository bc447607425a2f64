"""A sink that appends messages to a Redis stream (XADD), in Redis's own protocol over a socket.

Each entry has the fields `dedupKey` and `message`; the message is the JSON of every other sink.
The password of the address is never shown.
"""

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.transport.delivery import Answer, Published, Refused, envelope, refused

_SECONDS = 10.0
_PORT = 6379
_HOW = "Give redis://[USER:PASSWORD@]HOST[:PORT][/DB]?stream=NAME (rediss:// with TLS)."
# Of the server or of us; every other error speaks of one entry.
_OF_ALL = frozenset(
    {"BUSY", "CLUSTERDOWN", "DENIED", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH"}
    | {"NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "WRONGPASS", "WRONGTYPE"}
)


class RedisError(Exception):
    """Redis answered with an error; `code` is its first word."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.code = said.split(" ", 1)[0]


class RedisSink:
    """One stream of one Redis; connects when it is first used, and again after a failure."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port or _PORT
            self._db = int(parts.path.strip("/") or 0)
        except ValueError:
            raise PersonMustAct("The address of Redis cannot be read.", _HOW) from None
        streams = parse_qs(parts.query).get("stream", [])
        if not parts.hostname or len(streams) != 1:
            raise PersonMustAct("The address of Redis names no host or not one stream.", _HOW)
        self._stream = streams[0]
        self._tls = parts.scheme == "rediss"
        self._place = (parts.hostname, port)
        self._login = [unquote(part) for part in (parts.username, parts.password) if part]
        self.shown = f"{parts.scheme}://{parts.hostname}:{port}/{self._db}?stream={self._stream}"
        self._socket: socket.socket | None = None
        self._answers: BinaryIO | None = None

    def publish(self, messages: Sequence[Message]) -> list[Answer]:
        """Append the messages in order; each is answered for itself."""
        answers: list[Answer] = []
        try:
            self._connect()
            self._send(*(self._entry(message) for message in messages))
            for _ in messages:
                answers.append(self._appended())
        except RedisError as error:
            answers += self._missing(error.code, str(error), len(messages) - len(answers))
        except (OSError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
            answers += self._missing("UNREACHABLE", said, len(messages) - len(answers))
        return answers

    def _entry(self, message: Message) -> Sequence[str | bytes]:
        fields = ("dedupKey", message.dedup_key, "message", envelope(message))
        return ("XADD", self._stream, "*", *fields)

    def _appended(self) -> Answer:
        try:
            return Published(self._read())
        except RedisError as error:
            return self._refused(error.code, str(error), of_all=error.code in _OF_ALL)

    def _missing(self, code: str, said: str, count: int) -> list[Refused]:
        self.close()
        return [self._refused(code, said, of_all=True)] * count

    def _refused(self, code: str, said: str, of_all: bool) -> Refused:
        return refused(code, f"{self.shown}: {said}", of_all=of_all)

    def _connect(self) -> None:
        if self._is_alive():
            return
        self.close()
        self._socket = socket.create_connection(self._place, _SECONDS)
        if self._tls:
            context = ssl.create_default_context()
            self._socket = context.wrap_socket(self._socket, server_hostname=self._place[0])
        self._answers = self._socket.makefile("rb")
        if self._login:
            self._ask("AUTH", *self._login)
        if self._db:
            self._ask("SELECT", str(self._db))

    def _is_alive(self) -> bool:
        """Ask before use: a Redis may end connections that were idle."""
        if self._socket is None:
            return False
        try:
            self._ask("PING")
        except (OSError, RedisError):
            return False
        return True

    def _ask(self, *words: str) -> None:
        self._send(words)
        self._read()

    def _send(self, *commands: Sequence[str | bytes]) -> None:
        assert self._socket is not None
        self._socket.sendall(b"".join(part for words in commands for part in _written(words)))

    def _read(self) -> str:
        """Return the next answer; raise RedisError for one that says no."""
        assert self._answers is not None
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection was closed")
        kind, said = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise RedisError(said)
        if kind == b"+":
            return said
        if kind == b"$" and said.isdecimal():
            body = self._answers.read(int(said) + 2)
            if len(body) == int(said) + 2:
                return body[:-2].decode(errors="replace")
        raise ConnectionError("this is not the answer of a Redis")

    def close(self) -> None:
        """Close the connection."""
        for opened in (self._answers, self._socket):
            if opened is not None:
                with suppress(OSError):
                    opened.close()
        self._socket = self._answers = None


def _written(words: Sequence[str | bytes]) -> Iterator[bytes]:
    yield b"*%d\r\n" % len(words)
    for word in words:
        data = word.encode() if isinstance(word, str) else word
        yield b"$%d\r\n%b\r\n" % (len(data), data)
