"""Ledgers to measure on: fresh, migrated, with the dictionary and some sources, gone afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, TextClause, create_engine, inspect, text
from sqlalchemy.engine import make_url

from patra_ingest.ledger.db import Db, insert_missing, open_db
from patra_ingest.ledger.migrate import migrate
from patra_ingest.packs import FOLDER
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.books import FIELD
from patra_ingest.registry.dictionary import load_dictionary
from patra_ingest.registry.pack import Pack, read_pack
from patra_ingest.registry.rows import TABLES, provenance_columns


@contextmanager
def sqlite_ledger(folder: Path) -> Iterator[Db]:
    """A SQLite ledger in `folder`."""
    url = f"sqlite:///{folder / uuid4().hex}.db"
    migrate(url)
    with _opened(url) as db:
        yield db


@contextmanager
def fresh_mysql(server: str) -> Iterator[str]:
    """The URL of an empty MySQL database, dropped when the block ends."""
    url = make_url(server).set(database=f"patra_bench_{uuid4().hex[:8]}")
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {url.database}"))
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {url.database}"))
        admin.dispose()


@contextmanager
def mysql_ledger(server: str) -> Iterator[Db]:
    """A MySQL ledger in a database of its own, dropped when the block ends."""
    with fresh_mysql(server) as address:
        migrate(address)
        with _opened(address) as db:
            yield db


@contextmanager
def _opened(url: str) -> Iterator[Db]:
    db = open_db(url)
    try:
        yield db
    finally:
        db.close()


def fill(db: Db, packs: Iterable[Pack]) -> datetime:
    """Load the dictionary and the packs; return an instant at which all of it is valid."""
    with db.write() as tx:
        load_dictionary(tx)
        now = db.now(tx)
        for pack in packs:
            apply_pack(tx, pack, now)
    return now


def empty_registry(db: Db) -> None:
    """Remove every source."""
    with db.write() as tx:
        for table in (*TABLES, FIELD, "reg_provenance"):
            tx.execute(text(f"DELETE FROM {table}"))


def builtin(code: str) -> Pack:
    """Return a built-in pack."""
    return read_pack(FOLDER / f"{code}.yaml")


def add_copies(db: Db, packs: Sequence[Pack], count: int) -> None:
    """Add `count` sources that are the packs in turn, under other codes.

    Their rows are copied inside the database, as `apply_pack` has written them: applying hundreds
    of packs is not what is measured.
    """
    with db.write() as tx:
        named = [_renamed(packs[number % len(packs)], number) for number in range(count)]
        insert_missing(tx, "reg_provenance", [provenance_columns(pack) for pack in named])
        for table in TABLES:
            for pack in packs:
                tx.execute(_copy_rows(tx, table), {"code": pack.provenance.code})


def _renamed(pack: Pack, number: int) -> Pack:
    code = f"{pack.provenance.code}-{number:03d}"
    return pack.model_copy(update={"provenance": pack.provenance.model_copy(update={"code": code})})


def _copy_rows(tx: Connection, table: str) -> TextClause:
    own = [
        column["name"]
        for column in inspect(tx).get_columns(table)
        if column["name"] not in ("id", "provenance_id") and "computed" not in column
    ]
    names, values = ", ".join(own), ", ".join(f"rows_of.{name}" for name in own)
    joined = "CONCAT(:code, '-%')" if tx.dialect.name == "mysql" else ":code || '-%'"
    return text(
        f"INSERT INTO {table} (provenance_id, {names}) SELECT other.id, {values}"
        f" FROM {table} rows_of JOIN reg_provenance one ON one.id = rows_of.provenance_id"
        f" JOIN reg_provenance other ON other.provenance_code LIKE {joined}"
        " WHERE one.provenance_code = :code"
    )
