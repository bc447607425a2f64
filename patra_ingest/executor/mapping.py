"""An item becomes a record, or a bad item with the field that is to blame."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.columns import (
    FieldColumn,
    IdColumn,
    TimeColumn,
    Unfit,
    deleted_flags,
    find_id_flaw,
    flags,
    id_text,
    require_storable,
)
from patra_ingest.executor.looks import fields_of, looks_of
from patra_ingest.executor.malformed import MalformedItem
from patra_ingest.executor.trees import plain
from patra_ingest.expr.xml_tree import XmlNode
from patra_ingest.model import keys
from patra_ingest.model.records import BadItem, NewRecord
from patra_ingest.model.window import Window
from patra_ingest.spec.snapshot import CallSpec
from patra_ingest.transport.redact import redact_text

_REASON_CHARS = 512
_VALUE_CHARS = 256
_FRAGMENT_CHARS = 1024
_ELEMENTS_AT_ONCE = 64  # as many as a stream keeps open


@dataclass(frozen=True)
class Mapped:
    """What a page's items became; every item is a record, bad, out of the window, or skipped."""

    records: list[NewRecord]
    bad: list[BadItem]
    out_of_window: int
    ids: list[str]  # of every item that has one
    skipped: int = 0  # items that the pack says are no records
    hollow: int = 0  # bad ones with nothing wrong in them but that their content is not there yet

    @cached_property
    def packed_ids(self) -> str:
        """The ids as the ledger keeps them to count them."""
        return pack_ids(self.ids)

    @property
    def observed_max(self) -> datetime | None:
        """The newest update time seen: evidence, never the cursor."""
        times = (r.source_updated_at for r in self.records if r.source_updated_at)
        return max(times, default=None)

    @property
    def first_time(self) -> datetime | None:
        """The update time that the page begins with."""
        return next((r.source_updated_at for r in self.records if r.source_updated_at), None)

    @property
    def is_ascending(self) -> bool:
        """Whether update times never fall from one record to the next."""
        times = [r.source_updated_at for r in self.records if r.source_updated_at]
        return all(one <= other for one, other in pairwise(times))

    @property
    def broken(self) -> int:
        """How many items are bad, and not merely hollow, if nothing else came; else none."""
        is_all = not (self.records or self.out_of_window or self.skipped)
        return len(self.bad) - self.hollow if is_all else 0


class _Hollow(Unfit):
    """An item whose content is not there yet."""


def map_items(items: Iterable[Any], call: CallSpec, zone: str, asked: Window | None) -> Mapped:
    """Map every item; one that fails does not stop the others.

    `zone` is the zone of times that say none, `asked` the window that items are held against where
    the source filters coarsely.
    """
    limits = asked if call.response.client_window else None
    records: list[NewRecord] = []
    bad: list[BadItem] = []
    ids: list[str] = []
    outside = skipped = hollow = 0
    for page in _portions(list(items), call, ZoneInfo(zone)):
        for number in range(len(page.items)):
            try:
                record = page.find_record(number)
            except Unfit as error:
                bad.append(page.bad_item(number, error))
                hollow += isinstance(error, _Hollow)
                continue
            if record is None:
                skipped += 1
            elif limits is not None and _is_outside(record, limits):
                outside += 1
            else:
                records.append(record)
        ids += page.ids.values()
    return Mapped(records, bad, outside, ids, skipped, hollow)


def _portions(items: list[Any], call: CallSpec, zone: ZoneInfo) -> "Iterator[_Page]":
    """Yield the items in portions: elements a few at a time, while they are at hand."""
    is_xml = bool(items) and isinstance(items[0], XmlNode)
    size = _ELEMENTS_AT_ONCE if is_xml else max(1, len(items))
    looks = looks_of(call) if is_xml else None
    for start in range(0, len(items), size):
        portion = items[start : start + size]
        if looks is not None:
            looks.prepare(portion)
        kind = _PageWithMalformed if MalformedItem in map(type, portion) else _Page
        yield kind(portion, call, zone, start)
        for item in portion if is_xml else ():
            item.found = None


def tombstones(ids: Sequence[str]) -> list[NewRecord]:
    """Return the deletions that ids stand for; `set_apart` finds what cannot be an id.

    They have no time of their own: a record keeps the one it has, so that an older version which
    arrives later stays old, and one that is as new brings the record back.
    """
    return [
        NewRecord(one, None, keys.content_hash({"deleted": one}), True, b"", b"")
        for one in map(id_text, ids)
    ]


def set_apart(mapped: Mapped, listed: int) -> Mapped:
    """Return the same with the tombstones that cannot be ids among the bad items.

    They are numbered behind the `listed` items of their page.
    """
    unfit = [
        (record.provider_id, flaw)
        for record in mapped.records
        if record.is_tombstone and (flaw := find_id_flaw(record.provider_id))
    ]
    if not unfit:
        return mapped
    gone = {one for one, _ in unfit}
    kept = [one for one in mapped.records if not one.is_tombstone or one.provider_id not in gone]
    first = max(listed, *(item.item_no for item in mapped.bad), 0) + 1
    bad = [
        BadItem(
            number,
            None,
            "response.tombstones",
            flaw,
            redact_text(one, _FRAGMENT_CHARS),
            redact_text(one, _VALUE_CHARS),
        )
        for number, (one, flaw) in enumerate(unfit, first)
    ]
    return replace(mapped, records=kept, bad=[*mapped.bad, *bad])


class _Page:
    """Everything that is looked for in the items of a page, or of a portion of one."""

    def __init__(self, items: list[Any], call: CallSpec, zone: ZoneInfo, start: int) -> None:
        said = call.response
        self.items = items
        self._start = start
        self.ids: dict[int, str] = {}  # by the item's place: those that could be read
        self._ids = IdColumn(said.id, items)
        self._times = TimeColumn(said.updated_at, items, zone) if said.updated_at else None
        self._fields = [FieldColumn(field, items) for field in fields_of(call)]
        self._names = [field.name for field in self._fields]
        values = [field.all_values() for field in self._fields]
        known = [column for column in values if column is not None]
        is_known = len(known) == len(values) and bool(known)
        self._rows = [*zip(*known, strict=True)] if is_known else None  # else one by one
        self._deleted = deleted_flags(said.deleted, items)
        self._skipped = flags(said.skip, items)
        self._usable = flags(said.usable, items)
        self._usable_path = (said.usable and said.usable.path) or "$"
        is_named = any(field.name == "retracted" for field in call.fields)
        self._retracted = None if is_named else flags(said.retracted, items)

    def find_record(self, number: int) -> NewRecord | None:
        """Return the record an item is, or None for one to skip; raise Unfit for a bad one."""
        is_skipped = self._skipped is not None and self._skipped[number]
        try:
            provider_id = self.ids[number] = self._ids.id_of(number)
        except Unfit:
            if is_skipped:
                return None
            raise
        return None if is_skipped else self._record(number, provider_id)

    def _record(self, number: int, provider_id: str) -> NewRecord:
        is_deleted = self._deleted is not None and self._deleted[number]
        if self._usable is not None and not is_deleted and not self._usable[number]:
            raise _Hollow(self._usable_path, "the item is hollow, asked for later")
        fields = self._fields_of(number, is_deleted)
        if self._retracted is not None:
            fields["retracted"] = self._retracted[number]
        updated = self._times.time_of(number, is_deleted) if self._times else None
        item = self.items[number]
        try:
            kept = orjson.dumps(fields)
            require_storable(fields, kept)
            if isinstance(item, XmlNode):
                payload = item.to_json()
                hashed = keys.text_hash(payload)
            else:
                payload, hashed = orjson.dumps(item), keys.content_hash(item)
        except orjson.JSONEncodeError as error:
            raise Unfit("$", f"the item cannot be written as JSON: {error}") from error
        return NewRecord(provider_id, updated, hashed, is_deleted, kept, payload)

    def _fields_of(self, number: int, is_deleted: bool) -> dict[str, Any]:
        if self._rows is not None:
            return dict(zip(self._names, self._rows[number], strict=True))
        return {field.name: field.value_of(number, is_deleted) for field in self._fields}

    def bad_item(self, number: int, error: Unfit) -> BadItem:
        """Return what is kept of an item that cannot be mapped; nothing in it is a secret."""
        return BadItem(
            self._start + number + 1,
            self.ids.get(number),
            error.path,
            redact_text(error.reason, _REASON_CHARS),
            redact_text(_written(self.items[number]), _FRAGMENT_CHARS),
            None if error.value is None else redact_text(_written(error.value), _VALUE_CHARS),
        )


class _PageWithMalformed(_Page):
    """A page of which some items hold what JSON does not have; their ids may still be sound."""

    def find_record(self, number: int) -> NewRecord | None:
        item = self.items[number]
        if not isinstance(item, MalformedItem):
            return super().find_record(number)
        with suppress(Unfit):
            self.ids[number] = self._ids.id_of(number)
        raise Unfit(item.path, item.value.reason, str(item.value))


def _is_outside(record: NewRecord, asked: Window) -> bool:
    at = record.source_updated_at
    return at is not None and not asked.contains(at)


def _written(value: Any) -> str:
    """Write an item or a value for people, whatever it is."""
    value = value.whole if isinstance(value, MalformedItem) else plain(value)
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested deeper, or a number larger, than can be written
        return f"{value!r:.4096}"
