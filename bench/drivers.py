"""`python -m bench.drivers URL`: PyMySQL and mysql-connector-python on the ledger's own statements.

A measurement is made in turn with every driver, with TLS and without, and repeated; the medians
are printed with their ratio to PyMySQL of the same kind. The machine may be busy: trust the ratios
and the client's CPU time, not the seconds. A database of its own is created and dropped.
"""

import os
import statistics
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.metadata import version
from uuid import uuid4

import mysql.connector
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.migrate import migrate
from patra_ingest.ledger.records import upsert_newer
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.tasks import ensure_tasks
from patra_ingest.model.records import ChangeRule, NewRecord

REPEATS = 5
CONNECTS = 10
BATCHES, ROWS, PAYLOAD_CHARS = 20, 500, 4000
TASKS, LEASES = 2000, 100
START = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = {"spec_fingerprint": "0" * 64, "expr_hash": "0" * 64, "plan_id": 1, "batch_id": 1}
DRIVERS = {"PyMySQL": "mysql+pymysql", "connector": "mysql+mysqlconnector"}


def run(url: str) -> None:
    """Measure on the server at `url` and print a table."""
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {REPEATS}")
    with _own_database(url) as ledger:
        kinds = {
            (driver, tls): _address(ledger, scheme, tls)
            for tls in (False, True)
            for driver, scheme in DRIVERS.items()
        }
        _say_versions(kinds)
        for what, measure in (
            ("connect, ms", _connect_ms),
            ("insert 20×500, s", _insert_seconds),
            ("update 20×500, s", _update_seconds),
            ("lease round, ms", _lease_ms),
        ):
            _print_rows(what, _measure_in_turn(measure, kinds))
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


@contextmanager
def _own_database(url):
    server = make_url(url).set(drivername="mysql+pymysql")
    name = f"patra_bench_{uuid4().hex[:8]}"
    admin = create_engine(server.set(database=None), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            ledger = server.set(database=name)
            migrate(ledger.render_as_string(hide_password=False))
            _queue_tasks(ledger)
            yield ledger
        finally:
            connection.execute(text(f"DROP DATABASE {name}"))
    admin.dispose()


def _address(ledger, scheme, tls):
    query = {key: value for key, value in ledger.query.items() if key != "ssl_disabled"}
    if not tls:
        query["ssl_disabled"] = "true"
    return ledger.set(drivername=scheme, query=query).render_as_string(hide_password=False)


def _say_versions(kinds):
    for (driver, tls), url in kinds.items():
        with _opened(url) as db, db.read() as tx:
            cipher = tx.execute(text("SHOW STATUS LIKE 'Ssl_cipher'")).one()[1]
            server = tx.execute(text("SELECT VERSION()")).scalar_one()
        assert bool(cipher) == tls, f"{driver}: TLS is {cipher or 'off'}"
    compiled = "with" if mysql.connector.HAVE_CEXT else "without"
    print(f"MySQL {server}, Python {sys.version.split()[0]}, PyMySQL {version('PyMySQL')},")
    print(f"mysql-connector-python {version('mysql-connector-python')} {compiled} C extension\n")


@contextmanager
def _opened(url):
    db = open_db(url)
    try:
        yield db
    finally:
        db.close()


def _measure_in_turn(measure, kinds):
    """Return (wall, client CPU) medians; a busy minute then hits every driver alike."""
    taken = {kind: [] for kind in kinds}
    for _ in range(REPEATS):
        for kind, url in kinds.items():
            taken[kind].append(measure(url))
    return {
        kind: tuple(statistics.median(column) for column in zip(*pairs, strict=True))
        for kind, pairs in taken.items()
    }


def _timed(action, times, unit_seconds):
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(times):
        action(number)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / unit_seconds, cpu / unit_seconds


def _connect_ms(url):
    engine = open_db(url).engine

    def connect(_number):
        engine.connect().close()
        engine.dispose()

    connect(0)  # the first one imports and asks the dialect's questions
    return _timed(connect, CONNECTS, CONNECTS / 1000)


def _insert_seconds(url):
    with _opened(url) as db:
        with db.write() as tx:
            tx.execute(text("TRUNCATE TABLE ing_record"))
        return _timed(lambda number: _upsert(db, number, START), BATCHES, 1)


def _update_seconds(url):
    later = datetime.now(UTC)  # newer than whatever the last measurement left: all rows change
    with _opened(url) as db:
        return _timed(lambda number: _upsert(db, number, later), BATCHES, 1)


def _upsert(db, number, at):
    first = number * ROWS
    records = [_record(index, at) for index in range(first, first + ROWS)]
    with db.write() as tx:
        upsert_newer(tx, "bench", "works", records, ChangeRule.NEWER, STAMP, db.now(tx))


def _record(index, at):
    text_ = f'«Über {index}», it\'s "quoted" \\ and more. '
    payload = (text_ * (PAYLOAD_CHARS // len(text_) + 1))[:PAYLOAD_CHARS]
    digest = sha256(f"{index}{at}".encode()).hexdigest()
    return NewRecord(f"10.5555/{index:07d}", at, digest, False, b'{"title": "x"}', payload.encode())


def _queue_tasks(ledger):
    with _opened(ledger.render_as_string(hide_password=False)) as db, db.write() as tx:
        rows = [
            {
                "schedule_instance_id": 1,
                "plan_id": 1,
                "slice_id": number,
                "provenance_code": "bench",
                "endpoint_name": "works",
                "operation_code": "HARVEST",
                "params": {},
                "idempotent_key": sha256(str(number).encode()).hexdigest(),
                "expr_hash": "0" * 64,
                "status_code": "QUEUED",
            }
            for number in range(TASKS)
        ]
        ensure_tasks(tx, rows)


def _lease_ms(url):
    """One round as a worker makes it: the clock, the expired leases, one lease; one commit."""
    with _opened(url) as db:
        with db.write() as tx:
            tx.execute(
                text(
                    "UPDATE ing_task SET status_code = 'QUEUED', lease_owner = NULL,"
                    " leased_until = NULL"
                )
            )

        def lease(number):
            with db.write() as tx:
                now = db.now(tx)
                free_silent(tx, now)
                assert lease_tasks(tx, f"bench#{number}", 1, now, timedelta(minutes=5))

        return _timed(lease, LEASES, LEASES / 1000)


def _print_rows(what, medians):
    for (driver, tls), (wall, cpu) in medians.items():
        base = medians["PyMySQL", tls][0]
        print(
            f"{what:<17} {driver:<10}{'TLS' if tls else 'no TLS':<7}"
            f"{wall:9.2f}  client CPU {cpu:8.2f}  {wall / base:6.2f} × PyMySQL"
        )
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.drivers mysql+pymysql://USER:PASSWORD@HOST:PORT/")
    run(sys.argv[1])
