"""One leased task, from its first unread page to its certificate.

The only broad handler stands around one task: whatever goes
wrong with it ends this task and no other.
"""

import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from patra_ingest.clock import Clock, is_late
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.errors import (
    LeaseLost,
    PersonMustAct,
    SliceIncomplete,
    SliceTooBig,
    TransientError,
)
from patra_ingest.executor.ask_patiently import ask_patiently, patience_of
from patra_ingest.executor.attempt import (
    Attempt,
    TaskEnd,
    cause_of,
    evidence_of,
    with_all_batches,
)
from patra_ingest.executor.certificate import Certificate, Verdict, certify
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.family import require_family
from patra_ingest.executor.garbage import collect_between_batches
from patra_ingest.executor.history import require_reach
from patra_ingest.executor.leased import Work
from patra_ingest.executor.limits import find_excess, find_spent, remaining
from patra_ingest.executor.outcome import MAX_TASK_RETRIES, judge_failure
from patra_ingest.executor.paging import Page
from patra_ingest.executor.resume import resume
from patra_ingest.executor.ride_out import ride_out
from patra_ingest.executor.run_batch import BatchRunner
from patra_ingest.executor.settle import end_task, fail_task, give_back, settle
from patra_ingest.executor.token_cursor import forget_token, keep_token
from patra_ingest.ledger.batches import close_open_batches, count_beginnings, list_done
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.plans import get_plan, try_complete_plan
from patra_ingest.ledger.quotas import free
from patra_ingest.ledger.reslices import NewRequest, add_request
from patra_ingest.ledger.runs import (
    RunEnd,
    count_void_walks,
    finish_run,
    start_run,
    void_walk,
)
from patra_ingest.ledger.slices import follow_task, get_slice_of
from patra_ingest.ledger.tasks import (
    Lease,
    mark_executing,
    require_lease,
)
from patra_ingest.model.bounds import read_bounds
from patra_ingest.model.codes import ResliceReason, RunStatus, SliceStatus, TaskStatus
from patra_ingest.spec.slice_spec import lookback_of, records_of, requests_of

OnBatch = Callable[[dict[str, Any]], None]
Settle = Callable[[Connection, datetime], TaskEnd]


class TaskExecutor:
    """Executes leased tasks of one ledger."""

    def __init__(self, db: Db, clock: Clock, runner: BatchRunner, cursors: CursorManager) -> None:
        self._db = db
        self._clock = clock
        self._runner = runner
        self._cursors = cursors

    def execute(self, lease: Lease, stop: threading.Event, on_batch: OnBatch) -> TaskEnd:
        """Walk the task's slice as far as it goes; never raise for the task's sake."""
        attempt: Attempt | None = None
        try:
            attempt = self._begin(lease, stop)
            return self._walk(attempt, on_batch)
        except LeaseLost:
            return TaskEnd.LEASE_LOST
        except PersonMustAct:
            # The ledger or the disk is in trouble, no task is to blame: give it back and stop.
            if attempt is not None:
                with suppress(PersonMustAct):
                    self._give_back(attempt)
            raise
        except Exception as error:  # noqa: BLE001 - the one broad handler, see the module docstring
            return self._refuse(lease, error) if attempt is None else self._fail(attempt, error)

    def _begin(self, lease: Lease, stop: threading.Event) -> Attempt:
        with self._db.write() as tx:
            now = self._db.now(tx)
            require_lease(tx, lease, now)
            plan = get_plan(tx, lease.plan_id)
            one, retries = get_slice_of(tx, lease.task_id)
            done = list_done(tx, lease.task_id, one.expr_hash)
            run = start_run(tx, lease, plan, one.window, now)
            work = Work(
                lease,
                plan,
                run,
                read_bounds(one.spec),
                one.expr_hash,
                stop,
                lookback_of(one.spec),
                requests_of(one.spec),
                records_of(one.spec),
            )
            resumed = resume(work, done, now)
            begun = 0
            if resumed.void is not None:
                void_walk(tx, lease.task_id, resumed.void, now)
                begun = count_beginnings(tx, lease.task_id)
            mark_executing(tx, lease, now)
            follow_task(tx, lease.slice_id, SliceStatus.EXECUTING, now)
        forget_token(self._cursors, work, resumed.dead_token)
        attempt = Attempt(work, resumed.history, resumed.place, retries)
        attempt.last_batch = done[-1].id if done else None
        attempt.begun = begun
        return attempt

    def _refuse(self, lease: Lease, error: Exception) -> TaskEnd:
        """Fail a task that could not even begin, for example with a snapshot we cannot read."""
        failure = judge_failure(error, 0, self._clock.now())
        try:
            with self._db.write() as tx:
                now = self._db.now(tx)
                require_lease(tx, lease, now)
                mark_executing(tx, lease, now)
                fail_task(tx, lease, failure, now)
        except LeaseLost:
            return TaskEnd.LEASE_LOST
        return TaskEnd.FAILED

    def _walk(self, attempt: Attempt, on_batch: OnBatch) -> TaskEnd:
        work, history = attempt.work, attempt.history
        if attempt.begun > MAX_TASK_RETRIES:
            told = f"its token died in each of {attempt.begun} walks, before the slice had ended"
            raise SliceTooBig(ResliceReason.TOKEN_EXPIRED, told)
        self._require_reach(attempt)
        while attempt.place is not None:
            if work.stop.is_set():
                return self._give_back(attempt)
            attempt.begin_batch()
            number = len(attempt.own) + 1
            batch_id = attempt.ahead or self._runner.start(work, attempt.place, number)
            attempt.ahead = None
            answer = ask_patiently(self._runner, attempt, attempt.place, number, self._clock)
            done = self._runner.commit(work, (batch_id, number), answer, history)
            attempt.add(batch_id, done)
            keep_token(self._cursors, work, batch_id, done.following)
            on_batch(done.stats)
            del answer, done
            collect_between_batches()
            excess = find_excess(work, history) if attempt.place else None
            if excess is not None:
                raise excess
            if attempt.place and (spent := find_spent(work, history)):
                return self._give_back(attempt, TaskEnd.PAUSED, f"BUDGET: {spent}")
        certificate = certify(history.batches, work.promise)
        if certificate.verdict == Verdict.INCOMPLETE:
            raise SliceIncomplete(str(certificate))
        return self._succeed(attempt, certificate)

    def _require_reach(self, attempt: Attempt) -> None:
        """Count a slice before its first page, where that is cheap and it may be too big."""
        work, cap = attempt.work, attempt.work.plan.spec.cap
        if (
            cap.probe is None
            or cap.max is None
            or attempt.history.batches
            or not work.bounds.window
        ):
            return
        if work.expected_records is not None and work.expected_records <= cap.max // 2:
            return
        total = self._runner.count(work, cap.probe, patience_of(attempt, self._clock))
        require_reach(Decoded([], total), Page(), cap.max)

    def _succeed(self, attempt: Attempt, certificate: Certificate) -> TaskEnd:
        work, lease = attempt.work, attempt.work.lease
        proof = certificate.as_json()
        end = RunEnd(RunStatus.SUCCEEDED, {**attempt.stats(), "certificate": proof}, proof)

        def finish() -> None:
            with self._db.write() as tx:
                now = self._db.now(tx)
                require_lease(tx, lease, now)
                finish_run(tx, work.run.id, end, now)
                end_task(tx, lease, TaskStatus.SUCCEEDED, now, None)
                follow_task(tx, lease.slice_id, SliceStatus.SUCCEEDED, now)
                require_family(tx, work)
                try_complete_plan(tx, lease.plan_id, now)
                free(tx, [lease.slice_id], now)

        def advance() -> None:
            plan = work.plan
            self._cursors.advance(plan.namespace, plan.direction, evidence_of(attempt))

        ride_out(finish, self._clock, work.stop)
        ride_out(advance, self._clock, work.stop)
        return TaskEnd.SUCCEEDED

    def _fail(self, attempt: Attempt, error: Exception) -> TaskEnd:
        work = attempt.work
        if work.stop.is_set() and isinstance(error, TransientError):
            return self._give_back(attempt)
        if isinstance(error, SliceTooBig):
            return self._ask_to_reslice(attempt, error)
        error = cause_of(attempt, error)
        certificate, retries = None, 0 if attempt.own else attempt.retry_count
        if isinstance(error, SliceIncomplete):
            attempt.is_void = True
            with self._db.read() as tx:
                retries = max(attempt.retry_count, count_void_walks(tx, work.lease.task_id))
            # Kept with the failed run: the next attempt walks the slice from its first page.
            certified = certify(attempt.history.batches, work.promise)
            certificate = {**certified.as_json(), "verdict": Verdict.INCOMPLETE.value}
        failure = judge_failure(error, retries, self._clock.now())
        detail = f"{failure.code}: {failure.message}"
        if failure.code == "INTERNAL":
            detail = "".join(traceback.format_exception(error))
        status = RunStatus.FAILED if failure.counts_as_retry else RunStatus.PARTIAL
        end = RunEnd(status, attempt.stats(), certificate, detail)
        return self._close(attempt, end, lambda tx, now: settle(tx, attempt, failure, now))

    def _ask_to_reslice(self, attempt: Attempt, error: SliceTooBig) -> TaskEnd:
        """End the task and leave the planner a request; the slice is open until it is answered."""
        work = attempt.work
        measured = {"total": error.total, "pages": len(attempt.history.batches)}
        stats = attempt.stats({"reason": error.reason, **measured})
        end = RunEnd(RunStatus.PARTIAL, stats, None, f"{error.reason}: {error}")
        rest = remaining(work, attempt.history)
        reason = ResliceReason(error.reason)
        request = NewRequest(evidence_of(attempt).lineage, reason, rest, measured)
        brought = TaskStatus.PARTIAL if attempt.history.batches else TaskStatus.CANCELLED

        def leave(tx: Connection, now: datetime) -> TaskEnd:
            add_request(tx, request, now)
            end_task(tx, work.lease, brought, now, (error.reason, str(error)))
            return TaskEnd.RESLICED

        return self._close(attempt, end, leave)

    def _give_back(
        self, attempt: Attempt, as_end: TaskEnd = TaskEnd.STOPPED, why: str | None = None
    ) -> TaskEnd:
        """Return the task to the queue at once; the next worker goes on after our last batch."""
        if why is None and is_late(attempt.work.stop):
            why = "DEADLINE: the time that the worker was given is over"
        status = RunStatus.CANCELLED if why is None else RunStatus.PARTIAL
        told = why or "STOPPED: the worker was asked to stop"
        end = RunEnd(status, attempt.stats(), None, told)

        def release(tx: Connection, now: datetime) -> TaskEnd:
            give_back(tx, attempt, now)
            return as_end

        return self._close(attempt, end, release)

    def _close(self, attempt: Attempt, end: RunEnd, settle: Settle) -> TaskEnd:
        """End a run, and its task as `settle` says, while the lease is ours."""
        work, lease = attempt.work, attempt.work.lease
        try:
            with self._db.write() as tx:
                now = self._db.now(tx)
                require_lease(tx, lease, now)
                close_open_batches(tx, work.run.id, attempt.ahead, end.error or "", now)
                finish_run(tx, work.run.id, with_all_batches(tx, attempt, end), now)
                return settle(tx, now)
        except LeaseLost:
            return TaskEnd.LEASE_LOST
