"""`patra coverage`: what a source has been asked for, every hole in it, and why it is there."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from patra_ingest.cli.coverage_look import Look, Stretch
    from patra_ingest.model.codes import Operation
    from patra_ingest.views.coverage import NamespaceFacts

_LISTED = 20  # holes that a person still reads
_SHOWN = 300  # characters of one reason

Source = Annotated[str, typer.Argument(help="Source code, for example sandbox.")]
Endpoint = Annotated[str, typer.Option(help="Only this endpoint.")]
Op = Annotated[str, typer.Option("--op", help="Only this operation.")]
From = Annotated[str, typer.Option("--from", help="Start, ISO; default: the first plan.")]
To = Annotated[str, typer.Option("--to", help="End (exclusive); default: now − safety lag.")]


def coverage(
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "",
    from_: From = "",
    to: To = "",
    as_json: Json = False,
) -> None:
    """Draw what a source has, what is in work, and every hole with its reason."""
    from patra_ingest.cli.coverage_look import look_at
    from patra_ingest.cli.harvest import read_instant
    from patra_ingest.planner.windowing import Asked
    from patra_ingest.wiring import open_reader

    asked = Asked(read_instant(from_, "--from"), read_instant(to, "--to"))
    operation = read_operation(op) if op else None
    with open_reader() as live, live.db.read() as tx:
        now = live.clock.now()
        found = _list(tx, source.lower(), endpoint.lower(), operation, now)
    looks = [look_at(facts, asked, now) for facts in found]
    if as_json:
        print_json([_form(look) for look in looks])
    elif not looks:
        say(f"Nothing of {source} was planned yet. Begin with `patra run {source} --from DATE`.")
    else:
        for look in looks:
            _print(look)


def read_operation(op: str) -> "Operation":
    """Return the operation that a person typed; one sentence for any other word."""
    from patra_ingest.errors import UnknownName
    from patra_ingest.model.codes import Operation

    try:
        return Operation(op.upper())
    except ValueError:
        known = ", ".join(Operation)
        raise UnknownName(f"There is no operation {op!r}.", f"Known operations: {known}.") from None


def _list(
    tx: "Connection", source: str, endpoint: str, operation: "Operation | None", now: "datetime"
) -> "list[NamespaceFacts]":
    """Return what was planned; a name that neither a plan nor the Registry knows is an error."""
    from patra_ingest.errors import UnknownName
    from patra_ingest.registry.read import list_endpoints
    from patra_ingest.views.coverage import list_coverage

    found = list_coverage(tx, source, endpoint or None, operation)
    known = dict.fromkeys((name.provenance, name.endpoint) for name in list_endpoints(tx, now))
    if not found and not any(p == source and endpoint in ("", e) for p, e in known):
        place = f"{source}/{endpoint}" if endpoint else source
        listed = ", ".join("/".join(name) for name in known) or "none yet"
        raise UnknownName(f"There is nothing called {place!r} to look at.", f"Known: {listed}.")
    return found


def _form(look: "Look") -> dict[str, Any]:
    """Return a look as scripts read it; nothing is left out."""
    facts, own = look.facts, look.facts.namespace
    return {
        "provenance": own.provenance,
        "endpoint": own.endpoint,
        "operation": own.operation,
        "namespace": {"cursor_key": own.cursor_key, "scope": own.scope, "key": own.key},
        "partition": facts.newest.partition,
        "campaign": facts.newest.campaign,
        "window": look.window and {"from": look.window.start, "to": look.window.end},
        "cursor": facts.cursor,
        "hold": facts.hold,
        "newest_plan": facts.newest.plan_id,
        "superseded_by": facts.superseded_by,
        "intervals": [_stretch_form(stretch) for stretch in look.stretches],
        "seconds": {kind.value: seconds for kind, seconds in look.seconds().items()},
        "unwindowed": facts.unwindowed,
    }


def _stretch_form(stretch: "Stretch") -> dict[str, Any]:
    interval = stretch.interval
    return {
        "from": interval.window.start,
        "to": interval.window.end,
        "cover": interval.cover,
        "slices": interval.slices,
        "why": stretch.why,
        "remedy": stretch.remedy,
    }


def _print(look: "Look") -> None:
    from patra_ingest.cli.coverage_strip import draw_strip, write_shares

    say(_header(look))
    facts = look.facts
    if look.window is not None:
        intervals = [stretch.interval for stretch in look.stretches]
        print_table(draw_strip(look.window, intervals, facts.cursor))
        say(write_shares(look.seconds()))
        _say_holes([stretch for stretch in look.stretches if stretch.is_hole])
    elif facts.planned is not None:
        say("Nothing of it lies between --from and --to.")
    if facts.unwindowed:
        counted = ", ".join(f"{count} {status}" for status, count in facts.unwindowed.items())
        say(f"Slices without a window: {counted}.")
    say("")


def _header(look: "Look") -> str:
    from patra_ingest.cli.coverage_strip import write_moment, write_span

    facts, own, newest = look.facts, look.facts.namespace, look.facts.newest
    parts = [f"{own.provenance}/{own.endpoint} {own.operation}"]
    parts += [write_span(look.window)] if look.window else []
    parts += [f"partition {newest.partition}"] if newest.partition else []
    parts += [f"campaign {newest.campaign}"] if newest.campaign else []
    parts += [f"cursor {write_moment(facts.cursor) if facts.cursor else '—'}"]
    parts += ["HELD"] if facts.hold else []
    if facts.superseded_by is not None:
        parts += [f"an old question: plan {facts.superseded_by} asks another one"]
    return "  ".join(parts)


def _say_holes(holes: "list[Stretch]") -> None:
    from patra_ingest.cli.coverage_strip import GLYPHS, write_length, write_span

    if not holes:
        say("No holes.")
        return
    say(f"{len(holes)} hole{'s' if len(holes) > 1 else ''}:")
    for hole in holes[:_LISTED]:
        window = hole.interval.window
        glyph, length = GLYPHS[hole.interval.cover], write_length(window.duration)
        say(f"  {glyph} {write_span(window)} {length}: {_clean(hole.why)} → {hole.remedy}")
    if len(holes) > _LISTED:
        say(f"  … and {len(holes) - _LISTED} more (--json lists all)")


def _clean(words: str | None) -> str:
    """Return one printable line: what an upstream said must not move a person's cursor."""
    line = "".join(char if char.isprintable() else " " for char in words or "")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
