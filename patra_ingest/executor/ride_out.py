"""A ledger that is out of reach for a moment costs a worker that moment, and nothing else."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from patra_ingest.clock import Clock
from patra_ingest.errors import LedgerBusy, LedgerUnreachable

# After this a person has to look; leases have expired, and others may have our tasks.
LONGEST_OUTAGE_SECONDS = 300.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0

_log = logging.getLogger(__name__)
Result = TypeVar("Result")


def ride_out(
    act: Callable[[], Result],
    clock: Clock,
    stop: threading.Event,
    longest: float = LONGEST_OUTAGE_SECONDS,
) -> Result:
    """Do `act`, again and again while the ledger cannot be reached; it must be safe to repeat.

    Raises what it met when that takes too long, or when we are to stop. A ledger that somebody
    holds has been waited for already: it is asked once more.
    """
    began, pause, busy = clock.monotonic(), _FIRST_PAUSE, 0
    while True:
        try:
            return act()
        except (LedgerUnreachable, LedgerBusy) as error:
            busy += isinstance(error, LedgerBusy)
            too_late = clock.monotonic() - began + pause > longest
            if stop.is_set() or too_late or busy > 1:
                raise
            if pause == _FIRST_PAUSE and not busy:
                _log.warning("%s Trying again.", error.what)
            clock.wait(stop, pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
