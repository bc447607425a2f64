"""Ctrl-C, SIGTERM and a deadline end a command in order: after the current batch, not amid it."""

import signal
import threading
from datetime import timedelta
from typing import Annotated

import typer

from patra_ingest.clock import Stop


def read_duration(text: str) -> timedelta:
    """Return the time that an option gives; nothing, and less, is wrong usage."""
    from patra_ingest.model.window import parse_duration

    try:
        time = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from None
    if time <= timedelta(0):
        raise typer.BadParameter(f"{text!r} is no time at all; give some, such as 30m.")
    return time


For = Annotated[
    timedelta | None,
    typer.Option(
        "--for",
        parser=read_duration,
        metavar="DURATION",
        help="End after this time, such as 30m or 8h: each lane after its batch.",
    ),
]


def stop_on_signals() -> Stop:
    """Return the event that SIGINT and SIGTERM set from now on."""
    stop = Stop()

    def ask_to_stop(*_: object) -> None:
        # From a thread: a second signal may arrive while the first one is inside `set`.
        threading.Thread(target=stop.set).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    return stop
