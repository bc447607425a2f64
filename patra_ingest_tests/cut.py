"""A wire to the database that a test can cut: a real proxy on the loopback."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


class Wire:
    """Passes every connection on to one address, unless it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._there = (host, port)
        self._door: socket.socket | None = None
        self._pairs: set[socket.socket] = set()
        self._guard = threading.Lock()
        self.port = 0
        self.mend()

    def cut(self) -> None:
        """Break every connection and take no new one."""
        with self._guard:
            door, self._door = self._door, None
            pairs, self._pairs = self._pairs, set()
        for end in (door, *pairs):
            if end is not None:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def mend(self) -> None:
        """Take connections again, on the same port."""
        door = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = door.getsockname()[1]
        with self._guard:
            self._door = door
        threading.Thread(target=self._listen, args=(door,), daemon=True).start()

    def _listen(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                here, _ = door.accept()
                there = socket.create_connection(self._there)
                with self._guard:
                    if self._door is not door:
                        here.close()
                        there.close()
                        return
                    self._pairs |= {here, there}
                threading.Thread(target=self._carry, args=(here, there), daemon=True).start()

    def _carry(self, here: socket.socket, there: socket.socket) -> None:
        other = {here: there, there: here}
        with suppress(OSError, ValueError), selectors.DefaultSelector() as ready:
            for end in other:
                ready.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select(1.0):
                    end = key.fileobj
                    assert isinstance(end, socket.socket)
                    piece = end.recv(_CHUNK)
                    if not piece:
                        raise OSError
                    other[end].sendall(piece)
        for end in other:
            end.close()


@contextmanager
def wire(host: str, port: int) -> Iterator[Wire]:
    """Run a wire for the length of the block."""
    one = Wire(host, port)
    try:
        yield one
    finally:
        one.cut()
