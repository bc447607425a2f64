"""`patra plan`, `patra work` and `patra run`: from a trigger to records."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import (
    Bar,
    Json,
    print_json,
    print_summary,
    progress_bar,
    say,
    say_planned,
    say_rest,
)
from patra_ingest.cli.stopping import For, stop_on_signals

if TYPE_CHECKING:
    from patra_ingest.executor.work import Drained
    from patra_ingest.model.lineage import PlanId
    from patra_ingest.planner.trigger import Trigger
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
Campaign = Annotated[
    str, typer.Option("--campaign", help="Name an intended re-run: nothing counts as done in it.")
]
Partition = Annotated[str, typer.Option("--partition", help="Only this partition of the source.")]
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
    campaign: Campaign = "",
    partition: Partition = "",
    as_json: Json = False,
) -> None:
    """Turn one trigger into a plan, slices and queued tasks."""
    from patra_ingest.wiring import open_ingest

    trigger = build_trigger(source, endpoint, op, from_, to, set_, read_query(query), lenient)
    trigger = replace(trigger, campaign=campaign or None, partition=partition or None)
    with open_ingest() as live:
        planned = live.planner.plan(trigger)
    print_json(planned.as_json()) if as_json else say_planned(planned)
    if planned.problems:
        raise typer.Exit(1)


def work(
    lanes: Lanes = 4,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when the queue is empty.")
    ] = False,
    op: Annotated[str, typer.Option("--op", help="Only this operation.")] = "",
    source: Annotated[str, typer.Option(help="Only this source.")] = "",
    for_: For = None,
    as_json: Json = False,
) -> None:
    """Lease and execute tasks until told to stop; Ctrl-C and --for stop after the current batch.

    With --until-empty the exit code is 1 when a task failed for good.
    """
    from patra_ingest.executor.work import Order
    from patra_ingest.ledger.tasks import TaskFilter, count_left
    from patra_ingest.views.plan_summary import list_errors
    from patra_ingest.views.queue import find_later, list_plans_of_worker
    from patra_ingest.wiring import open_ingest

    wanted = TaskFilter(provenance=source.lower() or None, operation=_operation(op) if op else None)
    stop = stop_on_signals()
    with open_ingest() as live:
        stop.give(live.clock, for_)
        if not as_json:
            say(f"Worker {live.worker_name} with {lanes} lanes; Ctrl-C stops after the batch.")
        drained = live.worker().work(Order(lanes, until_empty, wanted), stop, lambda _: None)
        with live.db.read() as tx:
            left = count_left(tx, wanted)
            later, due = find_later(tx, live.clock.now())
            failed = list_plans_of_worker(tx, live.worker_name) if drained.tasks["FAILED"] else []
            errors = {plan_id: list_errors(tx, plan_id) for plan_id in failed}
    _say_drained(drained, errors, left, as_json)
    if later and due and not as_json:
        say(f"{later} queued tasks are due later, the next at {due:%Y-%m-%d %H:%M}Z.")
    if until_empty and drained.tasks["FAILED"]:
        if not as_json:
            say("What failed leaves a hole: mend its cause, then `patra run` fills it.")
        raise typer.Exit(1)


def run(  # noqa: PLR0913 - the options of a trigger
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "HARVEST",
    from_: From = "",
    to: To = "",
    set_: Set = [],  # noqa: B006 - typer needs the literal default
    query: Query = "",
    lenient: Lenient = False,
    campaign: Campaign = "",
    partition: Partition = "",
    lanes: Lanes = 4,
    for_: For = None,
    as_json: Json = False,
) -> None:
    """Plan and execute in one go, with a progress bar and a summary."""
    from patra_ingest.views.plan_summary import summarize_plan
    from patra_ingest.views.queue import find_rest
    from patra_ingest.wiring import open_ingest

    trigger = build_trigger(source, endpoint, op, from_, to, set_, read_query(query), lenient)
    trigger = replace(trigger, campaign=campaign or None, partition=partition or None)
    stop = stop_on_signals()
    with open_ingest() as live:
        stop.give(live.clock, for_)
        planned = live.planner.plan(trigger)
        if not planned.plan_ids:
            print_json(planned.as_json()) if as_json else say_planned(planned)
            return
        problems = []
        for plan_id in planned.plan_ids:
            with progress_bar() as bar:
                problems += _drain(live, plan_id, lanes, stop, bar)
        with live.db.read() as tx:
            summaries = [summarize_plan(tx, plan_id) for plan_id in planned.plan_ids]
            rests = [find_rest(tx, plan_id, live.clock.now()) for plan_id in planned.plan_ids]
    if as_json:
        print_json(summaries if len(summaries) > 1 else summaries[0])
    else:
        for summary in summaries:
            print_summary(summary)
        for problem in problems:
            say(problem)
    if not all(summary.is_proved for summary in summaries):
        if not as_json:
            plans = ", ".join(str(plan_id) for plan_id in planned.plan_ids)
            late = f"The deadline has come and plan {plans} is not finished"
            why = late if stop.is_late else "Not everything is proved yet"
            say(f"{why}: {say_rest(rests)}.")
        raise typer.Exit(1)


def _drain(
    live: "Ingest", plan_id: "PlanId", lanes: int, stop: threading.Event, bar: Bar
) -> list[str]:
    """Execute a plan to its end, also what waits for room or is cut again; return problems."""
    from patra_ingest.executor.work import Order
    from patra_ingest.ledger.plans import get_plan
    from patra_ingest.ledger.tasks import TaskFilter
    from patra_ingest.views.queue import plan_progress

    def show(_stats: dict[str, Any]) -> None:
        with live.db.read() as tx:
            bar.show(*plan_progress(tx, plan_id))

    with live.db.read() as tx:
        name = get_plan(tx, plan_id).namespace
    own = TaskFilter(plan_id=plan_id)
    queue = TaskFilter(provenance=name.provenance, endpoint=name.endpoint, operation=name.operation)
    problems: list[str] = []
    wanted = own
    while True:
        live.worker().work(Order(lanes, until_empty=True, wanted=wanted), stop, show)
        answers = live.planner.reslice(plan_id=plan_id)
        problems += [answer.problem for answer in answers if answer.problem]
        progress = live.planner.go_on(plan_id)
        more = progress.queued + sum(answer.children for answer in answers)
        if stop.is_set() or (not more and (wanted is queue or not progress.waiting)):
            return problems
        # Behind the tasks of earlier plans: only when they are done is there room for ours.
        wanted = own if more else queue


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


def _say_drained(
    drained: "Drained", errors: "dict[PlanId, tuple[str, ...]]", left: int, as_json: bool
) -> None:
    numbers = {
        "tasks": dict(drained.tasks),
        "batches": dict(drained.batches),
        "lowered": dict(drained.lowered),
        "raised": dict(drained.raised),
        "errors": [error for found in errors.values() for error in found],
        "deadline": drained.is_late,
        "left": left,
    }
    if as_json:
        print_json(numbers)
        return
    ends = ", ".join(f"{count} {end}" for end, count in drained.tasks.items()) or "none"
    sums = drained.batches
    say(f"Tasks: {ends}. Pages: {sums['pages']}. Records: {sums['itemsCount']} seen.")
    for what, count in drained.lowered.items():
        say(f"Did less at once, {count} times: {what}.")
    if drained.is_late:
        say(f"The deadline has come; tasks that are left in the queue: {left}.")
    for plan_id, found in errors.items():
        for error in found:
            say(f"Failed in plan {plan_id}: {error}")
