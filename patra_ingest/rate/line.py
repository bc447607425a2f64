"""First come, first served: the lanes of one process that want the same key stand in a line."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.05


class Line:
    """Lets one caller in at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._tickets: deque[threading.Event] = deque()

    def __len__(self) -> int:
        """Return how many are in the line, the one at its head included."""
        return len(self._tickets)

    @contextmanager
    def turn(self, give_up: Callable[[], None]) -> Iterator[None]:
        """Wait for our turn and keep it for the length of the block.

        `give_up` is asked now and then while we wait; it raises when there is no point any more.
        """
        ticket = threading.Event()
        with self._guard:
            self._tickets.append(ticket)
            if self._tickets[0] is ticket:
                ticket.set()
        try:
            while not ticket.wait(_LOOK_SECONDS):
                give_up()
            yield
        finally:
            with self._guard:
                self._tickets.remove(ticket)
                if self._tickets:
                    self._tickets[0].set()
