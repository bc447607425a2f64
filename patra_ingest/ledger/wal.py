"""SQLite's log is copied back into the file beside the writers, not between them.

Left to itself, SQLite copies within the commit that made the log long, and meanwhile nobody writes.
Here a thread of its own copies while the others write. They have made the log a little longer when
it is done; it copies once more, and the last bit while it holds their turn: then SQLite begins the
log anew.
"""

import logging
import sqlite3
import threading
from contextlib import AbstractContextManager, closing
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

# Pages of the log between two copies, 10 MB, and how many writes that may take. A log that begins
# anew soon is written over pages that the system still has at hand.
_PAGES = 2_500
_FEWEST_WRITES, _FIRST_WRITES, _MOST_WRITES = 4, 16, 4096
_ANEW = 4_000  # pages after which it begins anew
# Other processes may keep the log from ending; at 128 MB whoever commits copies.
LONGEST_PAGES = 32_000

_log = logging.getLogger(__name__)


class Copier:
    """Counts what the threads of one process write, and has the log copied now and then."""

    def __init__(self, engine: Engine, turn: AbstractContextManager[Any]) -> None:
        self._engine = engine
        self._turn = turn  # of the writers
        self._lock = threading.Lock()  # held while somebody copies
        self._writes = 0
        self._after = _FIRST_WRITES
        self._length = 0

    def count(self) -> None:
        """Count a write that is committed; have the log copied when it is time."""
        self._writes += 1  # a write that two threads count as one does no harm
        if self._writes < self._after or not self._lock.acquire(blocking=False):
            return
        writes, self._writes = self._writes, 0
        threading.Thread(target=self._copy, args=(writes,), name="copy-the-log").start()

    def wait(self) -> None:
        """Wait until the copy that is under way, if one is, has ended."""
        with self._lock:
            pass

    def _copy(self, writes: int) -> None:
        try:
            length = _copy(self._engine)
            grown = length - self._length if length >= self._length else length
            self._length = length
            self._after = writes_until_next(writes, grown)
            if length >= _ANEW:
                _copy(self._engine)
                with self._turn:
                    _copy(self._engine)
        finally:
            self._lock.release()


def writes_until_next(writes: int, grown: int) -> int:
    """Return after how many writes to copy again when these have made the log longer by `grown`."""
    fitting = _PAGES * writes // grown if grown > 0 else _MOST_WRITES
    return min(max(fitting, _FEWEST_WRITES), _MOST_WRITES)


def _copy(engine: Engine) -> int:
    """Copy what no reader needs where it is; return how many pages the log has."""
    try:
        with closing(engine.raw_connection()) as connection:
            found = connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except (sqlite3.Error, SQLAlchemyError) as error:
        # Nothing is lost: the log has it all, and whoever writes next meets the same trouble.
        _log.warning("The log of the ledger could not be copied back (%s).", error)
        return 0
    return int(found[1])
