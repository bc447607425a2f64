"""The dictionary as one value: read in one query, from the file alone, and kept for a while."""

import threading
from datetime import timedelta
from importlib import resources

import pytest
import yaml
from sqlalchemy import event, text
from sqlalchemy.exc import ResourceClosedError

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import insert, open_db
from patra_ingest.model.codes import DICTIONARY
from patra_ingest.registry.code_book import CachedCodeBook, builtin_code_book, read_code_book
from patra_ingest.registry.dictionary import load_dictionary, read_dictionary
from patra_ingest_tests.fakes import FakeClock

TTL = timedelta(minutes=5)
BUILTIN = builtin_code_book()


@pytest.fixture
def loaded(db):
    with db.write() as tx:
        load_dictionary(tx)
    return db


def book(db):
    with db.read() as tx:
        return read_code_book(tx)


def change(db, statement, **values):
    with db.write() as tx:
        tx.execute(text(statement), values)


def add(db, type_code, code, **more):
    with db.write() as tx:
        asked = text("SELECT id FROM sys_dict_type WHERE type_code = :code")
        type_id = tx.execute(asked, {"code": type_code}).scalar_one()
        row = {"type_id": type_id, "item_code": code, "item_name": code, **more}
        return type_id, insert(tx, "sys_dict_item", row)


@pytest.fixture
def counted(db):
    """What the ledger was asked, one entry per statement."""
    asked = []

    def count(_connection, _cursor, statement, *_rest):
        asked.append(statement)

    event.listen(db.engine, "before_cursor_execute", count)
    return asked


def selects(asked):
    return [statement for statement in asked if "SELECT" in statement]


def test_a_fresh_ledger_says_what_the_file_says(loaded):
    assert book(loaded) == BUILTIN


def test_the_whole_dictionary_is_one_query(loaded, counted):
    counted.clear()

    assert len(book(loaded).types) == len(DICTIONARY)
    assert len(selects(counted)) == 1


def test_the_file_means_the_same_to_any_reader_of_yaml():
    file = resources.files("patra_ingest.registry") / "dictionary.yaml"

    assert read_dictionary() == yaml.safe_load(file.read_text(encoding="utf-8"))


def test_every_enum_is_there_in_its_order():
    for type_code, codes in DICTIONARY.items():
        chosen = [code for code in codes if (type_code, code) != ("ing_operation", "METRICS")]
        assert list(BUILTIN.codes(type_code)) == chosen, type_code
        assert BUILTIN.default(type_code) in chosen, type_code
        assert all(BUILTIN.canonical(type_code, code) == code for code in chosen)


@pytest.mark.parametrize(
    ("type_code", "code", "canonical"),
    [
        ("endpoint_usage", "DETAIL", "DETAIL"),
        ("endpoint_usage", "detail", "DETAIL"),
        ("endpoint_usage", "FETCH", "DETAIL"),
        ("endpoint_usage", "Fetch", "DETAIL"),
        ("endpoint_usage", "PING", "HEALTH"),
        ("endpoint_usage", "TOKEN", "AUTH"),
        ("pagination_mode", "TOKEN", "TOKEN"),
        ("retry_after_policy", "FIXED", "CLAMP"),
        ("backoff_policy_type", "FIXED", "FIXED"),
        ("bucket_granularity_scope", "TASK", "PER_TASK"),
        ("auth_type", "KEY", "API_KEY"),
        ("ing_task_status", "RUNNING", "EXECUTING"),
        ("ing_task_run_status", "RUNNING", "RUNNING"),
    ],
)
def test_an_alias_leads_to_its_code_whatever_its_case(type_code, code, canonical):
    assert BUILTIN.canonical(type_code, code) == canonical
    assert BUILTIN.has(type_code, code)


@pytest.mark.parametrize(
    ("type_code", "code", "said"),
    [
        (
            "ing_operation",
            "HARVST",
            r"The dictionary ing_operation has no code 'HARVST'\. Did you mean HARVEST\?"
            r" Known: HARVEST, BACKFILL, UPDATE\.$",
        ),
        ("ing_operation", "", r"has no code ''\. Known: HARVEST"),
        ("ing_operation", "HARVEST ", "has no code 'HARVEST '. Did you mean HARVEST"),
        ("ing_operation", "x" * 5000, r"has no code 'x{128}'\. Known"),
        ("ing_operation", "metrics", "METRICS of the dictionary ing_operation is disabled. Known"),
        ("ing_operatoin", "UPDATE", "no dictionary 'ing_operatoin'. Did you mean ing_operation"),
    ],
)
def test_a_code_that_cannot_be_chosen_is_named_with_those_that_can(type_code, code, said):
    assert not BUILTIN.has(type_code, code)
    with pytest.raises(UnknownName, match=said):
        BUILTIN.canonical(type_code, code)


@pytest.mark.parametrize("ask", [BUILTIN.codes, BUILTIN.default], ids=["codes", "default"])
def test_a_type_nobody_knows_is_refused(ask):
    with pytest.raises(UnknownName, match="There is no dictionary 'colour'"):
        ask("colour")


def test_a_long_list_is_not_said_in_full(loaded):
    for number in range(12):
        add(loaded, "endpoint_usage", f"FEED_{number}")

    with pytest.raises(UnknownName) as caught:
        book(loaded).canonical("endpoint_usage", "FEED_X")
    assert "Did you mean FEED_" in caught.value.remedy
    assert "SEARCH" not in caught.value.remedy
    assert "v_sys_dict_item_enabled" in caught.value.remedy


def test_what_an_operator_adds_counts_in_its_place(loaded):
    type_id, item_id = add(loaded, "endpoint_usage", "RSS", display_order=15)
    with loaded.write() as tx:
        alias = {"item_id": item_id, "type_id": type_id, "source_system": "us"}
        insert(tx, "sys_dict_item_alias", {**alias, "external_code": "Feed"})
        insert(tx, "sys_dict_item_alias", {**alias, "external_code": "SEARCH"})

    found = book(loaded)

    assert found.codes("endpoint_usage")[:3] == ("SEARCH", "RSS", "DETAIL")
    assert found.canonical("endpoint_usage", "feed") == "RSS"
    assert found.canonical("endpoint_usage", "SEARCH") == "SEARCH"


def test_what_is_disabled_cannot_be_chosen_under_any_name(loaded):
    change(loaded, "UPDATE sys_dict_item SET enabled = 0 WHERE item_code IN ('DETAIL', 'SEARCH')")

    found = book(loaded)

    assert found.default("endpoint_usage") is None
    assert not found.has("endpoint_usage", "DETAIL")
    with pytest.raises(UnknownName, match="code DETAIL of the dictionary endpoint_usage is disab"):
        found.canonical("endpoint_usage", "FETCH")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("sys_dict_item_alias", "has no code 'FETCH'"),
        ("sys_dict_item", "has no code 'FETCH'. Known: none"),
        ("sys_dict_type", "There is no dictionary 'endpoint_usage'"),
    ],
)
def test_what_is_deleted_is_not_there(loaded, table, said):
    change(loaded, f"UPDATE {table} SET deleted = 1")

    with pytest.raises(UnknownName, match=said):
        book(loaded).canonical("endpoint_usage", "FETCH")


def test_a_book_is_read_once_per_ttl(loaded, counted):
    clock = FakeClock()
    cached = CachedCodeBook(TTL, clock)

    def get():
        with loaded.read() as tx:
            return cached.get(tx)

    counted.clear()
    first = get()
    change(loaded, "UPDATE sys_dict_item SET enabled = 0 WHERE item_code = 'BACKFILL'")
    clock.sleep(TTL.total_seconds() - 1)
    assert get() is first
    assert len(selects(counted)) == 1
    clock.sleep(1)
    assert get().codes("ing_operation") == ("HARVEST", "UPDATE")
    assert len(selects(counted)) == 2


def test_each_ledger_has_its_own_book(loaded, sqlite_template, tmp_path):
    file = tmp_path / "other.db"
    file.write_bytes(sqlite_template.read_bytes())
    other = open_db(f"sqlite:///{file}")
    cached = CachedCodeBook(TTL, FakeClock())

    with loaded.read() as tx, other.read() as there:
        assert cached.get(tx) == BUILTIN
        assert cached.get(there).types == {}
        assert cached.get(tx) == BUILTIN
    other.close()


def test_a_failed_reading_is_not_kept(loaded):
    cached = CachedCodeBook(TTL, FakeClock())
    with loaded.read() as tx:
        closed = tx.engine.connect()
        closed.close()
        with pytest.raises(ResourceClosedError):
            cached.get(closed)
        assert cached.get(tx) == BUILTIN


def test_threads_that_come_together_ask_once(loaded, counted):
    cached = CachedCodeBook(TTL, FakeClock())
    together = threading.Barrier(8)
    found = []

    def get():
        with loaded.read() as tx:
            together.wait(timeout=30)
            found.append(cached.get(tx))

    counted.clear()
    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len(found) == 8
    assert len({id(one) for one in found}) == 1
    assert len([asked for asked in selects(counted) if "sys_dict_type" in asked]) == 1
