"""One list of codes: the enums, the dictionary and the CHECKs of both dialects say the same."""

import re
from collections.abc import Mapping

import pytest
from sqlalchemy import Connection, inspect, text

from patra_ingest.ledger.db import insert
from patra_ingest.model.codes import (
    DICTIONARY,
    CursorDirection,
    NamespaceScope,
    Operation,
    default_priority,
    direction,
    namespace_scope,
)
from patra_ingest.registry.dictionary import load_dictionary, read_dictionary

# The dictionary type of each column that a CHECK restricts; a status belongs to its table.
TYPE_OF = {
    "operation_code": "ing_operation",
    "scheduler_code": "ing_scheduler",
    "trigger_type_code": "ing_trigger_type",
    "slice_strategy_code": "ing_slice_strategy",
    "namespace_scope_code": "ing_namespace_scope",
    "cursor_type_code": "ing_cursor_type",
    "direction_code": "ing_cursor_direction",
    "kind_code": "ing_quarantine_kind",
    "reason_code": "ing_hold_reason",
}
STATUS_OF = {
    "ing_plan": "ing_plan_status",
    "ing_plan_slice": "ing_slice_status",
    "ing_task": "ing_task_status",
    "ing_task_run": "ing_task_run_status",
    "ing_task_run_batch": "ing_batch_status",
    "ing_outbox_message": "ing_outbox_status",
    "ing_quarantine": "ing_quarantine_status",
    "ing_signal": "ing_signal_status",
    "ing_reslice_request": "ing_reslice_status",
}


def type_of(table: str, column: str) -> str:
    return STATUS_OF[table] if column == "status_code" else TYPE_OF[column]


def checked_codes(tx: Connection) -> Mapping[tuple[str, str], list[str]]:
    """What each `CHECK (column IN (…))` of the ledger lets in, by table and column."""
    found = {}
    for table in inspect(tx).get_table_names():
        if tx.dialect.name == "mysql":
            ddl = tx.execute(text(f"SHOW CREATE TABLE {table}")).one()[1]
            ddl = ddl.replace("_utf8mb4", "").replace("`", "")
        else:
            ddl = tx.execute(text(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")).scalar()
        pattern = r"CHECK \(+\s*(\w+) in \(([^)]*)\)\s*\)"
        for column, codes in re.findall(pattern, ddl, re.IGNORECASE):
            found[table, column] = re.findall(r"'(\w+)'", codes)
    return found


def test_the_checks_let_in_exactly_the_enums(db):
    with db.read() as tx:
        checked = checked_codes(tx)

    assert {table for table, column in checked if column == "status_code"} == STATUS_OF.keys()
    assert {column for _, column in checked} == TYPE_OF.keys() | {"status_code"}
    for (table, column), codes in checked.items():
        assert codes == list(DICTIONARY[type_of(table, column)]), (table, column)


def test_every_operation_column_of_the_ingest_is_checked(db):
    with db.read() as tx:
        checked = checked_codes(tx)
        for table in inspect(tx).get_table_names():
            columns = [column["name"] for column in inspect(tx).get_columns(table)]
            if table.startswith("ing_") and "operation_code" in columns:
                assert (table, "operation_code") in checked, table


def test_a_column_starts_with_the_default_of_its_dictionary(db):
    declared = read_dictionary()
    with db.read() as tx:
        checked = checked_codes(tx)
        for table, column in checked:
            known = {seen["name"]: seen for seen in inspect(tx).get_columns(table)}
            default = known[column]["default"]
            if default is not None:
                expected = declared[type_of(table, column)]["default"]
                assert default.strip("'") == expected, (table, column)


def test_the_file_says_what_the_enums_say():
    declared = read_dictionary()

    assert declared.keys() == DICTIONARY.keys()
    for type_code, entry in declared.items():
        assert list(entry["items"]) == list(DICTIONARY[type_code]), type_code
        assert entry["default"] in entry["items"]
        assert {*entry.get("disabled", ())} <= {*entry["items"]} - {entry["default"]}


ROWS = text("""
    SELECT t.type_code, i.item_code, i.is_default, i.enabled
      FROM sys_dict_item i JOIN sys_dict_type t ON t.id = i.type_id
     ORDER BY t.id, i.display_order
""")


def test_the_dictionary_rows_equal_the_enums(db):
    with db.write() as tx:
        load_dictionary(tx)
        rows = tx.execute(ROWS).all()

    for type_code, codes in DICTIONARY.items():
        mine = [row for row in rows if row.type_code == type_code]
        assert [row.item_code for row in mine] == list(codes), type_code
        assert sum(row.is_default for row in mine) == 1, type_code
    assert [row.item_code for row in rows if not row.enabled] == ["METRICS"]


def test_loading_the_dictionary_again_changes_nothing(db):
    with db.write() as tx:
        first = load_dictionary(tx)
    with db.write() as tx:
        assert load_dictionary(tx) == 0
        choices = tx.execute(text("SELECT COUNT(*) FROM v_sys_dict_item_enabled")).scalar()

    assert choices == sum(map(len, DICTIONARY.values())) - 1
    assert first > choices


def test_the_file_wins_over_changed_rows_and_leaves_added_ones_alone(db):
    with db.write() as tx:
        load_dictionary(tx)
        usage = tx.execute(
            text("SELECT id FROM sys_dict_type WHERE type_code = 'endpoint_usage'")
        ).scalar()
        tx.execute(text("UPDATE sys_dict_item SET item_name = 'x' WHERE item_code = 'HARVEST'"))
        tx.execute(text("UPDATE sys_dict_item SET is_default = 0 WHERE item_code = 'SEARCH'"))
        ours = {"type_id": usage, "item_code": "RSS", "item_name": "Feed", "is_default": 1}
        insert(tx, "sys_dict_item", ours)
    with db.write() as tx:
        # HARVEST, SEARCH in two lists, and RSS, which is the default no more.
        assert load_dictionary(tx) == 4
        assert load_dictionary(tx) == 0
        kept = tx.execute(text("SELECT item_name FROM sys_dict_item WHERE item_code = 'RSS'"))
        assert kept.scalar() == "Feed"


@pytest.mark.parametrize(
    ("operation", "scope", "way", "priority"),
    [
        (Operation.HARVEST, NamespaceScope.EXPR, CursorDirection.FORWARD, 3),
        (Operation.UPDATE, NamespaceScope.CUSTOM, CursorDirection.FORWARD, 5),
        (Operation.BACKFILL, NamespaceScope.CUSTOM, CursorDirection.BACKFILL, 7),
    ],
)
def test_each_operation_has_its_namespace_direction_and_priority(operation, scope, way, priority):
    assert namespace_scope(operation) is scope
    assert direction(operation) is way
    assert default_priority(operation) == priority
