"""Rows of a source as they were valid at an instant, and the change from one row to the next.

A row of `reg_prov_*` is never edited: it is closed, and another one opens at that instant. The
provenance row has no validity of its own, so its earlier values stay in its remarks.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DataError

from patra_ingest.errors import PackError, UnknownName
from patra_ingest.ledger.db import insert, instant_text, json_text, read_instant, read_json
from patra_ingest.model.window import parse_instant
from patra_ingest.registry.codecs import Columns, Row

_ACTIVE = "deleted = 0 AND lifecycle_status_code = 'ACTIVE'"
_WITHOUT_LIFECYCLE = (
    "reg_prov_expr_capability",
    "reg_prov_expr_render_rule",
    "reg_prov_api_param_map",
)
_VALID = "effective_from <= :at AND (effective_to IS NULL OR effective_to > :at)"
_NEWEST = "effective_from DESC, id DESC"
_BEFORE = "before"  # the type of a remark that keeps what a provenance row said earlier


def find_provenance(tx: Connection, code: str, for_update: bool = False) -> Row | None:
    """Return the row of a source, also of one that is not active; `for_update` locks it."""
    lock = " FOR UPDATE" if for_update and tx.dialect.name == "mysql" else ""
    query = text(f"SELECT * FROM reg_provenance WHERE provenance_code = :c AND deleted = 0{lock}")
    found = tx.execute(query, {"c": code.lower()}).mappings().one_or_none()
    return None if found is None else dict(found)


def get_provenance(tx: Connection, code: str, at: datetime) -> Row:
    """Return an active source as it was at `at`; UnknownName lists those there are."""
    found = find_provenance(tx, code)
    if found is None or not found["is_active"] or found["lifecycle_status_code"] != "ACTIVE":
        query = text(
            "SELECT provenance_code FROM reg_provenance"
            f" WHERE {_ACTIVE} AND is_active = 1 ORDER BY provenance_code"
        )
        listed = ", ".join(tx.execute(query).scalars()) or "none yet"
        raise UnknownName(
            f"There is no source {code!r} in the Registry.",
            f"Known sources: {listed}. Add one with `patra registry apply FILE`.",
        )
    return provenance_at(found, at)


def provenance_at(row: Row, at: datetime) -> Row:
    """Return the row with the values that it had at `at`."""
    earlier = dict(row)
    for remark in reversed(read_json(row["record_remarks"]) or []):
        if remark.get("type") == _BEFORE and parse_instant(remark["time"]) > at:
            earlier.update(remark["data"])
    return earlier


def change_provenance(tx: Connection, row: Row, columns: Columns, at: datetime) -> None:
    """Change a source's row from `at` on and keep what it said before."""
    remarks = read_json(row["record_remarks"]) or []
    before = {name: row[name] for name in columns}
    remark = {
        "time": at,
        "by": "registry",
        "note": "changed by a pack",
        "type": _BEFORE,
        "data": before,
    }
    assignments = ", ".join(f"{name} = :{name}" for name in columns)
    query = text(
        f"UPDATE reg_provenance SET {assignments}, record_remarks = :remarks,"
        " version = version + 1, updated_at = :now WHERE id = :id"
    )
    values = {**columns, "remarks": json_text([*remarks, remark]), "now": instant_text(at)}
    tx.execute(query, {**values, "id": row["id"]})


def rows_at(tx: Connection, table: str, provenance_id: int, at: datetime) -> list[Row]:
    """Return the rows of a source that are valid at `at`, newest first."""
    query = text(
        f"SELECT * FROM {table} WHERE provenance_id = :id AND {_live(table)} AND {_VALID}"
        f" ORDER BY {_NEWEST}"
    )
    found = tx.execute(query, {"id": provenance_id, "at": instant_text(at)}).mappings()
    return [dict(row) for row in found]


def rows_from(tx: Connection, table: str, provenance_id: int, at: datetime) -> list[Row]:
    """Return the rows of a source that are valid at `at` or will be later, newest first."""
    query = text(
        f"SELECT * FROM {table} WHERE provenance_id = :id AND {_live(table)}"
        f" AND (effective_to IS NULL OR effective_to > :at) ORDER BY {_NEWEST}"
    )
    found = tx.execute(query, {"id": provenance_id, "at": instant_text(at)}).mappings()
    return [dict(row) for row in found]


def _live(table: str) -> str:
    return "deleted = 0" if table in _WITHOUT_LIFECYCLE else _ACTIVE


def close_row(tx: Connection, table: str, row_id: int, at: datetime) -> None:
    """End the validity of a row."""
    query = text(
        f"UPDATE {table} SET effective_to = :at, version = version + 1, updated_at = :at"
        " WHERE id = :id"
    )
    tx.execute(query, {"at": instant_text(at), "id": row_id})


def open_row(tx: Connection, table: str, values: Mapping[str, Any], at: datetime) -> int:
    """Insert a row that is valid from `at` on."""
    try:
        return insert(tx, table, {**values, "effective_from": instant_text(at)})
    except DataError as error:  # MySQL's columns have a width; SQLite's have none
        raise PackError(
            f"A value does not fit its column in {table} ({error.orig}).", "Shorten it."
        ) from error


def valid_from(row: Row) -> datetime:
    """Return the instant a row became valid."""
    return read_instant(row["effective_from"])
