"""A worker: lanes that lease and execute tasks until told to stop.

Each lane is a thread with its own lease. One more thread renews all leases, so that a slow request
never costs a task. Ctrl-C or SIGTERM sets `stop`: every lane ends after its current batch and gives
its task back.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from patra_ingest.clock import Clock
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.errors import PersonMustAct
from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.execute import TaskExecutor
from patra_ingest.ledger.batches import close_lost_batches
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.runs import close_lost_runs
from patra_ingest.ledger.slices import follow_task
from patra_ingest.ledger.tasks import (
    EVERY_TASK,
    Lease,
    TaskFilter,
    count_open,
    lease_tasks,
    requeue_expired,
    try_renew,
)
from patra_ingest.model.codes import SliceStatus

_FIRST_IDLE_SECONDS = 0.1
_LONGEST_IDLE_SECONDS = 2.0
_JOIN_SECONDS = 0.5
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
    """What a worker did: tasks by how they ended, and the sums of their batches."""

    tasks: Counter[str] = field(default_factory=Counter)
    batches: Counter[str] = field(default_factory=Counter)
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

    def add(self, other: "Drained") -> None:
        """Take the numbers of a later drain in."""
        self.tasks.update(other.tasks)
        self.batches.update(other.batches)


OnBatch = Callable[[dict[str, Any]], None]


class Worker:
    """One executor process (or Dagster run), known in the ledger by its name."""

    def __init__(
        self,
        db: Db,
        clock: Clock,
        executor: TaskExecutor,
        cursors: CursorManager,
        name: str,
        lease_term: timedelta,
    ) -> None:
        self._db = db
        self._clock = clock
        self._executor = executor
        self._cursors = cursors
        self._name = name
        self._term = lease_term
        self._leases: dict[str, Lease] = {}
        self._guard = threading.Lock()

    def work(self, order: Order, stop: threading.Event, on_batch: OnBatch) -> Drained:
        """Run the lanes until the queue is empty (if asked) or `stop` is set; return the sums."""
        drained = Drained()
        errors: list[BaseException] = []
        ended = threading.Event()
        self._cursors.catch_up()

        def lane(number: int) -> None:
            try:
                self._lane(f"{self._name}/{number}", order, stop, drained, on_batch)
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
            _await(lanes)
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
        self._cursors.catch_up()
        return drained

    def _lane(
        self,
        owner: str,
        order: Order,
        stop: threading.Event,
        drained: Drained,
        on_batch: OnBatch,
    ) -> None:
        idle = _FIRST_IDLE_SECONDS

        def count(stats: dict[str, Any]) -> None:
            drained.add_batch(stats)
            on_batch(stats)

        while not stop.is_set():
            lease = self._try_lease(owner, order.wanted)
            if lease is None:
                if order.until_empty and self._is_empty(order.wanted):
                    return
                self._clock.wait(stop, idle)
                idle = min(idle * 2, _LONGEST_IDLE_SECONDS)
                continue
            idle = _FIRST_IDLE_SECONDS
            with self._renewed(lease):
                drained.add_task(self._executor.execute(lease, stop, count))

    def _try_lease(self, owner: str, wanted: TaskFilter) -> Lease | None:
        with self._db.write() as tx:
            now = self._db.now(tx)
            freed = requeue_expired(tx, now)
            close_lost_runs(tx, [task for task, _ in freed], now)
            close_lost_batches(tx, [task for task, _ in freed], now)
            for _, slice_id in freed:
                follow_task(tx, slice_id, SliceStatus.READY, now)
            claim = f"{owner}#{uuid4().hex[:8]}"
            leased = lease_tasks(tx, claim, 1, now, self._term, wanted)
            for lease in leased:
                follow_task(tx, lease.slice_id, SliceStatus.DISPATCHED, now)
        return leased[0] if leased else None

    def _is_empty(self, wanted: TaskFilter) -> bool:
        with self._db.read() as tx:
            return count_open(tx, self._db.now(tx) + _PATIENCE, wanted) == 0

    @contextmanager
    def _renewed(self, lease: Lease) -> Iterator[None]:
        with self._guard:
            self._leases[lease.owner] = lease
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
                with suppress(PersonMustAct), self._db.write() as tx:
                    try_renew(tx, lease, self._db.now(tx), self._term)


def _await(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        # An endless join would not let two quick signals through.
        while thread.is_alive():
            thread.join(_JOIN_SECONDS)
