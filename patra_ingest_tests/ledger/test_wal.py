"""SQLite's log is copied back into the file while others write, and no write suffers for it."""

import logging
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import event

from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.wal import writes_until_next

_CHECKPOINT = "wal_checkpoint"
ENOUGH = 100  # writes, for a first copy


@pytest.fixture
def ledger(tmp_path):
    db = open_db(f"sqlite:///{tmp_path / 'ledger.db'}")
    with db.write() as tx:
        tx.exec_driver_sql("CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT)")
    yield db
    db.close()


def add_books(db, count, title="Dracula"):
    for _ in range(count):
        with db.write() as tx:
            tx.exec_driver_sql("INSERT INTO book (title) VALUES (?)", (title,))


def traced(db, look):
    """Have every statement of every connection seen as SQLite itself sees it."""

    @event.listens_for(db.engine, "checkout")
    def _trace(dbapi, *_):
        dbapi.set_trace_callback(look)


def test_others_write_while_the_log_is_copied(ledger):
    began, wrote, seen = threading.Event(), threading.Event(), []

    def look(said):
        if _CHECKPOINT in said:
            began.set()
            seen.append(wrote.wait(10))

    traced(ledger, look)
    while not began.is_set():
        add_books(ledger, 1)
    add_books(ledger, 1)
    wrote.set()
    ledger.copier.wait()

    assert seen == [True]


def test_a_long_log_begins_anew_though_somebody_always_writes(ledger, tmp_path):
    def times_begun():
        return int.from_bytes((tmp_path / "ledger.db-wal").read_bytes()[12:16], "big")

    def write_on():
        while not ended.is_set():
            add_books(ledger, 1)

    add_books(ledger, 12, "Dracula" * 400_000)
    before, began, ended = times_begun(), threading.Event(), threading.Event()
    traced(ledger, lambda said: _CHECKPOINT in said and began.set())
    with ThreadPoolExecutor(1) as other:
        busy = other.submit(write_on)
        try:
            assert began.wait(30)
            ledger.copier.wait()
            add_books(ledger, 1)
        finally:
            ended.set()
        busy.result()

    assert times_begun() > before


def test_closing_waits_for_the_copy_that_is_under_way(tmp_path):
    db = open_db(f"sqlite:///{tmp_path / 'other.db'}")
    with db.write() as tx:
        tx.exec_driver_sql("CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT)")
    began, done = threading.Event(), []

    def slowly(said):
        if _CHECKPOINT in said:
            began.set()
            time.sleep(0.2)
            done.append(said)

    traced(db, slowly)
    while not began.is_set():
        add_books(db, 1)
    db.close()

    assert done


def test_what_was_copied_is_in_the_file_itself(ledger, tmp_path):
    add_books(ledger, ENOUGH)
    ledger.copier.wait()

    shutil.copy(tmp_path / "ledger.db", tmp_path / "alone.db")  # without its log
    with closing(sqlite3.connect(tmp_path / "alone.db")) as alone:
        count = alone.execute("SELECT COUNT(*) FROM book").fetchone()[0]

    assert 0 < count <= ENOUGH


def test_a_write_stands_when_the_log_cannot_be_copied(ledger, caplog):
    @event.listens_for(ledger.engine, "checkout")
    def _refuse(dbapi, *_):
        denied, granted = sqlite3.SQLITE_DENY, sqlite3.SQLITE_OK
        dbapi.set_authorizer(lambda _, what, *__: denied if what == _CHECKPOINT else granted)

    with caplog.at_level(logging.WARNING):
        add_books(ledger, ENOUGH)
        ledger.copier.wait()

    with ledger.read() as tx:
        assert tx.exec_driver_sql("SELECT COUNT(*) FROM book").scalar_one() == ENOUGH
    assert "not authorized" in caplog.text


@pytest.mark.parametrize(
    ("writes", "grown", "expected"),
    [
        pytest.param(64, 2500, 64, id="as expected: the same again"),
        pytest.param(64, 5000, 32, id="twice as fast: half as many"),
        pytest.param(64, 250, 640, id="slowly: many"),
        pytest.param(64, 10**6, 4, id="never at every write"),
        pytest.param(64, 1, 4096, id="now and then at least"),
        pytest.param(64, 0, 4096, id="nothing was written"),
    ],
)
def test_how_many_writes_until_the_next_copy(writes, grown, expected):
    assert writes_until_next(writes, grown) == expected
