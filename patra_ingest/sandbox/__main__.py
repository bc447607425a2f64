"""`python -m patra_ingest.sandbox`: the sandbox as a process of its own."""

import argparse
import os
import signal
import sys
import threading
from dataclasses import fields
from datetime import UTC, datetime

from patra_ingest.errors import PersonMustAct
from patra_ingest.sandbox.behaviour import Behaviour, option_of
from patra_ingest.sandbox.habits.table import Habits, read_habits
from patra_ingest.sandbox.serve import serve
from patra_ingest.sandbox.world import World


def main(arguments: list[str] | None = None) -> None:
    """Serve until told to stop; exit code 1 when that is not possible, 2 for wrong usage."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        world = World(asked.records, asked.start, asked.days, asked.seed)
        behaviour = Behaviour(
            **{field.name: getattr(asked, field.name) for field in fields(Behaviour)}
        )
    except ValueError as error:
        parser.error(str(error))
    if asked.until_stdin_closes:
        threading.Thread(target=_stop_when_stdin_closes, daemon=True).start()
    try:
        serve(asked.port, world, behaviour, _announce)
    except PersonMustAct as error:
        parser.exit(1, f"{error}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m patra_ingest.sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--records", type=int, default=1000, help="how many works there are")
    parser.add_argument("--start", type=_instant, default="2025-01-01", help="index time begins")
    parser.add_argument("--days", type=float, default=7.0, help="… and ends so many days later")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other works")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    for field in fields(Behaviour):
        option = option_of(field.name)
        if field.type is bool:
            parser.add_argument(option, action="store_true")
        elif field.name == "habits":
            parser.add_argument(option, dest="habits", type=_habits, default=frozenset())
        else:
            parser.add_argument(option, type=type(field.default), default=field.default)
    return parser


def _habits(written: str) -> Habits:
    try:
        return read_habits(written.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _announce(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


def _instant(written: str) -> datetime:
    at = datetime.fromisoformat(written)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _stop_when_stdin_closes() -> None:
    """Wait for the pipe from our parent to end: however it died, the kernel closes it."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
