"""The schema is made once, by one process, and never by code that does not know it."""

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from patra_ingest.errors import LedgerBusy, LedgerMismatch, LedgerUnavailable
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.ledger.migrate import migrate
from patra_ingest.ledger.schema import known_migrations, require_current


def run(db: Db, *statements: str) -> None:
    with db.write() as tx:
        for statement in statements:
            tx.execute(text(statement))


def ledger_tables(db: Db) -> list[str]:
    with db.read() as tx:
        return sorted(inspect(tx).get_table_names())


@pytest.fixture
def empty_db(empty_db_url):
    opened = open_db(empty_db_url)
    yield opened
    opened.close()


def test_an_empty_database_gets_every_migration_in_order(empty_db, empty_db_url):
    applied = migrate(empty_db_url)

    assert applied == known_migrations(empty_db.dialect) == sorted(applied)
    assert "ing_plan" in ledger_tables(empty_db)
    require_current(empty_db)


def test_migrating_twice_changes_nothing(db, db_url):
    before = ledger_tables(db)

    assert migrate(db_url) == []
    assert ledger_tables(db) == before


def test_both_dialects_have_the_same_migrations():
    assert known_migrations("sqlite") == known_migrations("mysql") != []


def test_a_ledger_without_schema_asks_for_init(empty_db):
    with pytest.raises(LedgerMismatch, match=r"has no schema yet\. Run `patra init`"):
        require_current(empty_db)


def test_an_older_ledger_asks_for_init(empty_db, empty_db_url):
    last = migrate(empty_db_url)[-1]
    run(empty_db, f"DELETE FROM _yoyo_migration WHERE migration_id = '{last}'")

    with pytest.raises(LedgerMismatch, match=rf"older .* lacks {last}\. Run `patra init`"):
        require_current(empty_db)


NEWER = """
    INSERT INTO _yoyo_migration (migration_hash, migration_id, applied_at_utc)
    VALUES ('f00', '9999-from-the-future', '2030-01-01 00:00:00')
"""


def test_a_newer_ledger_is_refused_and_left_alone(empty_db, empty_db_url):
    last = migrate(empty_db_url)[-1]
    run(empty_db, NEWER, f"DELETE FROM _yoyo_migration WHERE migration_id = '{last}'")
    before = ledger_tables(empty_db)

    for refuse in (lambda: require_current(empty_db), lambda: migrate(empty_db_url)):
        with pytest.raises(LedgerMismatch, match=r"newer .* 9999-from-the-future\. Upgrade"):
            refuse()
    assert ledger_tables(empty_db) == before


def test_tables_of_somebody_else_are_left_alone(empty_db, empty_db_url):
    run(empty_db, "CREATE TABLE ing_plan (id INTEGER)")

    with pytest.raises(LedgerMismatch, match=r"ing_plan.*database of its own"):
        migrate(empty_db_url)
    assert ledger_tables(empty_db) == ["ing_plan"]


def test_a_migration_that_stopped_says_so_and_continues_later(empty_db, empty_db_url):
    # What stops it half-way is a name that is taken: a constraint's on MySQL, an index's on SQLite.
    run(empty_db, "CREATE TABLE other (a INTEGER, CONSTRAINT chk_ing_plan__window CHECK (a > 0))")
    run(empty_db, "CREATE INDEX idx_plan_sched ON other (a)")

    with pytest.raises(LedgerMismatch, match=r"0005-planning .* stopped .* repeat `patra init`"):
        migrate(empty_db_url)
    with pytest.raises(LedgerMismatch, match="older"):
        require_current(empty_db)
    run(empty_db, "DROP TABLE other")

    assert migrate(empty_db_url)[0] == "0005-planning"
    require_current(empty_db)


def test_a_list_of_migrations_that_is_half_made_is_explained(empty_db, empty_db_url):
    halves = (
        "_yoyo_migration (id VARCHAR(191) PRIMARY KEY, ctime TIMESTAMP)",
        "_yoyo_log (id INT)",
    )
    run(empty_db, *(f"CREATE TABLE {half}" for half in halves))

    with pytest.raises(LedgerMismatch, match=r"half made .* Drop the tables _yoyo_migration"):
        migrate(empty_db_url)
    run(empty_db, "DROP TABLE _yoyo_migration", "DROP TABLE _yoyo_log")

    assert migrate(empty_db_url) == known_migrations(empty_db.dialect)


def test_the_mark_of_a_dead_process_is_explained(empty_db, empty_db_url):
    last = migrate(empty_db_url)[-1]
    run(
        empty_db,
        f"DELETE FROM _yoyo_migration WHERE migration_id = '{last}'",
        "INSERT INTO yoyo_lock (locked, ctime, pid) VALUES (1, '2025-09-20 12:00:00', 4711)",
    )

    with pytest.raises(LedgerBusy, match=r"process 4711 since 2025-09-20 12:00:00 .* yoyo_lock"):
        migrate(empty_db_url, timeout_seconds=1)


def test_the_folder_of_a_sqlite_ledger_is_made(tmp_path):
    file = tmp_path / "not yet" / "50% #1 [a]" / "ledger.db"

    assert migrate(f"sqlite:///{file}") == known_migrations("sqlite")
    assert file.is_file()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_ledger_that_would_not_last_is_refused(url):
    with pytest.raises(LedgerUnavailable, match="names no database"):
        migrate(url)


def test_an_unreachable_server_is_named_without_its_password():
    with pytest.raises(LedgerUnavailable, match=r"127\.0\.0\.1:1/") as caught:
        migrate("mysql+pymysql://patra:s3cret@127.0.0.1:1/ledger")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"password": "s3cret"}, "1045", id="a wrong password"),
        pytest.param({"database": "no_such_database"}, "1049", id="a database that is not there"),
        pytest.param({"database": ""}, "names no database", id="no database at all"),
    ],
)
def test_a_server_that_refuses_us_is_named_without_its_password(mysql_server, change, told):
    url = mysql_server.set(**{"database": "ledger"} | change).render_as_string(hide_password=False)

    with pytest.raises(LedgerUnavailable, match=told) as caught:
        migrate(url)
    assert "s3cret" not in str(caught.value)


def migrate_at_once(url: str, start: Barrier, answers: "multiprocessing.Queue[object]") -> None:
    start.wait()
    try:
        answers.put(migrate(url))
    except Exception as error:  # noqa: BLE001 - the test must hear of it
        answers.put(repr(error))


def race(url: str, processes: int) -> Sequence[object]:
    spawn = multiprocessing.get_context("spawn")
    start, answers = spawn.Barrier(processes), spawn.Queue()
    racers = [
        spawn.Process(target=migrate_at_once, args=(url, start, answers)) for _ in range(processes)
    ]
    for racer in racers:
        racer.start()
    told = [answers.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join()
    return told


def test_of_several_processes_one_migrates_and_the_others_find_it_done(empty_db, empty_db_url):
    told = race(empty_db_url, processes=4)

    assert sorted(told, key=str) == sorted(
        [known_migrations(empty_db.dialect), [], [], []], key=str
    )
    require_current(empty_db)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_ledger_that_cannot_be_written_is_named(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(LedgerUnavailable, match=r"ledger\.db"):
        migrate(f"sqlite:///{tmp_path / 'ledger.db'}")
