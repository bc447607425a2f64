"""Python's cyclic collector, kept away from the pages.

A page is some ten thousand small containers without a single cycle; they die by their reference
counts. At its usual pace the collector walks through all of them several times per page, for
nothing: half the time of parsing. What does have cycles, a few small objects per request, is
collected between the batches, when the page is gone and there is little to walk through.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

# Containers made and not yet freed before it looks again; a few pages' worth per lane.
_SELDOM = (100_000, 20, 20)
_BATCHES = 50  # of all lanes, between two collections; what they leave is about 10 KB each
_batches = count(1)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector look seldom for the length of the block."""
    _leave_out_what_stays()
    usual = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@cache
def _leave_out_what_stays() -> None:
    """Once per process: modules live as long as it does, and walking through them is for nothing.

    With Dagster loaded that takes a tenth of a second each time.
    """
    gc.freeze()


def collect_between_batches() -> None:
    """Collect what the last batches have left, once in a while; called when one is committed."""
    if next(_batches) % _BATCHES == 0:
        gc.collect(0)
