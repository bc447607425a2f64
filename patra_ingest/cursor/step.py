"""One step of a cursor: the event in one transaction, the cursor in another.

Whoever dies between the two leaves an event that the next one to take this step finds again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.ledger.cursors import (
    Cursor,
    CursorEvent,
    append_event,
    try_create_cursor,
    try_move_cursor,
)
from patra_ingest.ledger.db import Db

_RETRIES = 3
_BACKOFF_SECONDS = 0.05

Look = Callable[[], tuple[Cursor[Any] | None, CursorEvent | None]]


@dataclass
class Tally:
    """What the cursors of one process did, for its metrics."""

    advances: int = 0
    no_forwards: int = 0
    conflicts: int = 0
    compensations: int = 0
    forced: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        """Count what happened."""
        with self.lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class Taken:
    """Where a cursor was and where it is now; `conflicts` are the races that were lost."""

    before: Any
    after: Any
    conflicts: int = 0


class Stepper:
    """Takes steps in one ledger; any number of workers may do so at once."""

    def __init__(self, db: Db, clock: Clock, tally: Tally, luck: Random) -> None:
        self._db = db
        self._clock = clock
        self._tally = tally
        self._luck = luck

    def take(self, look: Look) -> Taken:
        """Take the step that `look` sees; after a lost race look again, three times at most.

        Then others keep moving the cursor. Whoever won last looked after we first did, and saw
        what we saw: his step includes ours.
        """
        written: str | None = None
        before: Any = None
        for lost in range(_RETRIES + 1):
            cursor, event = look()
            if lost == 0:
                before = cursor.value if cursor else None
            if event is None:
                return Taken(before, cursor.value if cursor else None, lost)
            if event.key != written:
                written = event.key
                self.write(event)
            if self._try_move(event, cursor):
                return Taken(before, event.reached, lost)
            self._tally.add(conflicts=1)
            if lost < _RETRIES:
                # Not all at the same moment: who lost together would meet again.
                pause = _BACKOFF_SECONDS * 2**lost * self._luck.uniform(0.5, 1.5)
                self._clock.sleep(pause)
        return Taken(before, before, _RETRIES + 1)

    def write(self, event: CursorEvent) -> datetime:
        """Write an event down in a transaction of its own; return when."""
        with self._db.write() as tx:
            now = self._db.now(tx)
            append_event(tx, event, now)
        return now

    def _try_move(self, event: CursorEvent, cursor: Cursor[Any] | None) -> bool:
        with self._db.write() as tx:
            now = self._db.now(tx)
            if cursor is None:
                return try_create_cursor(tx, event, now)
            return try_move_cursor(tx, event, cursor, now)
