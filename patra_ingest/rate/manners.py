"""How a rate falls when the source complains, how it rises again (AIMD), how it starts. Pure.

A complaint divides the rate by `demote`, once per cool-down however many requests it hit, and never
below a third of what is configured. After two quiet cool-downs the rate rises by a twentieth of the
configured rate, and again after each further one.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from math import ceil

from patra_ingest.model.rates import SharedBucket
from patra_ingest.model.window import parse_instant
from patra_ingest.rate.bucket import Manners

_LOWEST = Decimal("0.1")
_LOWEST_SHARE = Decimal("0.3")
_STEP_SHARE = Decimal("0.05")
_COLD_SHARE = Decimal(1) / 3
_STEP = Decimal("0.000000001")
# A key nobody used for so long starts cold again.
_COLD_AFTER = timedelta(minutes=1)
# What a source said of our budget counts for so long, unless it says it again.
_BELIEVED = timedelta(hours=1)


def lowest_rate(row: SharedBucket) -> Decimal:
    """Return the rate that complaints alone cannot push a key below."""
    return min(row.configured_rate, max(_LOWEST, row.configured_rate * _LOWEST_SHARE))


def highest_rate(row: SharedBucket) -> Decimal:
    """Return the rate the key rises to: what is configured, or less if the source said so."""
    told = (row.told or {}).get("ratePerSecond")
    return row.configured_rate if told is None else min(row.configured_rate, Decimal(str(told)))


def rise_step(row: SharedBucket) -> Decimal:
    """Return by how much the rate rises at a time."""
    return max(_LOWEST, row.configured_rate * _STEP_SHARE)


def cut(row: SharedBucket, manners: Manners, now: datetime) -> SharedBucket:
    """Lower the rate after a complaint, unless that was done within the last cool-down.

    The caller has let the key earn until now.
    """
    quiet_from = now + manners.cool_down
    if row.cut_at is not None and now < row.cut_at + manners.cool_down:
        return replace(row, raised_at=quiet_from)
    lowered = (row.rate_per_second / manners.demote).quantize(_STEP, rounding=ROUND_FLOOR)
    rate = min(row.rate_per_second, max(lowered, lowest_rate(row)))
    return replace(row, rate_per_second=rate, cut_at=now, raised_at=quiet_from)


def rise(row: SharedBucket, manners: Manners, now: datetime) -> SharedBucket:
    """Raise the rate by what was earned with quiet; the caller has let the key earn until now."""
    top = highest_rate(row)
    if row.rate_per_second >= top:
        return row if row.rate_per_second == top else replace(row, rate_per_second=top)
    since = row.raised_at or now
    steps = (now - since) // manners.cool_down if now > since else 0
    if steps == 0:
        return row if row.raised_at else replace(row, raised_at=now)
    rate = min(top, row.rate_per_second + steps * rise_step(row))
    return replace(row, rate_per_second=rate, raised_at=since + steps * manners.cool_down)


def recovery_time(configured: Decimal, cut_to: Decimal, share: Decimal, manners: Manners) -> float:
    """Return the seconds from the last complaint until the rate is back at `share` of configured.

    This is the promise that the numbers above make.
    """
    step = max(_LOWEST, configured * _STEP_SHARE)
    missing = max(Decimal(0), configured * share - cut_to)
    return (1 + ceil(missing / step)) * manners.cool_down.total_seconds()


def start_cold(
    row: SharedBucket, manners: Manners, rested: timedelta, now: datetime
) -> SharedBucket:
    """Return the row as it starts after a long rest: with one token, if the key warms up.

    The caller has let the key earn until now.
    """
    if not manners.warm_up:
        return row
    if row.warm_from is not None and rested < max(_COLD_AFTER, manners.warm_up):
        return row
    return replace(row, warm_from=now, tokens=min(row.tokens, Decimal(1)))


def forget_old_words(row: SharedBucket, now: datetime) -> SharedBucket:
    """Return the row without what the source said too long ago to be believed."""
    said_at = (row.told or {}).get("at")
    if said_at is None or now - parse_instant(said_at) < _BELIEVED:
        return row
    return replace(row, told=None)


def speed(row: SharedBucket, manners: Manners) -> Decimal:
    """Return the rate from the last refill on: slower in the first moments of a cold start."""
    if not manners.warm_up or row.warm_from is None:
        return row.rate_per_second
    age = max(timedelta(0), row.refilled_at - row.warm_from)
    if age >= manners.warm_up:
        return row.rate_per_second
    share = _COLD_SHARE + (1 - _COLD_SHARE) * Decimal(age / manners.warm_up)
    return max(_STEP, (row.rate_per_second * share).quantize(_STEP, rounding=ROUND_FLOOR))
