"""How fast we may go: the rate keys and what they allow now."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant


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
