"""Read a few pages of a slice as a worker would, and write nothing.

Pages are asked for, judged, decoded, mapped and held against each other by what a worker uses, and
every request passes the rate gate. What comes is returned, not stored. Of the ids that a search
finds only some are asked for, so that a look stays a look.
"""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.errors import IngestError, PersonMustAct
from patra_ingest.executor.ask_patiently import ask_patiently, patience_of
from patra_ingest.executor.attempt import Attempt
from patra_ingest.executor.certificate import Certificate, certify
from patra_ingest.executor.exchange import Exchanged
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Place, Work
from patra_ingest.executor.paging import first_page
from patra_ingest.executor.run_batch import BatchRunner
from patra_ingest.executor.turning import Turned
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.runs import Run
from patra_ingest.ledger.tasks import Lease, Partition
from patra_ingest.model.bounds import read_bounds
from patra_ingest.model.lineage import RunId, SliceId, TaskId
from patra_ingest.spec.slice_spec import lookback_of

# A person waits: who does not answer the second time is not asked again.
_MOST_TRIES = 2
NOBODY = SliceId(0)  # has reserved nothing in anybody's quota


@dataclass(frozen=True)
class Portion:
    """How much is read: pages in all, and after each page that only found ids, of those."""

    pages: int = 2
    details: int = 1  # requests for ids, per page
    counts: bool = True  # as a worker does before the first page, where the pack says how


@dataclass(frozen=True)
class PageRead:
    """One page, or the records of some ids: what was asked, what came, what it means."""

    no: int
    position: str
    exchanges: tuple[Exchanged, ...]
    turned: Turned
    tries: tuple[dict[str, Any], ...]  # those that failed before it came
    left_out: int = 0  # ids that are not asked for, because this is only a look


@dataclass
class SliceRead:
    """What was read of one slice, and why no more of it."""

    work: Work
    counted: int | None = None  # by the request that only counts
    pages: list[PageRead] = field(default_factory=list)
    error: IngestError | None = None
    certificate: Certificate | None = None  # of a slice that was read to its end
    tries: tuple[dict[str, Any], ...] = ()  # those that failed last, and for good
    cut_into: int | None = None  # slices that it would be cut into, if it proved too big

    @property
    def searched(self) -> int:
        """How many pages were read, details aside."""
        return sum(page.turned.numbers.get("phase") != "DETAIL" for page in self.pages)


def work_of_slice(plan: Plan, written: dict[str, Any], expr_hash: str) -> Work:
    """Return a slice as work that nobody has leased: it can be read, and nothing written for it."""
    retry = plan.spec.retry
    patient = retry.model_copy(update={"max_attempts": min(retry.max_attempts, _MOST_TRIES)})
    looked_at = replace(plan, spec=plan.spec.model_copy(update={"retry": patient}))
    name = plan.namespace
    partition = Partition(name.provenance, name.endpoint, name.operation)
    root = plan.schedule_instance_id
    lease = Lease(TaskId(0), NOBODY, plan.id, root, "test-read", plan.window.start, partition)
    bounds, lookback = read_bounds(written), lookback_of(written)
    stop = threading.Event()
    return Work(lease, looked_at, Run(RunId(0), 1), bounds, expr_hash, stop, lookback)


def read_some(runner: BatchRunner, clock: Clock, work: Work, portion: Portion) -> SliceRead:
    """Read the first pages of a slice; what stops it early is kept, not raised.

    Raises PersonMustAct when the ledger that keeps the rate budget is in trouble.
    """
    read = SliceRead(work)
    attempt = Attempt(work, History.of([]), Place(first_page(work.walk)), 0)
    try:
        if portion.counts:
            read.counted = _count(runner, clock, attempt)
        while attempt.place is not None and read.searched < portion.pages:
            _read_page(runner, clock, attempt, read, portion)
        if attempt.place is None and not any(page.left_out for page in read.pages):
            read.certificate = certify(attempt.history.batches, work.promise)
    except PersonMustAct:
        raise
    except IngestError as error:
        read.error = error
        read.tries = tuple(attempt.history.attempts)
    return read


def _count(runner: BatchRunner, clock: Clock, attempt: Attempt) -> int | None:
    cap = attempt.work.plan.spec.cap
    if cap.probe is None or attempt.work.bounds.window is None:
        return None
    counted = runner.count(attempt.work, cap.probe, patience_of(attempt, clock))
    attempt.history.attempts = []  # those of the first page are its own
    return counted


def _read_page(
    runner: BatchRunner, clock: Clock, attempt: Attempt, read: SliceRead, portion: Portion
) -> None:
    """Read one page and, of the ids it finds, as many as the portion says."""
    _read_place(runner, clock, attempt, read)
    for _ in range(portion.details):
        if attempt.place is None or attempt.place.details is None:
            return
        _read_place(runner, clock, attempt, read)
    details = attempt.place.details if attempt.place else None
    if details is not None:
        left = len(details.ids) - details.done
        read.pages[-1] = replace(read.pages[-1], left_out=left)
        attempt.place = Place(details.after) if details.after else None


def _read_place(runner: BatchRunner, clock: Clock, attempt: Attempt, read: SliceRead) -> None:
    place, history, number = attempt.place, attempt.history, len(read.pages) + 1
    if place is None:
        return
    attempt.begin_batch()
    answer = ask_patiently(runner, attempt, place, number, clock)
    position, tries = attempt.work.position(place), tuple(history.attempts)
    read.pages.append(PageRead(number, position, answer.exchanges, answer.turned, tries))
    mapped = answer.turned.mapped
    aside = {"quarantined": len(mapped.bad), "outOfWindow": mapped.out_of_window}
    history.add({**answer.turned.numbers, **aside, "retryCount": history.retries})
    attempt.place = answer.turned.following
