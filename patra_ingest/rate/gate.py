"""The gate every request passes: `acquire` hands out a `Permit`, or says when to come back.

All processes share one bucket per rate key in the ledger. Inside, time is the ledger's clock;
instants that callers hand in or get back as `retry_at` are by their own clock.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import uuid4

from sqlalchemy import Connection

from patra_ingest.clock import Clock
from patra_ingest.errors import Throttled
from patra_ingest.ledger import rates
from patra_ingest.ledger.db import Db
from patra_ingest.rate.bucket import (
    Amount,
    BucketState,
    Grant,
    Limits,
    Wait,
    WaitReason,
    decide_ahead,
    full,
    price_of,
    refill,
)

# A token that comes within this time is booked and slept for: those who wait form a line.
BOOK_AHEAD = timedelta(seconds=5)
# Nobody sleeps longer without looking: a person may have raised the limits or ended the silence.
LONGEST_SLEEP = timedelta(seconds=30)


class _Seal:
    """What only the gate can put on a permit; it breaks once."""

    def __init__(self) -> None:
        self._broken = threading.Lock()

    def break_it(self) -> bool:
        """True the first time, False ever after."""
        return self._broken.acquire(blocking=False)


@dataclass(frozen=True)
class Permit:
    """Leave to send one request. Only `RateGate.acquire` makes one that can be used."""

    permit_id: str
    rate_key: str
    cost: Decimal
    limits: Limits  # what held at that moment
    granted_at: datetime  # by the ledger's clock
    expires_at: datetime | None  # None: the key has no in-flight limit, no place is held
    waited_seconds: float
    _seal: _Seal = field(repr=False, compare=False)

    def use(self) -> None:
        """Use the permit up; raise if it was used or released before, or is not the gate's."""
        if not isinstance(self._seal, _Seal):
            raise TypeError(f"{self} was not handed out by a rate gate")
        if not self._seal.break_it():
            raise RuntimeError(
                f"{self} was used or released before; acquire a new one for each request"
            )


@dataclass(frozen=True)
class _Place:
    """A grant written to the ledger, before its holder has slept until `at`."""

    permit_id: str
    at: datetime
    expires_at: datetime | None
    limits: Limits


@dataclass(frozen=True)
class _Tried:
    """One look at the bucket: the time and the deadline by the ledger's clock, and the answer."""

    now: datetime
    latest: datetime | None
    outcome: Wait | _Place


@dataclass(frozen=True)
class RateGate:
    """The shared budget, as one worker sees it; `holder` names the worker in the ledger."""

    db: Db
    clock: Clock
    holder: str
    permit_seconds: float = 120.0  # a holder silent for longer is taken for dead

    def acquire(
        self,
        rate_key: str,
        limits: Limits,
        cost: Amount = 1,
        deadline: datetime | None = None,
        stop: threading.Event | None = None,
    ) -> Permit:
        """Return a permit as soon as the key allows it.

        Raises Throttled, at once, when that cannot be before `deadline`, or when `stop` is set
        during the wait. A permit that needs no waiting is given in either case.
        """
        began = self.clock.monotonic()
        price = price_of(cost)
        while True:
            tried = self._try(rate_key, limits, price, deadline)
            if isinstance(tried.outcome, Wait):
                self._sleep(tried.outcome, tried, stop)
            elif self._may_start(rate_key, tried.outcome, tried, stop):
                waited = self.clock.monotonic() - began
                return _permit(rate_key, price, tried.outcome, waited)

    def release(self, permit: Permit) -> None:
        """End the permit and give its place in flight back; safe to repeat."""
        permit._seal.break_it()
        self._give_back(permit.permit_id, permit.expires_at)

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
        permit = self.acquire(rate_key, limits, cost, deadline, stop)
        try:
            yield permit
        finally:
            self.release(permit)

    def feedback(self, rate_key: str, retry_at: datetime) -> None:
        """Keep every process silent on this key until `retry_at`: Retry-After always wins."""
        silence = retry_at - self.clock.now()
        with self.db.write() as tx:
            now = self.db.now(tx)
            if not rates.cool_down(tx, rate_key, now + silence, self.holder, now):
                raise ValueError(f"no permit was ever acquired for the rate key {rate_key!r}")

    def _try(
        self, rate_key: str, limits: Limits, price: Decimal, deadline: datetime | None
    ) -> _Tried:
        patience = None if deadline is None else deadline - self.clock.now()
        with self.db.write() as tx:
            found = rates.lock_bucket(tx, rate_key) or rates.create_bucket(
                tx, _new_row(rate_key, limits, self.db.now(tx))
            )
            now = self.db.now(tx)  # after the lock: waiting for it takes time, too
            latest = None if patience is None else now + patience
            row = _following(found, limits, now)
            holding = Limits(row.rate_per_second, row.burst, row.in_flight_limit)
            held = 0 if holding.in_flight is None else rates.count_in_flight(tx, rate_key, now)
            horizon = now + BOOK_AHEAD if latest is None else min(now + BOOK_AHEAD, latest)
            state, decision = decide_ahead(_state(row), holding, price, held, now, horizon)
            if isinstance(decision, Grant):
                row = replace(row, tokens=state.tokens, refilled_at=state.refilled_at)
            if row != found:
                rates.save_bucket(tx, row, now)
            if isinstance(decision, Wait):
                return _Tried(now, latest, decision)
            return _Tried(now, latest, self._take_place(tx, rate_key, price, holding, decision.at))

    def _take_place(
        self, tx: Connection, rate_key: str, price: Decimal, limits: Limits, at: datetime
    ) -> _Place:
        permit_id = uuid4().hex
        if limits.in_flight is None:
            return _Place(permit_id, at, None, limits)
        expires_at = at + timedelta(seconds=self.permit_seconds)
        rates.add_permit(
            tx, rates.PermitRow(permit_id, rate_key, self.holder, price, at, expires_at)
        )
        return _Place(permit_id, at, expires_at, limits)

    def _give_back(self, permit_id: str, expires_at: datetime | None) -> None:
        if expires_at is not None:
            with self.db.write() as tx:
                rates.drop_permit(tx, permit_id)

    def _sleep(self, wait: Wait, tried: _Tried, stop: threading.Event | None) -> None:
        pause = wait.until - tried.now
        if tried.latest is not None and wait.until > tried.latest:
            raise Throttled(self.clock.now() + pause)
        if wait.reason is WaitReason.RATE and pause > BOOK_AHEAD:
            # Too far to book yet. Half-way into the bookable time, so that many who wait
            # do not all come back for every single token.
            pause -= BOOK_AHEAD / 2
        if self._stopped(min(pause, LONGEST_SLEEP), stop):
            raise Throttled(self.clock.now() + pause)

    def _may_start(
        self, rate_key: str, place: _Place, tried: _Tried, stop: threading.Event | None
    ) -> bool:
        """Sleep until the booked moment; False if the upstream asked for silence meanwhile."""
        if place.at <= tried.now:
            return True
        stopped = self._stopped(place.at - tried.now, stop)
        if not stopped:
            with self.db.read() as tx:
                silence = rates.silent_until(tx, rate_key)
            if silence is None or silence <= place.at:
                return True
        # The token is lost, which errs on the upstream's side; the place in flight is not.
        self._give_back(place.permit_id, place.expires_at)
        if stopped:
            raise Throttled(self.clock.now())
        return False

    def _stopped(self, pause: timedelta, stop: threading.Event | None) -> bool:
        if stop is not None:
            return self.clock.wait(stop, pause.total_seconds())
        self.clock.sleep(pause.total_seconds())
        return False


def _permit(rate_key: str, price: Decimal, place: _Place, waited: float) -> Permit:
    return Permit(
        permit_id=place.permit_id,
        rate_key=rate_key,
        cost=price,
        limits=place.limits,
        granted_at=place.at,
        expires_at=place.expires_at,
        waited_seconds=waited,
        _seal=_Seal(),
    )


def _new_row(rate_key: str, limits: Limits, now: datetime) -> rates.BucketRow:
    bucket = full(limits, now)
    return rates.BucketRow(
        rate_key=rate_key,
        tokens=bucket.tokens,
        refilled_at=bucket.refilled_at,
        rate_per_second=limits.rate_per_second,
        burst=limits.burst,
        in_flight_limit=limits.in_flight,
        configured_rate=limits.rate_per_second,
    )


def _following(row: rates.BucketRow, limits: Limits, now: datetime) -> rates.BucketRow:
    """Return the row under `limits`; what was earned so far was earned under the old ones."""
    if limits == Limits(row.configured_rate, row.burst, row.in_flight_limit):
        return row
    before = Limits(row.rate_per_second, row.burst, row.in_flight_limit)
    earned = refill(_state(row), before, now)
    return replace(
        row,
        tokens=min(earned.tokens, limits.burst),
        refilled_at=earned.refilled_at,
        rate_per_second=limits.rate_per_second,
        configured_rate=limits.rate_per_second,
        burst=limits.burst,
        in_flight_limit=limits.in_flight,
    )


def _state(row: rates.BucketRow) -> BucketState:
    return BucketState(row.tokens, row.refilled_at, row.cool_down_until)
