"""A pack becomes `reg_*` rows, with history.

A changed dimension closes its old row at the instant the new one opens; an unchanged one is left
alone, so applying the same pack twice changes nothing. No function here commits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import CompileError, PackError
from patra_ingest.ledger.db import insert, insert_missing
from patra_ingest.model.window import parse_instant
from patra_ingest.registry import books
from patra_ingest.registry.check import HasSecret, check_endpoints
from patra_ingest.registry.code_book import CodeBook
from patra_ingest.registry.codecs import Columns, Row, same_value
from patra_ingest.registry.history import (
    change_provenance,
    close_row,
    find_provenance,
    open_row,
    rows_from,
    valid_from,
)
from patra_ingest.registry.pack import Pack
from patra_ingest.registry.rows import KEYS, TABLES, Wanted, provenance_columns, wanted_rows
from patra_ingest.spec.words import shown_instant

# Every row opened by one call is valid after this; some begin a microsecond later.
_SETTLED = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Change:
    """One row that was opened, replaced or closed, named as people would."""

    action: str
    what: str


def apply_pack(tx: Connection, pack: Pack, now: datetime) -> list[Change]:
    """Make the Registry say what `pack` says, from `now` or its own start on."""
    at = effective_at(pack, now)
    provenance_id, changes = _apply_provenance(tx, pack, at)
    if pack.expressions:
        changes.extend(_apply_fields(tx, pack, provenance_id))
    wanted = list(wanted_rows(pack))
    for table in TABLES:
        live: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows_from(tx, table, provenance_id, at):
            live.setdefault(_key(table, row), []).append(row)
        asked = {row.key: row for row in wanted if row.table == table}
        for key, found in live.items():
            if key not in asked:
                changes.extend(_close(tx, pack, table, found, at))
        for key, want in asked.items():
            changes.extend(_apply_row(tx, pack, provenance_id, want, live.get(key, ()), at))
    return changes


def apply_checked(
    tx: Connection, pack: Pack, now: datetime, codes: CodeBook, has_secret: HasSecret
) -> list[Change]:
    """Apply a pack and compile everything of it; CompileError if anything is refused.

    The caller's transaction then ends without a trace of the pack.
    """
    changes = apply_pack(tx, pack, now)
    at = effective_at(pack, now) + _SETTLED
    verdicts = check_endpoints(tx, pack.provenance.code, at, codes, has_secret)
    problems = [
        f"{verdict.name.operation}: {problem}"
        for verdict in verdicts
        for problem in verdict.problems
    ]
    if problems:
        raise CompileError(f"The pack {pack.provenance.code}", problems)
    return changes


def effective_at(pack: Pack, now: datetime) -> datetime:
    """Return the instant from which a pack holds; never in the past, which is history."""
    if pack.effective_from is None:
        return now
    at = parse_instant(pack.effective_from)
    if at < now:
        raise PackError(
            f"{pack.provenance.code}: effective_from {pack.effective_from} is in the past.",
            "History is not rewritten: give an instant to come, or none for now.",
        )
    return at


def _apply_provenance(tx: Connection, pack: Pack, at: datetime) -> tuple[int, list[Change]]:
    columns = provenance_columns(pack)
    what = f"provenance {pack.provenance.code}"
    found = find_provenance(tx, pack.provenance.code, for_update=True)
    if found is None:
        insert_missing(tx, "reg_provenance", [columns])
        found = find_provenance(tx, pack.provenance.code, for_update=True)
        if found is not None and _same(found, columns):
            return int(found["id"]), [Change("opened", what)]
    if found is None:
        raise PackError(f"{what} could not be written.", "Apply the pack again.")
    if _same(found, columns):
        return int(found["id"]), []
    change_provenance(tx, found, columns, at)
    return int(found["id"]), [Change("changed", what)]


def _apply_fields(tx: Connection, pack: Pack, provenance_id: int) -> Iterator[Change]:
    fields = pack.expressions.fields if pack.expressions else {}
    query = text(f"SELECT * FROM {books.FIELD} WHERE deleted = 0")
    known = {row["field_key"]: dict(row) for row in tx.execute(query).mappings()}
    for key, field in fields.items():
        columns = books.field_columns(key, field)
        if key not in known:
            insert(tx, books.FIELD, columns)
            yield Change("opened", f"query field {key}")
        elif not _same(known[key], columns):
            _require_own(tx, pack, provenance_id, key, known[key], columns)
            names = ", ".join(f"{name} = :{name}" for name in columns)
            update = text(f"UPDATE {books.FIELD} SET {names}, version = version + 1 WHERE id = :id")
            tx.execute(update, {**columns, "id": known[key]["id"]})
            yield Change("changed", f"query field {key}")


def _require_own(
    tx: Connection, pack: Pack, provenance_id: int, key: str, known: Row, columns: Columns
) -> None:
    query = text(
        f"SELECT p.provenance_code FROM {books.CAPABILITY} c JOIN reg_provenance p"
        " ON p.id = c.provenance_id WHERE c.field_key = :key AND c.provenance_id <> :id"
        " AND c.deleted = 0 ORDER BY p.provenance_code LIMIT 1"
    )
    other = tx.execute(query, {"key": key, "id": provenance_id}).scalar()
    if other is not None:
        differing = [name for name in columns if not same_value(known[name], columns[name])]
        raise PackError(
            f"{pack.provenance.code}: expressions.fields.{key} differs in {', '.join(differing)}"
            f" from what {other} shares with it.",
            "Query fields mean the same everywhere: repeat it as it is, or choose another name.",
        )


def _apply_row(
    tx: Connection,
    pack: Pack,
    provenance_id: int,
    wanted: Wanted,
    live: Sequence[Row],
    at: datetime,
) -> Iterator[Change]:
    current = _current(live, at)
    if current is not None and _same(current, wanted.columns):
        return
    _require_free(pack, wanted.table, wanted.key, live, at)
    if current is not None:
        # Every row is valid for a moment at least, also when two changes fall into one instant.
        at = max(at, valid_from(current) + timedelta(microseconds=1))
        close_row(tx, wanted.table, current["id"], at)
    values = {"provenance_id": provenance_id, **wanted.named(), **wanted.columns}
    open_row(tx, wanted.table, values, at)
    yield Change("opened" if current is None else "replaced", describe(wanted.table, wanted.key))


def _close(
    tx: Connection, pack: Pack, table: str, live: Sequence[Row], at: datetime
) -> Iterator[Change]:
    current = _current(live, at)
    key = _key(table, live[0])
    _require_free(pack, table, key, live, at)
    if current is not None:
        at = max(at, valid_from(current) + timedelta(microseconds=1))
        close_row(tx, table, current["id"], at)
        yield Change("closed", describe(table, key))


def _current(live: Sequence[Row], at: datetime) -> Row | None:
    return next((row for row in live if valid_from(row) <= at), None)


def _require_free(
    pack: Pack, table: str, key: tuple[Any, ...], live: Sequence[Row], at: datetime
) -> None:
    """Refuse a change that would overlap a row that begins or ends after it."""
    for row in live:
        begins_later = valid_from(row) > at
        if begins_later or row["effective_to"] is not None:
            other = shown_instant(valid_from(row))
            raise PackError(
                f"{pack.provenance.code}: {describe(table, key)} from {shown_instant(at)} on would"
                f" overlap row #{row['id']}, valid from {other}"
                + (" on." if row["effective_to"] is None else f" to {row['effective_to']}."),
                "Give an effective_from after the last row began.",
            )


def _same(row: Row, columns: Columns) -> bool:
    return all(same_value(row[name], value) for name, value in columns.items())


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS[table])


def describe(table: str, key: tuple[Any, ...]) -> str:
    """Name a row as people would: `pagination works BACKFILL`."""
    kind = table.removeprefix("reg_prov_").removesuffix("_cfg").removesuffix("_def")
    _scope, task_type, *more = key
    named = (kind.replace("_", " "), *more, task_type)
    return " ".join(str(part) for part in named if part is not None)
