"""`patra budget`: how fast we may go now, why not faster, what is left, when it is full again."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say

if TYPE_CHECKING:
    from patra_ingest.views.budget import KeyBudget, QuotaState

_WIDTH = 30


def budget(
    key: Annotated[str | None, typer.Argument(help="One rate key, with all its windows.")] = None,
    as_json: Json = False,
) -> None:
    """Show every rate key: its speed, who is sending, its silence, and what is left of quotas."""
    from patra_ingest.views.budget import list_budgets
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        now = live.db.now(tx)
        budgets = list_budgets(tx, now, key)
    if as_json:
        print_json([one.as_json(now) for one in budgets])
        return
    if not budgets:
        say("No request was sent or planned yet, so no budget is in use.")
    for position, one in enumerate(budgets):
        if position:
            say("")
        _print(one, now, is_whole=key is not None)


def _print(one: "KeyBudget", now: datetime, is_whole: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2), title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, words in [
        ("key", one.rate_key),
        *_rate_rows(one, now),
        *_quota_rows(one, now, is_whole),
    ]:
        table.add_row(name, Text(words))
    print_table(table)


def _rate_rows(one: "KeyBudget", now: datetime) -> list[tuple[str, str]]:
    rate = one.rate
    if rate is None:
        return [("speed", "no request was sent yet")]
    rows = [
        ("speed", rate.speed(now)),
        ("requests", rate.places(now)),
        ("pause", rate.silence(now)),
        ("it said", rate.told(now)),
    ]
    return [(name, words) for name, words in rows if words]


def _quota_rows(one: "KeyBudget", now: datetime, is_whole: bool) -> list[tuple[str, str]]:
    """Return a bar for each window of now, and one line for all those ahead, or a bar for each."""
    from patra_ingest.views.budget import plain

    shown = [quota for quota in one.quotas if is_whole or quota.window.start <= now]
    ahead = [quota for quota in one.quotas if quota not in shown and quota.reserved]
    rows = [row for quota in shown for row in _window_rows(quota, now)]
    if ahead:
        booked = plain(sum((quota.reserved for quota in ahead), start=ahead[0].reserved * 0))
        until = f"{ahead[-1].window.end:%Y-%m-%d %H:%M}Z"
        windows = "1 window" if len(ahead) == 1 else f"{len(ahead)} windows"
        rows.append(("ahead", f"{booked} reserved in {windows} until {until}"))
    return rows


def _window_rows(quota: "QuotaState", now: datetime) -> list[tuple[str, str]]:
    from patra_ingest.views.budget import plain
    from patra_ingest.views.spans import still

    start, end = quota.window.start, quota.window.end
    free = f"{plain(quota.free)} free" if quota.free >= 0 else f"{plain(-quota.free)} too much"
    amounts = f"{plain(quota.spent)} spent, {plain(quota.reserved)} reserved, {free}"
    full = f"full again in {still(end, now)}" if start <= now else f"from {start:%Y-%m-%d %H:%M}Z"
    words = f"{bar(quota)} {amounts} of {plain(quota.limit)}; {full} ({end:%Y-%m-%d %H:%M}Z)"
    stops = ", ".join(f"{name} up to {plain(mark)}" for name, mark in sorted(quota.stops.items()))
    return [("quota", words), ("", stops)] if stops else [("quota", words)]


def bar(quota: "QuotaState") -> str:
    """Return spent, reserved and free as one bar; a line stands where an operation must stop."""
    spent = _cells(quota.part(quota.spent))
    taken = max(spent, _cells(quota.part(quota.spent + quota.reserved)))
    cells = list("█" * spent + "▒" * (taken - spent) + "░" * (_WIDTH - taken))
    for mark in quota.stops.values():
        cells[min(_WIDTH - 1, _cells(quota.part(mark)))] = "│"
    return "".join(cells)


def _cells(share: float) -> int:
    # Whatever is there is seen, and only what is full looks full.
    if 0 < share < 1:
        return min(_WIDTH - 1, max(1, round(share * _WIDTH)))
    return min(_WIDTH, max(0, round(share * _WIDTH)))
