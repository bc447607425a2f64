"""`patra outbox`: tell others what changed, and see what they have not been told yet."""

import os
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say

if TYPE_CHECKING:
    from patra_ingest.executor.publish import Tally
    from patra_ingest.views.outbox import OutboxState

To = Annotated[
    str,
    typer.Option(
        "--to",
        help="jsonl:PATH, http(s)://HOST/PATH, redis://HOST:PORT/DB?stream=NAME, or @FILE: a file"
        " that holds one of them.",
    ),
]
_SHOWN_REASONS = 5


def publish(
    to: To,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when nothing more is due.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="End after so many messages; 0: no end.")] = 0,
    batch: Annotated[int, typer.Option(min=1, max=1000, help="Messages sent at once.")] = 100,
    lease: Annotated[
        int, typer.Option(min=60, help="Seconds until another publisher takes over.")
    ] = 60,
    as_json: Json = False,
) -> None:
    """Publish what changed, in order per record; Ctrl-C stops after the current batch."""
    from datetime import timedelta

    from patra_ingest.cli.stopping import stop_on_signals
    from patra_ingest.executor.publish import PublishOrder, publish_outbox
    from patra_ingest.wiring import open_reader, read_settings, user_agent

    order = PublishOrder(to, until_empty, limit, batch, timedelta(seconds=lease))
    settings = read_settings()
    name = f"{socket.gethostname()}:{os.getpid()}"
    stop = stop_on_signals()
    with open_reader(settings) as live:
        agent = user_agent(settings)
        tally = publish_outbox(live.db, live.clock, name, agent, order, stop)
    print_json(tally.as_json()) if as_json else _say_tally(tally)
    if not tally.is_clean:
        raise typer.Exit(1)


def _say_tally(tally: "Tally") -> None:
    lost = f", {tally.lost} taken over by another publisher" if tally.lost else ""
    say(
        f"{tally.sink}: {tally.published} published, {tally.failed} failed and will be tried"
        f" again, {tally.dead} dead{lost}."
    )
    for reason, count in tally.reasons.most_common(_SHOWN_REASONS):
        say(f"  {count} × {reason}")
    if tally.dead:
        say("Remove the cause, then `patra outbox retry` puts the dead ones back.")


def status(as_json: Json = False) -> None:
    """Show how many messages wait, are published or dead, and why."""
    from patra_ingest.views.outbox import summarize_outbox
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        state = summarize_outbox(tx)
    print_json(state) if as_json else _say_state(state)


def _say_state(state: "OutboxState") -> None:
    say(", ".join(f"{count} {name}" for name, count in state.counts.items()) + ".")
    if state.oldest_pending:
        say(f"The oldest that waits was written {state.oldest_pending:%Y-%m-%d %H:%M:%S}Z.")
    if state.next_retry_at:
        say(f"The next failed one is tried again {state.next_retry_at:%Y-%m-%d %H:%M:%S}Z.")
    if not state.troubles:
        return
    from rich.table import Table

    table = Table("status", "channel", "messages", "newest", "reason")
    for one in state.troubles:
        why = f"{one.code}: {one.reason}"
        table.add_row(one.status, one.channel, str(one.messages), str(one.example), why)
    print_table(table)


def retry() -> None:
    """Put every dead message back into the queue, with all its attempts."""
    from patra_ingest.ledger.outbox_queue import revive_dead
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.write() as tx:
        revived = revive_dead(tx, live.db.now(tx))
    say(f"{revived} dead messages wait again.")
