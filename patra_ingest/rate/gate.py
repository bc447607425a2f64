"""The gate every request passes: `acquire` hands out a `Permit`, or says when to come back.

All processes share one bucket per rate key in the ledger. Inside, time is the ledger's clock;
instants that callers hand in or get back as `retry_at` are by their own clock.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from uuid import uuid4

from patra_ingest.clock import Clock
from patra_ingest.errors import NotSent
from patra_ingest.ledger import rates
from patra_ingest.ledger.db import Db
from patra_ingest.rate.bucket import Amount, Limits, Wait, WaitReason
from patra_ingest.rate.estimate import Estimate, estimate
from patra_ingest.rate.fallback import Alone
from patra_ingest.rate.patience import Patience
from patra_ingest.rate.permit import Budget, Decision, Facts, Permit, Place, Seal
from patra_ingest.rate.pocket import Pocket
from patra_ingest.rate.share import OUT_OF_REACH, Share
from patra_ingest.rate.signals import Signal

# A token that comes within this time is booked and slept for: those who wait form a line.
BOOK_AHEAD = timedelta(seconds=5)
# Nobody sleeps longer without looking: a person may have raised the limits or ended the silence.
LONGEST_SLEEP = timedelta(seconds=30)
# A ledger that was out of reach is tried again after this time.
RETRY_SECONDS = 1.0
# Those who wait for the same moment do not come back in the same moment.
_SPREAD = (0.05, 0.15)
_WIDEST_SPREAD = timedelta(seconds=60)


class RateGate:
    """The shared budget, as one process sees it; `holder` names the process in the ledger.

    A tended gate keeps what it holds for its next requests; `tend` has to be called now and then.
    """

    def __init__(
        self,
        db: Db,
        clock: Clock,
        holder: str,
        permit_seconds: float = 120.0,  # a holder silent for longer is taken for dead
        tended: bool = False,
    ) -> None:
        self.db = db
        self.clock = clock
        self.holder = f"{holder}#{uuid4().hex[:6]}"  # two gates of one process are two
        self.permit_seconds = permit_seconds
        term = timedelta(seconds=permit_seconds)
        self._share = Share(db, clock, self.holder, term, tended)
        self._alone = Alone(clock)
        self._luck = Random()
        self._down_until = 0.0

    def acquire(
        self,
        rate_key: str,
        limits: Limits,
        cost: Amount = 1,
        deadline: datetime | None = None,
        stop: threading.Event | None = None,
    ) -> Permit:
        """Return a permit as soon as the key allows it.

        Raises NotSent, at once, when that cannot be before `deadline`, or when `stop` is set
        during the wait. A permit that needs no waiting is given in either case.
        """
        return self.acquire_all((Budget(rate_key, limits, cost),), deadline, stop)

    def acquire_all(
        self,
        budgets: Sequence[Budget],
        deadline: datetime | None = None,
        stop: threading.Event | None = None,
    ) -> Permit:
        """Return a permit for a request that spends from several keys, when all allow it."""
        began = self.clock.monotonic()
        wanted = tuple(budgets)
        patience = Patience(self.clock, deadline, stop)
        while True:
            place = self._share.try_take(wanted) or self._in_line(wanted, patience)
            if place is None:
                return self._without_ledger(wanted, patience, began)
            if self._may_start(wanted, place, patience):
                return Permit(wanted, place.at, self.clock.monotonic() - began, place.facts, Seal())

    def release(self, permit: Permit) -> None:
        """End the permit and give its place in flight back; safe to repeat."""
        permit.seal.break_it()
        if not permit.returned.break_it():
            return
        if permit.facts.decision is Decision.FALLBACK:
            self._alone.give_back(budget.rate_key for budget in permit.budgets)
        self._share.give_back(permit.budgets)

    @contextmanager
    def permit(
        self,
        rate_key: str,
        limits: Limits,
        cost: Amount = 1,
        deadline: datetime | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Permit]:
        """Acquire a permit and release it when the block ends, well or not."""
        with self.permit_all((Budget(rate_key, limits, cost),), deadline, stop) as permit:
            yield permit

    @contextmanager
    def permit_all(
        self,
        budgets: Sequence[Budget],
        deadline: datetime | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Permit]:
        """Acquire a permit for several keys and release it when the block ends, well or not."""
        permit = self.acquire_all(budgets, deadline, stop)
        try:
            yield permit
        finally:
            self.release(permit)

    def feedback(self, rate_key: str, *signals: Signal) -> None:
        """Tell every process what the source said or did; a ledger out of reach is told later."""
        self._share.tell(rate_key, signals)

    def estimate(self, rate_key: str, horizon: timedelta) -> Estimate | None:
        """Return what the key can still send within `horizon`; None for a key nobody used."""
        with self.db.read() as tx:
            row = rates.find_bucket(tx, rate_key)
            now = self.db.now(tx)
        return None if row is None else estimate(row, horizon, now)

    def tend(self) -> None:
        """Give back what is not used, and renew what is."""
        self._share.tend()

    def close(self) -> None:
        """Give back everything that no request of this process needs any more."""
        self._share.close()

    def _in_line(self, budgets: tuple[Budget, ...], patience: Patience) -> Place | None:
        """Wait for our turn and then for a grant; None when the ledger cannot be asked."""
        pocket = self._share.pocket(budgets[0])
        with pocket.line.turn(patience.give_up):
            while self.clock.monotonic() >= self._down_until:
                place = self._share.try_take(budgets)
                if place is not None:
                    return place
                try:
                    now, answer = self._share.visit(budgets, patience.at_most(BOOK_AHEAD))
                except OUT_OF_REACH:
                    self._down_until = self.clock.monotonic() + RETRY_SECONDS
                    break
                if isinstance(answer, Place):
                    return answer
                self._sleep(pocket, answer, answer.until - now, patience)
        return None

    def _sleep(self, pocket: Pocket, wait: Wait, pause: timedelta, patience: Patience) -> None:
        if wait.reason is not WaitReason.RATE:
            pause += min(pause * self._luck.uniform(*_SPREAD), _WIDEST_SPREAD)
        patience.give_up_after(pause, wait.reason)
        if wait.reason is WaitReason.IN_FLIGHT:
            # The next place that is free may be one of ours.
            self.clock.wait(pocket.freed, pause.total_seconds())
            return
        if wait.reason is WaitReason.RATE and pause > BOOK_AHEAD:
            # Too far to book yet. Half-way into the bookable time, so that many who wait
            # do not all come back for every single token.
            pause -= BOOK_AHEAD / 2
        if patience.is_stopped(min(pause, LONGEST_SLEEP)):
            raise NotSent(self.clock.now() + pause)

    def _may_start(self, budgets: tuple[Budget, ...], place: Place, patience: Patience) -> bool:
        """Sleep until the booked moment; False if the upstream asked for silence meanwhile."""
        if place.pause <= timedelta(0):
            return True
        stopped = patience.is_stopped(place.pause)
        if not stopped and not self._silenced(budgets, place.at):
            return True
        # The token is lost, which errs on the upstream's side; the place in flight is not.
        self._share.give_back(budgets)
        if stopped:
            raise NotSent(self.clock.now())
        return False

    def _silenced(self, budgets: tuple[Budget, ...], at: datetime) -> bool:
        try:
            with self.db.read() as tx:
                silences = [rates.silent_until(tx, budget.rate_key) for budget in budgets]
        except OUT_OF_REACH:
            return False
        return any(silence is not None and silence > at for silence in silences)

    def _without_ledger(
        self, budgets: tuple[Budget, ...], patience: Patience, began: float
    ) -> Permit:
        """Go on at a rate that is safe for one process alone, and remember what was spent."""
        silence = self._share.silent_until(budgets)
        while silence is not None and silence > self.clock.now():
            pause = silence - self.clock.now()
            patience.give_up_after(pause, WaitReason.COOL_DOWN)
            patience.pause(pause.total_seconds())
        rates_alone = {budget.rate_key: self._share.safe_rate(budget) for budget in budgets}
        self._alone.take(rates_alone, patience)
        self._share.spend_unasked(budgets)
        facts = Facts(Decision.FALLBACK, min(rates_alone.values()), Decimal(1), 1)
        waited = self.clock.monotonic() - began
        return Permit(budgets, self.clock.now(), waited, facts, Seal())
