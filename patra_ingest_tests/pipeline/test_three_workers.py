"""Three workers, and everything that may happen to them: the ledger stays true at every step."""

import os
import shutil
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from patra_ingest.cursor.advance import CursorManager
from patra_ingest.ledger import holds
from patra_ingest.ledger.cancel import cancel_plan, cancel_slice, cancel_task
from patra_ingest.ledger.db import open_db, read_instant, read_json
from patra_ingest.ledger.leases import try_lease_one
from patra_ingest.ledger.tasks import try_renew
from patra_ingest.model.codes import Operation
from patra_ingest.model.window import instant_iso
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.settings import Settings
from patra_ingest.wiring import Ingest
from patra_ingest_tests.builders import day
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.pipeline.crashes import messages_of, require_sums
from patra_ingest_tests.pipeline.harness import FATES, Home
from patra_ingest_tests.pipeline.machine import (
    AFTER_THE_FINISH,
    DAYS,
    PER_DAY,
    Hand,
    Shelf,
    Source,
    a_pack_of_two,
    instant_iso_of,
)

EXAMPLES = int(os.environ.get("PATRA_MACHINE_EXAMPLES", "20"))
TERM = timedelta(seconds=60)
CANCEL = {"task": cancel_task, "plan_slice": cancel_slice, "plan": cancel_plan}
DATA = ("record", "outbox_message", "quarantine", "task_run_batch", "task_run", "task", "plan")
DATA += ("plan_slice", "cursor", "cursor_event", "reslice_request")
OPEN = "('QUEUED', 'DISPATCHED', 'EXECUTING')"

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
        self.planner = Planner(self.db, self.clock)
        self.source = Source(self.clock)
        self.hands = [Hand(name, self.live(name), self.source) for name in ("a", "b", "c")]
        self.raw = RawStore(Settings(home=self.folder, db_url=url).raw_folder)
        self.shelf, self.seen = Shelf(), set()
        self.cursors, self.cancelled, self.leased = {}, {}, 0

    def live(self, name):
        """Return one process's live objects; its transport is put in by its hand."""
        config = Settings(home=self.folder, db_url=self.home.url)
        gate, cursors = RateGate(self.db, self.clock, name), CursorManager(self.db, self.clock)
        return Ingest(config, self.clock, self.db, gate, cursors, self.planner, None, name)

    @rule(endpoint=endpoints, first=st.integers(0, DAYS - 1), count=st.integers(1, 2))
    def plan(self, endpoint, first, count):
        asked = Asked(day(first), day(min(first + count, DAYS)))
        self.planner.plan(Trigger("example", endpoint, asked=asked))

    @rule(number=hands)
    def lease(self, number):
        hand = self.hands[number]
        if hand.lease is None:
            self.take(hand)

    def take(self, hand):
        self.leased += 1
        with self.db.write() as tx:
            owner, now = f"{hand.name}/1#{self.leased}", self.db.now(tx)
            lease = try_lease_one(tx, owner, now, TERM)
        if lease is not None:
            hand.begin(lease)
        return lease

    def busy(self):
        return [hand for hand in self.hands if hand.lease is not None]

    @precondition(busy)
    @rule(number=hands, gates=st.integers(1, 6))
    def go_on(self, number, gates):
        for _ in range(gates):
            if self.hands[number].lease is not None:
                self.step(self.hands[number])
                self.fold()

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

    @precondition(busy)
    @rule(number=hands)
    def die(self, number):
        if self.hands[number].lease is not None:
            self.hands[number].die()

    @precondition(busy)
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

    @rule(endpoint=endpoints, number=st.integers(0, DAYS * min(PER_DAY.values()) - 1))
    def change(self, endpoint, number):
        self.source.change(endpoint, number)

    @rule(endpoint=endpoints, number=st.integers(0, DAYS * min(PER_DAY.values()) - 1))
    def delete(self, endpoint, number):
        self.source.change(endpoint, number, deleted=True)

    @precondition(lambda self: self.home.one(f"SELECT COUNT(*) FROM ing_task {self.OPEN}"))
    @rule(thing=st.sampled_from(sorted(CANCEL)), which=st.integers(0, 20))
    def cancel(self, thing, which):
        tasks = self.home.rows(f"SELECT id, plan_id, slice_id FROM ing_task {self.OPEN}")
        task = tasks[which % len(tasks)]
        number = {"task": task.id, "plan_slice": task.slice_id, "plan": task.plan_id}[thing]
        with self.db.write() as tx:
            CANCEL[thing](tx, number, "ada", "wrong window", self.db.now(tx))
        for row in self.home.rows("SELECT id FROM ing_task WHERE status_code = 'CANCELLED'"):
            self.cancelled.setdefault(row.id, self.batches_of(row.id))

    OPEN = f"WHERE status_code IN {OPEN}"

    def batches_of(self, task):
        query = "SELECT id, status_code FROM ing_task_run_batch WHERE task_id = :task ORDER BY id"
        return self.home.rows(query, task=task)

    @rule(endpoint=endpoints)
    def hold(self, endpoint):
        with self.db.write() as tx:
            holds.place_hold(tx, "example", endpoint, "MANUAL", "wait", "ada", self.db.now(tx))

    @rule()
    def resume(self):
        with self.db.write() as tx:
            holds.resume(tx, "example", None, "ada", self.db.now(tx))

    @invariant()
    def every_committed_batch_counts_what_it_brought(self):
        self.fold()
        query = "SELECT endpoint_name, provider_id, source_updated_at, is_deleted, version"
        found = {
            (row[0], row[1]): (instant_iso(read_instant(row[2])), bool(row[3]), row[4] + 1)
            for row in self.home.rows(f"{query} FROM ing_record")
        }
        assert found == self.shelf.records

    def fold(self):
        """Take the batches that were committed since the last look into the model."""
        for row in self.home.rows(_SUCCEEDED):
            if row.id in self.seen:
                continue
            self.seen.add(row.id)
            stats = read_json(row.stats)
            items = read_json(self.raw.get(row.storage_key))["items"]
            counted = Counter({fate: stats[fate] for fate in FATES})
            if stats.get("phase") == "SEARCH":
                items = []
            assert +counted == self.shelf.take(row.endpoint_name, items), row
            assert counted.total() == stats["itemsCount"]

    @invariant()
    def no_page_is_committed_twice_in_one_walk(self):
        assert self.home.rows(_TWICE) == []

    @invariant()
    def runs_add_up_and_a_task_has_one_at_a_time(self):
        require_sums(self.home, "example")
        assert self.home.rows(_TWO_RUNS) == []
        assert self.home.rows(_ORPHANS) == []

    @invariant()
    def nothing_is_told_twice(self):
        told = len(messages_of(self.home, "example"))
        assert told == sum(versions for _, _, versions in self.shelf.records.values())

    @invariant()
    def a_cursor_only_goes_forward_over_succeeded_slices(self):
        for row in self.home.rows(_CURSORS):
            key, value = row[:-1], read_instant(row[-1])
            assert value >= self.cursors.get(key, value)
            self.cursors[key] = value
        for event in self.home.rows(_EVENTS):
            done = self.home.rows(_DONE, endpoint=event[0], operation=event[1])
            at, end = read_instant(event[2]), read_instant(event[3])
            for row in done:
                if read_instant(row[0]) <= at:
                    at = max(at, read_instant(row[1]))
            assert at >= end, f"{event} went over what has not succeeded"

    @invariant()
    def what_is_cancelled_stays_as_it_is(self):
        for task, batches in self.cancelled.items():
            assert self.batches_of(task) == batches

    def teardown(self):
        try:
            if not self.failed():
                self.prove()
        finally:
            for hand in self.busy():
                hand.die()
            self.db.close()
            shutil.rmtree(self.folder)

    def failed(self):
        """Return whether an invariant is broken: then there is nothing more to prove."""
        import sys

        return sys.exc_info()[0] is not None

    def prove(self):
        """Let everything drain, walk every day once more, and compare with the source."""
        self.source.trouble.clear()
        self.drain()
        ended = {row[0] for row in self.home.rows("SELECT status_code FROM ing_task")}
        assert ended <= {"SUCCEEDED", "FAILED", "CANCELLED"}
        for endpoint in PER_DAY:
            asked = Asked(day(0), day(DAYS))
            again = Trigger("example", endpoint, Operation.BACKFILL, asked, campaign="proof")
            self.planner.plan(again)
        self.drain()
        backfill = "SELECT DISTINCT status_code FROM ing_task WHERE operation_code = 'BACKFILL'"
        assert self.home.one(backfill) == "SUCCEEDED"
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
                self.go_on(self.hands.index(hand), 100)
            if not self.home.one(f"SELECT COUNT(*) FROM ing_task {self.OPEN}"):
                break
            if self.take(self.hands[0]) is None:
                self.clock.sleep(300)
        for check in (
            self.every_committed_batch_counts_what_it_brought,
            self.no_page_is_committed_twice_in_one_walk,
            self.runs_add_up_and_a_task_has_one_at_a_time,
            self.nothing_is_told_twice,
            self.a_cursor_only_goes_forward_over_succeeded_slices,
            self.what_is_cancelled_stays_as_it_is,
        ):
            check()


_SUCCEEDED = (
    "SELECT id, endpoint_name, storage_key, stats FROM ing_task_run_batch"
    " WHERE status_code = 'SUCCEEDED' ORDER BY committed_at, id"
)
# A run that ended with its certificate, but did not succeed, ended a walk.
_TWICE = """
    SELECT task_id, walk, expr_hash, before_token, COUNT(*) FROM (
        SELECT b.task_id, b.expr_hash, b.before_token,
               (SELECT COUNT(*) FROM ing_task_run x
                 WHERE x.task_id = b.task_id AND x.attempt_no < r.attempt_no
                   AND x.status_code <> 'SUCCEEDED' AND x.certificate IS NOT NULL) AS walk
          FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
         WHERE b.status_code = 'SUCCEEDED') AS walked
     GROUP BY task_id, walk, expr_hash, before_token HAVING COUNT(*) > 1
"""
_TWO_RUNS = """
    SELECT task_id FROM ing_task_run WHERE status_code IN ('PLANNED', 'RUNNING', 'SUCCEEDED')
     GROUP BY task_id HAVING COUNT(*) > 1
"""
_ORPHANS = """
    SELECT b.id FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
     WHERE b.status_code = 'RUNNING' AND r.status_code <> 'RUNNING'
"""
_CURSORS = (
    "SELECT endpoint_name, operation_code, namespace_scope_code, namespace_key, normalized_instant"
    " FROM ing_cursor"
)
_EVENTS = "SELECT endpoint_name, operation_code, window_from, window_to FROM ing_cursor_event"
_DONE = (
    "SELECT window_from, window_to FROM ing_plan_slice WHERE status_code = 'SUCCEEDED'"
    " AND endpoint_name = :endpoint AND operation_code = :operation ORDER BY window_from, window_to"
)


def test_three_workers_keep_the_ledger_true_whatever_happens(sqlite_template):
    checked = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: ThreeWorkers(sqlite_template), settings=checked)
