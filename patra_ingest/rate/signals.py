"""What an answer of the source means for the speed of everybody. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from patra_ingest.model.rates import SharedBucket
from patra_ingest.rate.bucket import Manners
from patra_ingest.rate.manners import cut, highest_rate
from patra_ingest.rate.told import Told


@dataclass(frozen=True)
class Complaint:
    """429, or a failure that overload explains: everybody slows down."""

    why: str = "HTTP_429"


@dataclass(frozen=True)
class Silence:
    """Nobody may send before `until`: a Retry-After, a spent budget, a circuit that broke."""

    until: datetime
    why: str = "RETRY_AFTER"


@dataclass(frozen=True)
class Words:
    """What the headers of an answer say about our budget; they win over what we guessed."""

    told: Told


@dataclass(frozen=True)
class Cost:
    """An answer was dearer (or cheaper, if negative) than the price that was paid for it."""

    more: Decimal


# What stays true until the source says something else.
_LASTING = ("ratePerSecond", "inFlight")
# An amount per longer time may be spent at any speed.
_PER_MOMENT = timedelta(minutes=1)

Signal = Complaint | Silence | Words | Cost


def silence_of(signal: Signal) -> datetime | None:
    """Return until when a signal wants silence; None if it does not."""
    match signal:
        case Silence(until=until):
            return until
        case Words(told=told) if told.remaining is not None and told.remaining < 1:
            return told.resets_at
    return None


def after(
    row: SharedBucket, signal: Signal, manners: Manners, holder: str, now: datetime
) -> SharedBucket:
    """Return the key after a signal; the row is as `refresh` left it, times are the ledger's."""
    match signal:
        case Complaint(why=why):
            lowered = cut(row, manners, now)
            return _noted(lowered, why, holder, now, rate=lowered.rate_per_second)
        case Silence(until=until, why=why):
            longer = max(until, row.cool_down_until or until)
            return _noted(replace(row, cool_down_until=longer), why, holder, now, until=longer)
        case Words(told=told):
            return _believing(row, told, holder, now)
        case Cost(more=more):
            return replace(row, tokens=min(row.tokens - more, row.burst))


def _believing(row: SharedBucket, told: Told, holder: str, now: datetime) -> SharedBucket:
    """Take what the source says of our budget for true, before all we have found out ourselves."""
    known = {name: value for name, value in (row.told or {}).items() if name in _LASTING}
    said = {**known, **told.as_json()}
    if told.interval is not None and told.interval > _PER_MOMENT:
        said.pop("ratePerSecond", None)  # a budget, not a speed
    news = said.get("ratePerSecond") != known.get("ratePerSecond")
    row = replace(row, told=said)
    if news:  # the same words again do not undo what a complaint has taught us since
        row = replace(row, rate_per_second=highest_rate(row))
    if told.remaining is None:
        return row
    row = replace(row, tokens=min(row.tokens, told.remaining))
    until = silence_of(Words(told))
    if until is None or until <= now:
        return row
    return after(row, Silence(until, "BUDGET_GONE"), Manners(), holder, now)


def _noted(
    row: SharedBucket, signal: str, holder: str, now: datetime, **facts: object
) -> SharedBucket:
    note: dict[str, Any] = {"signal": signal, "at": now, "holder": holder, **facts}
    return replace(row, last_signal={key: _plain(value) for key, value in note.items()})


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Decimal) else value
