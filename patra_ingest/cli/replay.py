"""`patra replay` and `patra blackbox`: a batch told once more, and its evidence taken out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from patra_ingest.executor.replay_report import Replay
    from patra_ingest.ledger.db import Db
    from patra_ingest.views.blackbox import BlackBox

_LARGEST = 2**63 - 1  # that both engines keep

Target = Annotated[str, typer.Argument(metavar="RUN[/BATCH]", help="For example 12 or 12/3.")]
Task = Annotated[int, typer.Option(min=0, max=_LARGEST, help="All runs of this task instead.")]
Source = Annotated[str, typer.Option(help="With --endpoint, --from, --to: a window instead.")]
Endpoint = Annotated[str, typer.Option(help="The endpoint of that window.")]
From = Annotated[str, typer.Option("--from", help="Its start, ISO.")]
To = Annotated[str, typer.Option("--to", help="Its end (exclusive), ISO.")]
Live = Annotated[bool, typer.Option("--live", help="Ask the source again, through the rate gate.")]


def replay(  # noqa: PLR0913 - a run, a task or a window, and how
    target: Target = "",
    task: Task = 0,
    source: Source = "",
    endpoint: Endpoint = "",
    from_: From = "",
    to: To = "",
    live: Live = False,
    as_json: Json = False,
) -> None:
    """Tell batches once more from stored bytes, and name what the ledger says otherwise."""
    from patra_ingest.wiring import open_reader

    run, batch = _place(target) if target else (None, None)
    _require_one(bool(target), bool(task), bool(source or endpoint or from_ or to))
    with open_reader() as reader:
        runs = _runs(reader.db, run, task, (source, endpoint, from_, to))
    found = _replay_live(runs, batch) if live else _replay_stored(runs, batch)
    is_fine = True
    forms = []
    for one in found:
        is_fine &= one.is_fine
        forms.append(one.as_json()) if as_json else say(one.as_markdown())
    if as_json:
        print_json(forms[0] if run is not None else forms)
    if not is_fine:
        raise typer.Exit(1)


def _place(target: str) -> tuple[int, int | None]:
    run, slash, batch = target.partition("/")
    numbers = [run, *([batch] if slash else [])]
    if not all(one.isascii() and one.isdigit() and 0 < int(one) <= _LARGEST for one in numbers):
        raise typer.BadParameter(f"{target!r} is neither RUN nor RUN/BATCH, as 12 or 12/3.")
    return int(run), int(batch) if slash else None


def _require_one(*given: bool) -> None:
    if sum(given) != 1:
        raise typer.BadParameter(
            "Say what to replay: RUN[/BATCH], or --task ID,"
            " or --source S --endpoint E --from DATE --to DATE."
        )


def _runs(db: "Db", run: int | None, task: int, asked: tuple[str, str, str, str]) -> list[int]:
    from patra_ingest.cli.harvest import read_instant
    from patra_ingest.ledger.evidence import list_runs_of_task, list_runs_of_window
    from patra_ingest.model.window import Window

    if run is not None:
        return [run]
    if task:
        with db.read() as tx:
            return list(list_runs_of_task(tx, task))
    source, endpoint, from_, to = asked
    if not all(asked):
        raise typer.BadParameter("A window needs --source, --endpoint, --from and --to.")
    start, end = read_instant(from_, "--from"), read_instant(to, "--to")
    if start >= end:
        raise typer.BadParameter("--from must lie before --to.")
    with db.read() as tx:
        return list(list_runs_of_window(tx, source.lower(), endpoint.lower(), Window(start, end)))


def _replay_stored(runs: list[int], batch: int | None) -> "Iterator[Replay]":
    from patra_ingest.executor.replay import replay as tell_again
    from patra_ingest.rawstore.store import RawStore
    from patra_ingest.wiring import open_reader, read_settings

    settings = read_settings()
    raw = RawStore(settings.raw_folder)
    with open_reader(settings) as live:
        for run in runs:
            yield tell_again(live.db, raw, live.clock, run, batch, settings.contact)


def _replay_live(runs: list[int], batch: int | None) -> "Iterator[Replay]":
    from patra_ingest.executor.replay import replay_live
    from patra_ingest.wiring import open_ingest

    with open_ingest() as live:
        upstream = live.upstream()
        for run in runs:
            yield replay_live(live.db, live.clock, upstream, run, batch)


Batch = Annotated[str, typer.Argument(metavar="RUN/BATCH", help="For example 12/3.")]
Out = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write JSON to a file.")]
WithBody = Annotated[
    bool, typer.Option("--with-body", help="Whole bodies, not samples; who took them is noted.")
]


def blackbox(
    batch: Batch, output: Out = "", with_body: WithBody = False, as_json: Json = False
) -> None:
    """Take the evidence of one batch out: what was asked, answered, done, and why."""
    from patra_ingest.cli.operate import caller_name
    from patra_ingest.rawstore.store import RawStore
    from patra_ingest.views.blackbox import Export, open_blackbox
    from patra_ingest.wiring import open_reader, read_settings

    run, number = _place(batch)
    if number is None:
        raise typer.BadParameter(f"{batch!r} names a run; a black box is of RUN/BATCH.")
    settings = read_settings()
    raw = RawStore(settings.raw_folder)
    with open_reader(settings) as live:
        export = Export(caller_name(), live.clock.now(), with_body, settings.secret)
        if with_body:
            _note(live.db, run, number, export.by)
        with live.db.read() as tx:
            box = open_blackbox(tx, raw, run, number, export)
    if output:
        _write(output, box)
    elif as_json:
        print_json(box.as_json())
    else:
        _show(box)


def _note(db: "Db", run: int, number: int, by: str) -> None:
    """Write down who takes whole bodies out, before they are out."""
    from patra_ingest.ledger.evidence import get_batch
    from patra_ingest.ledger.remarks import append_remark

    with db.write() as tx:
        found = get_batch(tx, run, number)
        note = "the black box was taken out with whole bodies"
        append_remark(tx, "ing_task_run_batch", [found.id], by, note, db.now(tx), kind="BLACKBOX")


def _write(output: str, box: "BlackBox") -> None:
    from pathlib import Path

    import orjson

    from patra_ingest.errors import PersonMustAct

    body = orjson.dumps(box.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        Path(output).write_bytes(body)
    except OSError as error:
        raise PersonMustAct(f"{output} cannot be written ({error}).", "Name another.") from None
    say(f"The black box of {box.run_id}/{box.batch_no} is in {output}, {len(body)} bytes.")


def _show(box: "BlackBox") -> None:
    for name, value in _lines(box.as_json()):
        say(f"{name:<12} {_clean(value)}")
    say("`--json`, or -o FILE, has all of it.")


def _lines(form: dict[str, Any]) -> "list[tuple[str, str]]":
    batch, request, response = form["batch"], form["request"], form["response"]
    stats, gate = form["stats"], form["gate"]
    lines = [
        ("lineage", " › ".join(f"{name} {value}" for name, value in form["lineage"].items())),
        ("trigger", f"{form['trigger']['type']} by {form['trigger']['scheduler']}"),
        ("plan", f"{form['plan']['key']}, fingerprint {form['plan']['specFingerprint'][:16]}"),
        ("window", _span(form["slice"]["window"])),
        ("batch", f"{batch['status']}, {batch['before']} → {batch['after']}"),
        ("request", f"{request.get('method')} {request.get('url')}"),
        ("response", f"{response.get('status')}, {response.get('bytes')} bytes"),
        ("stats", ", ".join(f"{k} {v}" for k, v in stats.items() if isinstance(v, int))),
        ("attempts", str(len(form["attempts"]))),
        ("gate", str(gate["rate"])),
        ("certificate", str(form["run"]["certificate"])),
        ("quarantined", str(len(form["quarantined"]))),
        ("cursor steps", str(len(form["cursorSteps"]))),
    ]
    told = ((one["key"], one.get("missing") or one["sample"]) for one in form["bodies"])
    return [*lines, *(("body", f"{key}: {words}") for key, words in told)]


def _span(window: dict[str, Any] | None) -> str:
    return "none" if window is None else f"{window['from']:%FT%TZ} – {window['to']:%FT%TZ}"


def _clean(words: str) -> str:
    """Return one printable line: what a source said must not move a person's cursor."""
    return "".join(char if char.isprintable() else " " for char in words)[:1024]
