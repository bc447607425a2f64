"""A pack becomes `reg_*` rows, with history.

A changed dimension closes its old row at the instant the new one opens; an unchanged one is left
alone, so applying the same pack twice changes nothing. No function here commits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert, instant_text, json_text, read_instant, read_json
from patra_ingest.model.codes import Scope
from patra_ingest.registry import rows
from patra_ingest.registry.pack import Pack


@dataclass(frozen=True)
class Change:
    """One row that was opened, replaced or closed, named as people would."""

    action: str
    what: str


@dataclass(frozen=True)
class _Wanted:
    """One row the pack asks for: its table, its dimension and its values."""

    table: str
    scope: Scope
    task_type: str | None
    endpoint_name: str | None
    columns: rows.Columns

    @property
    def dimension(self) -> tuple[str, str | None, str | None]:
        return (self.scope.value, self.task_type, self.endpoint_name)


TABLES = (
    "reg_prov_endpoint_def",
    "reg_prov_pagination_cfg",
    "reg_prov_window_offset_cfg",
    "reg_prov_http_cfg",
    "reg_prov_retry_cfg",
    "reg_prov_rate_limit_cfg",
)


def apply_pack(tx: Connection, pack: Pack, now: datetime) -> list[Change]:
    """Make the Registry say what `pack` says, from `now` on; return what changed."""
    provenance_id, changes = _apply_provenance(tx, pack, now)
    wanted = list(_wanted_rows(pack))
    for table in TABLES:
        current = _current_rows(tx, table, provenance_id)
        asked = {row.dimension: row for row in wanted if row.table == table}
        for dimension in current.keys() - asked.keys():
            _close(tx, table, current[dimension]["id"], now)
            changes.append(Change("closed", _describe(table, dimension)))
        for dimension, row in asked.items():
            changes.extend(_apply_row(tx, provenance_id, row, current.get(dimension), now))
    return changes


def _wanted_rows(pack: Pack) -> Iterator[_Wanted]:
    for name, endpoint in pack.endpoints.items():
        for operation in endpoint.operations:
            yield _Wanted(
                "reg_prov_endpoint_def",
                Scope.TASK,
                operation.value,
                name,
                rows.endpoint_columns(endpoint),
            )
        for table, columns in (
            ("reg_prov_pagination_cfg", rows.pagination_columns(endpoint)),
            ("reg_prov_window_offset_cfg", rows.window_columns(endpoint)),
        ):
            yield _Wanted(table, Scope.SOURCE, None, name, columns)
    for table, columns in (
        ("reg_prov_http_cfg", rows.http_columns(pack.http)),
        ("reg_prov_retry_cfg", rows.retry_columns(pack.retry)),
        ("reg_prov_rate_limit_cfg", rows.rate_columns(pack.rate)),
    ):
        yield _Wanted(table, Scope.SOURCE, None, None, columns)


def _apply_provenance(tx: Connection, pack: Pack, now: datetime) -> tuple[int, list[Change]]:
    columns = rows.provenance_columns(pack)
    found = (
        tx.execute(
            text("SELECT * FROM reg_provenance WHERE provenance_code = :code AND deleted = 0"),
            {"code": pack.provenance.code},
        )
        .mappings()
        .one_or_none()
    )
    what = f"provenance {pack.provenance.code}"
    if found is None:
        return insert(tx, "reg_provenance", columns), [Change("opened", what)]
    if _same(dict(found), columns):
        return int(found["id"]), []
    assignments = ", ".join(f"{name} = :{name}" for name in columns)
    tx.execute(
        text(
            f"UPDATE reg_provenance SET {assignments}, version = version + 1, updated_at = :now "
            "WHERE id = :id"
        ),
        {**columns, "id": found["id"], "now": instant_text(now)},
    )
    return int(found["id"]), [Change("changed", what)]


def _current_rows(
    tx: Connection, table: str, provenance_id: int
) -> dict[tuple[str, str | None, str | None], Mapping[str, Any]]:
    found = tx.execute(
        text(
            f"SELECT * FROM {table} WHERE provenance_id = :id AND deleted = 0 "
            "AND lifecycle_status_code = 'ACTIVE' AND effective_to IS NULL"
        ),
        {"id": provenance_id},
    ).mappings()
    return {(row["scope_code"], row["task_type"], row["endpoint_name"]): dict(row) for row in found}


def _apply_row(
    tx: Connection,
    provenance_id: int,
    wanted: _Wanted,
    current: Mapping[str, Any] | None,
    now: datetime,
) -> Iterator[Change]:
    if current is not None and _same(current, wanted.columns):
        return
    if current is not None:
        # Every row is valid for a moment at least, also when two changes fall into one instant.
        now = max(now, read_instant(current["effective_from"]) + timedelta(microseconds=1))
        _close(tx, wanted.table, current["id"], now)
    insert(
        tx,
        wanted.table,
        {
            "provenance_id": provenance_id,
            "scope_code": wanted.scope.value,
            "task_type": wanted.task_type,
            "endpoint_name": wanted.endpoint_name,
            "effective_from": instant_text(now),
            **{name: _stored(name, value) for name, value in wanted.columns.items()},
        },
    )
    what = _describe(wanted.table, wanted.dimension)
    yield Change("opened" if current is None else "replaced", what)


def _close(tx: Connection, table: str, row_id: int, now: datetime) -> None:
    tx.execute(
        text(
            f"UPDATE {table} SET effective_to = :now, version = version + 1, updated_at = :now "
            "WHERE id = :id"
        ),
        {"now": instant_text(now), "id": row_id},
    )


def _same(row: Mapping[str, Any], columns: rows.Columns) -> bool:
    return all(_comparable(name, row[name]) == value for name, value in columns.items())


def _comparable(name: str, stored: Any) -> Any:
    if name in rows.JSON_COLUMNS:
        return read_json(stored)
    if name == "initial_from" and stored is not None:
        return str(stored) if isinstance(stored, str) else stored.strftime("%Y-%m-%d %H:%M:%S.%f")
    # MySQL keeps 0.1 exactly, as a Decimal that no float is equal to.
    return float(stored) if isinstance(stored, Decimal) else stored


def _stored(name: str, value: Any) -> Any:
    return json_text(value) if name in rows.JSON_COLUMNS and value is not None else value


def _describe(table: str, dimension: tuple[str, str | None, str | None]) -> str:
    _scope, task_type, endpoint = dimension
    kind = table.removeprefix("reg_prov_").removesuffix("_cfg").removesuffix("_def")
    return " ".join(part for part in (kind.replace("_", " "), endpoint, task_type) if part)
