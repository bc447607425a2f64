"""From what a pack declares to what the gate is asked with. Pure."""

from datetime import timedelta
from decimal import Decimal

from patra_ingest.rate.bucket import Limits, Manners
from patra_ingest.rate.permit import Budget
from patra_ingest.spec.snapshot import RateSpec

_POLITE = Manners()


def budgets_of(rate: RateSpec) -> tuple[Budget, ...]:
    """Return every budget that a request spends from, the endpoint's own first."""
    manners = _manners(rate)
    own = Limits(_per_second(rate), rate.burst, rate.in_flight, manners)
    others = (
        Budget(also.key, Limits(also.per_second, also.burst, also.in_flight, manners), rate.cost)
        for also in rate.also
    )
    return (Budget(rate.key, own, rate.cost), *others)


def _per_second(rate: RateSpec) -> Decimal:
    """Return the rate, no faster than one request per `min_interval`."""
    declared = Decimal(str(rate.per_second))
    if rate.min_interval is None:
        return declared
    return min(declared, 1 / Decimal(str(rate.min_interval.total_seconds())))


def _manners(rate: RateSpec) -> Manners:
    demote = _POLITE.demote if rate.demote is None else Decimal(str(rate.demote))
    cool_down = rate.cool_down or _POLITE.cool_down
    return Manners(demote, cool_down, rate.warm_up or timedelta(0))
