"""Where a process asks for its share: one transaction over the rows of the keys it wants.

The rows are locked in the order of their keys, so nobody waits in a circle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import Connection

from patra_ingest.ledger import rates
from patra_ingest.ledger.db import Db
from patra_ingest.model.rates import SharedBucket
from patra_ingest.rate.bucket import Limits, Wait, price_of
from patra_ingest.rate.permit import Budget, Decision, Facts
from patra_ingest.rate.pocket import Pocket
from patra_ingest.rate.sharing import (
    Ask,
    Granted,
    flight_limit,
    keep_for,
    new_bucket,
    refresh,
    settle,
    visit,
)
from patra_ingest.rate.signals import Signal, Silence, Words, after


@dataclass(frozen=True)
class _Key:
    """One key while it is decided about."""

    budget: Budget
    pocket: Pocket
    found: SharedBucket
    row: SharedBucket


@dataclass(frozen=True)
class Desk:
    """The gate's transactions."""

    db: Db
    holder: str
    term: timedelta

    def ask(
        self,
        wanted: Sequence[tuple[Budget, Pocket]],
        book_ahead: timedelta,
        moment: float,
        may_lease: bool,
    ) -> tuple[datetime, Wait | datetime]:
        """Ask for one request under all keys: they all grant it, or none does.

        Returns the ledger's time, and the moment of the grant or the wait. The caller holds the
        pockets' doors; what is granted is in them afterwards.
        """
        with self.db.write() as tx:
            keys, now = self._lock(tx, wanted)
            asks = [self._ask(key, now + book_ahead, moment, may_lease) for key in keys]
            answers = _visit_all(keys, asks, now)
            waits = [answer for _, answer in answers if isinstance(answer, Wait)]
            for key, ask, (row, answer) in zip(keys, asks, answers, strict=True):
                kept = row if not waits or isinstance(answer, Wait) else settle(key.row, ask, now)
                if kept != key.found:
                    rates.save_bucket(tx, kept, now)
        for key, (row, answer) in zip(keys, answers, strict=True):
            self._hand_over(key, row, answer, moment, granted=not waits)
        if waits:
            return now, max(waits, key=lambda wait: wait.until)
        return now, max(answer.at for _, answer in answers if isinstance(answer, Granted))

    def settle(self, rate_key: str, pocket: Pocket, moment: float) -> None:
        """Give back all but the requests in flight, and say that we are alive."""
        with self.db.write() as tx:
            locked = rates.lock_bucket(tx, rate_key)
            if locked is None:
                return
            found, now = locked[0], locked[1] or self.db.now(tx)
            row = refresh(found, pocket.limits, now)
            ask = self._asking(pocket, Decimal(0), now)
            rates.save_bucket(tx, settle(row, ask, now), now)
        pocket.owed = Decimal(0)
        pocket.visited, pocket.uses = moment, 0

    def tell(
        self, rate_key: str, known: Limits | None, signals: Sequence[Signal], clock_now: datetime
    ) -> None:
        """Write down what the source said; instants in signals are by the caller's clock."""
        with self.db.write() as tx:
            locked = rates.lock_bucket(tx, rate_key)
            if locked is None and known is not None:  # first used while the ledger was away
                locked = self._create(tx, rate_key, known)
            if locked is None:
                raise ValueError(f"no permit was ever acquired for the rate key {rate_key!r}")
            found, now = locked[0], locked[1] or self.db.now(tx)
            limits = known or Limits(found.configured_rate, found.burst, found.in_flight_limit)
            row = refresh(found, limits, now)
            for signal in signals:
                theirs = _by_ledger(signal, now - clock_now)
                row = after(row, theirs, limits.manners, self.holder, now)
            rates.save_bucket(tx, row, now)

    def _lock(
        self, tx: Connection, wanted: Sequence[tuple[Budget, Pocket]]
    ) -> tuple[list[_Key], datetime]:
        keys, now = [], None
        for budget, pocket in wanted:
            locked = rates.lock_bucket(tx, budget.rate_key)
            if locked is None:
                locked = self._create(tx, budget.rate_key, budget.limits)
            keys.append((budget, pocket, locked[0]))
            now = locked[1] or self.db.now(tx)  # after the lock: waiting for it takes time, too
        assert now is not None
        return [
            _Key(budget, pocket, row, refresh(row, budget.limits, now))
            for budget, pocket, row in keys
        ], now

    def _create(
        self, tx: Connection, rate_key: str, limits: Limits
    ) -> tuple[SharedBucket, datetime | None]:
        rates.create_bucket(tx, new_bucket(rate_key, limits, self.db.now(tx)))
        created = rates.lock_bucket(tx, rate_key)
        assert created is not None
        return created

    def _ask(self, key: _Key, latest: datetime, moment: float, may_lease: bool) -> Ask:
        pocket = key.pocket
        ask = self._asking(pocket, price_of(key.budget.cost), latest)
        wish = pocket.wish(moment) if may_lease else 0
        return replace(ask, wish=wish, turn_over=pocket.turn_over(moment))

    def _asking(self, pocket: Pocket, price: Decimal, latest: datetime) -> Ask:
        return Ask(
            holder=self.holder,
            price=price,
            latest=latest,
            term=self.term,
            busy=pocket.busy,
            left=pocket.tokens,
            owed=pocket.owed,
        )

    def _hand_over(
        self, key: _Key, row: SharedBucket, answer: Wait | Granted, moment: float, granted: bool
    ) -> None:
        """Put into the pocket what the ledger now believes to be there."""
        pocket = key.pocket
        pocket.owed = Decimal(0)
        pocket.facts = _facts(row, Decision.ALLOW)
        if not granted:
            pocket.empty(pocket.busy)
            if not pocket.busy:
                pocket.new_turn()
            return
        assert isinstance(answer, Granted)
        if pocket.turn_over(moment):
            pocket.new_turn()
        held = row.holders.get(self.holder)
        pocket.fill(answer.tokens, held.places if held else 0, pocket.facts, moment)
        pocket.begin(moment)


def _visit_all(
    keys: Sequence[_Key], asks: Sequence[Ask], now: datetime
) -> list[tuple[SharedBucket, Wait | Granted]]:
    """Ask every key; where one has to wait for its token, the others keep theirs until then."""
    answers = [
        visit(key.row, ask, key.budget.limits.manners, now)
        for key, ask in zip(keys, asks, strict=True)
    ]
    moments = [answer.at for _, answer in answers if isinstance(answer, Granted)]
    if len(moments) < len(keys) or len(set(moments)) == 1:
        return answers
    at = max(moments)
    return [
        (row, answer)
        if isinstance(answer, Wait) or answer.at == at
        else (keep_for(key.row, row, ask, key.budget.limits.manners, now, at), Granted(at, 0))
        for key, ask, (row, answer) in zip(keys, asks, answers, strict=True)
    ]


def _facts(row: SharedBucket, decision: Decision) -> Facts:
    return Facts(decision, row.rate_per_second, row.burst, flight_limit(row), row.cool_down_until)


def _by_ledger(signal: Signal, ahead: timedelta) -> Signal:
    """Return the signal with its instants moved from the caller's clock to the ledger's."""
    match signal:
        case Silence(until=until):
            return replace(signal, until=until + ahead)
        case Words(told=told) if told.resets_at is not None:
            return Words(replace(told, resets_at=told.resets_at + ahead))
    return signal
