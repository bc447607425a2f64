"""The `ing_rate_bucket` and `ing_rate_permit` tables: what each rate key has left.

Whoever decides about a key holds the lock of its bucket row until the transaction ends, so two
workers never spend the same token. No function here commits: the caller owns the transaction.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import (
    Row,
    find_instant,
    insert,
    insert_missing,
    instant_text,
    json_text,
    read_instant,
)


@dataclass(frozen=True)
class BucketRow:
    """One rate key: its bucket, the limits it was last asked with, and the upstream's silence."""

    rate_key: str
    tokens: Decimal
    refilled_at: datetime
    rate_per_second: Decimal  # what holds now; at most `configured_rate`
    burst: Decimal
    in_flight_limit: int | None
    configured_rate: Decimal
    cool_down_until: datetime | None = None


@dataclass(frozen=True)
class PermitRow:
    """One place in flight; after `expires_at` its holder is taken for dead."""

    permit_id: str
    rate_key: str
    holder: str
    cost: Decimal
    granted_at: datetime
    expires_at: datetime


_BUCKET = """
    SELECT rate_key, tokens, refilled_at, rate_per_second, burst, in_flight_limit,
           configured_rate, cool_down_until
      FROM ing_rate_bucket WHERE rate_key = :rate_key
"""


def lock_bucket(tx: Connection, rate_key: str) -> BucketRow | None:
    """Return the key's bucket and keep others from deciding about it until `tx` ends."""
    # SQLite: a writing transaction already holds the whole ledger.
    locking = " FOR UPDATE" if tx.dialect.name == "mysql" else ""
    row = tx.execute(text(_BUCKET + locking), {"rate_key": rate_key}).one_or_none()
    if row is None:
        return None
    return BucketRow(
        rate_key=row.rate_key,
        tokens=_decimal(row.tokens),
        refilled_at=read_instant(row.refilled_at),
        rate_per_second=_decimal(row.rate_per_second),
        burst=_decimal(row.burst),
        in_flight_limit=row.in_flight_limit,
        configured_rate=_decimal(row.configured_rate),
        cool_down_until=find_instant(row.cool_down_until),
    )


def create_bucket(tx: Connection, bucket: BucketRow) -> BucketRow:
    """Insert the bucket, unless another worker was first; return the one that is there, locked."""
    insert_missing(tx, "ing_rate_bucket", [_columns(bucket)])
    return lock_bucket(tx, bucket.rate_key) or bucket


_SAVE = text("""
    UPDATE ing_rate_bucket
       SET tokens = :tokens, refilled_at = :refilled_at, rate_per_second = :rate_per_second,
           burst = :burst, in_flight_limit = :in_flight_limit,
           configured_rate = :configured_rate, cool_down_until = :cool_down_until,
           version = version + 1, updated_at = :now
     WHERE rate_key = :rate_key
""")


def save_bucket(tx: Connection, bucket: BucketRow, now: datetime) -> None:
    """Write the bucket back; the caller has locked it in this transaction."""
    tx.execute(_SAVE, {**_columns(bucket), "now": instant_text(now)})


_COOL_DOWN = text("""
    UPDATE ing_rate_bucket
       SET last_signal = :signal, version = version + 1, updated_at = :now,
           cool_down_until = CASE WHEN cool_down_until > :until THEN cool_down_until
                                  ELSE :until END
     WHERE rate_key = :rate_key
""")


def cool_down(tx: Connection, rate_key: str, until: datetime, holder: str, now: datetime) -> bool:
    """Keep the key silent until `until` or longer; False if there is no bucket."""
    at, end = instant_text(now), instant_text(until)
    signal = json_text({"signal": "RETRY_AFTER", "at": at, "until": end, "holder": holder})
    values = {"rate_key": rate_key, "until": end, "signal": signal, "now": at}
    return tx.execute(_COOL_DOWN, values).rowcount == 1


_SILENCE = text("SELECT cool_down_until FROM ing_rate_bucket WHERE rate_key = :rate_key")


def silent_until(tx: Connection, rate_key: str) -> datetime | None:
    """Return the end of the key's last cool-down, past or future."""
    return find_instant(tx.execute(_SILENCE, {"rate_key": rate_key}).scalar_one_or_none())


_EXPIRIES = text("SELECT expires_at FROM ing_rate_permit WHERE rate_key = :rate_key")
_DROP_EXPIRED = text(
    "DELETE FROM ing_rate_permit WHERE rate_key = :rate_key AND expires_at <= :now"
)


def count_in_flight(tx: Connection, rate_key: str, now: datetime) -> int:
    """Count the places held now, after taking back those of holders that fell silent."""
    rows = tx.execute(_EXPIRIES, {"rate_key": rate_key}).scalars()
    expiries = [read_instant(expiry) for expiry in rows]
    held = sum(expiry > now for expiry in expiries)
    if held < len(expiries):
        tx.execute(_DROP_EXPIRED, {"rate_key": rate_key, "now": instant_text(now)})
    return held


def add_permit(tx: Connection, permit: PermitRow) -> None:
    """Take a place in flight; the caller has counted them under the bucket's lock."""
    insert(
        tx,
        "ing_rate_permit",
        {
            "permit_id": permit.permit_id,
            "rate_key": permit.rate_key,
            "holder": permit.holder,
            "cost": str(permit.cost),
            "granted_at": instant_text(permit.granted_at),
            "expires_at": instant_text(permit.expires_at),
        },
    )


_DROP = text("DELETE FROM ing_rate_permit WHERE permit_id = :permit_id")


def drop_permit(tx: Connection, permit_id: str) -> None:
    """Give a place back; giving it back twice is no event."""
    tx.execute(_DROP, {"permit_id": permit_id})


def _columns(bucket: BucketRow) -> Row:
    silence = bucket.cool_down_until
    return {
        "rate_key": bucket.rate_key,
        "tokens": str(bucket.tokens),
        "refilled_at": instant_text(bucket.refilled_at),
        "rate_per_second": str(bucket.rate_per_second),
        "burst": str(bucket.burst),
        "in_flight_limit": bucket.in_flight_limit,
        "configured_rate": str(bucket.configured_rate),
        "cool_down_until": None if silence is None else instant_text(silence),
    }


def _decimal(value: Decimal | float | str) -> Decimal:
    # SQLite keeps decimals as floats; their shortest notation is the number that was written.
    return Decimal(str(value))
