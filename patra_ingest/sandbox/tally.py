"""What the sandbox has seen of its callers since it started or was last reset."""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime

from patra_ingest.clock import Clock

KEPT_VISITS = 200_000  # older ones are forgotten, so that a long run does not fill the memory


@dataclass(eq=False, slots=True)
class Visit:
    """One request: when it came, as the how manieth, and how it was answered."""

    number: int  # counted from 1
    at: float  # seconds of the machine's monotonic clock, the same in all its processes
    in_flight: int  # how many were being answered then, with this one
    worker: str | None  # who asked, if it says so
    status: int = 0  # 0: not answered yet, or never


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
        self._visits: deque[Visit] = deque(maxlen=KEPT_VISITS)
        self._recent: deque[float] = deque()
        self._rate_max = 0
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None

    @property
    def in_flight(self) -> int:
        """How many requests are being answered at this moment."""
        return self._in_flight

    def arrive(self, worker: str | None = None) -> Visit:
        """Note a request."""
        now = self._clock.monotonic()
        self._last_at = self._clock.now()
        self._first_at = self._first_at or self._last_at
        self.requests += 1
        self._in_flight += 1
        self._in_flight_max = max(self._in_flight_max, self._in_flight)
        forget_until(self._recent, now - 1.0)
        self._recent.append(now)
        self._rate_max = max(self._rate_max, len(self._recent))
        visit = Visit(self.requests, now, self._in_flight, worker)
        self._visits.append(visit)
        return visit

    def note_page(self, page_key: str) -> None:
        """Note that the works of a page were sent."""
        self._pages[page_key] += 1

    def leave(self, visit: Visit, status: int, size: int) -> None:
        """Note how a request was answered."""
        visit.status = status
        self._in_flight -= 1
        self._statuses[status] += 1
        self._bytes += size

    def arrivals(self) -> list[tuple[float, int, int, str | None]]:
        """Return when each request came, its status, how many were in flight, and who asked."""
        return [(one.at, one.status, one.in_flight, one.worker) for one in self._visits]

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
            "rate_max_by_status": self._rate_max_by_status(),
            "by_status": {str(status): n for status, n in sorted(self._statuses.items())},
            "bytes": self._bytes,
            "first_at": self._first_at,
            "last_at": self._last_at,
        }

    def _rate_max_by_status(self) -> dict[str, int]:
        """Return the most requests of each status in any second; not yet answered ones are 0."""
        recent: dict[int, deque[float]] = {}
        most: Counter[int] = Counter()
        for visit in self._visits:
            same = recent.setdefault(visit.status, deque())
            forget_until(same, visit.at - 1.0)
            same.append(visit.at)
            most[visit.status] = max(most[visit.status], len(same))
        return {str(status): n for status, n in sorted(most.items())}


def forget_until(moments: deque[float], moment: float) -> None:
    """Drop the moments up to and including `moment`."""
    while moments and moments[0] <= moment:
        moments.popleft()
