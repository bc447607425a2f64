"""Quotas as values: an amount per period, the windows it is counted in, and what was taken.

Amounts are decimals with at most six digits after the point, which is what the ledger keeps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from zoneinfo import ZoneInfo

from patra_ingest.model.window import Window, ceil_to, floor_to

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_NOTHING = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)
_STEP = Decimal("0.000001")

# Whose amount, and when: the key of one row of the quota book.
QuotaWindow = tuple[str, Window]


@dataclass(frozen=True, order=True)
class QuotaRule:
    """At most `limit` under `key` in each window of `period`, counted by the zone's calendar."""

    key: str
    limit: Decimal
    period: timedelta
    zone: str = "UTC"


@dataclass(frozen=True)
class Usage:
    """One quota window: what it allows, what slices have spoken for, what is gone."""

    limit: Decimal
    reserved: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)

    @property
    def taken(self) -> Decimal:
        """What nobody else may plan with."""
        return self.reserved + self.spent


# A window that is not in it is unused.
Usages = Mapping[QuotaWindow, Usage]


@dataclass(frozen=True, order=True)
class Reservation:
    """What a slice speaks for in one quota window."""

    key: str
    window: Window
    amount: Decimal


@dataclass(frozen=True, order=True)
class Charge:
    """What a request takes from one quota window, and what that window allows."""

    key: str
    window: Window
    limit: Decimal
    amount: Decimal


def floor_amount(amount: Decimal | float) -> Decimal:
    """Return an amount as the ledger keeps it, rounded down; 0.1 is one tenth."""
    return Decimal(str(amount)).quantize(_STEP, rounding=ROUND_FLOOR)


def ceil_amount(amount: Decimal | float) -> Decimal:
    """Return an amount as the ledger keeps it, rounded up; 0.1 is one tenth."""
    return Decimal(str(amount)).quantize(_STEP, rounding=ROUND_CEILING)


def window_at(rule: QuotaRule, instant: datetime) -> Window:
    """Return the rule's window around `instant`; the windows of a rule tile time.

    Whole days begin at the midnights of the zone, and parts that fill a day evenly are counted
    from there, also on days of 23 and 25 hours. Any other period is counted from the epoch.
    """
    if not _follows_the_calendar(rule.period):
        start = EPOCH + (instant - EPOCH) // rule.period * rule.period
        return Window(start, start + rule.period)
    zone = ZoneInfo(rule.zone)
    start = floor_to(instant, rule.period, zone)
    return Window(start, ceil_to(start + _MICROSECOND, rule.period, zone))


def _follows_the_calendar(period: timedelta) -> bool:
    return period % _DAY == _NOTHING or _DAY % period == _NOTHING


def charges_at(rules: Iterable[QuotaRule], instant: datetime, amount: Decimal) -> list[Charge]:
    """Return what a request of `amount` takes at `instant`, sorted; each window is charged once."""
    limits: dict[QuotaWindow, Decimal] = {}
    for rule in rules:
        place = (rule.key, window_at(rule, instant))
        limits[place] = min(rule.limit, limits.get(place, rule.limit))
    price = ceil_amount(amount)
    return sorted(Charge(key, window, limit, price) for (key, window), limit in limits.items())
