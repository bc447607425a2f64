"""What one process has of all keys: it spends it, asks the ledger for more, and gives it back.

Whoever touches a key's pocket holds its door, so the ledger and the pocket always agree.
"""

import threading
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from patra_ingest.clock import Clock
from patra_ingest.errors import LedgerBusy, LedgerUnavailable
from patra_ingest.ledger.db import Db
from patra_ingest.rate.bucket import Wait, price_of
from patra_ingest.rate.desk import Desk
from patra_ingest.rate.fallback import safe_rate
from patra_ingest.rate.permit import Budget, Decision, Place
from patra_ingest.rate.pocket import IDLE_SECONDS, Pocket
from patra_ingest.rate.signals import Signal, silence_of

OUT_OF_REACH = (LedgerUnavailable, LedgerBusy)


class Share:
    """The pockets of one process; one that is tended keeps what it holds for its next requests."""

    def __init__(self, db: Db, clock: Clock, holder: str, term: timedelta, tended: bool) -> None:
        self._clock = clock
        self._term = term
        self._tended = tended
        self._desk = Desk(db, holder, term)
        self._guard = threading.Lock()
        self._pockets: dict[str, Pocket] = {}
        self._later: list[tuple[str, Signal]] = []  # what could not be told to the ledger yet

    def pocket(self, budget: Budget) -> Pocket:
        """Return the pocket of a key; the limits it is asked with are those that hold."""
        with self._guard:
            pocket = self._pockets.setdefault(budget.rate_key, Pocket(budget.limits))
        pocket.limits = budget.limits
        return pocket

    def try_take(self, budgets: tuple[Budget, ...]) -> Place | None:
        """Spend what was taken along, without asking anybody."""
        pocket = self.pocket(budgets[0])
        if len(budgets) > 1 or not self._tended:
            return None
        with pocket.door:
            price = price_of(budgets[0].cost)
            if pocket.facts and pocket.try_take(price, self._clock.monotonic()):
                return Place(self._clock.now(), pocket.facts)
        return None

    def visit(
        self, budgets: tuple[Budget, ...], patience: timedelta
    ) -> tuple[datetime, Wait | Place]:
        """Ask the ledger once for all keys; a token that comes within `patience` is booked.

        Returns the ledger's time and its answer; what it grants is in the pockets afterwards.
        """
        ordered = sorted(budgets, key=lambda budget: budget.rate_key)
        pockets = [self.pocket(budget) for budget in ordered]
        with ExitStack() as doors:
            for pocket in pockets:
                doors.enter_context(pocket.door)
                pocket.freed.clear()
            self._catch_up()
            moment = self._clock.monotonic()
            may_lease = self._tended and len(budgets) == 1
            wanted = list(zip(ordered, pockets, strict=True))
            now, answer = self._desk.ask(wanted, patience, moment, may_lease)
            ahead = now - self._clock.now()
            for pocket in pockets:
                silence = pocket.facts and pocket.facts.cool_down_until
                pocket.keep_silent(silence - ahead if silence else None)
            if isinstance(answer, Wait):
                return now, answer
            return now, self._place(budgets[0], answer, now)

    def spend_unasked(self, budgets: tuple[Budget, ...]) -> None:
        """Count a request that leaves without the ledger's leave; it is told at the next visit."""
        for budget in budgets:
            pocket = self.pocket(budget)
            with pocket.door:
                pocket.owed += price_of(budget.cost)
                pocket.begin(self._clock.monotonic())

    def safe_rate(self, budget: Budget) -> Decimal:
        """Return how fast we may go under a key that nobody can be asked about."""
        pocket = self.pocket(budget)
        held = pocket.facts.rate_per_second if pocket.facts else None
        return safe_rate(budget, held, pocket.seen.tenth_percentile())

    def silent_until(self, budgets: tuple[Budget, ...]) -> datetime | None:
        """Return how long we know that one of the keys has to be silent, by our own clock."""
        known = [self.pocket(budget).silent_until for budget in budgets]
        return max((until for until in known if until is not None), default=None)

    def give_back(self, budgets: tuple[Budget, ...]) -> None:
        """End a request."""
        for budget in budgets:
            pocket = self._pockets[budget.rate_key]
            with pocket.door:
                pocket.end(self._clock.monotonic())
                if not self._tended and budget.limits.in_flight is not None:
                    self._settle(budget.rate_key, pocket)

    def tell(self, rate_key: str, signals: Sequence[Signal]) -> None:
        """Tell the ledger what the source said, now or when it is back in reach."""
        pocket = self._pockets.get(rate_key)
        with pocket.door if pocket else nullcontext():
            if pocket:
                pocket.good_until = 0.0
                for signal in signals:
                    pocket.keep_silent(silence_of(signal))
            try:
                self._tell(rate_key, signals)
            except OUT_OF_REACH:
                self._later.extend((rate_key, signal) for signal in signals)

    def tend(self) -> None:
        """Give back what is not used, renew what is; a ledger out of reach is asked next time."""
        for rate_key, pocket in list(self._pockets.items()):
            with pocket.door:
                now = self._clock.monotonic()
                waiting = pocket.busy or len(pocket.line)
                idle = not waiting and now - pocket.used >= IDLE_SECONDS
                renew = pocket.busy and now - pocket.visited >= self._term.total_seconds() / 3
                if renew or (idle and pocket.holds_anything):
                    self._settle(rate_key, pocket)

    def close(self) -> None:
        """Give back everything that no request of this process needs any more."""
        for rate_key, pocket in list(self._pockets.items()):
            with pocket.door:
                if pocket.holds_anything:
                    self._settle(rate_key, pocket)

    def _place(self, budget: Budget, at: datetime, now: datetime) -> Place:
        facts = self.pocket(budget).facts
        assert facts is not None  # a visit that grants fills the pocket
        if at > now:
            facts = replace(facts, decision=Decision.WAIT)
        return Place(at, facts, at - now)

    def _catch_up(self) -> None:
        """Tell the ledger what it could not be told while it was out of reach."""
        while self._later:
            rate_key, signal = self._later[0]
            self._tell(rate_key, (signal,))
            self._later.pop(0)

    def _tell(self, rate_key: str, signals: Sequence[Signal]) -> None:
        pocket = self._pockets.get(rate_key)
        limits = pocket.limits if pocket else None
        self._desk.tell(rate_key, limits, signals, self._clock.now())

    def _settle(self, rate_key: str, pocket: Pocket) -> None:
        try:
            self._desk.settle(rate_key, pocket, self._clock.monotonic())
        except OUT_OF_REACH:
            return  # what we hold ends with its term
        pocket.empty(pocket.busy)
