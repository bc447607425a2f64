"""One batch: ask for one page, or for some ids, and commit what came in one transaction.

The transaction begins by requiring the lease; a worker that has lost it writes nothing. Everything
before the transaction can be repeated without a trace but a stored body and a spent permit. A batch
is written down as RUNNING before its request leaves: the first one of a run in a transaction of its
own, every other one in that of the batch before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from patra_ingest.clock import Clock
from patra_ingest.errors import LedgerBusy, LedgerUnavailable
from patra_ingest.executor.ask_ids import MOST_OTHERS, Asker, IdsAnswer, IdsQuestion, ask_for_ids
from patra_ingest.executor.asking import Asking
from patra_ingest.executor.exchange import Exchange, Exchanged, Upstream
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Place, Work
from patra_ingest.executor.paging import Page
from patra_ingest.executor.request import find_separators, render_probe
from patra_ingest.executor.ride_out import ride_out
from patra_ingest.executor.store_batch import store_batch
from patra_ingest.executor.turning import IdsSeen, Turned, ends_too_early, turn_ids, turn_page
from patra_ingest.executor.two_phase import BadId
from patra_ingest.ledger.batches import BatchStart, find_committed, start_batch
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.tasks import require_lease
from patra_ingest.model.lineage import BatchId
from patra_ingest.spec.parts import Probe
from patra_ingest.spec.slice_spec import partition_values, split_text

_COMMIT_TRIES = 5
T = TypeVar("T")


class Patience(Protocol):
    """Calls a question until it is answered, as often and as slowly as its spec says."""

    def __call__(self, ask: Callable[[], T]) -> T:
        """Return the answer, or raise the last error."""
        ...


@dataclass(frozen=True)
class Answer:
    """What came for one batch, over all the requests it took, and what it means."""

    exchanges: tuple[Exchanged, ...]
    turned: Turned


@dataclass(frozen=True)
class BatchDone:
    """A committed batch: its numbers and where the slice goes on (None: it ends here)."""

    stats: dict[str, Any]
    following: Place | None
    ahead: BatchId | None  # the batch there, if it is written down already


class BatchRunner:
    """Runs batches against one ledger and its upstreams."""

    def __init__(self, db: Db, clock: Clock, upstream: Upstream) -> None:
        self._db = db
        self._clock = clock
        self._upstream = upstream
        self._exchange = Exchange(db, clock, upstream)
        # Another lane inserted the same new record, we met in a deadlock, or the answer was lost.
        self._again = Retrying(
            retry=retry_if_exception_type((IntegrityError, LedgerBusy, LedgerUnavailable)),
            stop=stop_after_attempt(_COMMIT_TRIES),
            wait=wait_random(0, 0.05),
            sleep=clock.sleep,
            reraise=True,
        )

    def start(self, work: Work, place: Place, batch_no: int) -> BatchId:
        """Write the batch down as RUNNING before its request leaves."""
        return ride_out(lambda: self._start(work, place, batch_no), self._clock, work.stop)

    def _start(self, work: Work, place: Place, batch_no: int) -> BatchId:
        with self._db.write() as tx:
            now = self._db.now(tx)
            require_lease(tx, work.lease, now)
            return _write_down(tx, work, place, batch_no, now)

    def count(self, work: Work, probe: Probe, patient: Patience) -> int:
        """Return how many records a slice holds, by the request that only counts."""
        spec = work.plan.spec
        request = render_probe(spec, probe, self._asking(work, Place(Page()), 0))
        where = probe.total or spec.paging.total_path or ""
        return patient(lambda: self._exchange.count(work, request, where))

    def ask(
        self, work: Work, place: Place, batch_no: int, history: History, patient: Patience
    ) -> Answer:
        """Ask for a page or for ids, as patiently as asked, and turn what came."""
        asking = self._asking(work, place, batch_no)
        return answer_at(self._exchange, work, place, asking, history, patient)

    def _asking(self, work: Work, place: Place, batch_no: int) -> Asking:
        asking = asking_at(work, place, batch_no, "", self._clock.now())
        return self._exchange.introduced(asking)

    def commit(
        self, work: Work, batch: tuple[BatchId, int], answer: Answer, history: History
    ) -> BatchDone:
        """Write everything that a batch brought in one transaction, while the lease is ours.

        `batch` is its id and its number in the run. The next one is written down with it, unless
        we are to stop.
        """
        numbers = {**answer.turned.numbers, **_told(answer, history)}
        numbers["429Count"] = work.healing.times_turned_away
        numbers["selfHealing"] = work.healing.as_json()
        began, tries = self._clock.monotonic(), count(1)

        def write() -> BatchDone:
            return self._again(lambda: self._write(work, batch, answer, numbers, next(tries)))

        done = ride_out(write, self._clock, work.stop)
        taken = round((self._clock.monotonic() - began) * 1000, 1)
        return replace(done, stats={**done.stats, "commitMs": taken})

    def _write(
        self,
        work: Work,
        batch: tuple[BatchId, int],
        answer: Answer,
        numbers: dict[str, Any],
        attempt: int,
    ) -> BatchDone:
        (batch_id, no), turned, ahead = batch, answer.turned, None
        with self._db.write() as tx:
            now = self._db.now(tx)
            require_lease(tx, work.lease, now)
            if turned.following is not None and not work.stop.is_set():
                ahead = _write_down(tx, work, turned.following, no + 1, now)
            stats = find_committed(tx, batch_id) if attempt > 1 else None
            if stats is None:  # else the answer to our first commit was lost, not the commit
                told = {**numbers, "now": now}
                stats = store_batch(tx, work, batch_id, turned, answer.exchanges, told)
        return BatchDone(stats, turned.following, ahead)


def _write_down(tx: Connection, work: Work, place: Place, no: int, now: datetime) -> BatchId:
    page, ids = place.page, work.asked_ids(place)
    size = len(ids) or page.size or work.plan.spec.paging.page_size
    at = work.position(place)
    start = BatchStart(work.run.id, no, at, page.number, size, work.expr_hash)
    return start_batch(tx, work.lease, work.plan, start, now)


def asking_at(work: Work, place: Place, batch_no: int, contact: str, now: datetime) -> Asking:
    """Return the question that a batch of a task asks at a place."""
    spec, bounds = work.plan.spec, work.bounds
    return Asking(
        bounds.window,
        place.page,
        work.run.id,
        batch_no,
        contact,
        now,
        work.lookback,
        split_text(spec, bounds),
        partition_values(spec, bounds),
        work.asked_ids(place),
        place.details is not None,
    )


def answer_at(
    asker: Asker, work: Work, place: Place, asking: Asking, history: History, patient: Patience
) -> Answer:
    """Ask for a page or for ids and turn what came; a replay asks what is stored, not a source."""
    call, rule = work.call_at(place)
    if asking.ids and rule is not None:
        question = IdsQuestion(work, call, rule, asking)
        got = _ask_apart(asker, question, patient, history, work.other_ids(place))
        seen = IdsSeen(got.items, got.tombstones, got.missing, got.merged, got.bad, got.is_mute)
        return Answer(tuple(got.exchanges), turn_ids(work, place, seen, history))
    paging = work.plan.spec.paging
    first = patient(lambda: asker.ask(work, call, asking, paging))
    turned = turn_page(work, place, first.decoded, history)
    if not ends_too_early(work, place, turned, history):
        return Answer((first,), turned)
    work.healing.tail_probed = True
    again = patient(lambda: asker.ask(work, call, asking, paging))
    second = turn_page(work, place, again.decoded, history)
    better = second.numbers["hasNext"] or _told_more(again, first)
    chosen = (again, first) if better else (first, again)
    return Answer(chosen, second if better else turned)


def _ask_apart(
    asker: Asker,
    question: IdsQuestion,
    patient: Patience,
    history: History,
    others: Sequence[str],
) -> IdsAnswer:
    """Ask for ids but for those that the source would take for two."""
    ids, others = question.asking.ids, others[:MOST_OTHERS]
    halved = find_separators(question.call, (*ids, *others)) if question.per_request > 1 else {}
    whole = tuple(one for one in ids if one not in halved)
    others = [one for one in others if one not in halved]
    # A batch is told by its answers: where no id is left to ask for, that to another one will do.
    asked = question.of(whole or (*others, *ids)[:1])
    got = ask_for_ids(asker, asked, patient, history.count, others)
    got = got if whole else IdsAnswer(got.exchanges)
    got.bad += [
        BadId(one, f"it holds {halved[one]!r}, which separates ids in a request for several")
        for one in ids
        if one in halved
    ]
    return got


def _told_more(one: Exchanged, other: Exchanged) -> bool:
    told = ((len(seen.items), seen.total or 0) for seen in (one.decoded, other.decoded))
    return next(told) > next(told)


def _told(answer: Answer, history: History) -> dict[str, Any]:
    """Return what it took to get an answer, in the words of the batch's stats."""
    responses = [one.response for one in answer.exchanges]
    elapsed = sum(response.elapsed for response in responses)
    waited = sum(one.waited_seconds for one in answer.exchanges)
    return {
        "reqCount": history.requests,
        "retryCount": history.retries,
        "attempts": list(history.attempts),
        "latencyMs": round(elapsed * 1000, 1),
        "waitedMs": round(waited * 1000, 1),
        "http": {
            "status": responses[0].status,
            "bytes": sum(len(response.body) for response in responses),
        },
    }
