"""The `ing_rate_bucket` table: what each rate key has left, and which process holds what of it.

Whoever decides about a key holds the lock of its row until the transaction ends, so two workers
never spend the same token. No function here commits: the caller owns the transaction.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import (
    Row,
    find_instant,
    insert_missing,
    instant_text,
    json_text,
    read_instant,
    read_json,
)
from patra_ingest.model.rates import Holder, SharedBucket

_STEP = Decimal("0.000000001")  # the finest that a column holds
_NAMES = (
    "tokens, refilled_at, rate_per_second, burst, in_flight_limit, configured_rate,"
    " cool_down_until, holders, cut_at, raised_at, warm_from, told, last_signal"
)
_FIND = text(f"SELECT rate_key, {_NAMES} FROM ing_rate_bucket WHERE rate_key = :rate_key")
# The clock is read when the row is: after the wait for its lock, not before.
_LOCK_MYSQL = text(
    f"SELECT rate_key, {_NAMES}, SYSDATE(6) AS now FROM ing_rate_bucket"
    " WHERE rate_key = :rate_key FOR UPDATE"
)


def lock_bucket(tx: Connection, rate_key: str) -> tuple[SharedBucket, datetime | None] | None:
    """Return the key's bucket and keep others from deciding about it until `tx` ends.

    Beside it stands MySQL's clock, read under the lock; SQLite has none of its own.
    """
    # SQLite: a writing transaction already holds the whole ledger.
    is_mysql = tx.dialect.name == "mysql"
    query = _LOCK_MYSQL if is_mysql else _FIND
    row = tx.execute(query, {"rate_key": rate_key}).mappings().one_or_none()
    if row is None:
        return None
    return _bucket(row), read_instant(row["now"]) if is_mysql else None


def find_bucket(tx: Connection, rate_key: str) -> SharedBucket | None:
    """Return the key's bucket as it is, without a lock; None for a key nobody used."""
    row = tx.execute(_FIND, {"rate_key": rate_key}).mappings().one_or_none()
    return None if row is None else _bucket(row)


def create_bucket(tx: Connection, bucket: SharedBucket) -> None:
    """Insert the bucket, unless another worker was first."""
    insert_missing(tx, "ing_rate_bucket", [{**_columns(bucket), "rate_key": bucket.rate_key}])


_SAVE = text(
    "UPDATE ing_rate_bucket SET "
    + ", ".join(f"{name} = :{name}" for name in _NAMES.replace(",", " ").split())
    + ", version = version + 1, updated_at = :now WHERE rate_key = :rate_key"
)


def save_bucket(tx: Connection, bucket: SharedBucket, now: datetime) -> None:
    """Write the bucket back; the caller has locked it in this transaction."""
    values = {**_columns(bucket), "rate_key": bucket.rate_key, "now": instant_text(now)}
    tx.execute(_SAVE, values)


_SILENCE = text("SELECT cool_down_until FROM ing_rate_bucket WHERE rate_key = :rate_key")


def silent_until(tx: Connection, rate_key: str) -> datetime | None:
    """Return the end of the key's last cool-down, past or future."""
    return find_instant(tx.execute(_SILENCE, {"rate_key": rate_key}).scalar_one_or_none())


def _bucket(row: Any) -> SharedBucket:
    return SharedBucket(
        rate_key=row["rate_key"],
        tokens=_decimal(row["tokens"]),
        refilled_at=read_instant(row["refilled_at"]),
        rate_per_second=_decimal(row["rate_per_second"]),
        burst=_decimal(row["burst"]),
        in_flight_limit=row["in_flight_limit"],
        configured_rate=_decimal(row["configured_rate"]),
        cool_down_until=find_instant(row["cool_down_until"]),
        holders=_read_holders(read_json(row["holders"]) or {}),
        cut_at=find_instant(row["cut_at"]),
        raised_at=find_instant(row["raised_at"]),
        warm_from=find_instant(row["warm_from"]),
        told=read_json(row["told"]),
        last_signal=read_json(row["last_signal"]),
    )


def _columns(bucket: SharedBucket) -> Row:
    return {
        "tokens": str(bucket.tokens),
        "refilled_at": instant_text(bucket.refilled_at),
        "rate_per_second": str(bucket.rate_per_second),
        "burst": str(bucket.burst),
        "in_flight_limit": bucket.in_flight_limit,
        "configured_rate": str(bucket.configured_rate),
        "cool_down_until": _written(bucket.cool_down_until),
        "holders": json_text(_write_holders(bucket.holders)) if bucket.holders else None,
        "cut_at": _written(bucket.cut_at),
        "raised_at": _written(bucket.raised_at),
        "warm_from": _written(bucket.warm_from),
        "told": None if bucket.told is None else json_text(bucket.told),
        "last_signal": None if bucket.last_signal is None else json_text(bucket.last_signal),
    }


def _read_holders(tree: Mapping[str, Any]) -> dict[str, Holder]:
    return {
        name: Holder(
            entry["places"],
            Decimal(entry["tokens"]),
            read_instant(entry["until"]),
            find_instant(entry.get("since")),
        )
        for name, entry in tree.items()
    }


def _write_holders(holders: Mapping[str, Holder]) -> dict[str, Any]:
    return {
        name: {
            "places": holder.places,
            "tokens": str(holder.tokens),
            "until": instant_text(holder.until),
            "since": _written(holder.since),
        }
        for name, holder in holders.items()
    }


def _written(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


def _decimal(value: Decimal | float | str) -> Decimal:
    # SQLite keeps decimals as floats, and reads a text as one that may lie a step beside it.
    return Decimal(str(value)).quantize(_STEP)
