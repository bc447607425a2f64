"""Terminate and Ctrl-C as an event: a step ends after its current batch and gives its tasks back.

Left to itself, Dagster raises in the middle of whatever runs, a second time for a second signal
(Ctrl-C reaches a whole process group, then the parent says SIGTERM): lanes that are abandoned so
would keep their leases until these expire.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from patra_ingest.clock import Stop

_T = TypeVar("_T")
_SPELL_SECONDS = 0.2


def run_stoppable(work: Callable[[Stop], _T]) -> _T:
    """Return what `work(stop)` returns; SIGINT and SIGTERM set `stop`, Dagster is told after."""
    stop = Stop()
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True  # no more than that: a handler may itself be interrupted

    with _on_signals(interrupt), ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, stop)
        while not working.done():
            # In short spells: the kernel may hand two signals in a row to another thread without
            # waking this one, and Python runs handlers only here.
            wait([working], _SPELL_SECONDS)
            if interrupted:
                stop.set()
    if interrupted:
        raise KeyboardInterrupt  # for Dagster this is an interrupted step, not a failed one
    return working.result()


@contextmanager
def _on_signals(handler: Callable[..., None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals never come here
        return
    kept = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
