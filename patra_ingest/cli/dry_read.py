"""`patra test-read`: a look at a source before anything of it is harvested."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.harvest import (
    Endpoint,
    From,
    Lenient,
    Partition,
    Query,
    Set,
    build_trigger,
    read_query,
)
from patra_ingest.cli.show import Json, print_json

if TYPE_CHECKING:
    from patra_ingest.executor.read_some import Portion, SliceRead
    from patra_ingest.planner.rehearse import Rehearsed
    from patra_ingest.planner.trigger import Trigger
    from patra_ingest.registry.check import Verdict
    from patra_ingest.registry.pack import Pack
    from patra_ingest.sandbox.replayer import Replayer
    from patra_ingest.settings import Settings
    from patra_ingest.wiring import Trial

_DEEPEST = 8  # how often a slice that is too big is cut before a look gives up

Source = Annotated[str, typer.Argument(help="Source code, or the file of a pack.")]
To = Annotated[str, typer.Option("--to", help="End (exclusive); default: one slice later.")]
Op = Annotated[str, typer.Option("--op", help="Operation; default: the first that it has.")]
Ids = Annotated[str, typer.Option("--ids", help="Ask for these ids: A,B,…")]
Pages = Annotated[int, typer.Option(min=1, max=100, help="Pages read in all.")]
Details = Annotated[
    int, typer.Option(min=0, max=100, help="Requests for the ids that a page has found.")
]
Recorded = Annotated[
    Path | None, typer.Option("--recorded", help="Answers from this folder, not from the source.")
]
BaseUrl = Annotated[str, typer.Option("--base-url", help="Ask there instead: a sandbox, a mirror.")]


def read(  # noqa: PLR0913 - the options of a trigger, and where to look
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "",
    from_: From = "",
    to: To = "",
    ids: Ids = "",
    pages: Pages = 2,
    details: Details = 1,
    set_: Set = [],  # noqa: B006 - typer needs the literal default
    query: Query = "",
    lenient: Lenient = False,
    partition: Partition = "",
    recorded: Recorded = None,
    base_url: BaseUrl = "",
    as_json: Json = False,
) -> None:
    """Read a few pages and show requests, answers, mapped records and problems; write nothing."""
    from patra_ingest.cli.dry_read_show import say_look
    from patra_ingest.executor.read_some import Portion
    from patra_ingest.wiring import open_trial, read_settings

    if recorded and base_url:
        raise typer.BadParameter("--recorded and --base-url exclude each other.")
    wanted = tuple(one for one in map(str.strip, ids.split(",")) if one)
    settings = read_settings()
    own = find_pack(source, settings)
    name, operation = _chosen(own, endpoint, op, bool(wanted))
    asked = (from_, to, set_, read_query(query), lenient)
    trigger = build_trigger(own.provenance.code, name, operation, *asked)
    portion = Portion(pages, details, counts=recorded is None)
    order = Order(replace(trigger, partition=partition or None), wanted, portion)
    with (
        _placed(own, recorded, base_url) as (pack, replayer),
        open_trial(settings, pack, alone=replayer is not None) as trial,
    ):
        look = _look(trial, order, settings, replayer)
    if as_json:
        print_json(look.as_json())
    else:
        say_look(look.as_json())
    if not look.is_fine:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Order:
    """What is to be read: a trigger, or ids, and how much of it."""

    trigger: "Trigger"
    ids: tuple[str, ...]
    portion: "Portion"


@dataclass(frozen=True)
class Look:
    """Everything that one look showed."""

    head: dict[str, Any]
    slices: list[dict[str, Any]]
    oddities: list[str]
    is_fine: bool
    verdict: str

    def as_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {
            **self.head,
            "slices": self.slices,
            "oddities": self.oddities,
            "works": self.is_fine,
            "verdict": self.verdict,
        }


def find_pack(source: str, settings: "Settings") -> "Pack":
    """Return the pack of a file, of an applied source or, without a ledger, of a built-in one."""
    from patra_ingest.errors import UnknownName
    from patra_ingest.packs import builtin_packs
    from patra_ingest.registry.pack import read_pack
    from patra_ingest.registry.unpack import read_source
    from patra_ingest.wiring import has_ledger, open_reader

    if Path(source).suffix in (".yaml", ".yml", ".json") or "/" in source:
        return read_pack(Path(source))
    if not has_ledger(settings):  # and none is made by looking
        built_in = {path.stem: path for path in builtin_packs()}
        if source.lower() not in built_in:
            raise UnknownName(
                f"There is no built-in source {source!r}, and no ledger with others.",
                f"Built in: {', '.join(built_in)}. Or give the file of a pack.",
            )
        return read_pack(built_in[source.lower()])
    with open_reader(settings) as live, live.db.read() as tx:
        return read_source(tx, source, live.clock.now())


@contextmanager
def _placed(
    pack: "Pack", recorded: Path | None, base_url: str
) -> "Iterator[tuple[Pack, Replayer | None]]":
    """Yield the pack with its source where the options say, and who answers for it."""
    from patra_ingest.registry.move import moved, to_base
    from patra_ingest.sandbox.recordings import read_recordings
    from patra_ingest.sandbox.replayer import serve_recordings

    if recorded is not None:
        with serve_recordings(read_recordings(recorded)) as replayer:
            yield moved(pack, replayer.at, keep_credentials=False), replayer
    elif base_url:
        yield moved(pack, to_base(pack.provenance.base_url, base_url)), None
    else:
        yield pack, None


def _chosen(pack: "Pack", endpoint: str, op: str, by_ids: bool) -> tuple[str, str]:
    """Return the endpoint and the operation that are meant, where the options leave them open."""
    from patra_ingest.model.codes import Operation

    if op:
        return endpoint, op
    if by_ids:
        return endpoint, Operation.UPDATE
    named = [endpoint] if endpoint in pack.endpoints else list(pack.endpoints)
    for each in (Operation.HARVEST, Operation.BACKFILL):
        found = [name for name in named if each in pack.endpoints[name].operations]
        if found:
            return endpoint or found[0], each
    if endpoint and endpoint not in pack.endpoints:
        return endpoint, Operation.HARVEST  # compiling it says which there are
    raise typer.BadParameter(f"{named[0]} is asked for ids only: give some with --ids A,B.")


def _look(trial: "Trial", order: Order, settings: "Settings", replayer: "Replayer | None") -> Look:
    from patra_ingest.executor.read_oddities import find_oddities
    from patra_ingest.executor.read_report import slice_form, verdict
    from patra_ingest.planner.rehearse import rehearse

    checked = _checked(trial, order.trigger, settings)
    plans = rehearse(trial.planner, trial.db, trial.clock, order.trigger, order.ids)
    reads: list[SliceRead] = []
    for plan in plans:
        reads += _read_plan(trial, plan, order.portion, sum(read.searched for read in reads))
    unrecorded = None
    if replayer is not None:
        unrecorded = next((visit.said.strip() for visit in replayer.unanswered), "")
    is_fine, sentence = verdict(reads, unrecorded)
    odd = [*_words(trial, plans), *find_oddities(reads, replayer is not None)]
    head = _head(trial, plans, checked)
    return Look(head, [slice_form(read) for read in reads], odd, is_fine, sentence)


def _read_plan(
    trial: "Trial", plan: "Rehearsed", portion: "Portion", done: int
) -> "list[SliceRead]":
    """Read the slices of a plan until the portion is used up; one that is too big in parts."""
    from patra_ingest.errors import SliceTooBig
    from patra_ingest.executor.read_some import read_some, work_of_slice
    from patra_ingest.planner.rehearse import cut_finer

    reads: list[SliceRead] = []
    waiting = list(plan.slices)
    while waiting and done < portion.pages and len(reads) < _DEEPEST:
        piece = waiting.pop(0)
        work = work_of_slice(plan.plan, piece.spec, piece.expr_hash)
        rest = replace(portion, pages=portion.pages - done)
        read = read_some(trial.runner, trial.clock, work, rest)
        reads.append(read)
        done += read.searched
        if isinstance(read.error, SliceTooBig):
            finer = cut_finer(plan.plan, piece, read.error.total)
            read.cut_into = len(finer)
            waiting = [*finer, *waiting]
        if read.error is not None and not read.cut_into:
            break
    return reads


def _checked(trial: "Trial", trigger: "Trigger", settings: "Settings") -> "Verdict | None":
    """Return what the checks say of what is read; compiling it says it again if that is no."""
    from patra_ingest.registry.check import check_endpoints
    from patra_ingest.registry.code_book import read_code_book

    with trial.db.read() as tx:
        codes, now = read_code_book(tx), trial.clock.now()
        found = check_endpoints(tx, trigger.provenance, now, codes, settings.has_secret)
        ours = [
            one
            for one in found
            if one.name.operation is trigger.operation
            and trigger.endpoint in (None, one.name.endpoint)
        ]
    return ours[0] if ours else None


def _head(
    trial: "Trial", plans: "Sequence[Rehearsed]", checked: "Verdict | None"
) -> dict[str, Any]:
    plan = plans[0].plan
    spec = plan.spec
    return {
        "source": spec.provenance,
        "endpoint": spec.endpoint,
        "operation": spec.operation,
        "fingerprint": plan.fingerprint,
        "warnings": list(checked.warnings) if checked else [],
        "intended": list(checked.intended) if checked else [],
        "planned": [
            {
                "window": str(each.plan.window) if each.slices[0].window else None,
                "slices": each.count,
                "cuts": list(each.cuts),
            }
            for each in plans
        ],
        "rate": {
            "key": spec.rate.key,
            "per_second": spec.rate.per_second,
            "shared_with": trial.shared.shown if trial.shared else None,
        },
    }


def _words(trial: "Trial", plans: "Sequence[Rehearsed]") -> Iterator[str]:
    """Yield what the ledger says of the endpoint: it may be held."""
    from patra_ingest.ledger.holds import find_hold

    name = plans[0].plan.namespace
    if trial.shared is not None:
        with trial.shared.read() as tx:
            hold = find_hold(tx, name.provenance, name.endpoint)
        if hold is not None:
            yield f"{hold.place} is held by {hold.held_by}: {hold.reason:.200}"
