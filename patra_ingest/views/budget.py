"""How fast we may go and how much is left: the rate keys, their quotas, what they allow now."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, instant_text, read_instant
from patra_ingest.model.quotas import ceil_amount
from patra_ingest.model.window import Window


@dataclass(frozen=True)
class RateState:
    """One rate key as all processes share it."""

    rate_key: str
    rate_per_second: float
    burst: float
    in_flight_limit: int | None
    cool_down_until: datetime | None

    def words(self, now: datetime) -> str:
        """Return the state in words."""
        text = f"{self.rate_per_second:g} per second, burst {self.burst:g}"
        if self.in_flight_limit is not None:
            text += f", {self.in_flight_limit} in flight"
        if self.cool_down_until is not None and self.cool_down_until > now:
            text += f", silent until {self.cool_down_until.isoformat()}"
        return text


_BUCKETS = text("SELECT * FROM ing_rate_bucket ORDER BY rate_key")


def list_buckets(tx: Connection) -> list[RateState]:
    """Return every rate key that was ever used."""
    return [
        RateState(
            row["rate_key"],
            float(row["rate_per_second"]),
            float(row["burst"]),
            row["in_flight_limit"],
            find_instant(row["cool_down_until"]),
        )
        for row in tx.execute(_BUCKETS).mappings()
    ]


@dataclass(frozen=True)
class QuotaState:
    """One quota window of a rate key: what it allows, what is spoken for, what is gone."""

    rate_key: str
    window: Window
    limit: Decimal
    reserved: Decimal
    spent: Decimal

    def words(self) -> str:
        """Return the state in words."""
        text = f"{_plain(self.spent)} of {_plain(self.limit)} spent"
        if self.reserved:
            text += f", {_plain(self.reserved)} reserved"
        return f"{text}, in {self.window}"


_QUOTAS = text("""
    SELECT rate_key, window_from, window_to, limit_amount, reserved_amount, spent_amount
      FROM ing_quota_window WHERE window_to > :now
     ORDER BY rate_key, window_from, window_to
""")


def list_quotas(tx: Connection, now: datetime) -> list[QuotaState]:
    """Return the quota windows that are not over yet, also those of the future."""
    return [
        QuotaState(
            row.rate_key,
            Window(read_instant(row.window_from), read_instant(row.window_to)),
            ceil_amount(row.limit_amount),
            ceil_amount(row.reserved_amount),
            ceil_amount(row.spent_amount),
        )
        for row in tx.execute(_QUOTAS, {"now": instant_text(now)})
    ]


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
