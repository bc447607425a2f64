"""What one process has of one rate key: tokens taken along, places in flight, and its line.

Tokens taken along are a lease: good for a moment only, so that a silence reaches everybody soon,
and counted by the ledger as part of the key's burst until they are spent or given back.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from math import ceil

from pyrate_limiter import Rate, RateItem, StateBucket

from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.line import Line
from patra_ingest.rate.permit import Facts

LEASE_SECONDS = 0.25
# A place that is free again is kept for the next request this long.
IDLE_SECONDS = 0.5
# While others wait, a process sends so many requests, or for so long, before it is their turn.
QUANTUM = 10
TURN_SECONDS = 2.0
_NOTHING = Decimal(0)
_SEEN_SPANS = 60
_SPAN_SECONDS = 10


@dataclass
class Pocket:
    """The share of one process; whoever looks into it or changes it holds its `door`."""

    limits: Limits
    door: threading.RLock = field(default_factory=threading.RLock, repr=False)
    line: Line = field(default_factory=Line, repr=False)
    freed: threading.Event = field(default_factory=threading.Event, repr=False)
    tokens: Decimal = _NOTHING
    places: int = 0
    busy: int = 0
    owed: Decimal = _NOTHING  # spent while the ledger was out of reach
    facts: Facts | None = None
    silent_until: datetime | None = None  # by our own clock
    good_until: float = 0.0
    visited: float = 0.0
    used: float = 0.0
    uses: int = 0  # since the last visit
    turn_uses: int = 0
    turn_began: float | None = None
    seen: "Seen" = field(default_factory=lambda: Seen(), repr=False)
    smoother: StateBucket | None = field(default=None, repr=False)

    @property
    def holds_anything(self) -> bool:
        """Whether the ledger believes that this process has something of the key."""
        return bool(self.places or self.tokens or self.owed)

    def try_take(self, price: Decimal, now: float) -> bool:
        """Take one request out of what was taken along, if that is still good."""
        if self.facts is None or self.tokens < price or now >= self.good_until:
            return False
        if self.facts.in_flight_limit is not None and self.places <= self.busy:
            return False
        if self.smoother and not self.smoother.put(RateItem("", round(now * 1000))):
            return False
        self.tokens -= price
        self.begin(now)
        return True

    def begin(self, now: float) -> None:
        """Count a request that may leave."""
        self.busy += 1
        self.uses += 1
        self.turn_uses += 1
        self.used = now
        if self.turn_began is None:
            self.turn_began = now
        self.seen.note(now)

    def end(self, now: float) -> None:
        """Count a request that is over; its place is free for the next one."""
        self.busy -= 1
        self.used = now
        self.freed.set()

    def wish(self, now: float) -> int:
        """Return how many tokens to take along: what was used lately, for as long as they last."""
        span = max(now - self.visited, 0.001)
        return ceil(self.uses / span * LEASE_SECONDS) if self.visited else 1

    def turn_over(self, now: float) -> bool:
        """Whether this process has had its turn and others come first."""
        if self.turn_began is None:
            return False
        return self.turn_uses >= QUANTUM or now - self.turn_began >= TURN_SECONDS

    def new_turn(self) -> None:
        """Begin to count the turn again."""
        self.turn_uses, self.turn_began = 0, None

    def fill(self, tokens: int, places: int, facts: Facts, now: float) -> None:
        """Take along what a visit granted."""
        self.tokens, self.places, self.facts = Decimal(tokens), places, facts
        self.good_until = now + LEASE_SECONDS
        self.visited, self.uses = now, 0
        if tokens:
            self.smoother = _smooth(self.smoother, facts)

    def keep_silent(self, until: datetime | None) -> None:
        """Remember a silence, for the time when nobody can be asked about it."""
        if until is not None:
            self.silent_until = max(until, self.silent_until or until)

    def empty(self, places: int = 0) -> None:
        """Forget what was given back."""
        self.tokens, self.good_until, self.places = _NOTHING, 0.0, places


@dataclass
class Seen:
    """How fast this process has been, span by span."""

    counts: deque[int] = field(default_factory=lambda: deque(maxlen=_SEEN_SPANS))
    span: int = 0
    count: int = 0

    def note(self, now: float) -> None:
        """Count one request."""
        span = int(now // _SPAN_SECONDS)
        if span != self.span:
            if self.count:
                self.counts.append(self.count)
            self.span, self.count = span, 0
        self.count += 1

    def tenth_percentile(self) -> Decimal | None:
        """Return the rate that was exceeded in nine of ten busy spans; None if never busy."""
        counts = sorted(self.counts)
        return Decimal(counts[len(counts) // 10]) / _SPAN_SECONDS if counts else None


def _smooth(known: StateBucket | None, facts: Facts) -> StateBucket:
    """Return what keeps this process from spending its tokens faster than the key allows."""
    rate = Rate(max(1, int(facts.rate_per_second)), 1000, max(1, int(facts.burst)))
    if known is not None and repr(known.rates) == repr([rate]):
        return known
    return StateBucket([rate])
