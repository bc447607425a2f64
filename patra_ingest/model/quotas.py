"""Quotas as values: an amount per period, the windows it is counted in, and what was taken.

Amounts are decimals with at most six digits after the point, which is what the ledger keeps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from zoneinfo import ZoneInfo

from patra_ingest.model.codes import Operation
from patra_ingest.model.window import Window, ceil_to, floor_to

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What is counted in shorter windows is full again so soon that nothing of it is kept back.
KEPT_FROM = timedelta(hours=1)
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


@dataclass(frozen=True)
class Refusal:
    """A quota window that did not pay, and when to come again.

    Hard: it is used up. Soft: what is left is kept for operations that come before ours.
    """

    key: str
    window: Window
    is_hard: bool

    @property
    def end(self) -> datetime:
        """When the window is over and the next one may pay."""
        return self.window.end

    @property
    def reason(self) -> str:
        """Why nothing was paid, in words."""
        if self.is_hard:
            return "the quota is used up"
        return "the rest of the quota is kept for more urgent operations"


def ceiling_share(share: float, margin: float) -> Decimal:
    """Return which part of a quota an operation may plan with."""
    return (1 - Decimal(str(margin))) * Decimal(str(share))


def spending_share(operation: Operation, share: float, margin: float) -> Decimal:
    """Return up to which part of a quota requests may go beyond what their slice has reserved.

    HARVEST comes first and goes up to the limit. The others stop where planning stops them.
    """
    return Decimal(1) if operation is Operation.HARVEST else ceiling_share(share, margin)


def soft_limit(limit: Decimal, window: Window, share: Decimal) -> Decimal:
    """Return what requests with this share may fill of a window that allows `limit`."""
    if share >= 1 or window.duration < KEPT_FROM:
        return limit
    return floor_amount(limit * share)


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


def charges_told(
    charges: Iterable[Charge], key: str, limit: Decimal | None, resets_at: datetime | None
) -> list[Charge]:
    """Return those charges whose windows a source speaks of when it says how much remains.

    They have the limit that it names; or there is only one under the key; or they end when the
    source says that its budget is full again. A budget that is full again before our window ends
    is another one. None: nobody can tell, so nothing is to be corrected.
    """
    own = [one for one in charges if one.key == key]
    if resets_at is not None:
        own = [one for one in own if one.window.end <= resets_at + _slack(one)]
    named = [one for one in own if one.limit == limit]
    if named or len(own) <= 1:
        return named or own
    return [one for one in own if resets_at and resets_at - _slack(one) <= one.window.end]


def _slack(charge: Charge) -> timedelta:
    return charge.window.duration / 10
