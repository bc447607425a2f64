"""The loop of a worker: fair to sources, patient when idle, quick to stop, slower on trouble."""

import logging
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event

from patra_ingest.clock import SystemClock
from patra_ingest.errors import LedgerBusy
from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.work import Order, Worker
from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.leases import Limits
from patra_ingest.ledger.tasks import Partition, ensure_tasks, finish_task, mark_executing
from patra_ingest.model.codes import TaskStatus
from patra_ingest_tests.builders import a_task
from patra_ingest_tests.fakes import wait_until
from patra_ingest_tests.pipeline.harness import Home, sandbox_trigger

GOOD = {"reqCount": 1, "retryCount": 0, "429Count": 0, "latencyMs": 5.0, "itemsCount": 1}
THROTTLED = {**GOOD, "reqCount": 2, "retryCount": 1, "429Count": 1}
TERM = timedelta(seconds=60)
WIDE = Limits()


class PretendExecutor:
    """Ends every task well on the real ledger, in a few pages, and remembers what ran at once."""

    def __init__(self, home, pages=1, stats=lambda _partition: GOOD, seconds=0.0):
        self.home, self.pages, self.stats, self.seconds = home, pages, stats, seconds
        self.now, self.most, self.order = Counter(), Counter(), []
        self.lock = threading.Lock()

    def execute(self, lease, stop, on_batch):
        with self.lock:
            self.order.append(lease.partition.provenance)
            self.now[lease.partition] += 1
            self.most |= self.now
        for _ in range(self.pages):
            stop.wait(self.seconds)
            on_batch(dict(self.stats(lease.partition)))
        with self.home.db.write() as tx:
            now = self.home.db.now(tx)
            mark_executing(tx, lease, now)
            finish_task(tx, lease, TaskStatus.SUCCEEDED, now, None)
        with self.lock:
            self.now[lease.partition] -= 1
        return TaskEnd.SUCCEEDED


class SleepyClock(SystemClock):
    """Waits for very long, unless it is woken."""

    TIMES = 200

    def wait(self, event, seconds):
        return super().wait(event, seconds * self.TIMES)


def queue(home, **counts):
    """Queue so many tasks of each source, all with their slices."""
    rows = [source for source, count in counts.items() for _ in range(count)]
    tasks = [a_task(number, provenance_code=one) for number, one in enumerate(rows, start=1)]
    with home.db.write() as tx:
        ensure_tasks(tx, tasks)
    home.execute(
        "INSERT INTO ing_plan_slice (id, plan_id, slice_no, provenance_code, endpoint_name,"
        " operation_code, slice_signature_hash, slice_spec, expr_hash, status_code)"
        " SELECT slice_id, 1, slice_id, provenance_code, endpoint_name, operation_code,"
        " idempotent_key, '{}', expr_hash, 'READY' FROM ing_task"
    )


def drain(home, executor, lanes, limits=WIDE):
    with home.live() as live:
        worker = Worker(home.db, live.clock, executor, live.cursors, "w", TERM, limits)
        return worker.work(Order(lanes, until_empty=True), threading.Event(), lambda _: None)


@contextmanager
def an_idle_worker(home):
    """A worker with nothing to do, and the statements by which it looks for work."""
    looks = []

    def look(_tx, _cursor, statement, *_):
        if "idx_task_sched_at" in statement:
            looks.append(statement)

    with home.live() as live:
        executor = PretendExecutor(home)
        event.listen(home.db.engine, "before_cursor_execute", look)
        yield Worker(home.db, live.clock, executor, live.cursors, "w", TERM), looks
        event.remove(home.db.engine, "before_cursor_execute", look)


@pytest.fixture
def bare(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


def test_one_lane_serves_the_sources_in_turn(bare):
    queue(bare, many=8, few=2)
    executor = PretendExecutor(bare)

    assert drain(bare, executor, lanes=1).tasks == {"SUCCEEDED": 10}

    assert executor.order[:4] in (["few", "many"] * 2, ["many", "few"] * 2)


def test_lanes_keep_the_limits_and_still_finish(bare):
    queue(bare, a=6, b=6)
    executor = PretendExecutor(bare, seconds=0.03)

    assert drain(bare, executor, lanes=5, limits=Limits(2, 3)).tasks == {"SUCCEEDED": 12}

    assert max(executor.most.values()) <= 2


def test_a_source_that_throttles_gets_fewer_lanes_and_the_other_as_many_as_before(bare, caplog):
    bad, good = (Partition(name, "works", "HARVEST") for name in ("bad", "good"))
    queue(bare, bad=24, good=24)
    executor = PretendExecutor(
        bare, 12, lambda partition: THROTTLED if partition == bad else GOOD, 0.004
    )

    with caplog.at_level(logging.INFO, "patra_ingest.executor.work"):
        drained = drain(bare, executor, lanes=4)

    assert drained.tasks == {"SUCCEEDED": 48}
    assert drained.lowered == {f"{bad}: too many 429": 2}, "from 4 to 2 to 1"
    assert not [line for line in drained.raised if line.startswith("bad")]
    said = [record.getMessage() for record in caplog.records if str(bad) in record.getMessage()]
    assert said == [
        f"{bad}: 2 at once instead of 4 (too many 429)",
        f"{bad}: 1 at once instead of 2 (too many 429)",
    ]
    assert executor.most[good] >= 3, "the lanes that one source lost work for the other"


def test_an_idle_worker_stops_at_once_when_told(bare):
    stop = threading.Event()
    with an_idle_worker(bare) as (worker, _):
        thread = threading.Thread(target=worker.work, args=(Order(3), stop, lambda _: None))
        thread.start()
        time.sleep(1.5)  # long enough to wait for seconds between two looks
        stop.set()
        began = time.monotonic()
        thread.join(10)

    assert time.monotonic() - began < 1.0


def test_idle_lanes_go_home_with_the_last_task(bare):
    queue(bare, only=1)
    with bare.live() as live:
        executor = PretendExecutor(bare, seconds=0.3)
        worker = Worker(bare.db, SleepyClock(), executor, live.cursors, "w", TERM)
        began = time.monotonic()
        drained = worker.work(Order(4, until_empty=True), threading.Event(), lambda _: None)

    assert drained.tasks == {"SUCCEEDED": 1}
    assert time.monotonic() - began < 0.5 * SleepyClock.TIMES * 0.1, "they were told, not late"


def test_a_ledger_that_is_busy_costs_an_attempt_and_not_the_worker(bare):
    class Unlucky(PretendExecutor):
        def execute(self, lease, stop, on_batch):
            if not self.order:
                self.order.append("met in a deadlock")
                raise LedgerBusy("The ledger is locked ((1213, 'Deadlock found')).", "Wait.")
            return super().execute(lease, stop, on_batch)

    queue(bare, source=2)
    with bare.live() as live:
        term = timedelta(seconds=1)  # then somebody goes on with the task
        worker = Worker(bare.db, live.clock, Unlucky(bare), live.cursors, "w", term)
        drained = worker.work(Order(2, until_empty=True), threading.Event(), lambda _: None)

    assert drained.tasks == {"SUCCEEDED": 2, "LEASE_LOST": 1}


def test_an_idle_worker_looks_less_and_less_often(bare):
    with an_idle_worker(bare) as (worker, looks):
        stop = threading.Event()
        threading.Timer(3.0, stop.set).start()
        worker.work(Order(1), stop, lambda _: None)

    assert 3 <= len(looks) <= 12


def test_a_task_that_is_due_while_a_worker_idles_is_found(bare):
    queue(bare, late=1)
    with bare.db.read() as tx:
        due = bare.db.now(tx) + timedelta(seconds=0.7)
    bare.execute("UPDATE ing_task SET scheduled_at = :due", due=instant_text(due))

    assert drain(bare, PretendExecutor(bare), lanes=2).tasks == {"SUCCEEDED": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_worker_after_its_batch_and_a_second_one_does_no_harm(
    home, slow_box, in_days, number
):
    home.plan(sandbox_trigger(slow_box, in_days(0), in_days(2)))
    with home.worker(lanes=2) as process:
        wait_until(lambda: home.pages_done() >= 2)
        process.send_signal(number)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    assert (process.returncode, err) == (0, "")
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE lease_owner IS NOT NULL") == 0
    left = "SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'RUNNING'"
    assert home.one(left) == 0


def test_a_worker_that_stops_between_two_batches_leaves_none_that_failed(home, slow_box, in_days):
    home.plan(sandbox_trigger(slow_box, in_days(0), in_days(2)))
    stop = threading.Event()
    with home.live() as live:
        live.worker().work(Order(), stop, lambda _: stop.set())

    left = home.rows("SELECT status_code, COUNT(*) FROM ing_task_run_batch GROUP BY status_code")
    assert {tuple(row) for row in left} == {("SUCCEEDED", 1), ("SKIPPED", 1)}
    home.work()
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE status_code <> 'SUCCEEDED'") == 0
