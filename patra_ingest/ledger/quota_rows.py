"""Rows of `ing_quota_window` and `ing_quota_reservation`: read, locked in order, written back.

What they mean is decided in `ledger/quotas.py`; nobody else reads or writes them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import Row, insert_missing, instant_text, read_instant
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.quotas import QuotaWindow, Usage, Usages, ceil_amount
from patra_ingest.model.window import Window

_GROUP = 500


@dataclass(frozen=True)
class Held:
    """What is left of one reservation."""

    row_id: int
    slice_id: SliceId
    spot: QuotaWindow
    left: Decimal


USAGE = """
    SELECT rate_key, window_from, window_to, limit_amount, reserved_amount, spent_amount
      FROM ing_quota_window
"""
_ONE = " WHERE rate_key = :rate_key AND window_from = :window_from AND window_to = :window_to"


def lock_windows(tx: Connection, limits: Mapping[QuotaWindow, Decimal]) -> dict[QuotaWindow, Usage]:
    """Lock the windows in order; one that is missing is made, with the limit given."""
    query = text(USAGE + _ONE + locking(tx))
    usages: dict[QuotaWindow, Usage] = {}
    for spot in sorted(limits):
        row = tx.execute(query, _columns(spot)).one_or_none()
        if row is None:
            new = {**_columns(spot), "limit_amount": _written(limits[spot])}
            insert_missing(tx, "ing_quota_window", [new])
            row = tx.execute(query, _columns(spot)).one()
        usages[spot] = usage_of(row)
    return usages


def locking(tx: Connection) -> str:
    """Return what a query ends with that locks what it finds."""
    # SQLite: a writing transaction already holds the whole ledger.
    return " FOR UPDATE" if tx.dialect.name == "mysql" else ""


_SAVE = text("""
    UPDATE ing_quota_window
       SET limit_amount = :limit, reserved_amount = :reserved, spent_amount = :spent,
           version = version + 1, updated_at = :now
     WHERE rate_key = :rate_key AND window_from = :window_from AND window_to = :window_to
""")


def save_windows(tx: Connection, usages: Usages, now: datetime) -> None:
    """Write windows back; the caller has locked them."""
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


def list_held(tx: Connection, slice_ids: Collection[SliceId]) -> list[Held]:
    """Return every reservation these slices ever made."""
    asked = sorted(slice_ids)
    groups = (asked[first : first + _GROUP] for first in range(0, len(asked), _GROUP))
    return [
        Held(row.id, SliceId(row.slice_id), spot_of(row), ceil_amount(row.left_amount))
        for group in groups
        for row in tx.execute(_HELD, {"slice_ids": group})
    ]


def insert_reservations(
    tx: Connection, wanted: Mapping[tuple[SliceId, QuotaWindow], Decimal]
) -> None:
    """Let slices speak for amounts in windows where they have said nothing yet."""
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


def leave(tx: Connection, left: Mapping[int, Decimal], now: datetime) -> None:
    """Write what is left of reservations."""
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


def spot_of(row: Any) -> QuotaWindow:
    """Return which window a row is about."""
    return row.rate_key, Window(read_instant(row.window_from), read_instant(row.window_to))


def usage_of(row: Any) -> Usage:
    """Return what a row says of its window."""
    amounts = (row.limit_amount, row.reserved_amount, row.spent_amount)
    return Usage(*map(ceil_amount, amounts))


def _written(amount: Decimal) -> str:
    return f"{amount:f}"
