"""Every question that the task of a run asked, with the answer it got, in their order.

Written from the plan's snapshot and the raw store, as a replay does; nothing is asked and nothing
is changed. What stood in a header and is known by the batch's numbers is put back there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patra_ingest.errors import IngestError, PersonMustAct, UnknownName
from patra_ingest.executor.leased import Place, Work
from patra_ingest.executor.paging import first_page
from patra_ingest.executor.recall import Recall, Recalled, exchanges_of
from patra_ingest.executor.run_batch import answer_at
from patra_ingest.executor.scenes import Scene, list_scenes, work_of
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.evidence import get_run, list_walk
from patra_ingest.model.evidence import KeptBatch, KeptRun
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.paging import TokenPaging, UrlPaging
from patra_ingest.spec.places import NextPlace
from patra_ingest.transport.messages import Request, Response


@dataclass(frozen=True)
class Recollected:
    """One question without any credential, and its answer."""

    batch: KeptBatch
    request: Request
    response: Response
    headers: tuple[tuple[str, str], ...]
    token: str | None  # where its page begins, if a token or an address says so


@dataclass(frozen=True)
class Recollection:
    """The run, the batches that led to its end, and how many answers they hold."""

    run: KeptRun
    batches: Sequence[KeptBatch]
    count: int


def recollect(db: Db, raw: RawStore, run_id: int) -> Recollection:
    """Return what can be told of a run; PersonMustAct when there is nothing, or not all of it."""
    with db.read() as tx:
        run = get_run(tx, run_id)
        walk = _last_walk(work_of(tx, run), list_walk(tx, run))
    if not walk:
        raise UnknownName(
            f"Run {run_id} has no batch that succeeded, so no answer of it is kept.",
            f"See `patra blackbox {run_id}/1` for why its first one did not.",
        )
    kept = [one for batch in walk for one in exchanges_of(batch)]
    lost = [one.key for one in kept if not raw.exists(one.key)]
    if lost:
        raise PersonMustAct(
            f"{len(lost)} of the {len(kept)} answers of run {run_id} are gone: {lost[0]} is not in"
            " the raw store any more, being older than its retention.",
            "Take a younger run, or set PATRA_HOME to the folder that has them.",
        )
    return Recollection(run, walk, len(kept))


def _last_walk(work: Work, batches: Sequence[KeptBatch]) -> Sequence[KeptBatch]:
    """Return the batches from the last first page on: a walk that begins again is all there is."""
    beginning = work.position(Place(first_page(work.walk)))
    starts = [number for number, one in enumerate(batches) if one.position == beginning]
    return batches[starts[-1] :] if starts else batches


def tell(db: Db, raw: RawStore, told: Recollection, contact: str) -> Iterator[Recollected]:
    """Yield the questions and answers of a run one after the other."""
    with db.read() as tx:
        work = work_of(tx, told.run)
    for scene in list_scenes(work, told.batches, contact):
        for one in _recalled(raw, scene):
            page = one.asking.page
            yield Recollected(
                scene.batch,
                one.exchanged.request,
                one.exchanged.response,
                (*one.exchanged.response.headers.items(), *_told_in_headers(one)),
                page.token,
            )


def _recalled(raw: RawStore, scene: Scene) -> Sequence[Recalled]:
    recall = Recall(raw, scene.batch)
    where = (scene.work, scene.place, scene.asking, scene.history)
    try:
        answer_at(recall, *where, lambda ask: ask())
    except PersonMustAct:
        raise
    except IngestError as error:
        name = f"{scene.batch.run_id}/{scene.batch.no}"
        raise PersonMustAct(
            f"Batch {name} cannot be told again: {error}.", f"See `patra replay {name}`."
        ) from error
    return recall.answered


def _told_in_headers(one: Recalled) -> Iterator[tuple[str, str]]:
    """Yield the headers that led on to the next page: of them only the meaning is kept."""
    paging, decoded = one.paging, one.exchanged.decoded
    if paging is None:
        return
    if paging.total is not None and paging.total.header and decoded.total is not None:
        yield paging.total.header.lower(), str(decoded.total)
    if isinstance(paging, TokenPaging | UrlPaging) and decoded.next:
        place = paging.next_token if isinstance(paging, TokenPaging) else paging.next_url
        yield from _next_header(place, decoded.next)


def _next_header(place: NextPlace, value: str) -> Iterator[tuple[str, str]]:
    if place.link:
        yield "link", f'<{value}>; rel="{place.link}"'
    elif place.header:
        yield place.header.lower(), value
