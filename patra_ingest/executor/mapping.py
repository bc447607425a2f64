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
from patra_ingest.spec.places import FieldSpec
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


@dataclass(frozen=True)
class _Columns:
    """The values of a page, one list per thing that is looked for; an error stands in its place."""

    ids: list[Any]
    times: list[Any] | None
    deleted: list[Any] | None
    fields: list[tuple[FieldSpec, list[Any]]]


def map_items(items: Iterable[Any], spec: SpecSnapshot, asked: Window | None) -> Mapped:
    """Map every item; one that fails does not stop the others."""
    page = list(items)
    columns = _columns(page, spec)
    mapped = Mapped([], [], 0, [])
    dropped = 0
    for number, item in enumerate(page):
        found_id: str | None = None
        try:
            found_id = _provider_id(columns.ids[number], spec)
            mapped.ids.append(found_id)
            record = _record(item, found_id, columns, number, spec)
        except BadRecord as error:
            fragment = redact_text(orjson.dumps(item).decode())
            mapped.bad.append(BadItem(number + 1, found_id, error.path, error.reason, fragment))
            continue
        if _is_outside(record, spec, asked):
            dropped += 1
        else:
            mapped.records.append(record)
    return Mapped(mapped.records, mapped.bad, dropped, mapped.ids)


def _columns(page: list[Any], spec: SpecSnapshot) -> _Columns:
    times, deleted = spec.response.updated_at, spec.response.deleted
    return _Columns(
        compile_value(spec.response.id).column(page),
        None if times is None else compile_value(times).column(page),
        path(deleted).column(page) if isinstance(deleted, str) else None,
        [(field, compile_value(field.path).column(page)) for field in spec.fields],
    )


def _require_fit(value: Any, where: str) -> None:
    """Raise what was found instead of a value: the record's fault, not the page's."""
    if isinstance(value, ValueError):
        raise BadRecord(where, str(value)) from value


def _provider_id(value: Any, spec: SpecSnapshot) -> str:
    where = " or ".join(spec.response.id)
    _require_fit(value, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadRecord(where, f"no id here but {value!r}")
    text = str(value).strip()
    if not text or len(text) > _MAX_ID_CHARS:
        raise BadRecord(where, f"an id has 1 to {_MAX_ID_CHARS} characters, this one {len(text)}")
    return text


def _record(
    item: Any, provider_id: str, columns: _Columns, number: int, spec: SpecSnapshot
) -> NewRecord:
    fields: dict[str, Any] = {}
    is_deleted = columns.deleted is not None and bool(columns.deleted[number])
    for field, column in columns.fields:
        value = column[number]
        if isinstance(value, ValueError) or (value is None and field.required and not is_deleted):
            where = compile_value(field.path).text
            _require_fit(value, where)
            raise BadRecord(where, f"the required field {field.name} is missing")
        fields[field.name] = value
    return NewRecord(
        provider_id,
        None if columns.times is None else _updated_at(columns.times[number], spec, is_deleted),
        keys.content_hash(item),
        is_deleted,
        orjson.dumps(fields).decode(),
        orjson.dumps(item).decode(),
    )


def _updated_at(value: Any, spec: SpecSnapshot, may_lack: bool) -> datetime | None:
    where = " or ".join(spec.response.updated_at or ())
    _require_fit(value, where)
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


def _is_outside(record: NewRecord, spec: SpecSnapshot, asked: Window | None) -> bool:
    at = record.source_updated_at
    if asked is None or at is None:
        return False
    return spec.response.client_window and not asked.contains(at)
