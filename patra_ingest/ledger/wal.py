"""SQLite's log is copied back into the file beside the writers, not between them.

Left to itself, SQLite copies within the commit that made the log long, and meanwhile nobody writes.
Here a thread does it that has just written and holds nothing any more: the others go on.
"""

import logging
import sqlite3
import threading
from contextlib import closing

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

# Pages of the log between two copies, 16 MB, and how many writes that may take.
_PAGES = 4000
_FEWEST_WRITES, _FIRST_WRITES, _MOST_WRITES = 16, 64, 4096
# Writers who never pause let the log grow; at 64 MB the one who commits ends that.
LONGEST_PAGES = 16_000

_log = logging.getLogger(__name__)


class Copier:
    """Counts what the threads of one process write, and has the log copied now and then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes = 0
        self._after = _FIRST_WRITES
        self._length = 0

    def count(self, engine: Engine) -> None:
        """Count a write that is committed; copy when it is time and nobody else does."""
        self._writes += 1  # a write that two threads count as one does no harm
        if self._writes < self._after or not self._lock.acquire(blocking=False):
            return
        try:
            writes, self._writes = self._writes, 0
            length = _copy(engine)
            grown = length - self._length if length >= self._length else length
            self._length = length
            self._after = writes_until_next(writes, grown)
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
