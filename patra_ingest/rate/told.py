"""What a source says about our budget in the headers of an answer. Pure.

Which header says what is declared in the pack. What is missing, or makes no sense, is ignored:
a source that counts badly must not stop us.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from patra_ingest.model.quotas import EPOCH
from patra_ingest.model.window import instant_iso, parse_duration, parse_instant
from patra_ingest.spec.policies import RateHeaders
from patra_ingest.spec.words import ResetUnit

_NUMBER = re.compile(r"(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")
_PERIODS = {"second": "1s", "minute": "1m", "hour": "1h", "day": "1d"}
# More than any column of the ledger holds, and than anybody allows.
_MOST = Decimal(10**15)
_RATE_STEP = Decimal("0.000000001")
_MILLION = 1_000_000
# A reset that seems past is only the difference of two clocks, up to here.
_SKEW = timedelta(minutes=1)
_FARTHEST = timedelta(days=366)
_LONGEST_VALUE = 200

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Told:
    """What one answer said about our budget; None: it said nothing that can be read."""

    rate_per_second: Decimal | None = None
    in_flight: int | None = None
    limit: Decimal | None = None
    remaining: Decimal | None = None
    cost: Decimal | None = None
    resets_at: datetime | None = None
    unreadable: tuple[str, ...] = ()  # header and reason, never its value: it is not ours
    interval: timedelta | None = None  # in which `limit` holds
    at: datetime | None = None  # when the answer came

    @property
    def says_nothing(self) -> bool:
        """Whether no header could be read; one that was there and unreadable says nothing."""
        values = (self.rate_per_second, self.in_flight, self.limit, self.remaining, self.cost)
        return self.resets_at is None and all(value is None for value in values)

    def as_json(self) -> dict[str, Any]:
        """Return what was said, as the ledger keeps it; decimals are text."""
        values = {
            "ratePerSecond": _text(self.rate_per_second),
            "inFlight": self.in_flight,
            "limit": _text(self.limit),
            "remaining": _text(self.remaining),
            "cost": _text(self.cost),
            "resetsAt": self.resets_at and instant_iso(self.resets_at),
            "intervalSeconds": self.interval and self.interval.total_seconds(),
            "at": self.at and instant_iso(self.at),
            "unreadable": list(self.unreadable) or None,
        }
        return {name: value for name, value in values.items() if value is not None}


def read_told(words: RateHeaders, headers: Mapping[str, str], received_at: datetime) -> Told:
    """Return what the declared headers of an answer say; never an error.

    A limit with an interval is a rate. A header may be a bare number or have parts, as in
    `"burst";q=100;w=60` or `limit=100, remaining=40, reset=30`; two policies in one header that
    contradict each other are unreadable.
    """
    seen = _Reader(headers)
    limit = seen.read(words.limit, lambda text: _above_zero(_part(text, "q", "limit")))
    interval = _interval(words, seen)
    told = Told(
        rate_per_second=_rate(limit, interval),
        in_flight=seen.read(words.concurrency, lambda text: _whole(_part(text))),
        limit=limit,
        remaining=_remaining(words, seen, limit),
        cost=seen.read(words.cost, lambda text: _amount(_part(text))),
        resets_at=_resets_at(words, seen, received_at),
        interval=interval,
        at=received_at,
    )
    return replace(told, unreadable=tuple(dict.fromkeys(seen.unreadable)))


class _Reader:
    """The headers of an answer by name in any case, and those that could not be read."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): value.strip() for name, value in headers.items()}
        self.unreadable: list[str] = []

    def read(self, name: str | None, convert: Callable[[str], _Found]) -> _Found | None:
        """Return what a header says; None if it is not declared, not there or unreadable."""
        value = None if name is None else self._headers.get(name.lower())
        if name is None or value is None:
            return None
        try:
            if len(value) > _LONGEST_VALUE:
                raise ValueError("too long")
            return convert(value)
        except (ValueError, OverflowError) as error:
            self.unreadable.append(f"{name}: {error}")
            return None


def _interval(words: RateHeaders, seen: _Reader) -> timedelta | None:
    if words.interval is not None:
        return seen.read(words.interval, lambda text: _duration(_part(text, "w")))
    # The policy of a limit may name its window in the same header.
    return seen.read(words.limit, lambda text: _duration(_parts(text).get("w")))


def _remaining(words: RateHeaders, seen: _Reader, limit: Decimal | None) -> Decimal | None:
    remaining = seen.read(words.remaining, lambda text: _amount(_part(text, "r", "remaining")))
    used = seen.read(words.used, lambda text: _amount(_part(text, "used")))
    if remaining is not None or used is None or limit is None:
        return remaining
    return max(Decimal(0), limit - used)


def _resets_at(words: RateHeaders, seen: _Reader, received_at: datetime) -> datetime | None:
    reset = words.reset
    if reset is None:
        return None
    return seen.read(
        reset.header, lambda text: _near(_instant(text, reset.unit, received_at), received_at)
    )


def _parts(text: str) -> dict[str, str]:
    """Return the named parts of a header, and the bare one under no name."""
    parts: dict[str, str] = {}
    for piece in re.split("[;,]", text):
        name, equals, value = piece.strip().rpartition("=")
        if not equals and value.startswith('"'):  # the name of a policy
            continue
        said = value.strip(' "')
        if parts.setdefault(name.strip().lower(), said) != said:
            raise ValueError("several policies at once")
    return parts


def _part(text: str, *names: str) -> str:
    parts = _parts(text)
    for name in ("", *names):
        if name in parts:
            return parts[name]
    raise ValueError("no number")


def _amount(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number from 0 on")
    number = Decimal(text)
    if number > _MOST:
        raise ValueError("too large")
    return number


def _above_zero(text: str) -> Decimal:
    number = _amount(text)
    if number <= 0:
        raise ValueError("not above 0")
    return number


def _whole(text: str) -> int:
    number = _above_zero(text)
    if number % 1:
        raise ValueError("not a whole number")
    return int(number)


def _duration(text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        seconds = _NUMBER.fullmatch(text)
        duration = timedelta(seconds=float(text)) if seconds else _named_duration(text)
    except (ValueError, OverflowError):
        raise ValueError("not an interval") from None
    if not timedelta(0) < duration <= _FARTHEST:
        raise ValueError("not an interval that can be")
    return duration


def _named_duration(text: str) -> timedelta:
    short = text.lower()
    return parse_duration(text if short.startswith("p") else _PERIODS.get(short, short))


def _rate(limit: Decimal | None, interval: timedelta | None) -> Decimal | None:
    if limit is None or interval is None:
        return None
    microseconds = interval // timedelta(microseconds=1)
    rate = (limit * _MILLION / microseconds).quantize(_RATE_STEP, rounding=ROUND_FLOOR)
    return rate if rate > 0 else None


def _instant(text: str, unit: ResetUnit, received_at: datetime) -> datetime:
    if unit is ResetUnit.HTTP_DATE:
        return _date(text)
    seconds = float(_amount(_part(text, "t", "reset")))
    if unit is ResetUnit.SECONDS_LEFT:
        return received_at + timedelta(seconds=seconds)
    return EPOCH + timedelta(seconds=seconds / (1000 if unit is ResetUnit.EPOCH_MILLIS else 1))


def _date(text: str) -> datetime:
    """Read the date of HTTP, or an ISO one, which some sources send in its place."""
    try:
        if text[:4].isdigit():
            return parse_instant(text)
        at = parsedate_to_datetime(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("not a date") from None


def _near(at: datetime, received_at: datetime) -> datetime:
    if at < received_at - _SKEW:
        raise ValueError("in the past")
    if at > received_at + _FARTHEST:
        raise ValueError("too far away")
    return max(at, received_at)


def _text(number: Decimal | None) -> str | None:
    return None if number is None else f"{number.normalize():f}"
