"""`patra status`, `patra hold`, `patra resume`: how things stand, and who must wait."""

import getpass
from typing import Annotated

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say

Place = Annotated[str, typer.Argument(help="SOURCE or SOURCE/ENDPOINT.")]


def status(as_json: Json = False) -> None:
    """Show every endpoint: records, queue, cursor and holds."""
    from patra_ingest.views.overview import list_states
    from patra_ingest.wiring import open_reader

    with open_reader() as live:
        now = live.clock.now()
        with live.db.read() as tx:
            states = list_states(tx)
    if as_json:
        print_json(states)
        return
    if not states:
        say("Nothing was planned yet. Begin with `patra run SOURCE --from DATE`.")
        return
    from rich.table import Table

    table = Table("source", "endpoint", "operation", "records", "tasks", "cursor", "behind", "hold")
    for state in states:
        lag = state.lag_seconds(now)
        table.add_row(
            state.provenance,
            state.endpoint,
            state.operation,
            str(state.records),
            ", ".join(f"{count} {name}" for name, count in sorted(state.tasks.items())),
            state.cursor.strftime("%Y-%m-%d %H:%M:%SZ") if state.cursor else "—",
            _duration(lag) if lag is not None else "—",
            state.held or "",
        )
    print_table(table)


def hold(
    place: Place,
    reason: Annotated[str, typer.Option(help="Why, for whoever resumes it.")] = "",
) -> None:
    """Stop a source or an endpoint: nothing of it is leased until it is resumed."""
    from patra_ingest.errors import UnknownName
    from patra_ingest.ledger.holds import place_hold
    from patra_ingest.registry.read import list_endpoints
    from patra_ingest.wiring import open_reader

    source, _, endpoint = place.lower().partition("/")
    with open_reader() as live, live.db.write() as tx:
        known = list_endpoints(tx, live.clock.now())
        if not any(n.provenance == source and endpoint in ("", n.endpoint) for n in known):
            names = dict.fromkeys(f"{n.provenance}/{n.endpoint}" for n in known)
            listed = ", ".join(names) or "none yet"
            raise UnknownName(f"There is nothing called {place!r} to hold.", f"Known: {listed}.")
        said = reason or "held by a person"
        by = getpass.getuser()
        place_hold(tx, source, endpoint or None, "OPERATOR", said, by, live.db.now(tx))
    say(f"{place} is held. `patra resume {place}` lets it go on.")


def resume(place: Place) -> None:
    """Let a held source or endpoint go on."""
    from patra_ingest.ledger.holds import resume as lift
    from patra_ingest.wiring import open_reader

    source, _, endpoint = place.lower().partition("/")
    with open_reader() as live, live.db.write() as tx:
        lifted = lift(tx, source, endpoint or None, getpass.getuser(), live.db.now(tx))
    say(f"{place}: {lifted} holds lifted." if lifted else f"{place} was not held.")


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
