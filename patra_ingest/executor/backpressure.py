"""When to do less at once, and when to try more again: additive increase, multiplicative decrease.

Two things can be too much, and each has its own number of tasks at once:

- a source, seen by its partition: too many 429, too many errors, or slow pages. Then this worker
  halves how many tasks of that partition it runs. Other partitions go on as before.
- the ledger: leasing and committing take too long. Then this worker halves its lanes.

Evidence is gathered over a window of batches and attempts. A threshold passed halves the number at
once; a whole window without that raises it by one, never above what was configured. Either way the
next window begins empty, so that no batch is held against anybody twice. A lone event proves
nothing: averages need ten samples, shares also two events. Values in, values out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

WINDOW = 50
_FEWEST_SAMPLES = 10
_FEWEST_EVENTS = 2


@dataclass(frozen=True)
class Thresholds:
    """What is too much. A value that only just reaches its threshold is not."""

    throttled_share: float = 0.05
    error_share: float = 0.02
    latency_ms: float = 3000.0
    database_ms: float = 200.0


@dataclass(frozen=True)
class Sample:
    """One batch, one failed attempt, or one look at the ledger; None is what it does not tell."""

    requests: int = 0
    throttled: int = 0
    errors: int = 0
    latency_ms: float | None = None
    database_ms: float | None = None


FAILED_ATTEMPT = Sample(requests=1, errors=1)


def sample_of(stats: Mapping[str, Any]) -> Sample:
    """Return what the stats of a batch say about its source."""
    throttled, retries = int(stats.get("429Count") or 0), int(stats.get("retryCount") or 0)
    answered = int(stats.get("reqCount") or 0)
    errors = max(retries - throttled, 0)
    return Sample(max(answered, retries + 1), throttled, errors, stats.get("latencyMs"))


@dataclass(frozen=True)
class Signals:
    """The samples since the last decision."""

    thresholds: Thresholds = Thresholds()
    samples: tuple[Sample, ...] = ()

    def adding(self, sample: Sample) -> "Signals":
        """Return these signals with one sample more; the oldest leaves a window that is full."""
        return replace(self, samples=(*self.samples, sample)[-WINDOW:])

    def cleared(self) -> "Signals":
        """Return an empty window."""
        return replace(self, samples=())

    @property
    def is_full(self) -> bool:
        """Whether a whole window has been seen."""
        return len(self.samples) >= WINDOW

    @property
    def trouble(self) -> str | None:
        """What is too much, in words; None when nothing is."""
        if len(self.samples) < _FEWEST_SAMPLES:
            return None
        limits = self.thresholds
        throttled = sum(one.throttled for one in self.samples)
        errors = sum(one.errors for one in self.samples)
        latencies = [one.latency_ms for one in self.samples if one.latency_ms is not None]
        database = [one.database_ms for one in self.samples if one.database_ms is not None]
        if self._is_too_often(throttled, limits.throttled_share):
            return "too many 429"
        if self._is_too_often(errors, limits.error_share):
            return "too many errors"
        if _is_too_slow(latencies, limits.latency_ms):
            return "slow pages"
        return "slow ledger" if _is_too_slow(database, limits.database_ms) else None

    def _is_too_often(self, events: int, share: float) -> bool:
        requests = sum(one.requests for one in self.samples)
        return events >= _FEWEST_EVENTS and events > share * requests


def _is_too_slow(times: list[float], most: float) -> bool:
    return len(times) >= _FEWEST_SAMPLES and sum(times) > most * len(times)


def decide(allowed: int, configured: int, signals: Signals) -> int:
    """Return how many may run from now on: half, one more, or as many as before; at least one."""
    if signals.trouble is not None:
        return max(1, min(allowed, configured) // 2)
    if signals.is_full:
        return max(1, min(configured, allowed + 1))
    return max(1, min(configured, allowed))
