"""The connection to the ledger, the same for SQLite and MySQL.

`Db.write()` is one transaction: it commits when the block ends well and rolls back otherwise.
Instants travel as UTC text with microseconds, which both engines store, compare and index alike.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Engine, TextClause, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from patra_ingest.clock import Clock, SystemClock
from patra_ingest.errors import (
    LedgerBusy,
    LedgerUnavailable,
    LedgerUnreachable,
    PersonMustAct,
)
from patra_ingest.ledger.wal import LONGEST_PAGES, Copier

Dialect = Literal["sqlite", "mysql"]
Row = Mapping[str, Any]

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "foreign_keys=OFF",
    f"wal_autocheckpoint={LONGEST_PAGES}",
)

# SQLite: SQLITE_BUSY, SQLITE_LOCKED; MySQL: lock wait timeout, deadlock.
_BUSY = ("database is locked", "database table is locked", "(1205,", "(1213,")
_MISSING = ("no such table", "(1146,")
# Trying again does not help: no such file, no such user, no such database.
_WRONG = ("unable to open database", "file is not a database", "(1045,", "(1049,")
_SILENT_SECONDS = 60
# Nothing we ask takes longer: an answer that has not come by then will not come.
_ANSWER_SECONDS = 600
_CUT = ("(2003,", "(2002,", "(2006,", "(2013,")
_NO_ROOM = ("disk is full", "readonly database", "disk I/O error", "(1021,", "(1114,", "(1290,")


@dataclass(frozen=True)
class Db:
    """One ledger. Connections are pooled; each thread takes its own for the length of a block."""

    engine: Engine
    dialect: Dialect
    shown: str  # the URL without its password, for messages
    # SQLite has one writer: threads of this process take turns here, in order, instead of polling.
    turn: AbstractContextManager[Any] = field(default_factory=nullcontext, repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)  # SQLite's
    copier: Copier | None = field(default=None, repr=False)  # of SQLite's log

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes; on SQLite it holds the write lock from its start."""
        with self._translated(), self.turn, self.engine.connect() as connection:
            if self.dialect == "sqlite":
                connection = connection.execution_options(begin="IMMEDIATE")
            with connection.begin():
                yield connection
        if self.copier is not None:
            self.copier.count()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads, on one consistent view of the ledger."""
        with self._translated(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            explained = self._explain(error)
            if explained is None:
                raise
            raise explained from error

    def _explain(self, error: DBAPIError) -> PersonMustAct | None:
        seen = str(error.orig)
        if any(mark in seen for mark in _BUSY):
            return LedgerBusy(
                f"The ledger {self.shown} is locked by another process ({seen}).",
                "Wait for that process or stop it, then repeat the command.",
            )
        if any(mark in seen for mark in _MISSING):
            return LedgerUnavailable(
                f"The ledger {self.shown} has no tables yet ({seen}).",
                "Create them with `patra init`.",
            )
        if any(mark in seen for mark in _NO_ROOM):
            return LedgerUnavailable(
                f"The ledger {self.shown} cannot be written ({seen}).",
                "Make room on its disk or correct its permissions, then start again.",
            )
        if error.connection_invalidated or _cannot_connect(seen):
            kind = LedgerUnavailable if any(mark in seen for mark in _WRONG) else LedgerUnreachable
            return kind(
                f"The ledger {self.shown} cannot be reached ({seen}).",
                "Check PATRA_DB_URL and that the database is running.",
            )
        return None

    def now(self, tx: Connection) -> datetime:
        """Return the database's clock, which all workers share."""
        if self.dialect == "sqlite":  # it runs in this process, and its clock is ours
            return self.clock.now()
        return read_instant(tx.exec_driver_sql("SELECT UTC_TIMESTAMP(6)").scalar_one())

    def close(self) -> None:
        """Close every pooled connection."""
        if self.copier is not None:
            self.copier.wait()
        self.engine.dispose()


def _cannot_connect(seen: str) -> bool:
    return any(mark in seen for mark in (*_WRONG, *_CUT))


def open_db(url: str, timeout_seconds: float = 30.0, clock: Clock | None = None) -> Db:
    """Return the ledger at `url` without connecting yet; `clock` is SQLite's database clock."""
    own = clock or SystemClock()
    try:
        parsed = make_url(url)
        dialect = parsed.get_backend_name()
        if dialect == "sqlite":
            engine = _sqlite_engine(parsed, timeout_seconds, own)
        elif dialect == "mysql":
            engine = _mysql_engine(parsed, timeout_seconds)
        else:
            raise ArgumentError(f"{dialect} is not supported")
    except (ArgumentError, NoSuchModuleError) as error:
        raise LedgerUnavailable(
            f"PATRA_DB_URL is not a ledger address ({error}).",
            "Use sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/DATABASE.",
        ) from error
    shown = parsed.render_as_string(hide_password=True)
    event.listen(engine, "before_cursor_execute", _keep_history)
    if dialect == "mysql":
        return Db(engine, "mysql", shown)
    turn = threading.Lock()
    return Db(engine, "sqlite", shown, turn, own, Copier(engine, turn))


# Cursor events are only ever added: the cursors can be told again from them.
_HISTORY = "ing_cursor_event"
_CHANGE = re.compile(r"\b(UPDATE|DELETE|REPLACE|TRUNCATE|DROP|ALTER)\b", re.IGNORECASE)
_NOTHING_NEW = " ON DUPLICATE KEY UPDATE id = id"  # how MySQL leaves a row alone


def _keep_history(
    _tx: Connection, _cursor: Any, statement: str, _values: Any, context: Any, _many: bool
) -> None:
    if _HISTORY not in statement:
        return
    if _CHANGE.search(statement.replace(_NOTHING_NEW, "")):
        if context is not None and context.execution_options.get("archiving"):
            return
        raise RuntimeError(
            f"Rows of {_HISTORY} are only ever added, never changed or removed, but was asked:"
            f" {' '.join(statement.split()):.200}"
        )


def _sqlite_engine(url: URL, timeout_seconds: float, clock: Clock) -> Engine:
    if url.database and url.database != ":memory:":
        with suppress(OSError):  # SQLite itself then says that it cannot open the file
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": timeout_seconds})

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: object) -> None:
        dbapi.isolation_level = None  # we say BEGIN ourselves, see _begin
        # SQLite runs in this process and has no clock with microseconds: it is lent ours.
        dbapi.create_function("patra_now", 0, lambda: instant_text(clock.now()))
        for pragma in _PRAGMAS:
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A read transaction that later wants to write fails at once under WAL, without waiting:
        # whoever is going to write therefore says so at the beginning.
        mode = connection.get_execution_options().get("begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _mysql_engine(url: URL, timeout_seconds: float) -> Engine:
    if url.drivername == "mysql":
        url = url.set(drivername="mysql+pymysql")
    engine = create_engine(
        url,
        # REPEATABLE READ locks the gaps a claim merely scans and blocks the planner's inserts.
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": 10, "read_timeout": _ANSWER_SECONDS},
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
        pool_recycle=1800,
        pool_reset_on_return=None,  # a connection comes back committed or rolled back, see Db
    )

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: object) -> None:
        with dbapi.cursor() as cursor:
            cursor.execute("SET SESSION time_zone = '+00:00'")
            # A host that falls silent keeps its locks until the server gives it up.
            cursor.execute("SELECT @@session.wait_timeout")
            allowed = min(int(cursor.fetchone()[0]), _SILENT_SECONDS)
            cursor.execute("SET SESSION wait_timeout = %s", (allowed,))
            cursor.execute(
                "SET SESSION innodb_lock_wait_timeout = %s", (max(1, round(timeout_seconds)),)
            )

    return engine


def instant_text(instant: datetime) -> str:
    """Write an instant as both engines keep it: UTC, microseconds, sortable as text."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone; the ledger keeps UTC only")
    utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return utc.isoformat(" ", "microseconds")[:26]


def read_instant(value: datetime | str) -> datetime:
    """Read an instant from either engine; always UTC."""
    parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    return parsed.replace(tzinfo=UTC)


def find_instant(value: datetime | str | None) -> datetime | None:
    """Read an instant that may be absent."""
    return None if value is None else read_instant(value)


def json_text(value: object) -> str:
    """Write a JSON column; datetimes inside become UTC text."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def read_json(value: str | bytes | None) -> Any:
    """Read a JSON column of either engine; None stays None."""
    return None if value is None else orjson.loads(value)


def insert(tx: Connection, table: str, row: Row) -> int:
    """Insert one row and return its id."""
    result = tx.execute(_insert_clause(table, tuple(row), ""), dict(row))
    return int(result.lastrowid)


def insert_missing(tx: Connection, table: str, rows: Sequence[Row]) -> None:
    """Insert `rows`, leaving alone those whose unique key is already there."""
    if not rows:
        return
    # Not INSERT IGNORE: on MySQL that would also swallow truncated and invalid values.
    tail = _NOTHING_NEW if tx.dialect.name == "mysql" else " ON CONFLICT DO NOTHING"
    tx.execute(_insert_clause(table, tuple(rows[0]), tail), [dict(row) for row in rows])


@lru_cache(maxsize=256)
def _insert_clause(table: str, columns: tuple[str, ...], tail: str) -> TextClause:
    values = ", ".join(f":{column}" for column in columns)
    return text(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}){tail}")
