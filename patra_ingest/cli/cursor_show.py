"""How cursors, their events and their checks look: tables for people, forms for scripts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from patra_ingest.cli.show import print_table, say
from patra_ingest.cursor.replay import REBUILD_REQUIRED, Check
from patra_ingest.ledger.cursors import write_value
from patra_ingest.model.codes import CursorType, Operation
from patra_ingest.model.namespace import Namespace
from patra_ingest.views.cursors import CursorState, EventView

_SHORT = 12  # characters of a namespace's key that tell it from others
_SHOWN = 60  # characters of a token
_STYLES = {"OK": "green", "WARN": "yellow", "CRITICAL": "red"}


def name_of(namespace: Namespace) -> str:
    """Return a namespace in one line."""
    place = f"{namespace.provenance}/{namespace.endpoint} {namespace.operation}"
    return f"{place} {namespace.cursor_key} {namespace.key[:_SHORT]}"


def _short(value: str | None) -> str:
    if value is None:
        return "—"
    whole = value.removesuffix(".000000Z") + "Z" if value.endswith(".000000Z") else value
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"


def _span(lag: timedelta | None) -> str:
    if lag is None:
        return "—"
    seconds = int(lag.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds} s"


def _by(state: CursorState) -> str:
    known = (("plan", state.plan_id), ("slice", state.slice_id), ("run", state.run_id))
    return " › ".join(f"{name} {number}" for name, number in known if number) or "—"


def print_cursors(found: Sequence[CursorState], now: datetime) -> None:
    """Print every cursor with its lag."""
    from rich.table import Table

    table = Table("cursor", "namespace", "value", "behind now", "behind source", "level", "moved")
    for one in found:
        own, level = one.namespace, one.level(now)
        down = one.kind is CursorType.TIME and own.operation is Operation.BACKFILL
        table.add_row(
            _place(own),
            f"{own.cursor_key}\n{own.scope} {own.key[:_SHORT]}",
            _short(one.value),
            "reaches down\nto there" if down else _span(one.now_lag(now)),
            _span(one.source_lag),
            f"[{_STYLES[level]}]{level}[/]" if level else "—",
            f"{one.moved_at:%Y-%m-%d %H:%M:%S}Z\n{_by(one)}",
        )
    print_table(table)


def _place(own: Namespace) -> str:
    return f"{own.provenance}/{own.endpoint}\n{own.operation}"


def cursor_form(one: CursorState, now: datetime) -> dict[str, Any]:
    """Return a cursor as scripts read it."""
    lag, behind = one.now_lag(now), one.source_lag
    return {
        **one.namespace.columns(),
        "type": one.kind,
        "value": one.value,
        "observed_max": one.observed_max,
        "now_lag_seconds": lag.total_seconds() if lag is not None else None,
        "source_lag_seconds": behind.total_seconds() if behind is not None else None,
        "safety_lag_seconds": one.safety_lag.total_seconds() if one.safety_lag else None,
        "level": one.level(now),
        "moved_at": one.moved_at,
        "plan_id": one.plan_id,
        "slice_id": one.slice_id,
        "run_id": one.run_id,
    }


def print_events(found: Sequence[EventView]) -> None:
    """Print events, the newest last."""
    from rich.table import Table
    from rich.text import Text

    table = Table("event", "cursor", "namespace", "step", "why", "behind it")
    for one in found:
        own = one.namespace
        moved = f"{_short(one.previous)}\n→ {_short(one.reached)}"
        ids = [f"{name.split('_')[0]} {value}" for name, value in one.lineage.items() if value]
        table.add_row(
            f"{one.id} {one.reason}\n{one.at:%Y-%m-%d %H:%M:%S}Z",
            _place(own),
            f"{own.cursor_key}\n{own.key[:_SHORT]}",
            moved if one.previous != one.reached else f"stays at\n{_short(one.reached)}",
            Text(one.why or ""),
            " › ".join(ids) or one.by,
        )
    print_table(table)


def event_form(one: EventView) -> dict[str, Any]:
    """Return an event as scripts read it."""
    return {
        "id": one.id,
        "at": one.at,
        **one.namespace.columns(),
        "direction": one.direction,
        "reason": one.reason,
        "previous": one.previous,
        "new": one.reached,
        "window": one.window_from and {"from": one.window_from, "to": one.window_to},
        "by": one.by,
        "why": one.why,
        **one.lineage,
    }


def say_check(one: Check) -> None:
    """Say how a cursor compares with its events."""
    told = one.fold
    counts = f"{told.events} events, {told.advances} steps, {told.ignored} without a step"
    line = f"{name_of(one.known.namespace)}: {_short(write_value(one.value))}"
    say(f"{line}, {counts}, {one.seconds:.2f} s{', agrees' if one.is_fine else ''}.")
    if not one.is_equal:
        lead = _short(write_value(told.value)) if told.last else "nowhere"
        say(f"  {REBUILD_REQUIRED}: its events lead to {lead}.")
    if told.gaps:
        listed = ", ".join(map(str, told.gaps[:10]))
        more = f" and {len(told.gaps) - 10} more" if len(told.gaps) > 10 else ""
        say(f"  {len(told.gaps)} gaps, before the events {listed}{more}: a person must check them.")


def check_form(one: Check) -> dict[str, Any]:
    """Return a check as scripts read it."""
    told = one.fold
    return {
        **one.known.namespace.columns(),
        "type": one.known.kind,
        "cursor": write_value(one.value),
        "fold": write_value(told.value),
        "equal": one.is_equal,
        "alert": None if one.is_equal else REBUILD_REQUIRED,
        "events": told.events,
        "advances": told.advances,
        "ignored": told.ignored,
        "gaps": list(told.gaps),
        "seconds": one.seconds,
    }
