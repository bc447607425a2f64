"""`patra fixture`: a run as a folder of recordings that can be served again, without secrets."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from patra_ingest.executor.recollect import Recollected, Recollection
    from patra_ingest.ledger.db import Db
    from patra_ingest.sandbox.recordings import Recording
    from patra_ingest.transport.scrub import Scrubber

_LARGEST = 2**63 - 1  # that both engines keep
_SUFFIXES = {"json": ".json", "xml": ".xml", "html": ".html", "csv": ".csv", "text": ".txt"}

Run = Annotated[int, typer.Argument(metavar="RUN", min=1, max=_LARGEST, help="For example 12.")]
Out = Annotated[
    str, typer.Option("--output", "-o", metavar="DIR", help="A new folder; default: fixture-RUN.")
]


def fixture(run: Run, output: Out = "", as_json: Json = False) -> None:
    """Write what a run asked and was answered as recordings, secrets and mail addresses removed."""
    from patra_ingest.executor.recollect import recollect, tell
    from patra_ingest.rawstore.store import RawStore
    from patra_ingest.transport.scrub import Scrubber
    from patra_ingest.views.blackbox import secrets_of_run
    from patra_ingest.wiring import open_reader, read_settings

    settings = read_settings()
    folder = Path(output or f"fixture-{run}")
    raw = RawStore(settings.raw_folder)
    with open_reader(settings) as live:
        told = recollect(live.db, raw, run)
        with live.db.read() as tx:
            scrubber = Scrubber(secrets_of_run(tx, told.run, settings.secret))
        answers = tell(live.db, raw, told, settings.contact)
        _require_new(folder)
        _note(live.db, told)
        _write_whole(folder, lambda part: write_answers(part, told, answers, scrubber))
    counts = {name: count for name, count in scrubber.counts.items() if count}
    if as_json:
        print_json({"folder": str(folder), "recordings": told.count, "redacted": counts})
        return
    gone = " and ".join(f"{count} × {name}" for name, count in sorted(counts.items())) or "nothing"
    say(f"{told.count} recordings of run {run} are in {folder}; redacted: {gone}.")
    say("Read them before you share them: what a source sends is not ours to know.")


def _require_new(folder: Path) -> None:
    from patra_ingest.errors import PersonMustAct

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PersonMustAct(f"{folder} is there already, and not empty.", "Name another with -o.")


def _note(db: "Db", told: "Recollection") -> None:
    """Write down who takes whole bodies out, before they are out."""
    from patra_ingest.cli.operate import caller_name
    from patra_ingest.ledger.remarks import append_remark

    batches = [int(one.id) for one in told.batches]
    note = "taken out as a recording, with its whole bodies"
    with db.write() as tx:
        append_remark(
            *(tx, "ing_task_run_batch", batches, caller_name(), note, db.now(tx)), kind="BLACKBOX"
        )


def _write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder that appears under its name whole, or not at all."""
    from patra_ingest.errors import PersonMustAct

    part = folder.with_name(f".{folder.name}.part")
    try:
        part.mkdir(parents=True)
        try:
            write(part)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise PersonMustAct(
            f"{folder} cannot be written ({error}).", "Name another with -o."
        ) from None


def write_answers(
    folder: Path, told: "Recollection", answers: "Iterator[Recollected]", scrubber: "Scrubber"
) -> None:
    """Write every answer of a run with its question, scrubbed, as one sequence."""
    from patra_ingest.sandbox.recordings import write_recording

    for number, one in enumerate(answers, 1):
        recording = _recording(told, one, number, scrubber)
        more: dict[str, Any] = {
            "recorded_at": one.response.received_at.isoformat(),
            "redactions": ["secrets: REDACTED", "mail addresses: REDACTED-1, REDACTED-2, …"],
            "headers_note": "of the headers only those that the ledger keeps",
        }
        write_recording(folder, recording, told.run.provenance, more)


def _recording(
    told: "Recollection", one: "Recollected", number: int, scrubber: "Scrubber"
) -> "Recording":
    from patra_ingest.sandbox.recordings import InSequence, Recording

    run, batch, digits = told.run, one.batch, len(str(told.count))
    phase = "details" if batch.stats.get("phase") == "DETAIL" else "page"
    kept = () if one.token is None else (one.token,)
    return Recording(
        f"{number:0{max(digits, 2)}d}-{phase}{_suffix(one.response.headers)}",
        one.request.method,
        scrubber.url(one.request.full_url, kept),
        scrubber.body(one.response.body),
        one.response.status,
        tuple((name, scrubber.text(value)) for name, value in one.headers),
        scrubber.body(one.request.body or b"").decode("utf-8", "replace"),
        InSequence(f"run-{run.id}", number, told.count),
        f"{run.provenance}/{run.endpoint} {run.operation}, batch {batch.run_id}/{batch.no}",
    )


def _suffix(headers: Any) -> str:
    kind = str(headers.get("content-type", "")).lower()
    return next((suffix for word, suffix in _SUFFIXES.items() if word in kind), ".bin")
