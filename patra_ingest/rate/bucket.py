"""The token bucket as arithmetic. Pure: the answer depends on the arguments and nothing else.

A key earns `rate_per_second` tokens a second up to `burst`; a request spends its cost.
Amounts are decimals in fixed steps and every rounding is against us, so over any span no
more than `burst + rate × span` is granted (`max(burst, cost) + …` if a cost exceeds the burst).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum

from patra_ingest.model.rates import SharedBucket

Amount = Decimal | float | int

# What the ledger's columns hold: rates and tokens finer than bursts and costs.
_STEP = Decimal("0.000000001")
_PRICE_STEP = Decimal("0.000001")
# A place in flight is given back at a moment nobody can foretell: ask again after this.
PLACE_POLL = timedelta(milliseconds=50)
_MICROSECOND = timedelta(microseconds=1)
_MILLION = 1_000_000


class WaitReason(StrEnum):
    """Why a request may not be sent yet."""

    RATE = "RATE"
    IN_FLIGHT = "IN_FLIGHT"
    COOL_DOWN = "COOL_DOWN"


@dataclass(frozen=True)
class Manners:
    """How a key gives way when the source complains, and how it starts."""

    demote: Decimal = Decimal(2)  # a complaint divides the rate by this
    cool_down: timedelta = timedelta(seconds=10)  # ... once in this time
    warm_up: timedelta = timedelta(0)  # a key that has rested reaches its rate after this time


_POLITE = Manners()


@dataclass(frozen=True, init=False)
class Limits:
    """What one rate key allows; floats are read as they are written (0.1 is one tenth)."""

    rate_per_second: Decimal
    burst: Decimal
    in_flight: int | None
    manners: Manners

    def __init__(
        self,
        rate_per_second: Amount,
        burst: Amount = 1,
        in_flight: int | None = None,
        manners: Manners = _POLITE,
    ) -> None:
        object.__setattr__(self, "manners", manners)
        object.__setattr__(self, "rate_per_second", _floor(rate_per_second, _STEP))
        object.__setattr__(self, "burst", _floor(burst, _PRICE_STEP))
        object.__setattr__(self, "in_flight", in_flight)
        if (
            self.rate_per_second <= 0
            or self.burst <= 0
            or (in_flight is not None and in_flight < 1)
        ):
            raise ValueError(f"limits that never let a request through: {self}")


@dataclass(frozen=True)
class BucketState:
    """What is left in the bucket at `refilled_at`, and until when the upstream wants silence."""

    tokens: Decimal
    refilled_at: datetime
    cool_down_until: datetime | None = None


@dataclass(frozen=True)
class Grant:
    """The request may be sent at `at`, not before."""

    at: datetime


@dataclass(frozen=True)
class Wait:
    """Not now; asking again before `until` is useless."""

    until: datetime
    reason: WaitReason


def state_of(row: SharedBucket) -> BucketState:
    """Return what the ledger keeps of a bucket."""
    return BucketState(row.tokens, row.refilled_at, row.cool_down_until)


def price_of(cost: Amount) -> Decimal:
    """Return `cost` as the ledger keeps it, rounded up."""
    price = Decimal(str(cost)).quantize(_PRICE_STEP, rounding=ROUND_CEILING)
    if price < 0:
        raise ValueError(f"a request cannot cost {cost}")
    return price


def full(limits: Limits, now: datetime) -> BucketState:
    """Return a bucket nobody has taken from."""
    return BucketState(limits.burst, now)


def refill(state: BucketState, limits: Limits, now: datetime) -> BucketState:
    """Add what was earned since the last refill; a clock that went back earns nothing.

    `refilled_at` never moves back either: the same second is not paid out twice.
    """
    if now <= state.refilled_at:
        return replace(state, tokens=min(state.tokens, limits.burst))
    elapsed = (now - state.refilled_at) // _MICROSECOND
    earned = limits.rate_per_second * elapsed / _MILLION
    tokens = _floor(min(state.tokens + earned, limits.burst), _STEP)
    return replace(state, tokens=tokens, refilled_at=now)


def decide(
    state: BucketState, limits: Limits, cost: Amount, in_flight: int, now: datetime
) -> tuple[BucketState, Grant | Wait]:
    """Grant `cost` at `now`, or say when to ask again; only a grant takes tokens.

    A cost above the burst waits for a full bucket and leaves it in debt:
    it is never stuck, and the requests after it pay the debt by waiting.
    """
    price = price_of(cost)
    filled = refill(state, limits, now)
    need = min(price, limits.burst)
    ready = _ready_at(filled, limits, need, now)
    silence = filled.cool_down_until
    if silence is not None and silence > now:
        return filled, Wait(max(silence, ready), WaitReason.COOL_DOWN)
    if filled.tokens < need:
        return filled, Wait(ready, WaitReason.RATE)
    if limits.in_flight is not None and in_flight >= limits.in_flight:
        return filled, Wait(now + PLACE_POLL, WaitReason.IN_FLIGHT)
    return replace(filled, tokens=filled.tokens - price), Grant(now)


def decide_ahead(
    state: BucketState,
    limits: Limits,
    cost: Amount,
    in_flight: int,
    now: datetime,
    latest: datetime,
) -> tuple[BucketState, Grant | Wait]:
    """Like `decide`, but a wait for tokens that ends by `latest` becomes a grant for that moment.

    The state then lies in the future, so whoever asks next is served after that: waiting
    requests form a line instead of racing for every token.
    """
    seen, decision = decide(state, limits, cost, in_flight, now)
    if not (isinstance(decision, Wait) and decision.reason is WaitReason.RATE):
        return seen, decision
    if decision.until > latest:
        return seen, decision
    booked, then = decide(state, limits, cost, in_flight, decision.until)
    return (booked, then) if isinstance(then, Grant) else (seen, decision)


def _ready_at(state: BucketState, limits: Limits, need: Decimal, now: datetime) -> datetime:
    missing = int((need - _floor(state.tokens, _STEP)) / _STEP)
    if missing <= 0:
        return now
    rate = int(limits.rate_per_second / _STEP)
    # Whole numbers, rounded up: one microsecond early would be one refused try more.
    microseconds = -(-missing * _MILLION // rate)
    return state.refilled_at + timedelta(microseconds=microseconds)


def _floor(amount: Amount, step: Decimal) -> Decimal:
    return Decimal(str(amount)).quantize(step, rounding=ROUND_FLOOR)
