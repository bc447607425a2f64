"""What a key can still send within a time, and how many requests at once make sense. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil

from patra_ingest.model.rates import SharedBucket
from patra_ingest.rate.sharing import PACE, flight_limit

# How long a request of an unknown source is expected to take.
_TYPICAL_SECONDS = 1


@dataclass(frozen=True)
class Estimate:
    """The requests of one token that a key can send, and how."""

    requests: int
    rate_per_second: Decimal
    concurrency: int
    silent_until: datetime | None


def estimate(row: SharedBucket, horizon: timedelta, now: datetime) -> Estimate:
    """Return what `row` allows until `now + horizon`, if nothing changes; silence is taken off."""
    silence = row.cool_down_until if row.cool_down_until and row.cool_down_until > now else None
    start = max(now, row.refilled_at, silence or now)
    left = max(timedelta(0), now + horizon - start)
    earned = row.rate_per_second * PACE * Decimal(str(left.total_seconds()))
    saved = row.tokens if left else Decimal(0)
    limit = flight_limit(row)
    wanted = max(1, ceil(row.rate_per_second * _TYPICAL_SECONDS))
    return Estimate(
        max(0, int(earned + saved)),
        row.rate_per_second,
        wanted if limit is None else min(limit, wanted),
        silence,
    )
