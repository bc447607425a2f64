"""Where the outbox goes: a file of JSON lines, a webhook, or a Redis stream.

An address that holds a secret may itself be kept in a file: `@FILE` stands for what is in there.
"""

import fcntl
import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from urllib.parse import urlsplit

from patra_ingest.clock import Clock
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.transport.delivery import Answer, Published, Sink, envelope, refused
from patra_ingest.transport.redact import redact_url

_HOW = (
    "Give jsonl:PATH, http(s)://HOST/PATH or redis://HOST:PORT/DB?stream=NAME; or @FILE, a file"
    " that holds one of them."
)


class JsonlSink:
    """A file that grows: one JSON object per line, on the disk when `publish` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shown = f"jsonl:{path}"

    def publish(self, messages: Sequence[Message]) -> list[Answer]:
        """Append the messages together; a failure leaves the file as it was."""
        lines = [envelope(message) + b"\n" for message in messages]
        try:
            begin = self._append(b"".join(lines))
        except OSError as error:
            why = f"{self.shown} cannot be written: {error.strerror}"
            return [refused("NOT_WRITTEN", why, of_all=True)] * len(messages)
        offsets = accumulate((len(line) for line in lines[:-1]), initial=begin)
        return [Published(f"byte {offset}") for offset in offsets]

    def _append(self, data: bytes) -> int:
        """Return where the data begins in the file."""
        is_new = not self._path.exists()
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # publishers of other processes take turns
            size = os.fstat(file).st_size
            # A process that died while it wrote leaves half a line; it is not continued.
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            _write_whole(file, (b"\n" if torn else b"") + data, size)
        finally:
            os.close(file)
        if is_new:
            _sync_folder(self._path.absolute().parent)
        return size + torn

    def close(self) -> None:
        """Nothing is held between two calls."""


def _write_whole(file: int, data: bytes, size: int) -> None:
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def open_sink(to: str, clock: Clock, user_agent: str) -> Sink:
    """Return the sink at an address; nothing is connected or created yet."""
    address = _read_address(to)
    scheme = address.partition(":")[0].lower()
    if scheme in ("http", "https"):
        from patra_ingest.transport.webhook import WebhookSink

        return WebhookSink(address, clock, user_agent)
    if scheme in ("redis", "rediss"):
        from patra_ingest.transport.redis_stream import RedisSink

        return RedisSink(address)
    path = address.partition(":")[2]
    if scheme == "jsonl" and path:
        return JsonlSink(Path(path))
    raise PersonMustAct("There is no such sink for the outbox.", _HOW)


def _read_address(to: str) -> str:
    if not to.startswith("@"):
        return to.strip()
    try:
        return Path(to[1:]).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text"
        raise PersonMustAct(
            f"The sink's address in {to[1:]} cannot be read: {said}.", _HOW
        ) from None


def has_secret(to: str) -> bool:
    """Return whether an address shows a password or a key to whoever reads it."""
    try:
        return not to.startswith("@") and (redact_url(to) != to or "@" in urlsplit(to).netloc)
    except ValueError:
        return True
