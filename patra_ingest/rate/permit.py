"""Leave to send one request; only the gate makes one, and it is good once."""

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from patra_ingest.rate.bucket import Amount, Limits


class Decision(StrEnum):
    """How a permit came about."""

    ALLOW = "ALLOW"
    WAIT = "WAIT"  # after a wait
    FALLBACK = "FALLBACK"  # without the ledger, at a rate that is safe for one process alone


@dataclass(frozen=True)
class Budget:
    """One rate key that a request spends from."""

    rate_key: str
    limits: Limits
    cost: Amount = 1


class Seal:
    """What only the gate can put on a permit; it breaks once."""

    def __init__(self) -> None:
        self._broken = threading.Lock()

    def break_it(self) -> bool:
        """True the first time, False ever after."""
        return self._broken.acquire(blocking=False)


@dataclass(frozen=True)
class Facts:
    """How things stood when a permit was given: for the black box."""

    decision: Decision
    rate_per_second: Decimal
    burst: Decimal
    in_flight_limit: int | None = None
    cool_down_until: datetime | None = None  # the last silence, if it was ever asked for


@dataclass(frozen=True)
class Place:
    """A grant: the request may leave at `at`, `pause` from now."""

    at: datetime
    facts: Facts
    pause: timedelta = timedelta(0)


@dataclass(frozen=True)
class Permit:
    """Leave to send one request, under one key or several."""

    budgets: tuple[Budget, ...]  # the first one is the endpoint's own
    granted_at: datetime  # by the ledger's clock
    waited_seconds: float
    facts: Facts
    seal: Seal = field(repr=False, compare=False)
    returned: Seal = field(default_factory=Seal, repr=False, compare=False)

    @property
    def rate_key(self) -> str:
        """The key of the endpoint itself."""
        return self.budgets[0].rate_key

    def use(self) -> None:
        """Use the permit up; raise if it was used or released before, or is not the gate's."""
        if not isinstance(self.seal, Seal):
            raise TypeError(f"{self} was not handed out by a rate gate")
        if not self.seal.break_it():
            raise RuntimeError(
                f"{self} was used or released before; acquire a new one for each request"
            )

    def digest(self) -> dict[str, Any]:
        """Return what the black box keeps of the gate's decision."""
        facts = self.facts
        return {
            "limitKey": self.rate_key,
            "permitCost": str(self.budgets[0].cost),
            "decision": facts.decision.value,
            "waitMs": round(self.waited_seconds * 1e3),
            "r": f"{facts.rate_per_second.normalize():f}",
            "burst": f"{facts.burst.normalize():f}",
            "inFlight": facts.in_flight_limit,
            "cooldownUntil": facts.cool_down_until,
        }
