"""`patra hold`, `patra resume`, `patra cancel`: a person steps in, and the ledger remembers who."""

import getpass
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from patra_ingest.ledger.cancel import Cancelled
    from patra_ingest.ledger.holds import Hold
    from patra_ingest.wiring import Reader


class Thing(StrEnum):
    """What can be cancelled."""

    PLAN = "plan"
    SLICE = "slice"
    TASK = "task"


Place = Annotated[str, typer.Argument(help="SOURCE or SOURCE/ENDPOINT.")]
Reason = Annotated[str, typer.Option(help="Why, for whoever reads it later.")]
# The largest number that both engines keep.
Number = Annotated[int, typer.Argument(metavar="ID", min=1, max=2**63 - 1)]


def hold(place: Place, reason: Reason = "") -> None:
    """Stop a source or an endpoint: nothing of it is planned or leased until it is resumed."""
    from patra_ingest.ledger.holds import find_hold, place_hold
    from patra_ingest.wiring import open_reader

    source, _, endpoint = place.lower().partition("/")
    said = one_line(reason) or "held by a person"
    with open_reader() as live, live.db.write() as tx:
        _require_known(tx, live, place, source, endpoint)
        before = find_hold(tx, source, endpoint or None)
        now = live.db.now(tx)
        new = place_hold(tx, source, endpoint or None, "OPERATOR", said, caller_name(), now)
    if not new and before is not None:
        say(f"{place} was held already ({_told(before)}); yours was noted with it.")
        return
    say(
        f"{place} is held: nothing more of it is planned or leased, what is executing goes on to"
        f" its end. `patra resume {place}` lets it go on."
    )


def resume(place: Place, reason: Reason = "") -> None:
    """Let a held source or endpoint go on."""
    from patra_ingest.ledger.holds import find_hold
    from patra_ingest.ledger.holds import resume as lift
    from patra_ingest.wiring import open_reader

    source, _, endpoint = place.lower().partition("/")
    said = one_line(reason) or "resumed by a person"
    with open_reader() as live, live.db.write() as tx:
        lifted = lift(tx, source, endpoint or None, caller_name(), live.db.now(tx), said)
        if not lifted:
            _require_known(tx, live, place, source, endpoint)
        left = find_hold(tx, source, endpoint or None)
    begun = f"{place}: {lifted} holds lifted" if lifted else f"{place} was not held by itself"
    if left is not None:
        say(
            f"{begun}, but {left.place} is ({_told(left)}). `patra resume {left.place}` lifts that."
        )
    elif lifted:
        say(f"{begun}. Its queued tasks are leased again, and the next trigger plans it.")
    else:
        say(f"{place} was not held.")


def cancel(
    thing: Annotated[Thing, typer.Argument(help="What to cancel.")],
    number: Number,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """End a plan, a slice or a task that is not final yet; what is committed stays."""
    from patra_ingest.wiring import open_reader

    why = one_line(reason) or "cancelled by a person"
    with open_reader() as live, live.db.write() as tx:
        done = _cancellers()[thing](tx, number, caller_name(), why, live.db.now(tx))
    if as_json:
        print_json(done)
    else:
        say(f"{_summary(thing, number, done)} {_AFTER}")


_AFTER = (
    "A worker still on it writes nothing more. Its window is a hole again: the next trigger that"
    " covers it plans it, unless the source is held."
)


def _cancellers() -> Mapping[Thing, Callable[..., "Cancelled"]]:
    from patra_ingest.ledger.cancel import cancel_plan, cancel_slice, cancel_task

    return {Thing.PLAN: cancel_plan, Thing.SLICE: cancel_slice, Thing.TASK: cancel_task}


def _summary(thing: Thing, number: int, done: "Cancelled") -> str:
    name = f"{thing.capitalize()} {number} cancelled"
    if thing == Thing.PLAN:
        counts = f"{_count(done.tasks, 'task')}, {_count(done.slices, 'slice')}"
        were = "was" if done.already_final == 1 else "were"
        final = f"; {done.already_final} {were} final already" if done.already_final else ""
        return f"{name}: {counts}{final}."
    if thing == Thing.TASK:
        return f"{name} with its slice."
    return f"{name} with its task." if done.tasks else f"{name}; it had no task yet."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _require_known(
    tx: "Connection", live: "Reader", place: str, source: str, endpoint: str
) -> None:
    from patra_ingest.errors import UnknownName
    from patra_ingest.registry.read import list_endpoints

    known = list_endpoints(tx, live.clock.now())
    if not any(n.provenance == source and endpoint in ("", n.endpoint) for n in known):
        names = dict.fromkeys(f"{n.provenance}/{n.endpoint}" for n in known)
        listed = ", ".join(names) or "none yet"
        raise UnknownName(f"There is nothing called {place!r} to hold.", f"Known: {listed}.")


def _told(held: "Hold") -> str:
    return f"by {held.held_by} since {held.held_at:%Y-%m-%d %H:%M:%SZ}: {held.reason}"


def caller_name() -> str:
    """Return who is asking; a container may run us under a number without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def one_line(text: str) -> str:
    """Return what a person typed as text that both engines keep, whatever the terminal sent."""
    return text.encode("utf-8", "replace").decode().strip()
