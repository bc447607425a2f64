"""`patra signal add`, `patra signal list`: records that somebody wants asked for again."""

import getpass
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say
from patra_ingest.errors import PersonMustAct, UnknownName

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from patra_ingest.model.codes import Signal

_GIVEN_BY_PEOPLE = ("RETRACTION", "CORRECTION", "MERGE", "MISSING_FIELD")
_LONGEST_ID = 512
_NAMED = 10  # ids that one message lists


def add(
    place: Annotated[str, typer.Argument(help="SOURCE or SOURCE/ENDPOINT.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids at the source.")] = [],  # noqa: B006
    why: Annotated[str, typer.Option(help=" | ".join(_GIVEN_BY_PEOPLE))] = "CORRECTION",
    reason: Annotated[str, typer.Option(help="What you know, for whoever reads it.")] = "",
    from_file: Annotated[
        str, typer.Option(help="A file with one id per line; - reads standard input.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Have the next UPDATE ask for these records, before all others."""
    from patra_ingest.ledger.signals import add_signals
    from patra_ingest.wiring import open_reader

    signal, wanted = _signal(why), _ids(ids, from_file)
    source, _, endpoint = place.lower().partition("/")
    with open_reader() as live, live.db.write() as tx:
        now = live.db.now(tx)
        owners = _owners(tx, source, endpoint, wanted, now)
        by = getpass.getuser()
        added = {
            name: add_signals(tx, source, name, own, signal, by, reason or None, now)
            for name, own in sorted(owners.items())
        }
    if as_json:
        print_json({"source": source, "signal": signal, "ids": len(wanted), "added": added})
        return
    for name, count in added.items():
        waiting = len(owners[name]) - count
        say(
            f"{source}/{name}: {count} {signal.value} signals added"
            + (f", {waiting} were waiting already." if waiting else ".")
        )


def list_(
    source: Annotated[str, typer.Argument(help="Only this source.")] = "", as_json: Json = False
) -> None:
    """Show the signals that no UPDATE has taken up yet."""
    from patra_ingest.ledger.signals import list_pending
    from patra_ingest.registry.history import get_provenance
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        if source:
            get_provenance(tx, source, live.clock.now())
        pending = list_pending(tx, source.lower() or None)
    if as_json:
        print_json(pending)
        return
    if not pending:
        say("No signal is waiting.")
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("source", "endpoint", "id", "why", "reason", "by", "since")
    for one in pending:
        words = (one.provenance, one.endpoint, one.provider_id, one.signal, one.reason, one.by)
        table.add_row(*(escape(word or "") for word in words), f"{one.at:%Y-%m-%d %H:%M:%SZ}")
    print_table(table)


def _signal(why: str) -> "Signal":
    from patra_ingest.model.codes import Signal

    if why.upper() not in _GIVEN_BY_PEOPLE:
        listed = ", ".join(_GIVEN_BY_PEOPLE)
        raise UnknownName(f"There is no signal {why!r}.", f"Known signals: {listed}.")
    return Signal(why.upper())


def _ids(given: Iterable[str], from_file: str) -> list[str]:
    """Return the ids without blanks around them, each once; empty lines of a file are no ids."""
    lines = [line for line in _lines(from_file) if line.strip()]
    wanted = list(dict.fromkeys(name.strip() for name in (*given, *lines)))
    if not wanted:
        raise typer.BadParameter("Give at least one id, or --from-file FILE.")
    if "" in wanted:
        raise PersonMustAct("One of the ids is empty.", "Nothing was written; give every id.")
    if long := [name for name in wanted if len(name) > _LONGEST_ID]:
        raise PersonMustAct(
            f"{_listed([name[:40] + '…' for name in long])}: longer than {_LONGEST_ID} characters.",
            "Nothing was written; give one id per argument or line.",
        )
    return wanted


def _lines(from_file: str) -> list[str]:
    if not from_file:
        return []
    try:
        read = sys.stdin.buffer.read() if from_file == "-" else Path(from_file).read_bytes()
        return read.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PersonMustAct(
            f"The ids in {from_file!r} cannot be read ({error}).", "Give a text file in UTF-8."
        ) from error


def _owners(
    tx: "Connection", source: str, endpoint: str, ids: Sequence[str], now: "datetime"
) -> dict[str, list[str]]:
    """Return the ids by endpoint: all under the one that was named, else where their records are.

    A record may be missing on purpose, so a named endpoint need not have it.
    """
    from patra_ingest.ledger.signals import list_kept
    from patra_ingest.registry.served import list_storing_endpoints

    storing = list_storing_endpoints(tx, source, now)
    if endpoint and endpoint not in storing:
        raise UnknownName(
            f"{source} stores no records under {endpoint!r}.",
            f"It does under: {', '.join(storing) or 'none'}.",
        )
    if endpoint:
        return {endpoint: list(ids)}
    kept = list_kept(tx, source, storing, ids)
    known = {name for own in kept.values() for name in own}
    if unknown := [name for name in ids if name not in known]:
        raise UnknownName(
            f"{source} has no record {_listed(unknown)}; nothing was written.",
            f"Name the endpoint ({source}/{(storing or ['ENDPOINT'])[0]}) to ask for them anyway.",
        )
    return kept


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return shown + (f" and {more} more" if more > 0 else "")
