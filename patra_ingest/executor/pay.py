"""What a request takes out of its quotas, before it leaves and after its answer has come."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from patra_ingest.clock import Clock
from patra_ingest.errors import (
    CredentialSpent,
    EndpointHalted,
    LedgerBusy,
    LedgerUnavailable,
    NotSent,
    PlanError,
)
from patra_ingest.executor.leased import Work
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.quotas import correct_spent, settle, try_spend
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.quotas import (
    Charge,
    QuotaRule,
    charges_at,
    charges_told,
    spending_share,
)
from patra_ingest.rate.told import Told
from patra_ingest.spec.quotas import key_of, rules_of
from patra_ingest.spec.snapshot import CallSpec

_NOTHING = Decimal(0)
_OUT_OF_REACH = (LedgerUnavailable, LedgerBusy)


@dataclass(frozen=True, eq=False)
class _Debt:
    """A request that left while the ledger was out of reach."""

    slice_id: SliceId
    charges: tuple[Charge, ...]  # of nothing
    cost: Decimal


class Purse:
    """Pays for the requests of one worker."""

    def __init__(self, db: Db, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._debts: list[_Debt] = []
        self._guard = threading.Lock()
        self._paying = threading.Lock()  # a debt is paid once

    def pay(self, work: Work, call: CallSpec, used: str | None = None) -> list[Charge]:
        """Take a request out of its quotas; Throttled until the one that refuses it ends.

        `used` is the credential that it is signed with: CredentialSpent if only that has no more.
        Without a ledger the request is paid when it is back.
        """
        rules = _rules_of(call, used)
        if not rules:
            return []
        cost = Decimal(str(call.rate.cost))
        try:
            return self._pay(work, rules, cost, key_of(call.rate, used))
        except _OUT_OF_REACH:
            self._owe(work, charges_at(rules, self._clock.now(), _NOTHING), cost)
            return []

    def settle(self, work: Work, charges: Sequence[Charge], cost: Decimal) -> None:
        """Charge what an answer really cost, beside what was paid for it."""
        if not charges:
            return
        try:
            with self._db.write() as tx:
                settle(tx, work.lease.slice_id, charges, cost, self._db.now(tx))
        except _OUT_OF_REACH:
            self._owe(work, charges, cost - charges[0].amount)

    def believe(self, charges: Sequence[Charge], rate_key: str, told: Told) -> None:
        """Leave no more in our books than the source says that there is."""
        if told.remaining is None:
            return
        meant = charges_told(charges, rate_key, told.limit, told.resets_at)
        if meant:
            # Out of reach: the source will say it again.
            with suppress(*_OUT_OF_REACH), self._db.write() as tx:
                correct_spent(tx, meant, told.remaining, self._db.now(tx))

    def _owe(self, work: Work, charges: Sequence[Charge], cost: Decimal) -> None:
        """Remember what has to be paid when the ledger is back."""
        nothing = tuple(replace(charge, amount=_NOTHING) for charge in charges)
        with self._guard:
            self._debts.append(_Debt(work.lease.slice_id, nothing, cost))

    def _pay(
        self, work: Work, rules: tuple[QuotaRule, ...], cost: Decimal, own_key: str
    ) -> list[Charge]:
        spec = work.plan.spec
        planning, operation = spec.planning, spec.operation
        share = spending_share(operation, planning.share_of(operation), planning.quota_margin)
        with self._paying, self._db.write() as tx:
            now = self._db.now(tx)
            debts = list(self._debts)
            for debt in debts:
                settle(tx, debt.slice_id, debt.charges, debt.cost, now)
            charges = charges_at(rules, now, cost)
            refusal = try_spend(tx, work.lease.slice_id, charges, now, share)
        with self._guard:
            self._debts = [debt for debt in self._debts if debt not in debts]
        if refusal is None:
            return charges
        if refusal.is_hard:
            work.healing.quota_hard_hits += 1
        else:
            work.healing.quota_soft_hits += 1
        kind = CredentialSpent if refusal.key == own_key else NotSent
        raise kind(refusal.end, refusal.reason)


def _rules_of(call: CallSpec, used: str | None) -> tuple[QuotaRule, ...]:
    try:
        return rules_of(call.rate, call.auth, used)
    except PlanError as error:  # the fault of this endpoint, and of no other (R10)
        raise EndpointHalted(str(error)) from error
