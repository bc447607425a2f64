"""The schema of the ledger: which migrations it has, which it lacks, and applying those.

The migrations are the plain SQL files under `sql/`. Yoyo applies them; it remembers what it has
applied in `_yoyo_migration` and who is at it in `yoyo_lock`.
"""

import glob
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

from sqlalchemy import Connection, inspect
from yoyo import read_migrations
from yoyo.backends import MySQLBackend, SQLiteBackend
from yoyo.connections import DatabaseURI
from yoyo.exceptions import LockTimeout
from yoyo.migrations import default_migration_table

from patra_ingest.clock import SystemClock
from patra_ingest.errors import LedgerBusy, LedgerMismatch, LedgerUnavailable
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.ledger.schema import (
    known_migrations,
    list_applied,
    require_not_newer,
    sql_folder,
)

_OURS = ("ing_", "reg_", "sys_dict_")


def migrate(db_url: str, timeout_seconds: float = 30.0) -> list[str]:
    """Apply the migrations the ledger lacks and return their ids; [] when it lacks none.

    Of several processes that migrate one ledger, one does it; the others wait and find it done.
    """
    db = open_db(db_url, timeout_seconds)
    try:
        _require_lasting(db)
        with db.read() as tx:
            _require_no_strangers(db, tx)
            applied = list_applied(tx)
        require_not_newer(db, applied)
        if set(known_migrations(db.dialect)) == applied:
            return []
        with _yoyo(db) as backend, _locked(db, backend, timeout_seconds):
            return _apply_missing(db, backend)
    finally:
        db.close()


def _require_lasting(db: Db) -> None:
    if db.engine.url.database in (None, "", ":memory:"):
        raise LedgerUnavailable(
            f"The address {db.shown} names no database.",
            "Use sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/DATABASE.",
        )


def _require_no_strangers(db: Db, tx: Connection) -> None:
    tables = inspect(tx).get_table_names()
    strangers = sorted(name for name in tables if name.startswith(_OURS))
    if strangers and default_migration_table not in tables:
        raise LedgerMismatch(
            f"The database {db.shown} already has tables that `patra init` did not make "
            f"({', '.join(strangers[:3])}, …).",
            "Give the ledger a database of its own.",
        )


def _apply_missing(db: Db, backend: Any) -> list[str]:
    known = read_migrations(glob.escape(str(sql_folder(db.dialect))))
    try:
        missing = backend.to_apply(known)
    except backend.DatabaseError as error:
        raise LedgerMismatch(
            f"The first `patra init` of the ledger {db.shown} was interrupted so early that its "
            f"list of migrations is half made ({error}).",
            "Drop the tables _yoyo_migration, _yoyo_log and _yoyo_version, then repeat it.",
        ) from error
    for migration in missing:
        try:
            with redirect_stdout(StringIO()):  # yoyo prints what SQLite answers to ALTER TABLE
                backend.apply_one(migration)
        except backend.DatabaseError as error:
            raise _stopped(db, migration.id, error) from error
    return [migration.id for migration in missing]


def _stopped(db: Db, name: str, error: Exception) -> LedgerMismatch:
    kept = (
        "MySQL cannot take back the tables it had created before that statement: they stay, empty, "
        "and are taken as they are next time."
        if db.dialect == "mysql"
        else "Nothing of that migration was kept."
    )
    return LedgerMismatch(
        f"The migration {name} of the ledger {db.shown} stopped ({error}). {kept}",
        "Remove the cause and repeat `patra init`; it continues with this migration.",
    )


class _OnSQLite(SQLiteBackend):  # type: ignore[misc]  # yoyo ships no types
    """Yoyo on the file as the ledger opens it; its own way breaks on paths with `?` or `#`."""

    def connect(self, dburi: Any) -> Any:
        arguments, options = dburi.args
        options = {**options, "isolation_level": None, "detect_types": sqlite3.PARSE_DECLTYPES}
        return self.driver.connect(*arguments, **options)


class _OnMySQL(MySQLBackend):  # type: ignore[misc]  # yoyo ships no types
    """Yoyo on MySQL with the ledger's own arguments; its own way loses the TLS options."""

    def connect(self, dburi: Any) -> Any:
        arguments, options = dburi.args
        return self.driver.connect(*arguments, **options)


@contextmanager
def _yoyo(db: Db) -> Iterator[Any]:
    kind = _OnMySQL if db.dialect == "mysql" else _OnSQLite
    url = db.engine.url
    arguments = db.engine.dialect.create_connect_args(url)
    address = DatabaseURI(db.dialect, None, None, None, None, url.database, arguments)
    with kind(address, default_migration_table) as backend:
        backend.get_log_data = _log_row
        backend.init_database()
        yield backend


def _log_row(migration: Any, operation: str) -> dict[str, object]:
    # Yoyo's own asks for the user's name, which a container's user may not have.
    return {
        "id": str(uuid.uuid4()),
        "migration_id": migration.id,
        "migration_hash": migration.hash,
        "username": "patra",
        "hostname": socket.gethostname(),
        "created_at_utc": SystemClock().now().replace(tzinfo=None),
        "operation": operation,
    }


@contextmanager
def _locked(db: Db, backend: Any, timeout_seconds: float) -> Iterator[None]:
    try:
        backend.execute("SELECT pid FROM yoyo_lock").fetchall()
    except backend.DatabaseError as error:  # yoyo keeps silent when it cannot create its table
        raise LedgerUnavailable(
            f"No table can be created in the ledger {db.shown} ({error}).",
            "Give its user the right to create tables.",
        ) from error
    try:
        with backend.lock(timeout=timeout_seconds):
            yield
    except LockTimeout as error:
        row = backend.execute("SELECT pid, ctime FROM yoyo_lock").fetchone()
        holder = f"process {row[0]} since {row[1]} UTC" if row else "another process"
        raise LedgerBusy(
            f"The ledger {db.shown} is being migrated by {holder}.",
            "Wait for it. If no such process runs any more, remove its mark with the statement "
            "DELETE FROM yoyo_lock, then repeat the command.",
        ) from error
