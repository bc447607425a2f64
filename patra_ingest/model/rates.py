"""A rate key as all processes share it, and what each of them has of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Holder:
    """What one process has of a key; after `until` it is taken for dead."""

    places: int  # requests in flight, or about to be
    tokens: Decimal  # taken along for its next requests
    until: datetime
    since: datetime | None = None  # waits for a place from this moment on


@dataclass(frozen=True)
class SharedBucket:
    """One rate key: its tokens, its speed, its silence, and who holds what."""

    rate_key: str
    tokens: Decimal  # at `refilled_at`; below zero after a request that cost more than there was
    refilled_at: datetime
    rate_per_second: Decimal  # what holds now; at most `configured_rate`
    burst: Decimal
    in_flight_limit: int | None
    configured_rate: Decimal
    cool_down_until: datetime | None = None  # nobody sends before
    holders: Mapping[str, Holder] = field(default_factory=dict)
    cut_at: datetime | None = None
    raised_at: datetime | None = None  # the rate rises from here on
    warm_from: datetime | None = None
    told: Mapping[str, Any] | None = None  # what the source last said of our budget
    last_signal: Mapping[str, Any] | None = None
