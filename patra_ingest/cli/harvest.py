"""`patra plan`, `patra work` and `patra run`: from a trigger to records."""

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Bar, Json, print_json, print_summary, progress_bar, say

if TYPE_CHECKING:
    from patra_ingest.executor.work import Drained
    from patra_ingest.model.lineage import PlanId
    from patra_ingest.planner.trigger import Planned, Trigger
    from patra_ingest.wiring import Ingest

Source = Annotated[str, typer.Argument(help="Source code, for example sandbox.")]
Endpoint = Annotated[str, typer.Option(help="Endpoint; default: the source's first.")]
Op = Annotated[str, typer.Option("--op", help="Operation.")]
From = Annotated[str, typer.Option("--from", help="Start, ISO; default: the cursor.")]
To = Annotated[str, typer.Option("--to", help="End (exclusive); default: now − safety lag.")]
Set = Annotated[
    list[str], typer.Option("--set", help="Override for this plan, e.g. paging.page_size=50.")
]
Query = Annotated[str, typer.Option("--query", help="A neutral query: JSON, or @FILE.")]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="Ask wider where the source cannot say all of --query.")
]
Lanes = Annotated[int, typer.Option(min=1, max=64, help="Tasks executed at once.")]


def plan(  # noqa: PLR0913 - the options of a trigger
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "HARVEST",
    from_: From = "",
    to: To = "",
    set_: Set = [],  # noqa: B006 - typer needs the literal default
    query: Query = "",
    lenient: Lenient = False,
    as_json: Json = False,
) -> None:
    """Turn one trigger into a plan, slices and queued tasks."""
    from patra_ingest.wiring import open_ingest

    trigger = build_trigger(source, endpoint, op, from_, to, set_, read_query(query), lenient)
    with open_ingest() as live:
        planned = live.planner.plan(trigger)
    if as_json:
        print_json(planned)
    else:
        _say_planned(planned)


def work(
    lanes: Lanes = 4,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when the queue is empty.")
    ] = False,
    op: Annotated[str, typer.Option("--op", help="Only this operation.")] = "",
    source: Annotated[str, typer.Option(help="Only this source.")] = "",
    as_json: Json = False,
) -> None:
    """Lease and execute tasks until told to stop; Ctrl-C stops after the current batch."""
    from patra_ingest.executor.work import Order
    from patra_ingest.ledger.tasks import TaskFilter
    from patra_ingest.wiring import open_ingest

    wanted = TaskFilter(provenance=source.lower() or None, operation=_operation(op) if op else None)
    stop = _stop_on_signals()
    with open_ingest() as live:
        if not as_json:
            say(f"Worker {live.worker_name} with {lanes} lanes; Ctrl-C stops after the batch.")
        drained = live.worker().work(Order(lanes, until_empty, wanted), stop, lambda _: None)
    _say_drained(drained, as_json)


def run(  # noqa: PLR0913 - the options of a trigger
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "HARVEST",
    from_: From = "",
    to: To = "",
    set_: Set = [],  # noqa: B006 - typer needs the literal default
    query: Query = "",
    lenient: Lenient = False,
    lanes: Lanes = 4,
    as_json: Json = False,
) -> None:
    """Plan and execute in one go, with a progress bar and a summary."""
    from patra_ingest.views.plan_summary import summarize_plan
    from patra_ingest.wiring import open_ingest

    trigger = build_trigger(source, endpoint, op, from_, to, set_, read_query(query), lenient)
    stop = _stop_on_signals()
    with open_ingest() as live:
        planned = live.planner.plan(trigger)
        if planned.plan_id is None:
            print_json(planned) if as_json else _say_planned(planned)
            return
        with progress_bar() as bar:
            _drain(live, planned.plan_id, lanes, stop, bar)
        with live.db.read() as tx:
            summary = summarize_plan(tx, planned.plan_id)
    print_json(summary) if as_json else print_summary(summary)
    if not summary.is_proved:
        say("Not everything is proved yet: see the slices above; `patra work` goes on.")
        raise typer.Exit(1)


def _drain(live: "Ingest", plan_id: "PlanId", lanes: int, stop: threading.Event, bar: Bar) -> None:
    from patra_ingest.executor.work import Order
    from patra_ingest.ledger.tasks import TaskFilter
    from patra_ingest.views.queue import plan_progress

    def show(_stats: dict[str, Any]) -> None:
        with live.db.read() as tx:
            bar.show(*plan_progress(tx, plan_id))

    order = Order(lanes, until_empty=True, wanted=TaskFilter(plan_id=plan_id))
    live.worker().work(order, stop, show)


def build_trigger(  # noqa: PLR0913 - the options of a trigger
    source: str,
    endpoint: str,
    op: str,
    from_: str,
    to: str,
    set_: list[str],
    query: dict[str, Any] | None = None,
    lenient: bool = False,
) -> "Trigger":
    """Return the trigger that the options of a command ask for."""
    from patra_ingest.planner.trigger import Trigger
    from patra_ingest.planner.windowing import Asked
    from patra_ingest.spec.overrides import parse_overrides

    return Trigger(
        source,
        endpoint or None,
        _operation(op),
        Asked(read_instant(from_, "--from"), read_instant(to, "--to")),
        replace(parse_overrides(set_), query=query, lenient=lenient),
    )


def read_query(text: str) -> dict[str, Any] | None:
    """Return the neutral query that an option gives: JSON, or a file of it after `@`."""
    import orjson

    from patra_ingest.errors import PlanError

    if not text:
        return None
    try:
        source = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        query = orjson.loads(source)
    except (OSError, ValueError) as error:
        raise PlanError(f"--query cannot be read: {error}.", "Give JSON, or @FILE.") from None
    if not isinstance(query, dict):
        raise PlanError("--query is no JSON object.", 'Write {"term": {…}} or {"and": […]}.')
    return query


def _operation(op: str) -> Any:
    from patra_ingest.errors import PlanError
    from patra_ingest.model.codes import Operation

    try:
        return Operation(op.upper())
    except ValueError:
        known = ", ".join(operation.value for operation in Operation)
        raise PlanError(f"There is no operation {op!r}.", f"Known operations: {known}.") from None


def read_instant(text: str, option: str) -> Any:
    """Return the instant an option names, or None when it is empty."""
    from patra_ingest.errors import PlanError
    from patra_ingest.model.window import parse_instant

    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise PlanError(f"{option}: {error}.", "Use 2026-01-31 or 2026-01-31T12:00Z.") from None


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def ask_to_stop(*_: object) -> None:
        # From a thread: a second signal may arrive while the first one is inside `set`.
        threading.Thread(target=stop.set).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    return stop


def _say_planned(planned: "Planned") -> None:
    if planned.plan_id is None:
        say(f"Nothing to plan: {planned.reason}.")
    else:
        say(f"Plan {planned.plan_id}: {planned.window} in {planned.slices} slices, all queued.")


def _say_drained(drained: "Drained", as_json: bool) -> None:
    numbers = {"tasks": dict(drained.tasks), "batches": dict(drained.batches)}
    if as_json:
        print_json(numbers)
        return
    ends = ", ".join(f"{count} {end}" for end, count in drained.tasks.items()) or "none"
    sums = drained.batches
    say(f"Tasks: {ends}. Pages: {sums['pages']}. Records: {sums['itemsCount']} seen.")
