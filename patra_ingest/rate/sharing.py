"""Who may send next when many processes share one key: tokens, places in flight, turns. Pure.

A visit is one process asking for one request more. What it took along and did not use counts as
part of the burst, so over any span no more than `burst + rate × span` is sent, whoever sends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal

from patra_ingest.model.rates import Holder, SharedBucket
from patra_ingest.rate.bucket import (
    PLACE_POLL,
    BucketState,
    Grant,
    Limits,
    Manners,
    Wait,
    WaitReason,
    decide_ahead,
    refill,
    state_of,
)
from patra_ingest.rate.manners import forget_old_words, rise, speed, start_cold

# We go this much slower than we may: requests are squeezed together on their way to the source.
PACE = Decimal("0.98")
# ... and so much earlier may one of them arrive than it was meant to.
SQUEEZE_SECONDS = Decimal("0.05")
# A key that allows no more a second is asked for each request: a silence then reaches all at once.
SLOW_RATE = Decimal(50)
# Who waits for a place and is not heard of for so long has gone.
WAITING_TERM = timedelta(seconds=1)
_MOST_POLLS = 10
_NOTHING = Decimal(0)
_PRICE_STEP = Decimal("0.000001")


@dataclass(frozen=True)
class Ask:
    """What a process says when it comes for one request more."""

    holder: str
    price: Decimal
    latest: datetime  # a token that comes by then is booked and slept for
    term: timedelta  # how long it is believed to be alive without coming again
    busy: int = 0  # its requests in flight
    wish: int = 0  # tokens to take along
    left: Decimal = _NOTHING  # of those it took along before
    owed: Decimal = _NOTHING  # spent while the ledger was out of reach
    turn_over: bool = False  # it has had its quantum: others who wait come first


@dataclass(frozen=True)
class Granted:
    """The request may leave at `at`; `tokens` more may follow without asking."""

    at: datetime
    tokens: int


def new_bucket(rate_key: str, limits: Limits, now: datetime) -> SharedBucket:
    """Return a bucket nobody has taken from."""
    return SharedBucket(
        rate_key=rate_key,
        tokens=_capacity(limits.burst, limits.rate_per_second),
        refilled_at=now,
        rate_per_second=limits.rate_per_second,
        burst=limits.burst,
        in_flight_limit=limits.in_flight,
        configured_rate=limits.rate_per_second,
    )


def refresh(row: SharedBucket, limits: Limits, now: datetime) -> SharedBucket:
    """Return the bucket as it is now: what was earned, who is gone, which limits hold."""
    manners = limits.manners
    state = refill(state_of(row), paced(row, manners), now)
    rested = now - row.refilled_at
    row = replace(row, tokens=state.tokens, refilled_at=state.refilled_at)
    row = forget_old_words(start_cold(row, manners, rested, now), now)
    if limits != Limits(row.configured_rate, row.burst, row.in_flight_limit, manners):
        row = _following(row, limits)
    row = rise(row, manners, now)
    alive = {name: held for name, held in row.holders.items() if held.until > now}
    return row if len(alive) == len(row.holders) else replace(row, holders=alive)


def visit(
    row: SharedBucket, ask: Ask, manners: Manners, now: datetime
) -> tuple[SharedBucket, Granted | Wait]:
    """Grant one request, now or at a moment that is booked, or say when to come again.

    The row is as `refresh` left it. Whoever has to wait for a place stands in line for it.
    """
    row = _settled(row, ask)
    before = row.holders.get(ask.holder)
    places = allot_places(row, ask, now)
    limits = paced(row, manners, ask.holder)
    state, decision = decide_ahead(state_of(row), limits, ask.price, 0, now, ask.latest)
    too_dear = limits.burst < min(ask.price, _capacity(row.burst, speed(row, manners)))
    if isinstance(decision, Grant) and (places <= ask.busy or too_dear):
        until = now + PLACE_POLL * min(_MOST_POLLS, 1 + _older(row, ask, now))
        decision = Wait(until, WaitReason.IN_FLIGHT)
    if isinstance(decision, Wait):
        since = before.since if before else None
        if decision.reason is WaitReason.IN_FLIGHT and not ask.busy:
            since = since or now
        return _waiting(row, ask, since, now), decision
    extra = _taken_along(row, state, ask, limits)
    holders = dict(_others(row.holders, ask.holder))
    if extra or flight_limit(row) is not None:
        holders[ask.holder] = Holder(places, Decimal(extra), max(now, decision.at) + ask.term)
    return replace(
        row, tokens=state.tokens - extra, refilled_at=state.refilled_at, holders=holders
    ), Granted(decision.at, extra)


def keep_for(
    before: SharedBucket,
    after: SharedBucket,
    ask: Ask,
    manners: Manners,
    now: datetime,
    at: datetime,
) -> SharedBucket:
    """Return the row of a key that could grant earlier than `at`, when the request has to leave.

    The price stays in the bucket until then, so to speak: there is less room beside it, and the
    bound holds at every moment between. `before` is the row without the grant, `after` with it.
    """
    limits = paced(before, manners, ask.holder)
    earned = limits.rate_per_second * Decimal(str((at - now).total_seconds()))
    tokens = before.tokens + ask.left - ask.owed
    tokens = min(tokens - ask.price, limits.burst - ask.price - earned)
    return replace(after, tokens=tokens, refilled_at=before.refilled_at)


def settle(row: SharedBucket, ask: Ask, now: datetime) -> SharedBucket:
    """Take back what a process no longer needs: all but its requests in flight."""
    row = _settled(row, ask)
    held = {name: one for name, one in row.holders.items() if name != ask.holder}
    if ask.busy and flight_limit(row) is not None:
        held[ask.holder] = Holder(ask.busy, _NOTHING, now + ask.term)
    return replace(row, holders=held)


def allot_places(row: SharedBucket, ask: Ask, now: datetime) -> int:
    """Return how many places in flight the process has after this visit; `busy` means no new one.

    Who holds a place keeps it for his turn; then those who wait come first, the longest first.
    """
    target, limit = ask.busy + 1, flight_limit(row)
    if limit is None:
        return target
    others = _others(row.holders, ask.holder)
    free = limit - sum(held.places for held in others.values())
    mine = row.holders.get(ask.holder)
    if not any(held.since for held in others.values()):
        return max(ask.busy, min(max(target, mine.places if mine else 0), free))
    fair = max(1, limit // (len(others) + 1))
    kept = 0 if ask.turn_over or mine is None else min(mine.places, fair)
    return max(ask.busy, min(target, max(min(kept, free), free - _older(row, ask, now))))


def flight_limit(row: SharedBucket) -> int | None:
    """Return how many requests may be open at once: the configured number, or what we were told."""
    told = (row.told or {}).get("inFlight")
    known = [limit for limit in (row.in_flight_limit, told) if limit is not None]
    return max(1, min(known)) if known else None


def paced(row: SharedBucket, manners: Manners, holder: str = "") -> Limits:
    """Return what we ourselves keep to: a little slower, and less the tokens others took along."""
    rate = speed(row, manners)
    pockets = sum((one.tokens for one in _others(row.holders, holder).values()), _NOTHING)
    room = max(_capacity(row.burst, rate) - pockets, min(row.burst, Decimal(1)))
    return Limits(max(rate * PACE, Decimal("0.000000001")), room, None)


def _capacity(burst: Decimal, rate: Decimal) -> Decimal:
    room = max(min(burst, Decimal(1)), burst - rate * SQUEEZE_SECONDS)
    return room.quantize(_PRICE_STEP, rounding=ROUND_FLOOR)  # as a bucket keeps it


def _following(row: SharedBucket, limits: Limits) -> SharedBucket:
    """Return the row under new limits; what was earned so far was earned under the old ones."""
    rate = limits.rate_per_second
    if row.rate_per_second < row.configured_rate:
        rate = min(rate, row.rate_per_second)  # it was cut: a new limit is no reason to hurry
    return replace(
        row,
        tokens=min(row.tokens, _capacity(limits.burst, limits.rate_per_second)),
        rate_per_second=rate,
        configured_rate=limits.rate_per_second,
        burst=limits.burst,
        in_flight_limit=limits.in_flight,
    )


def _settled(row: SharedBucket, ask: Ask) -> SharedBucket:
    """Put back what was taken along and not used; take what was spent out of reach."""
    if not ask.left and not ask.owed:
        return row
    return replace(row, tokens=row.tokens + ask.left - ask.owed)


def _taken_along(row: SharedBucket, state: BucketState, ask: Ask, limits: Limits) -> int:
    if not ask.wish or limits.rate_per_second <= SLOW_RATE:
        return 0
    others = _others(row.holders, ask.holder).values()
    if any(one.since for one in others):  # somebody waits for what we would take along
        return 0
    pockets = sum((one.tokens for one in others), _NOTHING)
    room = min(state.tokens, row.burst / 2 - pockets)
    return max(0, min(ask.wish, int(room)))


def _waiting(row: SharedBucket, ask: Ask, since: datetime | None, now: datetime) -> SharedBucket:
    held = dict(_others(row.holders, ask.holder))
    if ask.busy or since is not None:
        term = ask.term if ask.busy else WAITING_TERM
        held[ask.holder] = Holder(ask.busy, _NOTHING, now + term, since)
    return replace(row, holders=held)


def _older(row: SharedBucket, ask: Ask, now: datetime) -> int:
    """Count the processes that have waited for a place for longer than this one."""
    mine = row.holders.get(ask.holder)
    new = mine is None or mine.since is None
    rank = (now if mine is None or mine.since is None else mine.since, new, ask.holder)
    others = _others(row.holders, ask.holder).items()
    return sum(1 for name, held in others if held.since and (held.since, False, name) < rank)


def _others(holders: Mapping[str, Holder], holder: str) -> Mapping[str, Holder]:
    return {name: held for name, held in holders.items() if name != holder}
