"""The statements of every batch, in the drivers' own terms.

A batch is a hundred rows of many columns: SQLAlchemy's `text()` would cost more than the database.
Values are what both drivers know: text, bytes, numbers and None.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import Connection, CursorResult

from patra_ingest.ledger.db import Row

_IDS_AT_ONCE = 1000  # SQLite takes 32,766 values in a statement
# Row by row, a lane would hand Python's lock to another, and wait for it again, every time.
_ROWS_AT_ONCE = 100
_BYTES_AT_ONCE = 1_000_000  # of a statement, roughly; a MySQL server takes 4 MB and more
_OTHERWISE = 1_000  # bytes of a row beside its JSON

# PyMySQL escapes text letter by letter and writes bytes as hex, far quicker: JSON comes as bytes.
_JSON = frozenset({"fields", "payload", "payload_json"})
_AS_TEXT = {"mysql": "CONVERT(%s USING utf8mb4)", "sqlite": "CAST(? AS TEXT)"}
_MARK = {"mysql": "%s", "sqlite": "?"}
_NAMED = re.compile(r"(?<![:\w]):([a-z_]+)")

Values = tuple[Any, ...]


def execute(tx: Connection, said: str, values: Row) -> CursorResult[*Values]:
    """Run a statement with `:name` in it, as SQLite writes it."""
    return tx.exec_driver_sql(_translated(tx.dialect.name, said), values)


@lru_cache(maxsize=256)
def _translated(dialect: str, said: str) -> str:
    if dialect == "sqlite":
        return said
    return _NAMED.sub(r"%(\1)s", said.replace("%", "%%"))


def execute_for_ids(tx: Connection, said: str, values: Values, ids: Sequence[str]) -> list[Any]:
    """Run a statement for at most a thousand ids at a time; return the results.

    In the statement, `{0}` stands for one of the values and `{1}` for the ids, which come last.
    """
    portions = [ids[at : at + _IDS_AT_ONCE] for at in range(0, len(ids), _IDS_AT_ONCE)]
    return [
        tx.exec_driver_sql(_marked(tx.dialect.name, said, len(some)), (*values, *some))
        for some in portions
    ]


@lru_cache(maxsize=1024)
def _marked(dialect: str, said: str, count: int) -> str:
    mark = _MARK[dialect]
    return said.format(mark, ", ".join([mark] * count))


def insert_rows(
    tx: Connection,
    table: str,
    alike: Row,
    names: tuple[str, ...],
    rows: Sequence[Values],
    tail: str = "",
) -> int:
    """Insert rows: the columns `alike` have one value in all of them, those of `names` their own.

    `tail` ends the statement: what becomes of a row that is there already. JSON columns of `names`
    come as bytes. Returns the id that the driver tells: on SQLite that of the last new row.
    """
    last = 0
    if tx.dialect.name == "sqlite":
        same = tuple(alike.values())
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[at : at + _ROWS_AT_ONCE]
            statement = _insert_many(table, tuple(alike), names, len(some)) + tail
            last = tx.exec_driver_sql(statement, (*same, *chain.from_iterable(some))).lastrowid
        return last
    # The driver writes every value into the statement: what is alike once, then repeated as text.
    start = f"INSERT INTO {table} ({', '.join((*alike, *names))}) VALUES"
    row = f"({_written(tx, tuple(alike.values()))}, {_marks('mysql', names)})"
    for some in _portions(rows):
        statement = f"{start} {', '.join([row] * len(some))}{tail}"
        last = tx.exec_driver_sql(statement, tuple(chain.from_iterable(some))).lastrowid
    return last


@lru_cache(maxsize=256)
def _insert_many(table: str, alike: tuple[str, ...], names: tuple[str, ...], count: int) -> str:
    """Return SQLite's statement for so many rows, which takes what is alike once: `?1`, `?2`, …"""
    same = ", ".join(f"?{number}" for number in range(1, len(alike) + 1))
    rows = ", ".join([f"({same}, {_marks('sqlite', names)})"] * count)
    return f"INSERT INTO {table} ({', '.join((*alike, *names))}) VALUES {rows}"


def _marks(dialect: str, names: Sequence[str]) -> str:
    as_text, as_it_is = _AS_TEXT[dialect], _MARK[dialect]
    return ", ".join(as_text if name in _JSON else as_it_is for name in names)


def _written(tx: Connection, values: Values) -> str:
    """Return values as the driver writes them, for a statement that still awaits others."""
    cursor: Any = tx.connection.cursor()
    written: str = cursor.mogrify(", ".join(["%s"] * len(values)), values)
    cursor.close()
    return written.replace("%", "%%")


def _portions(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """Cut rows where a statement would become too long; a single row is never cut."""
    start = size = 0
    for number, row in enumerate(rows):
        own = _OTHERWISE + 2 * sum([len(value) for value in row if type(value) is bytes])
        if size and size + own > _BYTES_AT_ONCE:
            yield rows[start:number]
            start, size = number, 0
        size += own
    yield rows[start:]
