"""Looks after a gate while its process works: returns what is idle, renews what is in use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from patra_ingest.rate.gate import RateGate

_TICK_SECONDS = 0.25


@contextmanager
def tended(gate: RateGate) -> Iterator[RateGate]:
    """Tend the gate for the length of the block, and give everything back at its end."""
    ended = threading.Event()
    thread = threading.Thread(target=_tend, args=(gate, ended), name="rate-keeper", daemon=True)
    thread.start()
    try:
        yield gate
    finally:
        ended.set()
        thread.join()
        gate.close()


def _tend(gate: RateGate, ended: threading.Event) -> None:
    while not ended.wait(_TICK_SECONDS):
        gate.tend()
