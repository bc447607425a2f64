"""How long a caller waits for its permit, and what makes it stop waiting."""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from patra_ingest.clock import Clock
from patra_ingest.errors import NotSent
from patra_ingest.rate.bucket import WaitReason

WHY = {
    WaitReason.RATE: "the rate of the key allows none earlier",
    WaitReason.IN_FLIGHT: "as many requests as allowed are open",
    WaitReason.COOL_DOWN: "the source asked for silence",
}


@dataclass(frozen=True)
class Patience:
    """How long a caller waits, and what makes it stop waiting."""

    clock: Clock
    deadline: datetime | None
    stop: threading.Event | None

    def at_most(self, longest: timedelta) -> timedelta:
        """Return how long we wait from now on, `longest` at most."""
        if self.deadline is None:
            return longest
        return min(longest, self.deadline - self.clock.now())

    def is_stopped(self, pause: timedelta) -> bool:
        """Sleep; True if we are to stop."""
        if self.stop is not None:
            return self.clock.wait(self.stop, pause.total_seconds())
        self.clock.sleep(pause.total_seconds())
        return False

    def pause(self, seconds: float) -> None:
        """Sleep; Throttled if we are to stop."""
        if self.is_stopped(timedelta(seconds=seconds)):
            raise NotSent(self.clock.now())

    def give_up(self) -> None:
        """Raise when there is no point in waiting any longer."""
        self.give_up_after(timedelta(0))

    def give_up_after(self, pause: timedelta, reason: WaitReason = WaitReason.RATE) -> None:
        """Raise when `pause` from now is too late, or we are to stop."""
        now = self.clock.now()
        if self.stop is not None and self.stop.is_set():
            raise NotSent(now)
        if self.deadline is not None and now + pause > self.deadline:
            raise NotSent(now + pause, WHY[reason])
