"""Which requests are too many: in a second, at once, or because somebody said so."""

from collections import deque

from patra_ingest.clock import Clock
from patra_ingest.sandbox.answers import Answer, answer_throttled
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.tally import Visit, forget_until

# A fair client's requests may be squeezed together on their way by this much, and are forgiven.
_FORGIVEN_SECONDS = 0.05


class Throttle:
    """Answers 429 to requests beyond the limits of the moment; they may change at any time.

    With a burst, the rate is a token bucket of its own, and owes nothing to our rate gate: the
    one checks the other. Without one, no second may hold more requests than the rate.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inside: set[Visit] = set()
        self.reset()

    def reset(self) -> None:
        """Forget everything except the requests still being answered."""
        self._granted: deque[float] = deque()
        self._tokens: float | None = None  # None: nobody has taken from the bucket
        self._filled_at = 0.0
        self._to_refuse = 0
        self._retry_after = 0

    def refuse_next(self, count: int, retry_after: int) -> None:
        """Refuse the next `count` requests, whatever the limits say."""
        if min(count, retry_after) < 0:
            raise ValueError("refuse_next and retry_after are never negative")
        self._to_refuse, self._retry_after = count, retry_after

    def refuse(self, visit: Visit, behaviour: Behaviour) -> Answer | None:
        """Return the 429 that a request deserves; None lets it in, until it leaves."""
        if self._to_refuse:
            self._to_refuse -= 1
            return answer_throttled(self._retry_after)
        if self._is_full(behaviour) or not self._try_grant(behaviour):
            return answer_throttled(behaviour.retry_after)
        self._inside.add(visit)
        return None

    def leave(self, visit: Visit) -> None:
        """Note that a request was answered, let in or not."""
        self._inside.discard(visit)

    def _is_full(self, behaviour: Behaviour) -> bool:
        most = behaviour.throttle_in_flight
        return 0 < most <= len(self._inside)

    def _try_grant(self, behaviour: Behaviour) -> bool:
        """Say whether one more request fits the rate; refused ones do not count."""
        if not behaviour.throttle_per_second:
            return True
        if behaviour.throttle_burst:
            return self._try_spend(behaviour.throttle_per_second, behaviour.throttle_burst)
        now = self._clock.monotonic()
        forget_until(self._granted, now - 1.0 + _FORGIVEN_SECONDS)
        if len(self._granted) >= behaviour.throttle_per_second:
            return False
        self._granted.append(now)
        return True

    def _try_spend(self, per_second: int, burst: int) -> bool:
        now = self._clock.monotonic()
        most = burst + per_second * _FORGIVEN_SECONDS
        earned = (now - self._filled_at) * per_second
        tokens = most if self._tokens is None else min(self._tokens + earned, most)
        has_one = tokens >= 1
        self._tokens, self._filled_at = tokens - has_one, now
        return has_one
