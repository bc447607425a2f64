"""How a request passes the gate: a permit, its price, and what the answer tells everybody else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.errors import CredentialRefused, IngestError, Throttled, TransientError
from patra_ingest.executor.decoding import BodyUnreadable, path
from patra_ingest.executor.leased import Work
from patra_ingest.executor.pay import Purse
from patra_ingest.ledger.db import Db
from patra_ingest.model.quotas import Charge
from patra_ingest.rate.budgets import budgets_of
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.permit import Permit
from patra_ingest.rate.signals import Complaint, Cost, Signal, Silence, Words
from patra_ingest.rate.told import Told, read_told
from patra_ingest.spec.quotas import key_of
from patra_ingest.spec.snapshot import CallSpec, RateSpec
from patra_ingest.spec.words import Action
from patra_ingest.transport.messages import Response

# Longer pauses are spent in the queue, not on a lane.
LONGEST_WAIT = timedelta(seconds=60)
_TOO_MANY = 429
_BROKEN = range(500, 600)
# The same words about our budget are written down again after this time.
_REPEAT_SECONDS = 5.0
_PLENTY = 10
_NOTHING = Decimal(0)
_MOST = Decimal(10**15)  # more than anybody charges, and less than the ledger's columns hold


@dataclass(frozen=True)
class Passed:
    """A request that may leave: its permit, and what was paid for it."""

    call: CallSpec
    permit: Permit
    charges: tuple[Charge, ...] = ()
    used: str | None = None  # the credential it is signed with

    @property
    def told_key(self) -> str:
        """The key of the budget that the answer speaks of when it says how much is left."""
        own = key_of(self.call.rate, self.used)
        return own if any(one.key == own for one in self.charges) else self.call.rate.key


class Gatekeeper:
    """Lets the requests of one worker through, one permit each."""

    def __init__(self, db: Db, clock: Clock, gate: RateGate) -> None:
        self._clock = clock
        self._gate = gate
        self._purse = Purse(db, clock)
        self._heard: dict[str, tuple[Told, float]] = {}

    @contextmanager
    def permit(self, work: Work, call: CallSpec, used: str | None) -> Iterator[Passed]:
        """Hold a permit that is paid for; Throttled when none can be had soon."""
        deadline = self._clock.now() + LONGEST_WAIT
        with self._gate.permit_all(budgets_of(call.rate), deadline, work.stop) as permit:
            # Last: who has to be silent pays for nothing.
            yield Passed(call, permit, tuple(self._purse.pay(work, call, used)), used)

    def report(
        self,
        work: Work,
        passed: Passed,
        response: Response,
        meaning: IngestError | Action | None,
        tree: Callable[[], Any],
    ) -> dict[str, Any]:
        """Tell every process what the answer means for our speed; return what the ledger keeps.

        Called while the permit is held: nobody slips in ahead of a silence.
        """
        rate = passed.call.rate
        told = (
            read_told(rate.headers, response.headers, response.received_at)
            if rate.headers
            else Told()
        )
        signals = [*self._words(rate, told), *_complaints(rate, response, meaning)]
        more = self._settle(work, passed, told, _cost(rate, told, tree, meaning))
        if more:
            signals.append(Cost(more))
        if signals:
            self._gate.feedback(rate.key, *signals)
        # Nobody knows whose budget is meant: silence, and what was spent, are for all of them.
        shared = [signal for signal in signals if isinstance(signal, Silence | Cost)]
        for other in passed.permit.budgets[1:]:
            if shared:
                self._gate.feedback(other.rate_key, *shared)
        quota = _quota_digest(told)
        return {"rate": passed.permit.digest(), **({"quota": quota} if quota else {})}

    def silence(self, call: CallSpec, until: datetime, why: str) -> None:
        """Keep everybody away from the source for a while."""
        self._gate.feedback(call.rate.key, Silence(until, why))

    def _words(self, rate: RateSpec, told: Told) -> list[Signal]:
        """Return the words worth writing down: new ones, and now and then the same again."""
        if told.says_nothing:
            return []
        known, at = self._heard.get(rate.key, (Told(), -_REPEAT_SECONDS))
        same = (known.rate_per_second, known.in_flight) == (told.rate_per_second, told.in_flight)
        scarce = told.remaining is not None and told.remaining < _PLENTY
        now = self._clock.monotonic()
        if same and not scarce and now - at < _REPEAT_SECONDS:
            return []
        self._heard[rate.key] = (told, now)
        return [Words(told)]

    def _settle(self, work: Work, passed: Passed, told: Told, cost: Decimal | None) -> Decimal:
        """Charge what the answer really cost; return the difference to what was paid."""
        paid = Decimal(str(passed.call.rate.cost))
        if cost is not None and cost != paid:
            self._purse.settle(work, passed.charges, cost)
        self._purse.believe(passed.charges, passed.told_key, told)
        return _NOTHING if cost is None else cost - paid


def _complaints(
    rate: RateSpec, response: Response, meaning: IngestError | Action | None
) -> Iterator[Signal]:
    """Yield what a refusal means: slower for all, silence for all, or a budget that is gone."""
    throttled = meaning if isinstance(meaning, Throttled) and meaning.for_all else None
    gone = throttled and throttled.retry_at - response.received_at >= rate.park_after
    if isinstance(meaning, CredentialRefused):  # its budget is spent, or it is no good
        return
    failed = isinstance(meaning, TransientError) and response.status in _BROKEN
    if (response.status == _TOO_MANY or throttled or failed) and not gone:
        yield Complaint(f"HTTP_{response.status}")
    if throttled:
        yield Silence(throttled.retry_at, "BUDGET_GONE" if gone else "RETRY_AFTER")


def _cost(
    rate: RateSpec, told: Told, tree: Callable[[], Any], meaning: IngestError | Action | None
) -> Decimal | None:
    """Return what the answer says that it cost; None if it does not say."""
    if told.cost is not None:
        return told.cost
    if rate.cost_path is None or isinstance(meaning, IngestError):
        return None
    try:
        found = Decimal(str(path(rate.cost_path).first(tree())))
    except (InvalidOperation, BodyUnreadable):
        return None
    return found if found.is_finite() and 0 <= found <= _MOST else None


def _quota_digest(told: Told) -> dict[str, Any]:
    said = {
        "remaining": None if told.remaining is None else str(told.remaining),
        "limit": None if told.limit is None else str(told.limit),
        "windowReset": told.resets_at,
    }
    return {name: value for name, value in said.items() if value is not None}
