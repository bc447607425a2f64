"""Three workers, and everything that may happen to them: the ledger stays true at every step."""

import os
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from patra_ingest.cursor.advance import CursorManager
from patra_ingest.errors import PlanError
from patra_ingest.ledger import holds
from patra_ingest.ledger.cancel import cancel_plan, cancel_slice, cancel_task
from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.ledger.leases import try_lease_one
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.tasks import try_renew
from patra_ingest.planner.plan import Planner
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.settings import Settings
from patra_ingest.wiring import Ingest
from patra_ingest_tests.builders import a_trigger, day
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.pipeline.harness import FATES, Home
from patra_ingest_tests.pipeline.laws import (
    cursor_values,
    messages_of,
    require_cover,
    require_one_walk,
    require_sums,
    stored_records,
)
from patra_ingest_tests.pipeline.machine import (
    AFTER_THE_FINISH,
    DAYS,
    PER_DAY,
    Hand,
    Shelf,
    Source,
    a_pack_of_two,
    instant_iso_of,
    require_landed,
)

EXAMPLES = int(os.environ.get("PATRA_MACHINE_EXAMPLES", "20"))
TERM = timedelta(seconds=60)
CANCEL = {"task": cancel_task, "plan_slice": cancel_slice, "plan": cancel_plan}
DATA = ("record", "outbox_message", "quarantine", "task_run_batch", "task_run", "task", "plan")
DATA += ("plan_slice", "cursor", "cursor_event", "reslice_request")
OPEN = "WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')"
GONE = {"deleted": True}
endpoints = st.sampled_from(sorted(PER_DAY))
hands = st.integers(0, 2)


class ThreeWorkers(RuleBasedStateMachine):
    """The ledger, the source, three workers, and a model of what was committed."""

    def __init__(self, template: Path) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        url = f"sqlite:///{shutil.copyfile(template, self.folder / 'ledger.db')}"
        self.clock = FakeClock()
        self.db = open_db(url, clock=self.clock)
        self.home = Home(self.db, url, self.folder)
        self.home.apply(a_pack_of_two())
        self.planner, self.moving = Planner(self.db, self.clock), CursorManager(self.db, self.clock)
        self.source = Source(self.clock)
        self.hands = [Hand(name, self.live(name), self.source) for name in ("a", "b", "c")]
        self.raw = RawStore(Settings(home=self.folder, db_url=url).raw_folder)
        self.shelf, self.seen, self.leased = Shelf(), set(), 0
        self.cursors, self.cancelled = {}, {}

    def live(self, name):
        config = Settings(home=self.folder, db_url=self.home.url)
        gate = RateGate(self.db, self.clock, name)
        return Ingest(config, self.clock, self.db, gate, self.moving, self.planner, None, name)

    @rule(endpoint=endpoints, first=st.integers(0, DAYS - 1), count=st.integers(1, 2))
    def plan(self, endpoint, first, count):
        with suppress(PlanError):  # it is held
            self.planner.plan(a_trigger(endpoint, day(first), day(min(first + count, DAYS))))

    @initialize()
    def begin(self):
        self.plan("works", 0, 2)
        self.plan("found", 0, 1)

    def take(self, hand):
        self.leased += 1
        with self.db.write() as tx:
            free_silent(tx, self.db.now(tx))
            lease = try_lease_one(tx, f"{hand.name}/1#{self.leased}", self.db.now(tx), TERM)
        if lease is not None:
            hand.begin(lease)
        return lease

    def busy(self):
        return [hand for hand in self.hands if hand.lease]

    @rule(number=hands, gates=st.integers(0, 3))
    def work(self, number, gates):
        if self.hands[number].lease is None:
            self.take(self.hands[number])
        for _ in range(gates):
            if self.hands[number].lease is not None:
                self.step(self.hands[number])
                self.fold()

    @rule(number=hands, gates=st.integers(4, 20))
    def work_on(self, number, gates):
        self.work(number, gates)

    @rule(number=hands, other=hands)
    def take_over(self, number, other):
        self.clock.sleep(TERM.total_seconds() + 1)
        if number != other and self.hands[other].lease:
            self.hands[other].die()
        self.work(other, 1)
        self.work(number, 2)

    def step(self, hand):
        """Let a worker go on; one that has lost its task leaves no trace."""
        if hand.where in AFTER_THE_FINISH or self.holds(hand):
            hand.go_on()
            return
        before = self.fingerprint()
        hand.go_on()
        assert self.fingerprint() == before, f"{hand.name} wrote without a lease"

    def holds(self, hand):
        query = "SELECT lease_owner FROM ing_task WHERE id = :id"
        return self.home.one(query, id=hand.lease.task_id) == hand.lease.owner

    def fingerprint(self):
        return {one: self.home.rows(f"SELECT * FROM ing_{one} ORDER BY id") for one in DATA}

    @rule(number=hands)
    def die(self, number):
        if self.hands[number].lease is not None:
            self.hands[number].die()

    @rule(number=hands)
    def beat(self, number):
        if (lease := self.hands[number].lease) is not None:
            with self.db.write() as tx:
                try_renew(tx, lease, self.db.now(tx), TERM)

    @rule(seconds=st.sampled_from([1, 30, 61, 400]))
    def pass_time(self, seconds):
        self.clock.sleep(seconds)

    @precondition(lambda self: len(self.source.trouble) < 3)
    @rule(kind=st.sampled_from(["503", "429 for a while", "429 for long", "an empty page"]))
    def trouble(self, kind):
        self.source.trouble.append(kind)

    @rule(endpoint=endpoints, number=st.integers(0, 19), values=st.sampled_from([{}, GONE]))
    def change(self, endpoint, number, values):
        self.source.change(endpoint, number, **values)

    @precondition(lambda self: self.home.one(f"SELECT COUNT(*) FROM ing_task {OPEN}"))
    @rule(thing=st.sampled_from(sorted(CANCEL)), which=st.integers(0, 20))
    def cancel(self, thing, which):
        tasks = self.home.rows(f"SELECT id, plan_id, slice_id FROM ing_task {OPEN}")
        task = tasks[which % len(tasks)]
        number = {"task": task.id, "plan_slice": task.slice_id, "plan": task.plan_id}[thing]
        with self.db.write() as tx:
            CANCEL[thing](tx, number, "ada", "wrong window", self.db.now(tx))
        for row in self.home.rows("SELECT id FROM ing_task WHERE status_code = 'CANCELLED'"):
            self.cancelled.setdefault(row.id, self.batches_of(row.id))

    def batches_of(self, task):
        query = "SELECT id, status_code FROM ing_task_run_batch WHERE task_id = :task ORDER BY id"
        return self.home.rows(query, task=task)

    @rule(endpoint=st.sampled_from([None, *PER_DAY]))
    def hold(self, endpoint):
        if endpoint is None:
            return self.resume()
        with self.db.write() as tx:
            holds.place_hold(tx, "example", endpoint, "OPERATOR", "wait", "ada", self.db.now(tx))

    def resume(self):
        with self.db.write() as tx:
            holds.resume(tx, "example", None, "ada", self.db.now(tx))

    @invariant()
    def all_is_true(self):
        self.every_committed_batch_counts_what_it_brought()
        self.no_page_is_committed_twice_and_runs_add_up()
        self.nothing_is_told_twice()
        self.a_cursor_only_goes_forward_over_succeeded_slices()
        self.what_is_cancelled_stays_as_it_is()
        require_landed(self.home, self.source)

    def every_committed_batch_counts_what_it_brought(self):
        self.fold()
        assert stored_records(self.home) == self.shelf.records

    def fold(self):
        """Take the batches that were committed since the last look into the model."""
        for row in self.home.rows(_SUCCEEDED):
            if row.id in self.seen:
                continue
            self.seen.add(row.id)
            stats, body = read_json(row.stats), read_json(self.raw.get(row.storage_key))
            items = [] if stats.get("phase") == "SEARCH" else body["items"]
            counted = Counter({fate: stats[fate] for fate in FATES})
            assert +counted == self.shelf.take(row.endpoint_name, items), row
            assert counted.total() == stats["itemsCount"]

    def no_page_is_committed_twice_and_runs_add_up(self):
        require_one_walk(self.home)
        require_sums(self.home, "example")

    def nothing_is_told_twice(self):
        told = len(messages_of(self.home, "example"))
        assert told == sum(versions for _, _, versions in self.shelf.records.values())

    def a_cursor_only_goes_forward_over_succeeded_slices(self):
        before, self.cursors = self.cursors, cursor_values(self.home)
        assert all(self.cursors[key] >= value for key, value in before.items())
        require_cover(self.home)

    def what_is_cancelled_stays_as_it_is(self):
        for task, batches in self.cancelled.items():
            assert self.batches_of(task) == batches

    def teardown(self):
        try:
            if sys.exc_info()[0] is None:  # nothing is broken so far
                self.prove()
        finally:
            for hand in self.busy():
                hand.die()
            self.db.close()
            shutil.rmtree(self.folder)

    def prove(self):
        """Let everything drain, walk every day once more, and compare with the source."""
        self.source.trouble.clear()
        self.drain()
        assert not self.home.one(f"SELECT COUNT(*) FROM ing_task {OPEN}")
        for endpoint in PER_DAY:
            self.planner.plan(a_trigger(endpoint, day(0), day(DAYS), campaign="proof"))
        self.drain()
        reached = Counter(cursor_values(self.home).values())
        assert reached[day(DAYS)] >= len(PER_DAY), "the proof has walked every day"
        truth = {
            (endpoint, item["id"]): (instant_iso_of(item), bool(item.get("deleted")))
            for endpoint, items in self.source.items.items()
            for item in items
            if item["title"] is not None
        }
        assert {key: found[:2] for key, found in self.shelf.records.items()} == truth

    def drain(self):
        self.resume()
        for _ in range(200):
            for hand in self.busy():
                self.work(self.hands.index(hand), 100)
                self.all_is_true()  # while the others stand still
            if not self.home.one(f"SELECT COUNT(*) FROM ing_task {OPEN}"):
                break
            if self.take(self.hands[0]) is None:
                self.clock.sleep(300)
        self.moving.catch_up()
        self.all_is_true()


_SUCCEEDED = (
    "SELECT id, endpoint_name, storage_key, stats FROM ing_task_run_batch"
    " WHERE status_code = 'SUCCEEDED' ORDER BY committed_at, id"
)


def test_three_workers_keep_the_ledger_true_whatever_happens(sqlite_template):
    checked = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        deadline=None,
        phases=(Phase.generate,),  # to shrink a failure takes longer than a test may
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: ThreeWorkers(sqlite_template), settings=checked)
