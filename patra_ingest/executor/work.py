"""A worker: lanes that lease and execute tasks until told to stop.

Each lane is a thread with its own lease. One more thread renews all leases, so that a slow request
never costs a task. Ctrl-C, SIGTERM or a deadline sets `stop`: every lane ends after its current
batch and gives its task back. A source or a ledger in trouble gets fewer lanes for a while, see
`backpressure`.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import SQLAlchemyError

from patra_ingest.clock import Clock, is_late
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.errors import LedgerBusy, LedgerUnreachable, PersonMustAct
from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.backpressure import Thresholds
from patra_ingest.executor.ease import Pace
from patra_ingest.executor.execute import TaskExecutor
from patra_ingest.executor.garbage import seldom_collected
from patra_ingest.executor.ride_out import Result, ride_out
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.leases import Limits, try_lease_one
from patra_ingest.ledger.silent import TOLD, free_silent
from patra_ingest.ledger.tasks import (
    EVERY_TASK,
    Lease,
    Partition,
    TaskFilter,
    count_open,
    try_renew,
)

_log = logging.getLogger(__name__)
_FIRST_IDLE_SECONDS = 0.1
_LONGEST_IDLE_SECONDS = 2.0
_JOIN_SECONDS = 0.2
# A queue counts as empty when its next task is due later than this.
_PATIENCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Order:
    """What a worker is asked to do."""

    lanes: int = 1
    until_empty: bool = False
    wanted: TaskFilter = EVERY_TASK


@dataclass
class Drained:
    """What a worker did: tasks by how they ended, the sums of their batches, changes of pace."""

    tasks: Counter[str] = field(default_factory=Counter)
    batches: Counter[str] = field(default_factory=Counter)
    lowered: Counter[str] = field(default_factory=Counter)  # by what it was and why
    raised: Counter[str] = field(default_factory=Counter)
    is_late: bool = False  # a deadline ended it
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add_batch(self, stats: dict[str, Any]) -> None:
        """Count one committed batch."""
        numbers = {key: value for key, value in stats.items() if type(value) is int}
        with self.lock:
            self.batches.update(numbers)
            self.batches["pages"] += 1

    def add_task(self, end: TaskEnd) -> None:
        """Count one attempt."""
        with self.lock:
            self.tasks[end.value] += 1

    def add_change(self, what: str, trouble: str | None) -> None:
        """Count one change of pace."""
        with self.lock:
            if trouble is None:
                self.raised[what] += 1
            else:
                self.lowered[f"{what}: {trouble}"] += 1

    def add(self, other: "Drained") -> None:
        """Take the numbers of a later drain in."""
        self.tasks.update(other.tasks)
        self.batches.update(other.batches)
        self.lowered.update(other.lowered)
        self.raised.update(other.raised)
        self.is_late |= other.is_late


OnBatch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class _Shift:
    """What the lanes of one `work` share."""

    order: Order
    stop: threading.Event
    drained: Drained
    pace: Pace
    on_batch: OnBatch
    over: threading.Event = field(default_factory=threading.Event)  # idle lanes wait for nothing

    def watch(self, lease: Lease) -> OnBatch:
        """Return what is told of every batch of a task."""

        def count(stats: dict[str, Any]) -> None:
            self.drained.add_batch(stats)
            self.pace.see_batch(lease.partition, stats)
            self.on_batch(stats)

        return count

    def count_end(self, lease: Lease, end: TaskEnd) -> None:
        """Count how an attempt at a task ended."""
        self.drained.add_task(end)
        self.pace.see_end(lease.partition, end)


class Worker:
    """One executor process (or Dagster run), known in the ledger by its name."""

    def __init__(  # noqa: PLR0913 - the live objects of a worker, and its settings
        self,
        db: Db,
        clock: Clock,
        executor: TaskExecutor,
        cursors: CursorManager,
        name: str,
        lease_term: timedelta,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
    ) -> None:
        self._db = db
        self._clock = clock
        self._executor = executor
        self._cursors = cursors
        self._name = name
        self._term = lease_term
        self._limits = limits
        self._thresholds = thresholds
        self._luck = Random()
        self._leases: dict[str, Lease] = {}
        self._guard = threading.Lock()
        self._turn = threading.Lock()  # lanes lease one after the other

    def work(self, order: Order, stop: threading.Event, on_batch: OnBatch) -> Drained:
        """Run the lanes until the queue is empty (if asked) or `stop` is set; return the sums."""
        drained = Drained()
        errors: list[BaseException] = []
        ended = threading.Event()
        pace = Pace(order.lanes, self._thresholds, drained.add_change)
        shift = _Shift(order, stop, drained, pace, on_batch)
        self._through(stop, self._cursors.catch_up)

        def lane(number: int) -> None:
            try:
                self._lane(number, shift)
            except BaseException as error:  # noqa: BLE001 - handed to the caller below
                errors.append(error)
                stop.set()

        heart = threading.Thread(target=self._renew_all, args=(ended,), daemon=True)
        lanes = [
            threading.Thread(target=lane, args=(number,), name=f"lane-{number}")
            for number in range(1, order.lanes + 1)
        ]
        heart.start()
        for thread in lanes:
            thread.start()
        try:
            _await(lanes, shift)
        except BaseException:
            stop.set()  # whatever interrupts us: the lanes end after their batch, and then we do
            raise
        finally:
            for thread in lanes:
                thread.join()
            ended.set()
            heart.join()
        if errors:
            raise errors[0]
        self._through(stop, self._cursors.catch_up)
        return drained

    def _lane(self, number: int, shift: "_Shift") -> None:
        idle, stop, wanted = _FIRST_IDLE_SECONDS, shift.stop, shift.order.wanted
        while not stop.is_set() and not shift.over.is_set():
            lease = self._through(stop, lambda: self._try_lease(number, shift))
            if lease is not None:
                idle = _FIRST_IDLE_SECONDS
                with self._renewed(lease):
                    self._execute(lease, shift)
                continue
            if shift.order.until_empty and self._through(stop, lambda: self._is_empty(wanted)):
                shift.over.set()
                return
            # Not all at the same moment: lanes that fell idle together would stay together.
            self._clock.wait(shift.over, idle * self._luck.uniform(0.5, 1.0))
            idle = min(idle * 2, _LONGEST_IDLE_SECONDS)

    def _execute(self, lease: Lease, shift: "_Shift") -> None:
        """Execute a task; if the ledger is cut off, its lease runs out and somebody goes on.

        One that is busy, or met us in a deadlock, has cost this attempt and not the worker.
        """
        try:
            end = self._executor.execute(lease, shift.stop, shift.watch(lease))
        except (LedgerUnreachable, LedgerBusy):
            end = TaskEnd.LEASE_LOST
            self._through(shift.stop, self._reach)
        shift.count_end(lease, end)

    def _reach(self) -> None:
        with self._db.read() as tx:
            self._db.now(tx)

    def _through(self, stop: threading.Event, act: Callable[[], Result]) -> Result:
        return ride_out(act, self._clock, stop)

    def _try_lease(self, number: int, shift: "_Shift") -> Lease | None:
        """Lease a task; None when none is due, or when this lane or its source must wait."""
        owner = f"{self._name}/{number}#{uuid4().hex[:8]}"
        with self._turn:
            if number > shift.pace.lanes:
                return None
            limits = replace(self._limits, closed=shift.pace.closed(self._in_work()))
            began = self._clock.monotonic()
            with self._db.write() as tx:
                now, wanted = self._db.now(tx), shift.order.wanted
                freed = free_silent(tx, now)
                lease = try_lease_one(tx, owner, now, self._term, wanted, limits)
            for task in freed.failed:
                shift.drained.add_task(TaskEnd.FAILED)
                _log.error("Task %s is FAILED: %s", task, TOLD)
            shift.pace.see_ledger(self._clock.monotonic() - began)
            if lease is not None:
                with self._guard:
                    self._leases[lease.owner] = lease
            return lease

    def _in_work(self) -> Counter[Partition]:
        with self._guard:
            return Counter(lease.partition for lease in self._leases.values())

    def _is_empty(self, wanted: TaskFilter) -> bool:
        with self._db.read() as tx:
            return count_open(tx, self._db.now(tx) + _PATIENCE, wanted) == 0

    @contextmanager
    def _renewed(self, lease: Lease) -> Iterator[None]:
        try:
            yield
        finally:
            with self._guard:
                del self._leases[lease.owner]

    def _renew_all(self, ended: threading.Event) -> None:
        while not self._clock.wait(ended, self._term.total_seconds() / 3):
            with self._guard:
                leases = list(self._leases.values())
            for lease in leases:
                # A lost lease, or a ledger out of reach, is noticed by the lane at its next write.
                with suppress(PersonMustAct, SQLAlchemyError), self._db.write() as tx:
                    try_renew(tx, lease, self._db.now(tx), self._term)


def _await(threads: Sequence[threading.Thread], shift: _Shift) -> None:
    """Wait for the lanes; those that are idle when we are to stop need not look again."""
    with seldom_collected():
        for thread in threads:
            # An endless join would not let two quick signals through.
            while thread.is_alive():
                thread.join(_JOIN_SECONDS)
                if shift.stop.is_set():
                    shift.over.set()
    shift.drained.is_late = is_late(shift.stop)
