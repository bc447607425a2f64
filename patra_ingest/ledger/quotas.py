"""The `ing_quota_window` and `ing_quota_reservation` tables: what is spoken for, what is spent.

Whoever changes a window, or a reservation in it, holds the lock of the window's row. Rows are
locked in the order of key and window, so nobody waits in a circle. A window that has no row yet
cannot be locked; so a planner first takes a row of its key that stands for all of them, and two
planners never sell the same quota. No function here commits: the caller owns the transaction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import Connection, text

from patra_ingest.errors import RequestRejected
from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.quota_rows import (
    USAGE,
    Held,
    insert_reservations,
    leave,
    list_held,
    lock_windows,
    locking,
    save_windows,
    spot_of,
    usage_of,
)
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.quotas import (
    EPOCH,
    Charge,
    QuotaWindow,
    Refusal,
    Reservation,
    Usage,
    Usages,
    ceil_amount,
    soft_limit,
)
from patra_ingest.model.window import Window

# Nobody spends in 1970: this row of a key is only there to be locked.
_WHOLE_KEY = Window(EPOCH, EPOCH + timedelta(microseconds=1))
_NOTHING = Decimal(0)
_WHOLE = Decimal(1)


def lock_usages(
    tx: Connection, windows: Iterable[tuple[str, Window, Decimal]], now: datetime
) -> dict[QuotaWindow, Usage]:
    """Return the usage of each (key, window, limit), locked; what is missing is made.

    A window whose limit has changed gets the new one; of two limits it gets the smaller.
    """
    limits: dict[QuotaWindow, Decimal] = {}
    for key, window, limit in windows:
        limits[key, window] = min(limit, limits.get((key, window), limit))
    found = lock_windows(tx, limits)
    usages = {spot: replace(usage, limit=limits[spot]) for spot, usage in found.items()}
    save_windows(tx, {spot: usage for spot, usage in usages.items() if usage != found[spot]}, now)
    return usages


# In the order of the index, which is the order in which everybody locks.
_BY_KEY = " WHERE rate_key = :key AND window_to > :since ORDER BY window_from, window_to"


def list_usages(tx: Connection, keys: Iterable[str], since: datetime) -> Usages:
    """Return every window of these keys that ends after `since`, locked, and lock the keys.

    Until `tx` ends no other planner gets past here for any of the keys. Only a request may still
    open a window that has no row: `lock_usages` of the windows around now keeps that out, too.
    """
    asked = sorted(set(keys))
    lock_windows(tx, {(key, _WHOLE_KEY): _NOTHING for key in asked})
    forced = " FORCE INDEX (uk_quota_window)" if tx.dialect.name == "mysql" else ""
    query = text(USAGE + forced + _BY_KEY + locking(tx))
    usages: dict[QuotaWindow, Usage] = {}
    for key in asked:
        rows = tx.execute(query, {"key": key, "since": instant_text(since)})
        usages.update((spot_of(row), usage_of(row)) for row in rows)
    return usages


def reserve(
    tx: Connection,
    slice_id: SliceId,
    reservations: Sequence[Reservation],
    limits: Mapping[QuotaWindow, Decimal],
    now: datetime,
) -> None:
    """Let a slice speak for what it will spend; to repeat this changes nothing.

    The caller has decided under `list_usages`. What it held in the same window is replaced, what
    it holds in others stays: to move a slice, free it first.
    """
    reserve_all(tx, {slice_id: reservations}, limits, now)


def reserve_all(
    tx: Connection,
    placed: Mapping[SliceId, Sequence[Reservation]],
    limits: Mapping[QuotaWindow, Decimal],
    now: datetime,
) -> None:
    """Do what `reserve` does for many slices, with each window written once."""
    wanted = {
        (slice_id, (item.key, item.window)): ceil_amount(item.amount)
        for slice_id, items in placed.items()
        for item in items
    }
    spots = {spot for _, spot in wanted}
    usages = lock_usages(tx, ((*spot, limits[spot]) for spot in spots), now)
    held = {(item.slice_id, item.spot): item for item in list_held(tx, placed)}
    more: dict[QuotaWindow, Decimal] = defaultdict(Decimal)
    for (slice_id, spot), amount in wanted.items():
        before = held.get((slice_id, spot))
        more[spot] += amount - (before.left if before else _NOTHING)
    save_windows(tx, _moved(usages, more), now)
    insert_reservations(tx, {at: amount for at, amount in wanted.items() if at not in held})
    leave(tx, {held[at].row_id: amount for at, amount in wanted.items() if at in held}, now)


def free(tx: Connection, slice_ids: Sequence[SliceId], now: datetime) -> None:
    """Give back what these slices have spoken for and not spent; safe to repeat."""
    seen = [item for item in list_held(tx, slice_ids) if item.left > 0]
    usages = lock_windows(tx, {item.spot: _NOTHING for item in seen})
    # Others may have changed them until the locks were ours; from here on nobody can.
    held = [item for item in list_held(tx, slice_ids) if item.spot in usages and item.left > 0]
    less: dict[QuotaWindow, Decimal] = defaultdict(Decimal)
    for item in held:
        less[item.spot] -= item.left
    save_windows(tx, _moved(usages, less), now)
    leave(tx, {item.row_id: _NOTHING for item in held}, now)


def try_spend(
    tx: Connection,
    slice_id: SliceId | None,
    charges: Sequence[Charge],
    now: datetime,
    share: Decimal = _WHOLE,
) -> Refusal | None:
    """Pay every charge and return None; or pay none and return the window that makes us wait.

    What the slice had reserved in a window may always be spent, and shrinks by as much. Beyond
    that all that is spent and spoken for stays within `share` of a window, or the refusal is soft.
    The window's own limit counts; that of the charge is for a window nobody has used.
    Raises RequestRejected for a charge that even an unused window could not pay.
    """
    prices = _prices(charges)
    usages = lock_windows(tx, {(one.key, one.window): one.limit for one in charges})
    held = [] if slice_id is None else list_held(tx, [slice_id])
    kept = {item: min(item.left, prices.get(item.spot, _NOTHING)) for item in held}
    own = {item.spot: part for item, part in kept.items()}
    refusals = [_refusal(at, usages[at], prices[at], own.get(at), share) for at in prices]
    refused = [refusal for refusal in refusals if refusal is not None]
    if refused:
        return max(refused, key=lambda refusal: (refusal.end, refusal.is_hard))
    _pay(tx, usages, prices, kept, now)
    return None


def settle(
    tx: Connection,
    slice_id: SliceId | None,
    charges: Sequence[Charge],
    cost: Decimal,
    now: datetime,
) -> None:
    """Charge the difference between what was paid and what the source says that it cost.

    The answer is there, so this is never refused: a window may be spent beyond its limit, and
    pays nothing more until it ends. What was paid too much is given back. Call this once for an
    answer, and before `correct_spent`.
    """
    prices = _prices(charges)
    more = {at: ceil_amount(cost) - price for at, price in prices.items()}
    usages = lock_windows(tx, {(one.key, one.window): one.limit for one in charges})
    held = [] if slice_id is None else list_held(tx, [slice_id])
    kept = {item: min(item.left, max(_NOTHING, more.get(item.spot, _NOTHING))) for item in held}
    _pay(tx, usages, more, kept, now)


def correct_spent(
    tx: Connection, charges: Sequence[Charge], remaining: Decimal, now: datetime
) -> bool:
    """Leave no more in these windows than the source says that there is; False if we knew.

    Others may spend from the same budget. When the source says that more is left than we think,
    ours stays. To repeat this changes nothing. `charges_told` says which windows it speaks of;
    they are those of the moment when the request was paid, not when it was answered: what a
    source says of yesterday must not empty today.
    """
    found = lock_windows(tx, {(one.key, one.window): one.limit for one in charges})
    least = {at: ceil_amount(max(_NOTHING, usage.limit - remaining)) for at, usage in found.items()}
    wrong = {at: usage for at, usage in found.items() if usage.spent < least[at]}
    save_windows(tx, {at: replace(use, spent=least[at]) for at, use in wrong.items()}, now)
    return bool(wrong)


def _prices(charges: Sequence[Charge]) -> dict[QuotaWindow, Decimal]:
    return {(charge.key, charge.window): ceil_amount(charge.amount) for charge in charges}


def _refusal(
    spot: QuotaWindow, usage: Usage, price: Decimal, own: Decimal | None, share: Decimal
) -> Refusal | None:
    """Return why a window does not pay, or None if it does; `own` is what the slice reserved."""
    key, window = spot
    if usage.spent + price > usage.limit:
        _require_payable(spot, usage, price)
        return Refusal(key, window, is_hard=True)
    beyond = price - (own or _NOTHING)
    soft = soft_limit(usage.limit, window, share)
    # A price above the soft limit would wait for ever: it may have a window for itself.
    if soft < usage.limit and beyond > 0 and usage.taken + beyond > max(soft, price):
        return Refusal(key, window, is_hard=False)
    return None


def _pay(
    tx: Connection,
    usages: Usages,
    prices: Mapping[QuotaWindow, Decimal],
    kept: Mapping[Held, Decimal],
    now: datetime,
) -> None:
    """Write what is spent, and by how much the reservations it came from have shrunk."""
    moved = _moved(usages, {item.spot: -part for item, part in kept.items()})
    paid = {at: max(_NOTHING, use.spent + prices[at]) for at, use in moved.items()}
    save_windows(tx, {at: replace(use, spent=paid[at]) for at, use in moved.items()}, now)
    leave(tx, {item.row_id: item.left - part for item, part in kept.items() if part}, now)


def _require_payable(spot: QuotaWindow, usage: Usage, price: Decimal) -> None:
    if price > usage.limit:
        key, window = spot
        raise RequestRejected(
            f"one request costs {price.normalize():f}, more than the {usage.limit.normalize():f}"
            f" that the quota of {key} allows in the whole of {window};"
            " raise the quota or lower the cost in the pack"
        )


def _moved(usages: Usages, by: Mapping[QuotaWindow, Decimal]) -> dict[QuotaWindow, Usage]:
    return {
        spot: replace(usage, reserved=max(_NOTHING, usage.reserved + by.get(spot, _NOTHING)))
        for spot, usage in usages.items()
    }
