"""How fast we may go, why not faster, what is left and when it is full again: every rate key."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import instant_text, read_instant, read_json
from patra_ingest.ledger.rates import find_bucket
from patra_ingest.model.codes import Operation
from patra_ingest.model.quotas import ceil_amount, soft_limit, spending_share
from patra_ingest.model.rates import Holder, SharedBucket
from patra_ingest.model.window import Window, instant_iso, parse_instant
from patra_ingest.rate.sharing import flight_limit
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest.views.spans import ago, still

_WHY = {
    "RETRY_AFTER": "the source asked for it (Retry-After)",
    "BUDGET_GONE": "the source says that our budget is gone",
    "HTTP_429": "the source said that we are too fast (429)",
}


@dataclass(frozen=True)
class RateState:
    """One rate key as all processes share it."""

    bucket: SharedBucket

    @property
    def rate_key(self) -> str:
        """The name of the key."""
        return self.bucket.rate_key

    def words(self, now: datetime) -> str:
        """Return the state in words."""
        silence = self.silence(now)
        places = self.places(now)
        return "; ".join(part for part in (self.speed(now), places, silence) if part)

    def speed(self, now: datetime) -> str:
        """Return how fast we may go, and why not faster."""
        rate, configured = self.bucket.rate_per_second, self.bucket.configured_rate
        burst = f"burst {plain(self.bucket.burst)}"
        if rate >= configured:
            return f"{plain(rate)} per second, {burst}"
        return f"{plain(rate)} of {plain(configured)} per second ({self._slow(now)}), {burst}"

    def _slow(self, now: datetime) -> str:
        told = (self.bucket.told or {}).get("ratePerSecond")
        if told is not None and Decimal(str(told)) <= self.bucket.rate_per_second:
            return "the source allows no more"
        if self.bucket.cut_at is None:
            return "it rises with use"
        signal = self.bucket.last_signal or {}
        why = f": {_reason(signal)}" if "rate" in signal else ""
        return f"cut {ago(self.bucket.cut_at, now)}{why}"

    def places(self, now: datetime) -> str:
        """Return how many requests are open and who has them; nothing if nobody limits or holds."""
        limit, holders = flight_limit(self.bucket), self.holders(now)
        held = sum(holder.places for holder in holders.values())
        if limit is None and not held:
            return ""
        of = "" if limit is None else f" of {limit}"
        whose = ", ".join(f"{name} {one.places}" for name, one in holders.items() if one.places)
        waiting = sum(1 for one in holders.values() if one.since is not None)
        line = f"; {waiting} in line" if waiting else ""
        return f"{held}{of} in flight{f' ({whose})' if whose else ''}{line}"

    def holders(self, now: datetime) -> dict[str, Holder]:
        """Return the processes that have something of the key and are not taken for dead."""
        found = sorted(self.bucket.holders.items())
        return {name: holder for name, holder in found if holder.until > now}

    def silence(self, now: datetime) -> str:
        """Return until when nobody sends, and why; nothing if everybody may."""
        until = self.bucket.cool_down_until
        if until is None or until <= now:
            return ""
        signal = self.bucket.last_signal or {}
        why = f": {_reason(signal)}" if "until" in signal else ""
        return f"silent until {until:%Y-%m-%d %H:%M:%S}Z, {still(until, now)} more{why}"

    def told(self, now: datetime) -> str:
        """Return what the source last said about our budget."""
        said = self.bucket.told or {}
        parts = [
            f"{said['ratePerSecond']} per second" if "ratePerSecond" in said else "",
            f"{said['inFlight']} in flight" if "inFlight" in said else "",
            _left(said),
            f"the last request cost {said['cost']}" if "cost" in said else "",
            _full_again(said, now),
            *(f"unreadable {why}" for why in said.get("unreadable", ())),
        ]
        when = f" ({ago(parse_instant(said['at']), now)})" if "at" in said else ""
        shown = ", ".join(part for part in parts if part)
        return f"{shown}{when}" if shown else ""


def _left(said: Mapping[str, Any]) -> str:
    if "remaining" not in said:
        return ""
    of = f" of {said['limit']}" if "limit" in said else ""
    return f"{said['remaining']}{of} left"


def _full_again(said: Mapping[str, Any], now: datetime) -> str:
    at = parse_instant(said["resetsAt"]) if "resetsAt" in said else None
    return f"full again in {still(at, now)}" if at is not None and at > now else ""


def _reason(signal: Mapping[str, Any]) -> str:
    name = str(signal.get("signal", ""))
    return _WHY.get(name, name.lower().replace("_", " "))


_KEYS = text("SELECT rate_key FROM ing_rate_bucket ORDER BY rate_key")


def list_buckets(tx: Connection) -> list[RateState]:
    """Return every rate key that was ever used."""
    keys = tx.execute(_KEYS).scalars().all()
    found = (find_bucket(tx, key) for key in keys)
    return [RateState(bucket) for bucket in found if bucket is not None]


@dataclass(frozen=True)
class QuotaState:
    """One quota window of a rate key: what it allows, what is spoken for, what is gone."""

    rate_key: str
    window: Window
    limit: Decimal
    reserved: Decimal
    spent: Decimal
    marks: Mapping[str, Decimal] = field(default_factory=dict)  # operation → up to where it goes

    @property
    def free(self) -> Decimal:
        """What nobody has spent or spoken for; below nothing if more was taken than there is."""
        return self.limit - self.spent - self.reserved

    @property
    def stops(self) -> dict[str, Decimal]:
        """The marks that lie before the limit."""
        return {name: mark for name, mark in self.marks.items() if mark < self.limit}

    def part(self, amount: Decimal) -> float:
        """Return which part of the limit an amount is; all of it if there is no limit to part."""
        return float(amount / self.limit) if self.limit else 1.0

    def words(self) -> str:
        """Return the state in words."""
        text = f"{plain(self.spent)} of {plain(self.limit)} spent"
        if self.reserved:
            text += f", {plain(self.reserved)} reserved"
        return f"{text}, in {self.window}"


_QUOTAS = text("""
    SELECT rate_key, window_from, window_to, limit_amount, reserved_amount, spent_amount
      FROM ing_quota_window WHERE window_to > :now
     ORDER BY rate_key, window_from, window_to
""")


def list_quotas(tx: Connection, now: datetime) -> list[QuotaState]:
    """Return the quota windows that are not over yet, also those of the future."""
    shares = _list_shares(tx)
    states = []
    for row in tx.execute(_QUOTAS, {"now": instant_text(now)}):
        window = Window(read_instant(row.window_from), read_instant(row.window_to))
        limit = ceil_amount(row.limit_amount)
        reserved, spent = ceil_amount(row.reserved_amount), ceil_amount(row.spent_amount)
        share_of = shares.get(row.rate_key, {})
        marks = {name: soft_limit(limit, window, share) for name, share in share_of.items()}
        states.append(QuotaState(row.rate_key, window, limit, reserved, spent, marks))
    return states


# What an operation may take is said by its newest plan.
_PLANS = text("""
    SELECT operation_code, spec_snapshot FROM ing_plan WHERE id IN
           (SELECT MAX(id) FROM ing_plan
             GROUP BY provenance_code, endpoint_name, operation_code)
""")


def _list_shares(tx: Connection) -> dict[str, dict[str, Decimal]]:
    """Return for each key which share each operation may fill, the smallest of its sources."""
    shares: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for row in tx.execute(_PLANS):
        spec, operation = read_json(row.spec_snapshot), Operation(row.operation_code)
        planning = PlanningSpec.model_validate(spec.get("planning", {}))
        own = spending_share(operation, planning.share_of(operation), planning.quota_margin)
        for key in _keys_of(spec):
            known = shares[key].get(operation.value, own)
            shares[key][operation.value] = min(known, own)
    return shares


def _keys_of(spec: Mapping[str, Any]) -> set[str]:
    rates = [call["rate"] for call in (spec, spec.get("detail") or {}) if "rate" in call]
    return {rate["key"] for rate in rates} | {
        also["key"] for rate in rates for also in rate.get("also") or ()
    }


@dataclass(frozen=True)
class KeyBudget:
    """All that limits the requests of one key; a key may have quotas only, or a rate only."""

    rate_key: str
    rate: RateState | None
    quotas: list[QuotaState]

    def as_json(self, now: datetime) -> dict[str, Any]:
        """Return the budget for a script."""
        quotas = [_quota_json(quota) for quota in self.quotas]
        rate = None if self.rate is None else _rate_json(self.rate, now)
        return {"rate_key": self.rate_key, "rate": rate, "quotas": quotas}


def list_budgets(tx: Connection, now: datetime, only: str | None = None) -> list[KeyBudget]:
    """Return every key that was used or booked, or one of them; UnknownName if it was not."""
    rates = {state.rate_key: state for state in list_buckets(tx)}
    quotas: dict[str, list[QuotaState]] = defaultdict(list)
    for quota in list_quotas(tx, now):
        quotas[quota.rate_key].append(quota)
    known = sorted(rates.keys() | quotas.keys())
    if only is not None and only not in known:
        remedy = f"Used were {', '.join(known)}." if known else "No key was used so far."
        raise UnknownName(f"No request of the rate key {only} was ever sent or planned.", remedy)
    asked = known if only is None else [only]
    return [KeyBudget(key, rates.get(key), quotas[key]) for key in asked]


def _rate_json(state: RateState, now: datetime) -> dict[str, Any]:
    bucket = state.bucket
    instants = {
        "silent_until": bucket.cool_down_until if state.silence(now) else None,
        "cut_at": bucket.cut_at,
        "warm_from": bucket.warm_from,
    }
    return {
        "per_second": float(bucket.rate_per_second),
        "configured_per_second": float(bucket.configured_rate),
        "burst": float(bucket.burst),
        "in_flight_limit": flight_limit(bucket),
        "in_flight": sum(one.places for one in state.holders(now).values()),
        "holders": {name: one.places for name, one in state.holders(now).items()},
        **{name: at and instant_iso(at) for name, at in instants.items()},
        "last_signal": bucket.last_signal,
        "told": bucket.told,
    }


def _quota_json(quota: QuotaState) -> dict[str, Any]:
    amounts = ("limit", "spent", "reserved", "free")
    return {
        "from": instant_iso(quota.window.start),
        "to": instant_iso(quota.window.end),
        **{name: float(getattr(quota, name)) for name in amounts},
        "marks": {name: float(mark) for name, mark in sorted(quota.marks.items())},
    }


def plain(amount: Decimal) -> str:
    """Return a number as people write it."""
    return f"{amount.normalize():f}"
