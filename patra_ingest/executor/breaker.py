"""When to leave a source alone for a while: after failures in a row, or too many of a hundred.

The breakers of one process; whoever asks tells the other processes through the rate gate.
"""

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from patra_ingest.errors import CredentialRefused, Throttled, TransientError
from patra_ingest.spec.policies import Breaker

# What holds where a pack says nothing.
DEFAULT = Breaker(failures=3, cooldown=timedelta(seconds=60))
_WINDOW = 100


@dataclass(frozen=True)
class Health:
    """How the last requests went, and until when the source is left alone."""

    in_a_row: int = 0  # failures since the last success
    recent: tuple[bool, ...] = ()  # whether each of the last hundred failed, oldest first
    until: datetime | None = None


def after(health: Health, rule: Breaker, failed: bool, now: datetime) -> Health:
    """Return the health after one more request.

    While the source is left alone, what still comes in from before changes nothing. Afterwards
    the first request decides: a failure opens the breaker again, a success forgets the past.
    """
    if health.until is not None:
        if now < health.until:
            return health
        return replace(health, until=now + rule.cooldown) if failed else Health()
    seen = Health(
        health.in_a_row + 1 if failed else 0,
        (*health.recent, failed)[-_WINDOW:],
    )
    must_open = failed and _is_too_much(seen, rule)
    return replace(seen, until=now + rule.cooldown) if must_open else seen


def _is_too_much(health: Health, rule: Breaker) -> bool:
    if rule.failures is not None and health.in_a_row >= rule.failures:
        return True
    # Of a hundred, also when there were fewer: one failure of two requests says little.
    share = sum(health.recent) / _WINDOW
    return rule.error_share is not None and share >= rule.error_share


def is_failure(error: BaseException | None) -> bool:
    """Whether a request that ended so speaks against the source's health.

    No answer and 5xx do. To be told to slow down, to log in again or that a request is wrong does
    not: the source is well enough to say so.
    """
    told = (Throttled, CredentialRefused)
    return isinstance(error, TransientError) and not isinstance(error, told)


class Breakers:
    """The breakers of this process, one per key; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._health: dict[str, Health] = {}

    def note(self, key: str, rule: Breaker | None, failed: bool, now: datetime) -> datetime | None:
        """Note how a request ended; return until when the key must be left alone, if it must."""
        with self._lock:
            known = self._health.get(key, Health())
            health = self._health[key] = after(known, rule or DEFAULT, failed, now)
        return health.until
