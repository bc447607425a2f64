"""The `sys_dict_*` tables: the codes of `dictionary.yaml` with their labels and aliases.

What the file says wins over the rows; items and aliases that operators have added are left alone.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert_missing
from patra_ingest.registry.pack_file import read_pack_text

Row = dict[str, Any]
Ids = Mapping[tuple[Any, ...], int]
Ensured = tuple[int, Ids]


def load_dictionary(tx: Connection) -> int:
    """Make the rows say what `dictionary.yaml` says; return how many rows had to change."""
    declared = read_dictionary()
    cleared = _clear_other_defaults(tx, declared)
    changed, types = _ensure(tx, "sys_dict_type", ("type_code",), _type_rows(declared))
    more, items = _ensure(
        tx, "sys_dict_item", ("type_id", "item_code"), _item_rows(declared, types)
    )
    rest, _ = _ensure(
        tx,
        "sys_dict_item_alias",
        ("type_id", "source_system", "external_code"),
        _alias_rows(declared, types, items),
    )
    return cleared + changed + more + rest


def read_dictionary() -> Mapping[str, Any]:
    """Read `dictionary.yaml`: type code → name, custom, default, items, disabled, aliases."""
    file = resources.files("patra_ingest.registry") / "dictionary.yaml"
    return read_pack_text(file.read_text(encoding="utf-8"), "dictionary.yaml").value


_DEFAULTS = text("""
    SELECT i.id, t.type_code, i.item_code
      FROM sys_dict_item i
      JOIN sys_dict_type t ON t.id = i.type_id AND t.deleted = 0
     WHERE i.is_default = 1 AND i.deleted = 0
""")


def _clear_other_defaults(tx: Connection, declared: Mapping[str, Any]) -> int:
    # A type may have one default at any moment: the old one steps back before the new one comes.
    others = [
        row.id
        for row in tx.execute(_DEFAULTS)
        if row.type_code in declared and declared[row.type_code]["default"] != row.item_code
    ]
    for row_id in others:
        _update(tx, "sys_dict_item", row_id, {"is_default": 0})
    return len(others)


def _type_rows(declared: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "type_code": code,
            "type_name": entry["name"],
            "allow_custom_items": int(entry.get("custom", False)),
        }
        for code, entry in declared.items()
    ]


def _item_rows(declared: Mapping[str, Any], types: Ids) -> list[Row]:
    return [
        {
            "type_id": types[(code,)],
            "item_code": item,
            "item_name": label,
            "display_order": 10 * place,
            "is_default": int(item == entry["default"]),
            "enabled": int(item not in entry.get("disabled", ())),
        }
        for code, entry in declared.items()
        for place, (item, label) in enumerate(entry["items"].items(), start=1)
    ]


def _alias_rows(declared: Mapping[str, Any], types: Ids, items: Ids) -> list[Row]:
    return [
        {
            "type_id": types[(code,)],
            "source_system": system,
            "external_code": external,
            "item_id": items[(types[(code,)], item)],
        }
        for code, entry in declared.items()
        for system, names in entry.get("aliases", {}).items()
        for external, item in names.items()
    ]


def _ensure(tx: Connection, table: str, key: Sequence[str], rows: Sequence[Row]) -> Ensured:
    """Insert or correct `rows`; return how many changed, and the id of each by its key."""
    columns = list(rows[0])
    there = _rows_by_key(tx, table, key, columns)
    missing = [row for row in rows if _key(row, key) not in there]
    if missing:
        insert_missing(tx, table, missing)  # another process may be loading the same file
        there = _rows_by_key(tx, table, key, columns)
    ids = {mark: int(row["id"]) for mark, row in there.items()}
    wrong = [row for row in rows if not row.items() <= there[_key(row, key)].items()]
    for row in wrong:
        _update(tx, table, ids[_key(row, key)], row)
    return len(missing) + len(wrong), ids


def _rows_by_key(
    tx: Connection, table: str, key: Sequence[str], columns: Sequence[str]
) -> dict[tuple[Any, ...], Row]:
    asked = text(f"SELECT id, {', '.join(columns)} FROM {table} WHERE deleted = 0")
    return {_key(row, key): dict(row) for row in tx.execute(asked).mappings()}


def _key(row: Mapping[Any, Any], key: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in key)


def _update(tx: Connection, table: str, row_id: int, row: Row) -> None:
    settings = ", ".join(f"{name} = :{name}" for name in row)
    # MySQL dates the update itself.
    dated = "" if tx.dialect.name == "mysql" else ", updated_at = patra_now()"
    tx.execute(
        text(f"UPDATE {table} SET {settings}, version = version + 1{dated} WHERE id = :id"),
        {**row, "id": row_id},
    )
