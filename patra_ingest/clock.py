"""The only module that asks the machine for the time, and the only one that sleeps."""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the package needs of time; tests hand in one that they move themselves."""

    def now(self) -> datetime:
        """Return the current instant, always UTC."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow, for measuring durations."""

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; True when it was set."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current instant, always UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only ever grow, for measuring durations."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        if seconds > 0:
            time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; True when it was set."""
        return event.wait(max(seconds, 0.0))


class Stop(threading.Event):
    """Says when to stop: somebody asks for it (`set`), or the time that was given is over."""

    def __init__(self) -> None:
        super().__init__()
        self._deadline: tuple[Clock, float] | None = None

    def give(self, clock: Clock, time: timedelta | None) -> None:
        """Let this much time pass from now on, and no more; None is any time."""
        if time is not None:
            self._deadline = clock, clock.monotonic() + time.total_seconds()

    @property
    def is_late(self) -> bool:
        """Whether the time is over, and nobody has asked to stop."""
        return self._left() == 0 and not super().is_set()

    def is_set(self) -> bool:
        """Return whether to stop, for whatever reason."""
        return super().is_set() or self._left() == 0

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for either reason, or for so many seconds; return whether to stop."""
        left = self._left()
        super().wait(min((one for one in (timeout, left) if one is not None), default=None))
        return self.is_set()

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        clock, until = self._deadline
        return max(until - clock.monotonic(), 0.0)


def is_late(stop: threading.Event) -> bool:
    """Return whether it is a deadline that says stop."""
    return isinstance(stop, Stop) and stop.is_late
