"""Which schema this code needs and which one a ledger has.

Apart from `migrate`, because every command asks this and only `patra init` needs yoyo.
"""

from collections.abc import Set
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

import patra_ingest
from patra_ingest.errors import LedgerMismatch
from patra_ingest.ledger.db import Db, Dialect

_APPLIED = text("SELECT migration_id FROM _yoyo_migration")
# No such table or column: the ledger is empty, or yoyo is just creating its own tables.
_NOTHING_YET = ("no such table", "no such column", "(1146,", "(1054,")


def require_current(db: Db) -> None:
    """Raise LedgerMismatch unless the ledger has exactly the migrations this code knows."""
    with db.read() as tx:
        applied = list_applied(tx)
    require_not_newer(db, applied)
    missing = [name for name in known_migrations(db.dialect) if name not in applied]
    if not applied:
        raise LedgerMismatch(f"The ledger {db.shown} has no schema yet.", "Run `patra init`.")
    if missing:
        raise LedgerMismatch(
            f"The ledger {db.shown} is older than this code: it lacks {', '.join(missing)}.",
            "Run `patra init`.",
        )


def known_migrations(dialect: Dialect) -> list[str]:
    """List the ids of the migrations this code comes with, in the order they are applied."""
    return sorted(file.stem for file in sql_folder(dialect).glob("*.sql"))


def sql_folder(dialect: Dialect) -> Path:
    """Return the folder of the SQL files, in a checkout or in a wheel."""
    package = Path(patra_ingest.__file__).parent
    in_wheel = package / "sql" / dialect
    return in_wheel if in_wheel.is_dir() else package.parent / "sql" / dialect


def list_applied(tx: Connection) -> Set[str]:
    """Return the ids of the migrations a ledger has had; none when it is empty."""
    try:
        return set(tx.execute(_APPLIED).scalars())
    except DBAPIError as error:
        if any(mark in str(error.orig) for mark in _NOTHING_YET):
            return set()
        raise


def require_not_newer(db: Db, applied: Set[str]) -> None:
    """Raise LedgerMismatch when the ledger has had migrations that this code does not know."""
    unknown = sorted(applied - set(known_migrations(db.dialect)))
    if unknown:
        raise LedgerMismatch(
            f"The ledger {db.shown} is newer than this code: it has {', '.join(unknown)}.",
            "Upgrade the package patra-ingest.",
        )
