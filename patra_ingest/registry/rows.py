"""A pack as the rows of the Registry it asks for, each under the key of its dimension."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from patra_ingest.model.codes import Operation, Scope
from patra_ingest.registry import books, credentials
from patra_ingest.registry.codecs import Columns
from patra_ingest.registry.endpoints import endpoint_columns, operation_request
from patra_ingest.registry.forms import json_form
from patra_ingest.registry.layouts import DIMENSIONS
from patra_ingest.registry.pack import Dimensions, Pack, SchedulePart
from patra_ingest.registry.provenance import evidence_form

ENDPOINT = "reg_prov_endpoint_def"
SCHEDULE = "reg_prov_schedule_cfg"

# What tells the rows of one source apart, beside their validity.
_SCOPED = ("scope_code", "task_type")
_BOUND = (*_SCOPED, "endpoint_name")
KEYS: Mapping[str, tuple[str, ...]] = {
    ENDPOINT: _BOUND,
    **{layout.table: _BOUND for layout in DIMENSIONS.values()},
    credentials.TABLE: (*_BOUND, "credential_name"),
    books.CAPABILITY: (*_SCOPED, "field_key"),
    books.RULE: (
        *(*_SCOPED, "field_key", "op_code", "match_type_code", "negated"),
        *("value_type_code", "emit_type_code"),
    ),
    books.PARAM: (*_BOUND, "operation_code", "std_key"),
    SCHEDULE: _BOUND,
}
TABLES = tuple(KEYS)


@dataclass(frozen=True)
class Wanted:
    """One row that a pack asks for: its dimension and its values."""

    table: str
    key: tuple[Any, ...]
    columns: Columns

    def named(self) -> dict[str, Any]:
        """Return the columns of the dimension's key."""
        return dict(zip(KEYS[self.table], self.key, strict=True))


def wanted_rows(pack: Pack) -> Iterator[Wanted]:
    """Yield every row that says what the pack says."""
    yield from _dimension_rows(pack, None, None)
    for operation, own in pack.operations.items():
        yield from _dimension_rows(own, operation, None)
    for name, endpoint in pack.endpoints.items():
        columns = endpoint_columns(endpoint, endpoint.request)
        yield Wanted(ENDPOINT, (*_scope(None), name), columns)
        yield from _dimension_rows(endpoint, None, name)
        for operation, part in endpoint.operations.items():
            if part.request:
                columns = endpoint_columns(endpoint, operation_request(part, endpoint))
                yield Wanted(ENDPOINT, (*_scope(operation), name), columns)
            yield from _dimension_rows(part, operation, name)
        for operation, schedule in endpoint.schedule.items():
            yield Wanted(SCHEDULE, (*_scope(operation), name), schedule_columns(schedule))
        yield from _credential_rows(endpoint.auth, name)
    yield from _credential_rows(pack.auth, None)
    yield from _book_rows(pack)


def _dimension_rows(
    part: Dimensions, operation: Operation | None, endpoint: str | None
) -> Iterator[Wanted]:
    for group, layout in DIMENSIONS.items():
        if (said := getattr(part, group)) is not None:
            columns = layout.write(json_form(said))
            yield Wanted(layout.table, (*_scope(operation), endpoint), columns)


def _credential_rows(auth: Any, endpoint: str | None) -> Iterator[Wanted]:
    for name, credential in ((auth and auth.credentials) or {}).items():
        key = (*_scope(None), endpoint, name)
        yield Wanted(credentials.TABLE, key, credentials.columns(credential))


def _book_rows(pack: Pack) -> Iterator[Wanted]:
    if pack.expressions is None:
        return
    for table, key, columns in books.book_rows(pack.expressions):
        yield Wanted(table, (*_scope(None), *key), columns)


def _scope(operation: Operation | None) -> tuple[str, str | None]:
    if operation is None:
        return (Scope.SOURCE.value, None)
    return (Scope.TASK.value, operation.value)


def provenance_columns(pack: Pack) -> Columns:
    """Return the `reg_provenance` columns of a pack."""
    part = pack.provenance
    return {
        "provenance_code": part.code,
        "provenance_name": part.name,
        "base_url_default": part.base_url,
        "timezone_default": part.timezone,
        "docs_url": part.docs_url,
        "extra": books.settings_column(pack.expressions, pack.auth, evidence_form(part)),
    }


def schedule_columns(part: SchedulePart) -> Columns:
    """Return the `reg_prov_schedule_cfg` columns of one schedule."""
    return {
        "cron": part.cron,
        "is_enabled": int(part.enabled),
        "courtesy": None,  # said in `planning` since, and of the source, not of a schedule
    }
