"""Which records an UPDATE asks for again, most urgent first, and how their ids become slices."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import islice

from patra_ingest.model.bounds import IdSet
from patra_ingest.model.keys import item_key
from patra_ingest.model.window import Window

_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)

RecordKey = tuple[str, str]  # endpoint, provider id


class Why(StrEnum):
    """Why a record is asked for again, in order of urgency."""

    SIGNAL = "SIGNAL"  # somebody says that it changed
    QUARANTINE = "QUARANTINE"  # it could not be mapped, or not be found
    SHAPE = "SHAPE"  # it was made by a spec that reads records in another way
    STALE = "STALE"  # nobody has looked at it for long


@dataclass(frozen=True)
class Candidate:
    """One reason to ask for one record; `row_id` is the row of the signal or quarantined item."""

    endpoint: str
    provider_id: str
    why: Why
    row_id: int | None = None


@dataclass(frozen=True)
class Chosen:
    """One record to ask for, its most urgent reason, and every row that this settles."""

    endpoint: str
    provider_id: str
    why: Why
    signals: tuple[int, ...] = ()
    quarantined: tuple[int, ...] = ()


def stale_share(total: int, window: Window, refresh_days: int) -> int:
    """Return how many of `total` records are due in `window`, if all are once in `refresh_days`."""
    # Whole numbers: a timedelta would overflow, a float would round.
    due = -(-total * (window.duration // _TICK) // (refresh_days * (_DAY // _TICK)))
    return min(due, total)


def choose(found: Iterable[Candidate], live: AbstractSet[RecordKey], limit: int) -> list[Chosen]:
    """Return at most `limit` records, most urgent first, each once and none that is in `live`.

    Equally urgent ones keep the order in which they were found.
    """
    reasons: dict[RecordKey, list[Candidate]] = {}
    for candidate in sorted(found, key=_urgency):
        key = (candidate.endpoint, candidate.provider_id)
        if key not in live:
            reasons.setdefault(key, []).append(candidate)
    return [_settled(of_one) for of_one in islice(reasons.values(), max(limit, 0))]


_ORDER = {why: place for place, why in enumerate(Why)}


def _urgency(candidate: Candidate) -> int:
    return _ORDER[candidate.why]


def _settled(reasons: list[Candidate]) -> Chosen:
    first = reasons[0]
    return Chosen(
        first.endpoint,
        first.provider_id,
        first.why,
        _rows(reasons, Why.SIGNAL),
        _rows(reasons, Why.QUARANTINE),
    )


def _rows(reasons: Iterable[Candidate], why: Why) -> tuple[int, ...]:
    return tuple(sorted({c.row_id for c in reasons if c.why is why and c.row_id is not None}))


def cut_ids(chosen: Iterable[Chosen], ids_per_slice: int, buckets: int | None) -> list[IdSet]:
    """Return the ids as slices of at most `ids_per_slice`: per endpoint, each id once, sorted.

    With `buckets` an id's hash decides which slices it may be in. The order of `chosen` does not
    matter.
    """
    groups: dict[tuple[str, int | None], set[str]] = {}
    for record in chosen:
        bucket = _bucket(record.provider_id, buckets)
        groups.setdefault((record.endpoint, bucket), set()).add(record.provider_id)
    return [
        IdSet(endpoint, ids, bucket)
        for endpoint, bucket in sorted(groups, key=lambda key: (key[0], key[1] or 0))
        for ids in _ranges(sorted(groups[endpoint, bucket]), ids_per_slice)
    ]


def _bucket(provider_id: str, buckets: int | None) -> int | None:
    return None if buckets is None else int.from_bytes(item_key(provider_id)) % buckets


def _ranges(ids: list[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(ids), size):
        yield tuple(ids[start : start + size])
