"""An item becomes a record, or a bad item with the field that is to blame."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from patra_ingest.errors import BadRecord
from patra_ingest.executor.decoding import path
from patra_ingest.expr.value import compile_value
from patra_ingest.model import keys
from patra_ingest.model.records import BadItem, NewRecord
from patra_ingest.model.window import Window
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.redact import redact_text

_MAX_ID_CHARS = 512


@dataclass(frozen=True)
class Mapped:
    """What a page's items became; every item is in exactly one of the three."""

    records: list[NewRecord]
    bad: list[BadItem]
    out_of_window: int
    ids: list[str]

    @property
    def observed_max(self) -> datetime | None:
        """The newest update time seen: evidence, never the cursor."""
        times = (r.source_updated_at for r in self.records if r.source_updated_at)
        return max(times, default=None)


def map_items(items: Iterable[Any], spec: SpecSnapshot, asked: Window) -> Mapped:
    """Map every item; one that fails does not stop the others."""
    mapped = Mapped([], [], 0, [])
    dropped = 0
    for number, item in enumerate(items, start=1):
        found_id: str | None = None
        try:
            found_id = _provider_id(item, spec)
            mapped.ids.append(found_id)
            record = _record(item, found_id, spec)
        except BadRecord as error:
            fragment = redact_text(orjson.dumps(item).decode())
            mapped.bad.append(BadItem(number, found_id, error.path, error.reason, fragment))
            continue
        if _is_outside(record, spec, asked):
            dropped += 1
        else:
            mapped.records.append(record)
    return Mapped(mapped.records, mapped.bad, dropped, mapped.ids)


def _provider_id(item: Any, spec: SpecSnapshot) -> str:
    where = " or ".join(spec.response.id)
    value = _found(spec.response.id, item)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadRecord(where, f"no id here but {value!r}")
    text = str(value).strip()
    if not text or len(text) > _MAX_ID_CHARS:
        raise BadRecord(where, f"an id has 1 to {_MAX_ID_CHARS} characters, this one {len(text)}")
    return text


def _found(said: str | tuple[str, ...], item: Any) -> Any:
    """Find a value in an item; one that does not fit is the record's fault, not the page's."""
    expression = compile_value(said)
    try:
        return expression.find(item)
    except ValueError as error:
        raise BadRecord(expression.text, str(error)) from error


def _record(item: Any, provider_id: str, spec: SpecSnapshot) -> NewRecord:
    fields: dict[str, Any] = {}
    deleted = spec.response.deleted
    is_deleted = isinstance(deleted, str) and bool(path(deleted).first(item))
    for field in spec.fields:
        value = _found(field.path, item)
        if value is None and field.required and not is_deleted:
            where = compile_value(field.path).text
            raise BadRecord(where, f"the required field {field.name} is missing")
        fields[field.name] = value
    return NewRecord(
        provider_id,
        _updated_at(item, spec, is_deleted),
        keys.content_hash(item),
        is_deleted,
        orjson.dumps(fields).decode(),
        orjson.dumps(item).decode(),
    )


def _updated_at(item: Any, spec: SpecSnapshot, may_lack: bool) -> datetime | None:
    if spec.response.updated_at is None:
        return None
    where = " or ".join(spec.response.updated_at)
    value = _found(spec.response.updated_at, item)
    if value is None and may_lack:  # a tombstone often says no more than its id
        return None
    if value is None:
        raise BadRecord(where, "the update time is missing")
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if not isinstance(value, str):
        raise BadRecord(where, f"an update time is text, this is {value!r}")
    try:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=ZoneInfo(spec.window.zone))
        return parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRecord(where, f"{value!r} is no ISO time") from None


def _is_outside(record: NewRecord, spec: SpecSnapshot, asked: Window) -> bool:
    at = record.source_updated_at
    return spec.response.client_window and at is not None and not asked.contains(at)
