"""What the tables promise by themselves, whatever the code does: on SQLite and MySQL alike."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text, types
from sqlalchemy.exc import DBAPIError, IntegrityError

from patra_ingest.ledger.db import insert, instant_text, open_db

NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

# Columns whose content the schema restricts; everything else a row needs is made up from its type.
LEGAL: dict[str, Any] = {
    "type_code": "type_{n}",
    "item_code": "ITEM_{n}",
    "source_system": "system_{n}",
    "scope_code": "SOURCE",
    "operation_code": "HARVEST",
    "slice_strategy_code": "TIME",
    "namespace_scope_code": "EXPR",
    "cursor_type_code": "TOKEN",
    "direction_code": "FORWARD",
    "kind_code": "ITEM",
}
LEGAL_IN = {"ing_hold": {"reason_code": "L4"}}

# The columns a derived key column is made of.
MADE_OF = {
    "task_type_key": ["task_type"],
    "endpoint_name_key": ["endpoint_name"],
    "credential_name_key": ["credential_name"],
    "endpoint_id_key": ["endpoint_id"],
    "match_type_key": ["match_type_code"],
    "negated_key": ["negated"],
    "value_type_key": ["value_type_code"],
    "live_key": ["deleted"],
    "active_key": ["resumed_at", "deleted"],
    "default_key": ["type_id", "is_default", "enabled", "deleted"],
    "preferred_1": ["is_default_preferred", "effective_to"],
}


def tables(tx: Connection) -> list[str]:
    return [name for name in inspect(tx).get_table_names() if "yoyo" not in name]


def a_row(tx: Connection, table: str, n: int = 1, **given: object) -> dict[str, Any]:
    """The n-th legal row of a table: only what must be said, and `given`."""
    row = {}
    for column in inspect(tx).get_columns(table):
        name = column["name"]
        needed = not column["nullable"] and column["default"] is None and name != "id"
        numbered = name in ("attempt_no", "batch_no")
        if (needed or numbered) and "computed" not in column:
            legal = LEGAL_IN.get(table, {}).get(name) or LEGAL.get(name)
            row[name] = legal.format(n=n) if legal else a_value(name, column["type"], n)
    return row | given


def a_value(name: str, kind: object, n: int) -> object:
    if name.endswith(("_at", "_from", "_to")):
        return instant_text(NOON + n * HOUR + (HOUR / 2 if name.endswith("_to") else 0 * HOUR))
    if isinstance(kind, (types.Integer, types.Numeric)):
        return n
    if name in ("ops", "spec_snapshot", "slice_spec", "payload_json"):
        return "{}"
    digest = hashlib.sha256(f"{name}{n}".encode()).hexdigest()
    return digest[: getattr(kind, "length", None) or 64][:64]


def unique_keys(tx: Connection, table: str) -> dict[str, list[str]]:
    found = inspect(tx).get_indexes(table)
    return {
        str(key["name"]): [str(c) for c in key["column_names"]] for key in found if key["unique"]
    }


def family(kind: object) -> str:
    """What both engines keep alike: SQLite has no types for instants, dates and JSON."""
    families = {
        "integer": types.Integer,
        "real": types.Float,
        "decimal": types.Numeric,
        "bytes": (types.LargeBinary, types._Binary),
        "text": (types.String, types.JSON, types.DateTime, types.Date),
    }
    return next(name for name, kinds in families.items() if isinstance(kind, kinds))


def default(column: dict[str, Any]) -> str | None:
    said = column["default"]
    if said is None:
        return None
    if "CURRENT_TIMESTAMP" in said or "strftime" in said:
        return "now"
    plain = str(said).strip("()'")
    return str(float(plain)) if re.fullmatch(r"[\d.]{1,20}", plain) else plain


def shape(tx: Connection) -> dict[str, Any]:
    """Everything about the schema that must not depend on the engine."""
    seen = inspect(tx)
    return {
        table: {
            "columns": [
                (c["name"], c["nullable"], family(c["type"]), default(c), "computed" in c)
                for c in seen.get_columns(table)
            ],
            "keys": sorted(
                # Index names are unique per database on SQLite: the audit ones end in the table.
                (str(i["name"]).removesuffix(f"__{table}"), bool(i["unique"]), i["column_names"])
                for i in seen.get_indexes(table)
            ),
            "checks": sorted(check_names(tx, table)),
        }
        for table in tables(tx)
    } | {view: [c["name"] for c in seen.get_columns(view)] for view in seen.get_view_names()}


def check_names(tx: Connection, table: str) -> list[str]:
    if tx.dialect.name == "mysql":
        ddl = tx.execute(text(f"SHOW CREATE TABLE {table}")).one()[1]
    else:
        ddl = tx.execute(text(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")).scalar()
    return re.findall(r"CONSTRAINT `?(\w+)`? CHECK", ddl)


def test_both_dialects_describe_the_same_ledger(sqlite_url, mysql_url):
    sqlite, mysql = open_db(sqlite_url), open_db(mysql_url)
    with sqlite.read() as left, mysql.read() as right:
        expected, found = shape(left), shape(right)
    sqlite.close()
    mysql.close()

    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name


def test_every_table_has_the_same_audit_columns(db):
    with db.read() as tx:
        for table in tables(tx):
            columns = [column["name"] for column in inspect(tx).get_columns(table)]
            assert {"id", "record_remarks", "version", "ip_address", "deleted"} <= {*columns}, table
            assert {"created_at", "created_by", "created_by_name"} <= {*columns}, table
            assert {"updated_at", "updated_by", "updated_by_name"} <= {*columns}, table


def test_no_table_has_a_foreign_key(db):
    with db.read() as tx:
        assert not [table for table in tables(tx) if inspect(tx).get_foreign_keys(table)]


def test_every_table_takes_a_row_that_says_only_what_it_must(db):
    with db.write() as tx:
        for table in tables(tx):
            assert insert(tx, table, a_row(tx, table)) == 1, table


def same_in(tx: Connection, table: str, key: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two legal rows that are alike in `key` and differ wherever else they can."""
    # A key that speaks of a default or a preference binds only rows that are one.
    claims = {"default_key": {"is_default": 1}, "preferred_1": {"is_default_preferred": 1}}
    claimed = {name: 1 for column in key for name in claims.get(column, {})}
    first, second = a_row(tx, table, 1, **claimed), a_row(tx, table, 2, **claimed)
    for column in key:
        for source in MADE_OF.get(column, [column]):
            if source in first:
                second[source] = first[source]
    if {"effective_from", "effective_to"} <= second.keys():
        second["effective_to"] = first["effective_to"]
    return first, second


def test_a_second_row_with_the_same_key_is_refused(db):
    with db.read() as tx:
        keys = [(table, *key) for table in tables(tx) for key in unique_keys(tx, table).items()]
    assert keys
    for table, name, columns in keys:
        with db.write() as tx:
            first, second = same_in(tx, table, columns)
            tx.execute(text(f"DELETE FROM {table}").execution_options(archiving=True))
            insert(tx, table, first)
        # MySQL names the key, SQLite its columns.
        told = "|".join([name, ", ".join(f"{table}.{column}" for column in columns)])
        with pytest.raises(IntegrityError, match=told), db.write() as tx:
            insert(tx, table, second)


def test_a_soft_deleted_registry_row_frees_its_keys(db):
    with db.write() as tx:
        for table in tables(tx):
            if table.startswith("ing_"):
                continue
            for columns in unique_keys(tx, table).values():
                first, second = same_in(tx, table, columns)
                tx.execute(text(f"DELETE FROM {table}"))
                insert(tx, table, first)
                tx.execute(text(f"UPDATE {table} SET deleted = 1"))
                insert(tx, table, second)
                tx.execute(text(f"UPDATE {table} SET deleted = 1"))
                insert(tx, table, second)


def test_a_resumed_endpoint_can_be_held_again(db):
    with db.write() as tx:
        insert(tx, "ing_hold", a_row(tx, "ing_hold"))
        tx.execute(text("UPDATE ing_hold SET resumed_at = held_at"))
        insert(tx, "ing_hold", a_row(tx, "ing_hold"))
        insert(tx, "ing_hold", a_row(tx, "ing_hold", endpoint_name="search"))


def test_a_closed_credential_makes_room_for_a_new_preferred_one(db):
    table = "reg_prov_credential"
    with db.write() as tx:
        row = a_row(tx, table, is_default_preferred=1, effective_from=instant_text(NOON))
        insert(tx, table, row)
        tx.execute(
            text(f"UPDATE {table} SET effective_to = :end"), {"end": instant_text(NOON + HOUR)}
        )
        insert(tx, table, row)


def test_two_endpoints_of_one_provenance_may_have_different_policies(db):
    cfgs = ["window_offset", "pagination", "http", "batching", "retry", "rate_limit"]
    with db.write() as tx:
        for table in [f"reg_prov_{name}_cfg" for name in cfgs]:
            for endpoint in (None, "search", "detail"):
                insert(tx, table, a_row(tx, table, endpoint_name=endpoint))


@pytest.mark.parametrize(("negated", "key"), [(None, "ANY"), (1, "T"), (0, "F")])
def test_a_render_rule_for_any_match_type_is_not_the_rule_for_the_item_any(db, negated, key):
    table = "reg_prov_expr_render_rule"
    with db.write() as tx:
        insert(tx, table, a_row(tx, table, negated=negated))
        insert(tx, table, a_row(tx, table, negated=negated, match_type_code="ANY"))
        found = tx.execute(text(f"SELECT match_type_key, negated_key FROM {table} ORDER BY id"))
        assert [tuple(row) for row in found] == [("*", key), ("ANY", key)]


LATE, EARLY = instant_text(NOON + HOUR), instant_text(NOON)
BACKWARDS = {"window_from": LATE, "window_to": EARLY}
EMPTY = {"window_from": EARLY, "window_to": EARLY}


@pytest.mark.parametrize(
    ("table", "given", "constraint"),
    [
        ("ing_plan", BACKWARDS, "window"),
        ("ing_plan", EMPTY, "window"),
        ("ing_plan_slice", BACKWARDS, "window"),
        ("ing_task_run", BACKWARDS, "window"),
        ("ing_cursor_event", BACKWARDS, "window"),
        ("ing_quota_window", BACKWARDS, "window"),
        ("ing_plan", {"namespace_scope_code": "GLOBAL", "namespace_key": "f" * 64}, "global"),
        ("ing_cursor", {"namespace_scope_code": "GLOBAL", "namespace_key": "f" * 64}, "global"),
        ("ing_cursor", {"cursor_type_code": "TIME"}, "comparable"),
        ("ing_cursor_event", {"cursor_type_code": "ID"}, "comparable"),
        ("ing_task", {"priority": 0}, "priority"),
        ("ing_task", {"priority": 10}, "priority"),
        ("ing_task", {"lease_owner": "worker"}, "lease"),
        ("ing_task", {"leased_until": EARLY}, "lease"),
        ("ing_task", {"status_code": "SUCCEEDED"}, "finished"),
        ("ing_task", {"status_code": "RUNNING"}, "status"),
        ("ing_task_run", {"status_code": "CANCELLED"}, "finished"),
        ("ing_task_run_batch", {"status_code": "SUCCEEDED"}, "committed"),
        ("ing_outbox_message", {"status_code": "PUBLISHED"}, "published"),
        ("ing_outbox_message", {"pub_lease_owner": "relay"}, "lease"),
        ("ing_signal", {"status_code": "CONSUMED"}, "consumed"),
        ("ing_reslice_request", {"status_code": "CONSUMED"}, "consumed"),
        ("reg_prov_http_cfg", {"scope_code": "TASK"}, "scope"),
        ("reg_prov_http_cfg", {"task_type": "HARVEST"}, "scope"),
        ("reg_prov_http_cfg", {"effective_from": LATE, "effective_to": EARLY}, "range"),
        ("sys_dict_type", {"type_code": "Upper"}, "code_format"),
        ("sys_dict_item", {"item_code": "lower"}, "code_format"),
        ("sys_dict_item", {"item_code": "LINE\n"}, "code_format"),
        ("sys_dict_item_alias", {"source_system": "two words"}, "src_format"),
    ],
)
def test_a_row_against_the_rules_is_refused(db, table, given, constraint):
    name = rf"chk_\w*{table.removeprefix('sys_').removesuffix('_item_alias')}\w*__{constraint}"
    with pytest.raises(DBAPIError, match=name), db.write() as tx:
        insert(tx, table, a_row(tx, table, **given))
