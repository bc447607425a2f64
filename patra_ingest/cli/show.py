"""How the command line speaks: sentences, tables and progress for people, JSON for scripts."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from patra_ingest.planner.trigger import Planned, PlannedPart
    from patra_ingest.planner.trigger import Progress as PlanProgress
    from patra_ingest.views.plan_summary import PlanSummary
    from patra_ingest.views.queue import Rest

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_console = Console(highlight=False, soft_wrap=True)
if not _console.is_terminal:
    _console.width = 160  # a pipe has no width; nothing needs to be cut for it


def say(sentence: str) -> None:
    """Print one line for a person."""
    _console.print(sentence, markup=False)


def print_table(table: "Table") -> None:
    """Print a table for a person."""
    _console.print(table)


def print_json(value: Any) -> None:
    """Print a value for a script."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


class Bar:
    """A progress bar over slices that also counts records."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("harvesting", total=None, records=0, pages=0)

    def show(self, done: int, total: int, records: int, pages: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total, records=records, pages=pages)


@contextmanager
def progress_bar() -> Iterator[Bar]:
    """Show a bar while the block runs; on a plain pipe nothing moves, so nothing is shown."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        TextColumn("{task.completed}/{task.total} slices"),
        TextColumn("{task.fields[pages]} pages"),
        TextColumn("{task.fields[records]} records"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_console, disable=not _console.is_terminal) as progress:
        yield Bar(progress)


def print_summary(summary: "PlanSummary", *more: tuple[str, str]) -> None:
    """Print what a harvest did, in the order a person asks; `more` rows come last."""
    from rich.table import Table

    counts = summary.counts
    table = Table(show_header=False, box=None, padding=(0, 2), title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in (
        ("source", f"{summary.provenance} / {summary.endpoint}, {summary.operation}"),
        ("plan", f"{summary.plan_id}, {summary.status}"),
        ("window", str(summary.window)),
        ("slices", _counted(summary.slices)),
        (
            "requests",
            f"{counts['reqCount']} sent, {summary.pages} pages, {summary.bytes / 1e6:.1f} MB,"
            f" {counts['retryCount']} retries, {counts['429Count']} throttled",
        ),
        ("records", _records(counts)),
        ("certificate", _certificate(summary)),
        ("cursor", f"{_at(summary.cursor_before)} → {_at(summary.cursor_after)}"),
        ("time", _time(summary)),
        *more,
    ):
        table.add_row(name, value)
    for error in summary.errors:
        table.add_row("error", error, style="red")
    _console.print(table, markup=False)


def say_planned(planned: "Planned") -> None:
    """Say what a trigger led to, one sentence for each part of the source."""
    for plan_id, progress in planned.earlier:
        say(f"Plan {plan_id}, which an earlier trigger left, goes on{_queued(progress)}.")
    for part in planned.parts:
        of = f" of partition {part.partition}" if part.partition else ""
        if part.plan_id is None or part.progress is None:
            say(f"Nothing to plan{of}: {part.reason}.")
        else:
            say(f"Plan {part.plan_id}{of}{_begun(part, part.progress)}{_queued(part.progress)}.")
        for cut in part.cuts:
            say(f"  {cut}")
    children = sum(one.children for one in planned.resliced)
    if children:
        say(f"Slices that proved too big were cut again, into {children}.")
    for problem in planned.problems:
        say(f"Failed: {problem}.")


def _begun(part: "PlannedPart", progress: "PlanProgress") -> str:
    if part.reason and not progress.queued and not progress.waiting:
        return f" is {progress.status}: everything of it is queued already"
    if part.reason:
        return " goes on"
    window = f": {part.window}" if part.window else ""
    return f"{window} in {_many(progress.new_slices, 'slice')}"


def _queued(progress: "PlanProgress") -> str:
    sentence = f", {_many(progress.queued, 'task')} queued"
    if progress.dues:
        first, last = progress.dues[0], progress.dues[-1]
        until = f" to {last:%Y-%m-%d %H:%M}Z" if last != first else ""
        sentence += f", {len(progress.dues)} of them due {first:%Y-%m-%d %H:%M}Z{until}"
    if progress.waiting:
        verb = "waits" if progress.waiting == 1 else "wait"
        waiting = f"{_many(progress.waiting, 'slice')} {verb} ({progress.reason})"
        sentence += f"; {waiting}, the next trigger goes on"
    return sentence


def say_rest(rests: "list[Rest]") -> str:
    """Return what is left of some plans, and what goes on with it."""
    parts = []
    if waiting := sum(rest.waiting for rest in rests):
        parts.append(f"{_many(waiting, 'slice')} without room in the queue, `patra run` goes on")
    dues = [rest.next_due for rest in rests if rest.next_due]
    if dues:
        later = _many(sum(rest.later for rest in rests), "task")
        parts.append(f"{later} due later, the next {min(dues):%Y-%m-%d %H:%M}Z")
    return "; ".join(parts) or "see the slices above; `patra work` goes on"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _at(instant: datetime | None) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%SZ") if instant else "—"


def _counted(numbers: dict[str, int]) -> str:
    total = sum(numbers.values())
    parts = ", ".join(f"{count} {name}" for name, count in numbers.items())
    return f"{total}: {parts}" if total else "0"


def _records(counts: dict[str, int]) -> str:
    from patra_ingest.views.plan_summary import FATES

    parts = ", ".join(f"{counts[fate]} {fate}" for fate in FATES if counts[fate])
    return f"{counts['itemsCount']} seen" + (f": {parts}" if parts else "")


def _certificate(summary: "PlanSummary") -> str:
    verdicts = _counted(summary.certificates)
    promised = "no total" if summary.promised is None else f"{summary.promised} promised"
    return f"{verdicts}; {promised}, {summary.landed} landed"


def _time(summary: "PlanSummary") -> str:
    if summary.seconds is None:
        return "not started"
    speed = summary.counts["itemsCount"] / summary.seconds if summary.seconds else 0
    return f"{summary.seconds:.1f} s, {speed:.0f} records per second"
