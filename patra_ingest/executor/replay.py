"""Replay batches: from what was stored, or by asking the source the same questions again.

Nothing is written to the ledger. A live replay passes the rate gate and its quotas, as every
request does; what it brings is compared and thrown away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from patra_ingest.clock import Clock
from patra_ingest.errors import IngestError, PersonMustAct, RequestRejected, UnknownName
from patra_ingest.executor.exchange import Exchange, Exchanged, Upstream
from patra_ingest.executor.leased import Work
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.recall import Recall, Recalled
from patra_ingest.executor.replay_report import Replay
from patra_ingest.executor.replaying import (
    BatchReplay,
    Check,
    Match,
    RecordMatch,
    Stored,
    Told,
    check_batch,
    count_matches,
    match_contents,
    match_records,
)
from patra_ingest.executor.run_batch import Answer, answer_at
from patra_ingest.executor.scenes import Scene, list_scenes, work_of
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.evidence import (
    get_run,
    list_brought,
    list_quarantined,
    list_records,
    list_steps,
    list_walk,
)
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.localize import query_window
from patra_ingest.spec.paging import UrlPaging
from patra_ingest.spec.snapshot import CallSpec
from patra_ingest.transport.redact import HIDDEN


@dataclass(frozen=True)
class _Sources:
    """Where a replay looks: the raw store, and for a live one the way to the source."""

    raw: RawStore
    contact: str
    clock: Clock
    exchange: Exchange | None = None


def replay(
    db: Db,
    raw: RawStore,
    clock: Clock,
    run_id: int,
    batch_no: int | None = None,
    contact: str = "",
) -> Replay:
    """Replay the succeeded batches of a run, or one of them, from stored bytes only."""
    return _replay(db, _Sources(raw, contact, clock), run_id, batch_no)


def replay_live(
    db: Db, clock: Clock, upstream: Upstream, run_id: int, batch_no: int | None = None
) -> Replay:
    """Ask what the batches asked once more, and hold the answers against the stored ones."""
    with TemporaryDirectory(prefix="patra-replay-") as folder:
        # What comes now is no evidence of then: it is not kept.
        passing = replace(upstream, raw=RawStore(Path(folder)))
        exchange = Exchange(db, clock, passing)
        sources = _Sources(upstream.raw, upstream.contact, clock, exchange)
        return _replay(db, sources, run_id, batch_no)


def _replay(db: Db, sources: _Sources, run_id: int, batch_no: int | None) -> Replay:
    with db.read() as tx:
        run = get_run(tx, run_id)
        work = work_of(tx, run)
        walk, steps = list_walk(tx, run), list_steps(tx, run)
    own = [one for one in walk if one.run_id == run.id and batch_no in (None, one.no)]
    if batch_no is not None and not own:
        raise UnknownName(
            f"Run {run_id} has no batch {batch_no} that succeeded.",
            f"See `patra replay {run_id}` for those that did.",
        )
    wanted = {one.id for one in own}
    done = [
        _replay_batch(db, sources, scene)
        for scene in list_scenes(work, walk, sources.contact)
        if scene.batch.id in wanted
    ]
    window = work.bounds.window
    return Replay(
        run_id,
        run.provenance,
        run.endpoint,
        run.operation,
        (window.start, window.end) if window else None,
        run.lineage.columns(),
        sources.exchange is not None,
        sources.clock.now(),
        tuple(done),
        tuple(steps),
    )


def _replay_batch(db: Db, sources: _Sources, scene: Scene) -> BatchReplay:
    batch = scene.batch
    blank = BatchReplay(batch.run_id, batch.no, batch.id, batch.position)
    recall = Recall(sources.raw, batch)
    try:
        answer = answer_at(
            recall, scene.work, scene.place, scene.asking, scene.history, lambda ask: ask()
        )
    except PersonMustAct as error:  # the body is not there, or not what it was
        return replace(blank, problem=str(error), is_readable=False)
    except IngestError as error:
        return replace(blank, problem=f"the replay ends otherwise: {error}")
    if sources.exchange is not None:
        return _replay_live(sources.exchange, sources.clock, scene, recall, blank)
    return _compared(db, scene, recall, answer, blank)


def _compared(
    db: Db, scene: Scene, recall: Recall, answer: Answer, blank: BatchReplay
) -> BatchReplay:
    work, batch, turned = scene.work, scene.batch, answer.turned
    told = Told(
        turned.mapped.records,
        turned.gone,
        turned.numbers.get("merged", {}),
        turned.mapped.bad,
        {one.id for one in turned.bad_ids},
        turned.numbers,
        turned.mapped.out_of_window,
        work.position(turned.following) if turned.following else None,
    )
    ids = sorted({one.provider_id for one in told.records} | set(told.gone))
    owner = work.plan.namespace.provenance
    with db.read() as tx:
        stored = Stored(
            batch,
            list_records(tx, owner, work.stored_under, ids),
            list_brought(tx, batch.id),
            list_quarantined(tx, batch.id),
        )
    matches = match_records(told, stored, turned.call.changed)
    checks = check_batch(told, stored, recall.unlike, recall.unasked)
    return replace(_with(blank, checks, matches), notes=tuple(recall.notes))


def _with(
    blank: BatchReplay, checks: Sequence[Check], matches: Sequence[RecordMatch]
) -> BatchReplay:
    others = tuple(one for one in matches if one.match is not Match.SAME)
    return replace(blank, checks=tuple(checks), counts=count_matches(matches), matches=others)


def _replay_live(
    exchange: Exchange, clock: Clock, scene: Scene, recall: Recall, blank: BatchReplay
) -> BatchReplay:
    """Ask every question of a batch that was answered then, each once."""
    work, then = scene.work, [one.exchanged for one in recall.answered]
    try:
        now = [_ask_again(exchange, clock, work, one) for one in recall.answered]
    except IngestError as error:
        return replace(blank, problem=f"the source does not answer as it did: {error}")
    calls = [one.call for one in recall.answered]
    checks = [
        Check("status", _statuses(then), _statuses(now)),
        Check("items", _count(then), _count(now)),
        Check("total", _total(then), _total(now)),
    ]
    return _with(
        blank, checks, match_contents(_contents(work, calls, then), _contents(work, calls, now))
    )


def _ask_again(exchange: Exchange, clock: Clock, work: Work, one: Recalled) -> Exchanged:
    if isinstance(one.paging, UrlPaging) and HIDDEN in (one.asking.page.token or ""):
        raise RequestRejected(
            "its page was at an address that the source had signed, and the signature is not kept"
        )
    return exchange.ask(work, one.call, replace(one.asking, now=clock.now()), one.paging)


def _statuses(exchanges: Sequence[Exchanged]) -> list[int]:
    return [one.response.status for one in exchanges]


def _count(exchanges: Sequence[Exchanged]) -> int:
    return sum(len(one.decoded.items) for one in exchanges)


def _total(exchanges: Sequence[Exchanged]) -> int | None:
    return exchanges[0].decoded.total if exchanges else None


def _contents(
    work: Work, calls: Sequence[CallSpec], exchanges: Sequence[Exchanged]
) -> Mapping[str, str]:
    """Return the content hash of every record in some answers, by id; deletions have one, too."""
    spec, window = work.plan.spec, work.bounds.window
    asked = query_window(spec.window, window, work.lookback) if window else None
    found: dict[str, str] = {}
    for call, one in zip(calls, exchanges, strict=True):
        items = [item for item in one.decoded.items if item is not None]
        mapped = map_items(items, call, spec.window.zone, asked)
        found |= {record.provider_id: record.content_hash for record in mapped.records}
        found |= dict.fromkeys(one.decoded.gone, "deleted")
    return found
