"""A worker eases off and picks up again, as `backpressure` decides; each change is logged."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.backpressure import (
    FAILED_ATTEMPT,
    Sample,
    Signals,
    Thresholds,
    decide,
    sample_of,
)
from patra_ingest.ledger.tasks import Partition

_LOG = logging.getLogger("patra_ingest.executor.work")
_LEDGER = "lanes"
_BAD_ENDS = (TaskEnd.FAILED, TaskEnd.RELEASED)


# What was changed, and what the trouble is; no trouble: it was raised again.
OnChange = Callable[[str, str | None], None]


class Pace:
    """How many lanes of one worker may work, and how many of them for each partition."""

    def __init__(self, lanes: int, thresholds: Thresholds, on_change: OnChange) -> None:
        self._lanes = lanes
        self._fresh = Signals(thresholds)
        self._on_change = on_change
        self._signals: dict[Partition | str, Signals] = {}
        self._allowed: dict[Partition | str, int] = {}
        self._guard = threading.Lock()

    @property
    def lanes(self) -> int:
        """How many lanes may work."""
        return self._allowed.get(_LEDGER, self._lanes)

    def of(self, partition: Partition) -> int:
        """Return how many tasks of a partition this worker may have in work."""
        return self._allowed.get(partition, self._lanes)

    def closed(self, in_work: Mapping[Partition, int]) -> frozenset[Partition]:
        """Return the partitions that have as many tasks in work as they may."""
        with self._guard:
            return frozenset(one for one, tasks in in_work.items() if tasks >= self.of(one))

    def see_batch(self, partition: Partition, stats: Mapping[str, Any]) -> None:
        """Learn from one committed batch."""
        self._see(partition, sample_of(stats))
        if (taken := stats.get("commitMs")) is not None:
            self._see(_LEDGER, Sample(database_ms=taken))

    def see_end(self, partition: Partition, end: TaskEnd) -> None:
        """Learn from how an attempt ended."""
        if end in _BAD_ENDS:
            self._see(partition, FAILED_ATTEMPT)

    def see_ledger(self, seconds: float) -> None:
        """Learn how long the ledger took to lease a task."""
        self._see(_LEDGER, Sample(database_ms=seconds * 1000))

    def _see(self, what: Partition | str, sample: Sample) -> None:
        with self._guard:
            signals = self._signals.get(what, self._fresh).adding(sample)
            before = self._allowed.get(what, self._lanes)
            after = decide(before, self._lanes, signals)
            trouble = signals.trouble
            is_decided = trouble is not None or signals.is_full
            self._signals[what] = signals.cleared() if is_decided else signals
            self._allowed[what] = after
            if after != before:
                self._say(str(what), before, after, trouble)

    def _say(self, what: str, before: int, after: int, trouble: str | None) -> None:
        if trouble is not None:
            _LOG.warning("%s: %d at once instead of %d (%s)", what, after, before, trouble)
        else:
            _LOG.info("%s: %d at once again, after %d", what, after, before)
        self._on_change(what, trouble)
