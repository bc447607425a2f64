"""One batch: ask for one page and commit everything it brought in one transaction.

The transaction begins by requiring the lease; a worker that has lost it writes nothing. Everything
before the transaction can be repeated without a trace but a stored body and a spent permit.
"""

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy.exc import IntegrityError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from patra_ingest.clock import Clock
from patra_ingest.errors import LedgerBusy, SliceIncomplete, Throttled
from patra_ingest.executor.decoding import Decoded, decode
from patra_ingest.executor.history import History, page_numbers, require_reach, require_sense
from patra_ingest.executor.ids import find_unanswered, hold_against
from patra_ingest.executor.leased import Work
from patra_ingest.executor.mapping import Mapped, map_items
from patra_ingest.executor.outcome import batch_stats
from patra_ingest.executor.paging import Ended, Page, Seen, next_page, position
from patra_ingest.executor.request import Asking, digest_of, render
from patra_ingest.executor.triage import judge
from patra_ingest.ledger.batches import BatchEnd, BatchStart, finish_batch, start_batch
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.quarantine import quarantine_ids, quarantine_items
from patra_ingest.ledger.quotas import try_spend
from patra_ingest.ledger.records import mark_gone, upsert_newer
from patra_ingest.ledger.runs import save_checkpoint
from patra_ingest.ledger.tasks import require_lease
from patra_ingest.model.lineage import BatchId
from patra_ingest.model.quotas import charges_at
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.localize import query_window
from patra_ingest.spec.quotas import rules_of
from patra_ingest.spec.slice_spec import partition_values, split_text
from patra_ingest.spec.words import MissingIds
from patra_ingest.transport.client import Transport
from patra_ingest.transport.messages import Request, Response

# Longer pauses are spent in the queue, not on a lane.
LONGEST_WAIT = timedelta(seconds=60)
_COMMIT_TRIES = 5


@dataclass(frozen=True)
class Upstream:
    """Everything a batch needs to reach the source and keep what it said."""

    gate: RateGate
    transport: Transport
    raw: RawStore
    contact: str


@dataclass(frozen=True)
class Answer:
    """One page as it came back, and what it took to get it."""

    request: Request
    response: Response
    decoded: Decoded
    storage_key: str
    waited_seconds: float
    unanswered: tuple[str, ...] = ()  # ids that were asked for, twice if the pack says so
    again: str | None = None  # where the answer to the second request is kept


@dataclass(frozen=True)
class BatchDone:
    """A committed batch: its numbers and where the slice goes on (None: it ends here)."""

    batch_id: BatchId
    stats: dict[str, Any]
    next_page: Page | None


class BatchRunner:
    """Runs batches against one ledger and its upstreams."""

    def __init__(self, db: Db, clock: Clock, upstream: Upstream) -> None:
        self._db = db
        self._clock = clock
        self._upstream = upstream

    def start(self, work: Work, page: Page, batch_no: int) -> BatchId:
        """Write the batch down as RUNNING before its request leaves."""
        spec = work.plan.spec
        start = BatchStart(
            work.run.id,
            batch_no,
            position(work.walk, page),
            page.number,
            spec.paging.page_size,
            work.expr_hash,
        )
        with self._db.write() as tx:
            now = self._db.now(tx)
            require_lease(tx, work.lease, now)
            return start_batch(tx, work.lease, work.plan, start, now)

    def ask(self, work: Work, page: Page, batch_no: int) -> Answer:
        """Ask for a page; ids that do not come are asked for once more if the pack says so."""
        ids = work.asked_ids(page)
        answer = self._send(work, page, batch_no, ids)
        spec = work.plan.spec
        unanswered = find_unanswered(ids, answer.decoded.items, spec) if ids else []
        rule = spec.reconcile.missing if spec.reconcile else None
        if not unanswered or rule is not MissingIds.RETRY_THEN_GONE:
            return replace(answer, unanswered=tuple(unanswered))
        again = self._send(work, page, batch_no, tuple(unanswered))
        items = [*answer.decoded.items, *again.decoded.items]
        decoded = replace(answer.decoded, items=items)
        left = find_unanswered(ids, items, spec)
        kept = again.storage_key
        return replace(answer, decoded=decoded, unanswered=tuple(left), again=kept)

    def _send(self, work: Work, page: Page, batch_no: int, ids: tuple[str, ...]) -> Answer:
        """Acquire a permit, send the request, keep the body, read the page."""
        spec, upstream = work.plan.spec, self._upstream
        request = render(spec, self._asking(work, page, batch_no, ids))
        self._pay(work)
        limits = Limits(spec.rate.per_second, spec.rate.burst, spec.rate.in_flight)
        deadline = self._clock.now() + LONGEST_WAIT
        with upstream.gate.permit(
            spec.rate.key, limits, spec.rate.cost, deadline, work.stop
        ) as permit:
            response = upstream.transport.send(request, permit)
            error = judge(response, spec.retry)
            if isinstance(error, Throttled):
                # Before our place in flight is free again: nobody slips in ahead of the silence.
                upstream.gate.feedback(spec.rate.key, error.retry_at)
        if error is not None:
            raise error
        storage_key = upstream.raw.put(response.body)
        decoded = decode(response, spec)
        return Answer(request, response, decoded, storage_key, permit.waited_seconds)

    def _asking(self, work: Work, page: Page, batch_no: int, ids: tuple[str, ...]) -> Asking:
        spec, bounds = work.plan.spec, work.bounds
        return Asking(
            bounds.window,
            page,
            work.run.id,
            batch_no,
            self._upstream.contact,
            self._clock.now(),
            work.lookback,
            split_text(spec, bounds),
            partition_values(spec, bounds),
            ids,
        )

    def _pay(self, work: Work) -> None:
        """Take the request out of its quotas; Throttled until the one that is empty ends."""
        rate = work.plan.spec.rate
        rules = rules_of(rate)
        if not rules:
            return
        with self._db.write() as tx:
            now = self._db.now(tx)
            charges = charges_at(rules, now, Decimal(str(rate.cost)))
            empty = try_spend(tx, work.lease.slice_id, charges, now)
        if empty is not None:
            raise Throttled(empty.end)

    def commit(
        self, work: Work, page: Page, batch_id: BatchId, answer: Answer, history: History
    ) -> BatchDone:
        """Map the page and write records, quarantine, batch and checkpoint in one transaction."""
        spec, decoded = work.plan.spec, answer.decoded
        require_reach(decoded, page, spec.cap.max)
        mapped = self._mapped(work, page, answer)
        require_sense(decoded, mapped, page, history)
        seen = Seen(len(decoded.items), decoded.next_token, decoded.total)
        after = next_page(work.walk, page, seen)
        following = None if isinstance(after, Ended) else after
        numbers = {
            **page_numbers(decoded, mapped, after, history),
            "latencyMs": round(answer.response.elapsed * 1000, 1),
            "waitedMs": round(answer.waited_seconds * 1000, 1),
            "http": {"status": answer.response.status, "bytes": len(answer.response.body)},
        }
        if work.bounds.ids is not None:
            numbers["total"] = len(work.bounds.ids.ids)
            numbers["goneIds"] = len(answer.unanswered)
            numbers["reqCount"] += answer.again is not None
        # Another lane inserted the same new record, or we met in a deadlock: look again.
        again = Retrying(
            retry=retry_if_exception_type((IntegrityError, LedgerBusy)),
            stop=stop_after_attempt(_COMMIT_TRIES),
            wait=wait_random(0, 0.05),
            sleep=self._clock.sleep,
            reraise=True,
        )
        stats = again(self._write, work, batch_id, answer, mapped, numbers, following)
        return BatchDone(batch_id, stats, following)

    def _mapped(self, work: Work, page: Page, answer: Answer) -> Mapped:
        spec, window = work.plan.spec, work.bounds.window
        asked = query_window(spec.window, window, work.lookback) if window else None
        mapped = map_items(answer.decoded.items, spec, asked)
        if work.bounds.ids is None:
            return mapped
        if answer.unanswered and spec.reconcile and spec.reconcile.missing is MissingIds.FAIL:
            raise SliceIncomplete(f"the source has no {', '.join(answer.unanswered[:10])}")
        return hold_against(work.asked_ids(page), mapped)

    def _write(
        self,
        work: Work,
        batch_id: BatchId,
        answer: Answer,
        mapped: Mapped,
        numbers: dict[str, Any],
        following: Page | None,
    ) -> dict[str, Any]:
        spec, namespace, lease = work.plan.spec, work.plan.namespace, work.lease
        lineage = work.lineage(batch_id)
        stamp = {
            **lineage.columns(),
            "spec_fingerprint": work.plan.fingerprint,
            "expr_hash": work.expr_hash,
        }
        place = position(work.walk, following) if following else None
        with self._db.write() as tx:
            now = self._db.now(tx)
            require_lease(tx, lease, now)
            counts = upsert_newer(
                tx,
                namespace.provenance,
                work.stored_under,
                mapped.records,
                spec.changed,
                stamp,
                now,
            )
            owner = replace(namespace, endpoint=work.stored_under)
            quarantine_items(tx, owner, lineage, mapped.bad)
            unknown = mark_gone(tx, owner.provenance, owner.endpoint, answer.unanswered, now)
            quarantine_ids(tx, owner, lineage, unknown)
            stats = batch_stats(
                numbers,
                asdict(counts),
                len(mapped.bad),
                mapped.out_of_window,
                mapped.observed_max,
            )
            end = BatchEnd(
                len(mapped.records),
                place,
                answer.storage_key,
                stats,
                digest_of(answer.request),
                _response_digest(answer),
            )
            finish_batch(tx, batch_id, end, now)
            save_checkpoint(tx, work.run.id, {"next": place, "batch": batch_id}, now)
        return stats


def _response_digest(answer: Answer) -> dict[str, Any]:
    headers = answer.response.headers
    again = {"again": answer.again} if answer.again else {}
    return {
        **again,
        "status": answer.response.status,
        "contentType": headers.get("content-type"),
        "bytes": len(answer.response.body),
        "body": answer.storage_key,
        "receivedAt": answer.response.received_at,
    }
