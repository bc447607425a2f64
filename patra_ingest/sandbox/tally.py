"""What the sandbox has seen of its callers since it started or was last reset."""

from collections import Counter, deque
from datetime import datetime

from patra_ingest.clock import Clock

# A fair client's requests may be squeezed together on their way by this much, and are forgiven.
_FORGIVEN_SECONDS = 0.05


class Tally:
    """Counts requests, pages and bytes, and knows how dense the requests were."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything except the requests still being answered."""
        self.requests = 0
        self._pages: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._bytes = 0
        self._in_flight_max = self._in_flight
        self._recent: deque[float] = deque()
        self._granted: deque[float] = deque()
        self._rate_max = 0
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None

    @property
    def in_flight(self) -> int:
        """How many requests are being answered at this moment."""
        return self._in_flight

    def arrive(self) -> int:
        """Note a request and return its number, counted from 1."""
        now = self._clock.monotonic()
        self._last_at = self._clock.now()
        self._first_at = self._first_at or self._last_at
        self.requests += 1
        self._in_flight += 1
        self._in_flight_max = max(self._in_flight_max, self._in_flight)
        _forget_until(self._recent, now - 1.0)
        self._recent.append(now)
        self._rate_max = max(self._rate_max, len(self._recent))
        return self.requests

    def try_grant(self, per_second: int) -> bool:
        """Say whether one more request fits into this second; refused ones do not count."""
        now = self._clock.monotonic()
        _forget_until(self._granted, now - 1.0 + _FORGIVEN_SECONDS)
        if len(self._granted) >= per_second:
            return False
        self._granted.append(now)
        return True

    def note_page(self, page_key: str) -> None:
        """Note that the works of a page were sent."""
        self._pages[page_key] += 1

    def leave(self, status: int, size: int) -> None:
        """Note how a request was answered."""
        self._in_flight -= 1
        self._statuses[status] += 1
        self._bytes += size

    def report(self) -> dict[str, object]:
        """Return everything noted, ready for JSON."""
        return {
            "requests": self.requests,
            "pages": {
                "distinct": len(self._pages),
                "repeated": {key: times for key, times in self._pages.items() if times > 1},
            },
            "in_flight_max": self._in_flight_max,
            "rate_max_per_second": self._rate_max,
            "by_status": {str(status): n for status, n in sorted(self._statuses.items())},
            "bytes": self._bytes,
            "first_at": self._first_at,
            "last_at": self._last_at,
        }


def _forget_until(moments: deque[float], moment: float) -> None:
    while moments and moments[0] <= moment:
        moments.popleft()
