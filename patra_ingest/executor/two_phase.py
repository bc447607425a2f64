"""Ids that were asked for, held against what came: answered, merged into others, missing, foreign.

Pure. The same rules hold for the details of a search and for a slice that is cut by ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.mapping import Mapped
from patra_ingest.expr.value import compile_value
from patra_ingest.model.records import BadItem
from patra_ingest.spec.snapshot import CallSpec, ReconcileSpec
from patra_ingest.transport.redact import redact_text


@dataclass(frozen=True)
class BadId:
    """An id that the source cannot answer for, found alone by halving."""

    id: str
    reason: str


@dataclass(frozen=True)
class Reconciled:
    """What an answer says about the ids that were asked for."""

    items: list[Any]
    missing: tuple[str, ...] = ()
    merged: dict[str, str] = field(default_factory=dict)  # asked for → the id it has become


def reconcile(
    asked: Sequence[str], decoded: Decoded, call: CallSpec, rule: ReconcileSpec
) -> Reconciled:
    """Hold the items of one answer against the ids that it was asked for."""
    items, answered = _pairs(asked, decoded, call, rule)
    own = _ids(compile_value(call.response.id).column(items))
    wanted = set(asked)
    met = {key for key in answered if key in wanted} | (set(decoded.gone) & wanted)
    missing = [one for one in asked if one not in met]
    if not rule.aliases:
        return Reconciled(items, tuple(missing))
    pairs = zip(answered, own, strict=True)
    merged = {key: now for key, now in pairs if key in wanted and now and now != key}
    strangers = [now for key, now in zip(answered, own, strict=True) if now and key not in wanted]
    if len(strangers) == len(missing) == 1:  # nobody else can have become the other
        merged[missing[0]] = strangers[0]
        missing = []
    return Reconciled(items, tuple(missing), merged)


def _pairs(
    asked: Sequence[str], decoded: Decoded, call: CallSpec, rule: ReconcileSpec
) -> tuple[list[Any], list[str | None]]:
    """Return the items that are there, and which of the ids each of them answers."""
    found = decoded.items
    if rule.positional and len(found) == len(asked):
        there = [n for n, item in enumerate(found) if item is not None]
        return [found[n] for n in there], [asked[n] for n in there]
    items = [item for item in found if item is not None]
    if decoded.places is not None and len(decoded.places) == len(items):
        return items, list(decoded.places)
    return items, _ids(compile_value(call.response.asked or call.response.id).column(items))


def _ids(values: Sequence[Any]) -> list[str | None]:
    return [
        str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else None
        for value in values
    ]


def combine(first: Reconciled, again: Reconciled) -> Reconciled:
    """Return what two answers say together: the second was asked for what the first lacked."""
    return replace(join(first, again), missing=again.missing)


def join(one: Reconciled, other: Reconciled) -> Reconciled:
    """Return what two answers say about different ids."""
    merged = {**one.merged, **other.merged}
    return Reconciled([*one.items, *other.items], (*one.missing, *other.missing), merged)


def hold_against(
    asked: Sequence[str], mapped: Mapped, accepted: Sequence[str], broken_before: int = 0
) -> Mapped:
    """Put every record that nobody asked for among the bad items: it may be another one's.

    EndpointHalted when that is true of all, and there are several, here or in answers before.
    """
    wanted = {*asked, *accepted}
    foreign = [record for record in mapped.records if record.provider_id not in wanted]
    if not foreign:
        return mapped
    names = sorted({record.provider_id for record in foreign})
    if (len(names) > 1 or broken_before > 1) and wanted.isdisjoint(mapped.ids):
        raise EndpointHalted(
            f"nobody asked for any of the records that came: {names[0]!r:.80} came where"
            f" {asked[0]!r:.80} was asked for; the source writes its ids in another way, or answers"
            " another question; see response.id and detail.aliases"
        )
    # Behind all items of the answer: whose number is whose is not known any more.
    number = len(mapped.records) + len(mapped.bad) + mapped.out_of_window + mapped.skipped
    why = "nobody asked for it"
    strange = [
        BadItem(number + n, one.provider_id, "id", why, redact_text(one.payload.decode()))
        for n, one in enumerate(foreign, start=1)
    ]
    kept = [record for record in mapped.records if record.provider_id in wanted]
    return replace(mapped, records=kept, bad=[*mapped.bad, *strange])


def halves(ids: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return both halves of some ids."""
    middle = len(ids) // 2
    return ids[:middle], ids[middle:]
