"""`patra cursor`: how far we are, how we came there, and whether both agree."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from patra_ingest.model.namespace import Namespace
    from patra_ingest.wiring import Reader

Source = Annotated[str, typer.Argument(help="Source code, for example sandbox.")]
AnySource = Annotated[str, typer.Argument(help="Source code; default: every source.")]
Endpoint = Annotated[str, typer.Option(help="Only this endpoint.")]
Op = Annotated[str, typer.Option("--op", help="Only this operation.")]
Space = Annotated[
    str, typer.Option("--namespace", help="Only the namespace whose key begins with this.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without this nothing is changed.")]
_UNCHANGED = "Nothing was changed; add --yes to do it."


def list_(source: AnySource = "", as_json: Json = False) -> None:
    """Show every cursor, how far it is behind, and who moved it last."""
    from patra_ingest.cli.cursor_show import cursor_form, print_cursors
    from patra_ingest.views.cursors import list_cursors
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        now = live.clock.now()
        found = list_cursors(tx, source.lower() or None)
        if source and not found:
            _require_source(tx, live, source)
    if as_json:
        print_json([cursor_form(one, now) for one in found])
    elif found:
        print_cursors(found, now)
    else:
        say(f"No cursor{f' of {source}' if source else ''} has moved yet.")


def timeline(
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "",
    namespace: Space = "",
    limit: Annotated[int, typer.Option(min=1, help="Show so many events, the newest.")] = 20,
    as_json: Json = False,
) -> None:
    """Show the last events: what moved, why it did not, and what stands behind it."""
    from patra_ingest.cli.cursor_show import event_form, print_events
    from patra_ingest.views.cursors import list_events
    from patra_ingest.wiring import open_reader

    operation = _read_op(op)
    with open_reader() as live, live.db.read() as tx:
        names = (source.lower(), limit, endpoint.lower(), operation, namespace.lower())
        found = list_events(tx, *names)
        if not found:
            _require_source(tx, live, source)
            _choose(tx, source, endpoint, operation, namespace)
    if as_json:
        print_json([event_form(one) for one in found])
    elif found:
        print_events(found)
    else:
        say(f"No cursor of {source} has moved yet.")


def verify(
    source: AnySource = "",
    endpoint: Endpoint = "",
    op: Op = "",
    namespace: Space = "",
    as_json: Json = False,
) -> None:
    """Compare every cursor with what its events say; exit 1 when a person must look at one."""
    from patra_ingest.cli.cursor_show import check_form, say_check
    from patra_ingest.cursor.replay import check_cursors
    from patra_ingest.wiring import open_reader

    wanted = _Wanted(source, endpoint, _read_op(op), namespace)
    with open_reader() as live:
        checks = list(check_cursors(live.db, live.clock, wanted, source.lower() or None))
        if source and not checks:
            with live.db.read() as tx:
                _require_source(tx, live, source)
    if as_json:
        print_json([check_form(one) for one in checks])
    else:
        for one in checks:
            say_check(one)
        fine = sum(one.is_fine for one in checks)
        say(f"{len(checks)} cursors: {fine} agree with their events, {len(checks) - fine} do not.")
    if not all(one.is_fine for one in checks):
        raise typer.Exit(1)


def rebuild(
    source: Source, endpoint: Endpoint = "", op: Op = "", namespace: Space = "", yes: Yes = False
) -> None:
    """Move cursors that are behind their events to where these lead; never back, never on a gap."""
    from patra_ingest.cli.cursor_show import name_of
    from patra_ingest.cursor.replay import check_cursors
    from patra_ingest.cursor.replay import rebuild as follow_events
    from patra_ingest.ledger.cursors import write_value
    from patra_ingest.wiring import open_reader

    wanted = _Wanted(source, endpoint, _read_op(op), namespace)
    with open_reader() as live:
        checks = list(check_cursors(live.db, live.clock, wanted, source.lower()))
        if not checks:
            with live.db.read() as tx:
                _require_source(tx, live, source)
                _choose(tx, source, endpoint, wanted.operation, namespace)
        refused = [one for one in checks if one.refusal()]
        behind = [one for one in checks if not one.is_fine and not one.refusal()]
        for one in refused:
            say(f"{name_of(one.known.namespace)} is not rebuilt: {one.refusal()}.")
        for one in behind:
            step = f"{write_value(one.value) or '—'} → {write_value(one.fold.value)}"
            if yes:
                follow_events(live.db, one)
            say(f"{name_of(one.known.namespace)} {'was' if yes else 'would be'} moved: {step}.")
    if not behind and not refused:
        say("Every cursor agrees with its events; there is nothing to rebuild.")
    elif behind and not yes:
        say(_UNCHANGED)
    if refused:
        raise typer.Exit(1)


def force(  # noqa: PLR0913 - which cursor, where to, and why
    source: Source,
    to: Annotated[str, typer.Option("--to", help="The instant to move it to, ISO.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept for ever.")],
    endpoint: Endpoint = "",
    op: Annotated[str, typer.Option("--op", help="Operation.")] = "HARVEST",
    namespace: Space = "",
    yes: Yes = False,
) -> None:
    """Move a cursor past what will never succeed; what lies between is given up by HARVEST."""
    from patra_ingest.cli.cursor_show import name_of
    from patra_ingest.cli.harvest import read_instant
    from patra_ingest.cli.operate import caller_name, one_line
    from patra_ingest.cursor.advance import CursorManager
    from patra_ingest.cursor.force import foresee_force
    from patra_ingest.errors import PlanError
    from patra_ingest.ledger.cursors import write_value
    from patra_ingest.wiring import open_reader

    target = read_instant(to, "--to")
    if target is None:
        raise PlanError("--to is empty.", "Give the instant to move the cursor to.")
    why, me = one_line(reason), caller_name()
    with open_reader() as live:
        with live.db.read() as tx:
            _require_source(tx, live, source)
            own = _only(_choose(tx, source, endpoint, _read_op(op), namespace))
        cursor, event = foresee_force(live.db, own, target, me, why)
        if yes:
            CursorManager(live.db, live.clock).force(own, target, me, why)
    before = write_value(cursor.value) if cursor else "—"
    verb = "was" if yes else "would be"
    say(f"{name_of(own)} {verb} forced by {me}: {before} → {write_value(event.reached)}.")
    if not yes:
        say(_UNCHANGED)


class _Wanted:
    """Which namespaces a command is about."""

    def __init__(self, source: str, endpoint: str, operation: str | None, key: str) -> None:
        self.source, self.endpoint = source.lower(), endpoint.lower()
        self.operation, self.key = operation, key.lower()

    def __call__(self, one: "Namespace") -> bool:
        return (
            self.source in ("", one.provenance)
            and self.endpoint in ("", one.endpoint)
            and self.operation in (None, one.operation.value)
            and one.key.startswith(self.key)
        )


def _read_op(op: str) -> str | None:
    from patra_ingest.cli.coverage import read_operation

    return read_operation(op).value if op else None


def _require_source(tx: "Connection", live: "Reader", source: str) -> None:
    from patra_ingest.errors import UnknownName
    from patra_ingest.ledger.cursor_events import list_known
    from patra_ingest.registry.read import list_endpoints
    from patra_ingest.views.cursors import list_planned

    code = source.lower()
    known = dict.fromkeys(name.provenance for name in list_endpoints(tx, live.clock.now()))
    if code not in known and not list_known(tx, code) and not list_planned(tx, code):
        listed = ", ".join(known) or "none yet"
        raise UnknownName(f"There is no source {source!r}.", f"Known sources: {listed}.")


def _choose(
    tx: "Connection", source: str, endpoint: str, operation: str | None, namespace: str
) -> "list[Namespace]":
    """Return the namespaces that fit; none is an error unless the source has none at all."""
    from patra_ingest.cli.cursor_show import name_of
    from patra_ingest.errors import UnknownName
    from patra_ingest.ledger.cursor_events import list_known
    from patra_ingest.views.cursors import list_planned

    known: Iterable[Any] = (one.namespace for one in list_known(tx, source.lower()))
    every = list(dict.fromkeys([*known, *list_planned(tx, source.lower())]))
    wanted = _Wanted(source, endpoint, operation, namespace)
    found = [one for one in every if wanted(one)]
    if every and not found:
        listed = "; ".join(map(name_of, every))
        raise UnknownName(f"No cursor of {source} fits these options.", f"Known: {listed}.")
    return found


def _only(found: "list[Namespace]") -> "Namespace":
    from patra_ingest.cli.cursor_show import name_of
    from patra_ingest.errors import UnknownName

    if len(found) != 1:
        listed = "; ".join(map(name_of, found)) or "none, nothing was planned yet"
        raise UnknownName(
            f"{len(found)} cursors fit these options, and one is needed: {listed}.",
            "Say which with --endpoint, --op and --namespace.",
        )
    return found[0]
