"""Python's cyclic collector, kept away from the pages.

A page is some ten thousand small containers without a single cycle; they die by their reference
counts. At its usual pace the collector walks through all of them several times per page, for
nothing: half the time of parsing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Containers made and not yet freed before it looks again; a few pages' worth per lane.
_SELDOM = (100_000, 20, 20)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector look seldom for the length of the block."""
    usual = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
