"""The only module that asks the machine for the time, and the only one that sleeps."""

import threading
import time
from datetime import UTC, datetime
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
