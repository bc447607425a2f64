"""The batches of a task, each at its place in the walk and with what was seen before it.

Everything comes from the plan's snapshot and the batch rows; nothing is asked and nothing written.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from patra_ingest.executor.asking import Asking
from patra_ingest.executor.digests import request_digest
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Details, Place, Work
from patra_ingest.executor.likeness import aside_of, find_unlike
from patra_ingest.executor.paging import first_page, shrunk
from patra_ingest.executor.positions import page_at
from patra_ingest.executor.request import render
from patra_ingest.executor.run_batch import asking_at
from patra_ingest.ledger.plans import get_plan
from patra_ingest.ledger.runs import Run
from patra_ingest.ledger.slices import get_slice_of
from patra_ingest.ledger.tasks import Lease, Partition
from patra_ingest.model.bounds import read_bounds
from patra_ingest.model.evidence import KeptBatch, KeptRun
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId, SliceId, TaskId
from patra_ingest.spec.slice_spec import lookback_of


@dataclass(frozen=True)
class Scene:
    """One batch about to be replayed: its task, where it starts, and what was seen before it."""

    work: Work
    batch: KeptBatch
    place: Place
    history: History
    asking: Asking


def work_of(tx: Connection, run: KeptRun) -> Work:
    """Return the task as its executor saw it; nobody holds this lease, so it can write nothing."""
    above = run.lineage
    plan = get_plan(tx, PlanId(above.plan_id or 0))
    one, _ = get_slice_of(tx, TaskId(above.task_id or 0))
    partition = Partition(run.provenance, run.endpoint, run.operation)
    lease = Lease(
        TaskId(above.task_id or 0),
        SliceId(above.slice_id or 0),
        plan.id,
        ScheduleInstanceId(above.schedule_instance_id or 0),
        "replay",
        plan.window.start,
        partition,
    )
    own = Run(run.id, run.attempt_no)
    bounds, lookback = read_bounds(one.spec), lookback_of(one.spec)
    return Work(lease, plan, own, bounds, one.expr_hash, threading.Event(), lookback)


def list_scenes(work: Work, walk: Sequence[KeptBatch], contact: str) -> Iterator[Scene]:
    """Yield every batch of a task with what was walked before it.

    A walk that begins at the first page again has given up all that was before.
    """
    beginning = work.position(Place(first_page(work.walk)))
    history, searched = History.of([]), None
    for batch in walk:
        if batch.position == beginning:
            history, searched = History.of([]), None
        work_now = replace(work, run=replace(work.run, id=batch.run_id))
        place = _place_of(work_now, batch, searched)
        asked_at = batch.committed_at or work.plan.window.end
        asking = asking_at(work_now, place, batch.no, contact, asked_at)
        yield _at_its_size(Scene(work_now, batch, place, history, asking))
        history.add(batch.stats)
        searched = batch if batch.stats.get("phase") == "SEARCH" else searched


def _place_of(work: Work, batch: KeptBatch, searched: KeptBatch | None) -> Place:
    detail = work.plan.spec.detail
    if batch.stats.get("phase") != "DETAIL" or searched is None or detail is None:
        page = page_at(work.walk, batch.page_no, batch.position)
        declared = work.plan.spec.paging.page_size
        is_smaller = not work.bounds.ids and page.size is None and batch.page_size != declared
        return Place(replace(page, size=batch.page_size) if is_smaller else page)
    at, _, done = batch.position.rpartition("|ids:")
    following = searched.stats["searchNext"]
    after = page_at(work.walk, searched.page_no + 1, following) if following else None
    found = tuple(searched.stats["foundIds"])
    page = page_at(work.walk, batch.page_no, at)
    return Place(page, Details(found, int(done), detail.batch, after))


def _at_its_size(scene: Scene) -> Scene:
    """Return the batch with pages as small as the source took them, if it had to shrink them."""
    healing = scene.batch.stats.get("selfHealing") or {}
    if not healing.get("pageSizeShrink") or scene.place.details:
        return scene
    smaller: Scene | None = scene
    while smaller is not None:
        if _is_asked(smaller):
            return smaller
        page = shrunk(smaller.work.walk, smaller.place.page)
        asking = page and replace(smaller.asking, page=page)
        smaller = replace(smaller, place=Place(page), asking=asking) if page and asking else None
    return scene


def _is_asked(scene: Scene) -> bool:
    spec, asking = scene.work.plan.spec, scene.asking
    own, aside = request_digest(render(spec, asking)), aside_of(spec, spec, asking)
    return not find_unlike(scene.batch.request, own, aside)
