"""The gate without its ledger: slow enough for one process that knows nothing of the others.

The rate is the lowest of the platform's default, what the key allowed when it was last seen, and
how fast this process was in all but its slowest spans; one request at a time per key.
"""

import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from math import ceil

from pyrate_limiter import AbstractClock, Rate, RateItem, StateBucket

from patra_ingest.clock import Clock
from patra_ingest.rate.bucket import price_of
from patra_ingest.rate.patience import Patience
from patra_ingest.rate.permit import Budget

DEFAULT_RATE = Decimal(1)
_LOOK_SECONDS = 0.05


def safe_rate(budget: Budget, held: Decimal | None, seen: Decimal | None) -> Decimal:
    """Return how many such requests a second one process may send that cannot ask anybody.

    `held` is the rate that held when the ledger was last seen, `seen` how fast we were then.
    """
    allowed = min([budget.limits.rate_per_second, *([held] if held else [])])
    per_request = allowed / max(Decimal(1), price_of(budget.cost))
    return min([DEFAULT_RATE, per_request, *([seen] if seen else [])])


class Alone:
    """The keys of one process, as long as the ledger is out of reach."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._keys: dict[str, _LocalKey] = {}

    def take(self, wanted: Mapping[str, Decimal], patience: Patience) -> None:
        """Return when one request may leave under all of these keys, each with its safe rate."""
        taken: list[_LocalKey] = []
        try:
            for rate_key in sorted(wanted):
                local = self._key(rate_key, wanted[rate_key])
                local.take(patience)
                taken.append(local)
        except BaseException:
            for local in taken:
                local.open.release()
            raise

    def give_back(self, rate_keys: Iterable[str]) -> None:
        """Let the next request of this process in."""
        for rate_key in rate_keys:
            self._keys[rate_key].open.release()

    def _key(self, rate_key: str, rate: Decimal) -> "_LocalKey":
        with self._guard:
            local = self._keys.setdefault(rate_key, _LocalKey(self._clock))
        local.slow_to(rate)
        return local


class _LocalKey:
    """One key: a limiter, and a door for one request at a time."""

    def __init__(self, clock: Clock) -> None:
        self.open = threading.Lock()
        self._clock = clock
        self._rate = DEFAULT_RATE
        self._left_at: int | None = None  # milliseconds
        self._limiter = self._new_limiter()

    def slow_to(self, rate: Decimal) -> None:
        if rate != self._rate:
            self._rate = rate
            self._limiter = self._new_limiter()
            if self._left_at is not None:  # who left under the old rate has left
                self._limiter.put(RateItem("", self._left_at))

    def _new_limiter(self) -> StateBucket:
        interval = ceil(1000 / self._rate)
        return StateBucket([Rate(1, interval, 1)], clock=_Millis(self._clock))

    def take(self, patience: Patience) -> None:
        while not self.open.acquire(blocking=False):
            patience.give_up()
            patience.pause(_LOOK_SECONDS)
        try:
            while (waiting := self._waiting()) > 0:
                patience.give_up_after(timedelta(milliseconds=waiting))
                patience.pause(waiting / 1000)
        except BaseException:
            self.open.release()
            raise

    def _waiting(self) -> int:
        """Take a token and return 0, or return the milliseconds until there is one."""
        item = RateItem("", round(self._clock.monotonic() * 1000))
        if self._limiter.put(item):
            self._left_at = item.timestamp
            return 0
        waiting = self._limiter.waiting(item)
        assert isinstance(waiting, int)  # a limiter in memory answers at once
        return max(1, waiting)


class _Millis(AbstractClock):
    """Our clock, as the limiter wants it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> int:
        """Return milliseconds that only ever grow."""
        return round(self._clock.monotonic() * 1000)
