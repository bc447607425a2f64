"""The `ing_quota_window` and `ing_quota_reservation` tables: what is spoken for, what is spent.

Whoever changes a window, or a reservation in it, holds the lock of the window's row. Rows are
locked in the order of key and window, so nobody waits in a circle. A window that has no row yet
cannot be locked; so a planner first takes a row of its key that stands for all of them, and two
planners never sell the same quota. No function here commits: the caller owns the transaction.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.errors import RequestRejected
from patra_ingest.ledger.db import Row, insert_missing, instant_text, read_instant
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.quotas import (
    EPOCH,
    Charge,
    QuotaWindow,
    Reservation,
    Usage,
    Usages,
    ceil_amount,
)
from patra_ingest.model.window import Window

# Nobody spends in 1970: this row of a key is only there to be locked.
_WHOLE_KEY = Window(EPOCH, EPOCH + timedelta(microseconds=1))
_NOTHING = Decimal(0)
_GROUP = 500


@dataclass(frozen=True)
class _Held:
    """What is left of one reservation."""

    row_id: int
    slice_id: SliceId
    spot: QuotaWindow
    left: Decimal


def lock_usages(
    tx: Connection, windows: Iterable[tuple[str, Window, Decimal]], now: datetime
) -> dict[QuotaWindow, Usage]:
    """Return the usage of each (key, window, limit), locked; what is missing is made.

    A window whose limit has changed gets the new one; of two limits it gets the smaller.
    """
    limits: dict[QuotaWindow, Decimal] = {}
    for key, window, limit in windows:
        limits[key, window] = min(limit, limits.get((key, window), limit))
    found = _lock(tx, limits)
    usages = {spot: replace(usage, limit=limits[spot]) for spot, usage in found.items()}
    _save(tx, {spot: usage for spot, usage in usages.items() if usage != found[spot]}, now)
    return usages


_USAGE = """
    SELECT rate_key, window_from, window_to, limit_amount, reserved_amount, spent_amount
      FROM ing_quota_window
"""
# In the order of the index, which is the order in which everybody locks.
_BY_KEY = " WHERE rate_key = :key AND window_to > :since ORDER BY window_from, window_to"


def list_usages(tx: Connection, keys: Iterable[str], since: datetime) -> Usages:
    """Return every window of these keys that ends after `since`, locked, and lock the keys.

    Until `tx` ends no other planner gets past here for any of the keys. Only a request may still
    open a window that has no row: `lock_usages` of the windows around now keeps that out, too.
    """
    asked = sorted(set(keys))
    _lock(tx, {(key, _WHOLE_KEY): _NOTHING for key in asked})
    forced = " FORCE INDEX (uk_quota_window)" if tx.dialect.name == "mysql" else ""
    query = text(_USAGE + forced + _BY_KEY + _locking(tx))
    usages: dict[QuotaWindow, Usage] = {}
    for key in asked:
        rows = tx.execute(query, {"key": key, "since": instant_text(since)})
        usages.update((_spot(row), _usage(row)) for row in rows)
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
    held = {(item.slice_id, item.spot): item for item in _list_held(tx, placed)}
    more: dict[QuotaWindow, Decimal] = defaultdict(Decimal)
    for (slice_id, spot), amount in wanted.items():
        before = held.get((slice_id, spot))
        more[spot] += amount - (before.left if before else _NOTHING)
    _save(tx, _moved(usages, more), now)
    _insert_reservations(tx, {at: amount for at, amount in wanted.items() if at not in held})
    _leave(tx, {held[at].row_id: amount for at, amount in wanted.items() if at in held}, now)


def free(tx: Connection, slice_ids: Sequence[SliceId], now: datetime) -> None:
    """Give back what these slices have spoken for and not spent; safe to repeat."""
    seen = [item for item in _list_held(tx, slice_ids) if item.left > 0]
    usages = _lock(tx, {item.spot: _NOTHING for item in seen})
    # Others may have changed them until the locks were ours; from here on nobody can.
    held = [item for item in _list_held(tx, slice_ids) if item.spot in usages and item.left > 0]
    less: dict[QuotaWindow, Decimal] = defaultdict(Decimal)
    for item in held:
        less[item.spot] -= item.left
    _save(tx, _moved(usages, less), now)
    _leave(tx, {item.row_id: _NOTHING for item in held}, now)


def try_spend(
    tx: Connection, slice_id: SliceId | None, charges: Sequence[Charge], now: datetime
) -> Window | None:
    """Pay every charge and return None; or pay none and return the window that has too little.

    The end of that window is when to come again. What the slice had reserved in a window shrinks
    by as much. The window's own limit counts; that of the charge is for a window nobody has used.
    Raises RequestRejected for a charge that even an unused window could not pay.
    """
    limits = {(charge.key, charge.window): charge.limit for charge in charges}
    prices = {(charge.key, charge.window): ceil_amount(charge.amount) for charge in charges}
    usages = _lock(tx, limits)
    short = [spot for spot, usage in usages.items() if usage.spent + prices[spot] > usage.limit]
    for spot in short:
        _require_payable(spot, usages[spot], prices[spot])
    if short:
        return max((window for _, window in short), key=lambda window: window.end)

    held = [] if slice_id is None else _list_held(tx, [slice_id])
    kept = {item: min(item.left, prices.get(item.spot, _NOTHING)) for item in held}
    paid = _moved(usages, {item.spot: -part for item, part in kept.items()})
    _save(tx, {at: replace(use, spent=use.spent + prices[at]) for at, use in paid.items()}, now)
    _leave(tx, {item.row_id: item.left - part for item, part in kept.items() if part}, now)
    return None


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


_ONE = " WHERE rate_key = :rate_key AND window_from = :window_from AND window_to = :window_to"


def _lock(tx: Connection, limits: Mapping[QuotaWindow, Decimal]) -> dict[QuotaWindow, Usage]:
    """Lock the windows in order; one that is missing is made, with the limit given."""
    query = text(_USAGE + _ONE + _locking(tx))
    usages: dict[QuotaWindow, Usage] = {}
    for spot in sorted(limits):
        row = tx.execute(query, _columns(spot)).one_or_none()
        if row is None:
            new = {**_columns(spot), "limit_amount": _written(limits[spot])}
            insert_missing(tx, "ing_quota_window", [new])
            row = tx.execute(query, _columns(spot)).one()
        usages[spot] = _usage(row)
    return usages


def _locking(tx: Connection) -> str:
    # SQLite: a writing transaction already holds the whole ledger.
    return " FOR UPDATE" if tx.dialect.name == "mysql" else ""


_SAVE = text("""
    UPDATE ing_quota_window
       SET limit_amount = :limit, reserved_amount = :reserved, spent_amount = :spent,
           version = version + 1, updated_at = :now
     WHERE rate_key = :rate_key AND window_from = :window_from AND window_to = :window_to
""")


def _save(tx: Connection, usages: Usages, now: datetime) -> None:
    rows = [
        {
            **_columns(spot),
            "limit": _written(usage.limit),
            "reserved": _written(usage.reserved),
            "spent": _written(usage.spent),
            "now": instant_text(now),
        }
        for spot, usage in sorted(usages.items(), key=lambda item: item[0])
    ]
    if rows:
        tx.execute(_SAVE, rows)


# Also those with nothing left: a slice that is planned again uses its row again.
_HELD = text("""
    SELECT id, slice_id, rate_key, window_from, window_to, left_amount
      FROM ing_quota_reservation WHERE slice_id IN :slice_ids
""").bindparams(bindparam("slice_ids", expanding=True))


def _list_held(tx: Connection, slice_ids: Collection[SliceId]) -> list[_Held]:
    asked = sorted(slice_ids)
    groups = (asked[first : first + _GROUP] for first in range(0, len(asked), _GROUP))
    return [
        _Held(row.id, SliceId(row.slice_id), _spot(row), ceil_amount(row.left_amount))
        for group in groups
        for row in tx.execute(_HELD, {"slice_ids": group})
    ]


def _insert_reservations(
    tx: Connection, wanted: Mapping[tuple[SliceId, QuotaWindow], Decimal]
) -> None:
    rows = [
        {**_columns(spot), "slice_id": slice_id, "amount": amount, "left_amount": amount}
        for (slice_id, spot), amount in ((at, _written(wanted[at])) for at in sorted(wanted))
    ]
    insert_missing(tx, "ing_quota_reservation", rows)


# A slice that is planned again may speak for more than it did the first time.
_LEAVE = text("""
    UPDATE ing_quota_reservation
       SET amount = CASE WHEN amount < :amount THEN :amount ELSE amount END,
           left_amount = :amount, version = version + 1, updated_at = :now
     WHERE id = :row_id
""")


def _leave(tx: Connection, left: Mapping[int, Decimal], now: datetime) -> None:
    at = instant_text(now)
    rows = [
        {"row_id": row_id, "amount": _written(amount), "now": at}
        for row_id, amount in sorted(left.items())
    ]
    if rows:
        tx.execute(_LEAVE, rows)


def _columns(spot: QuotaWindow) -> Row:
    key, window = spot
    start, end = instant_text(window.start), instant_text(window.end)
    return {"rate_key": key, "window_from": start, "window_to": end}


def _spot(row: Any) -> QuotaWindow:
    return row.rate_key, Window(read_instant(row.window_from), read_instant(row.window_to))


def _usage(row: Any) -> Usage:
    amounts = (row.limit_amount, row.reserved_amount, row.spent_amount)
    return Usage(*map(ceil_amount, amounts))


def _written(amount: Decimal) -> str:
    return f"{amount:f}"
