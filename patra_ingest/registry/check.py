"""Every endpoint of the Registry compiled, with what is wrong and what is only a downgrade."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from patra_ingest.errors import CompileError, UnknownName
from patra_ingest.registry.code_book import CodeBook
from patra_ingest.registry.history import get_provenance, rows_at
from patra_ingest.registry.read import EndpointName, list_endpoints, read_named
from patra_ingest.registry.rows import KEYS, TABLES
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Declaration, Overrides
from patra_ingest.spec.downgrades import is_intended
from patra_ingest.spec.readiness import find_missing
from patra_ingest.spec.references import at_hand
from patra_ingest.spec.words import Downgrade

HasSecret = Callable[[str], bool]


@dataclass(frozen=True)
class Verdict:
    """What compiling one endpoint for one operation showed."""

    name: EndpointName
    fingerprint: str | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # downgrades that the pack does not call intended
    intended: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()


def check_endpoints(
    tx: Connection, source: str | None, at: datetime, codes: CodeBook, has_secret: HasSecret
) -> Iterator[Verdict]:
    """Compile everything that can be planned at `at`; `source` narrows it to one."""
    if source:
        get_provenance(tx, source, at)
    names = list_endpoints(tx, at)
    wanted = [name for name in names if not source or name.provenance == source.lower()]
    if not wanted:
        raise UnknownName(
            f"{source or 'The Registry'} has nothing to check at this instant.",
            "Apply a pack with `patra registry apply FILE`.",
        )
    for name in wanted:
        yield _verdict(tx, name, at, codes, has_secret)


def find_overlaps(tx: Connection, source: str, at: datetime) -> list[str]:
    """Return a sentence for every dimension in which two rows are valid at once.

    No pack makes such rows; a hand may. The newest counts, which may not be the one that is meant.
    """
    provenance = get_provenance(tx, source, at)
    found = []
    for table in TABLES:
        same: dict[tuple[object, ...], list[int]] = {}
        for row in rows_at(tx, table, provenance["id"], at):
            same.setdefault(tuple(row[name] for name in KEYS[table]), []).append(row["id"])
        for newest, *others in (ids for ids in same.values() if len(ids) > 1):
            listed = ", ".join(f"#{other}" for other in others)
            found.append(f"{table} #{newest} hides {listed}: close one of them")
    return found


def _verdict(
    tx: Connection, name: EndpointName, at: datetime, codes: CodeBook, has_secret: HasSecret
) -> Verdict:
    try:
        declaration = read_named(tx, name, at, codes)
        available = at_hand(declaration, has_secret)
        compiled = compile_spec(declaration, Overrides(), available)
    except CompileError as error:
        return Verdict(name, problems=error.problems)
    if unlocked := _unlocked_problems(declaration):
        return Verdict(name, problems=tuple(unlocked))
    meant = _intended(declaration)
    warnings = compiled.spec.warnings
    return Verdict(
        name,
        compiled.fingerprint,
        warnings=tuple(text for text in warnings if not is_intended(text, meant)),
        intended=tuple(text for text in warnings if is_intended(text, meant)),
        not_ready=tuple(find_missing(compiled.spec)),
    )


def _unlocked_problems(declaration: Declaration) -> list[str]:
    """Return what is wrong with what credentials unlock: it must hold on every machine."""
    problems: dict[str, None] = {}
    for named in declaration.credentials:
        try:
            compile_spec(declaration, Overrides(), frozenset({named.name}))
        except CompileError as error:
            problems.update(dict.fromkeys(error.problems))
    return list(problems)


def _intended(declaration: Declaration) -> tuple[Downgrade, ...]:
    for layer in declaration.layers:
        if meant := layer.values.get("endpoint", {}).get("intended"):
            return tuple(meant)
    return ()
