"""A month in simulated time: the real planner, and a pretend executor on the real ledger.

The executor leases, spends, lands, fails, falls silent and asks for finer slices with the functions
that real executors use; only the requests are missing. One seed makes one month.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

from sqlalchemy import Connection

from patra_ingest.cursor.advance import CursorManager, Evidence
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.holds import place_hold, resume
from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.plans import Plan, get_plan, try_complete_plan
from patra_ingest.ledger.quotas import free, try_spend
from patra_ingest.ledger.records import upsert_newer
from patra_ingest.ledger.reslices import NewRequest, add_request
from patra_ingest.ledger.runs import Run, RunEnd, finish_run, start_run
from patra_ingest.ledger.silent import free_silent
from patra_ingest.ledger.slices import Slice, follow_task, get_slice_of
from patra_ingest.ledger.tasks import (
    Lease,
    finish_task,
    mark_executing,
    release_task,
    require_lease,
)
from patra_ingest.model.bounds import read_bounds
from patra_ingest.model.codes import (
    Operation,
    ResliceReason,
    RunStatus,
    SliceStatus,
    TaskStatus,
    TriggerType,
)
from patra_ingest.model.lineage import Lineage, PlanId
from patra_ingest.model.quotas import Refusal, charges_at
from patra_ingest.model.records import NewRecord
from patra_ingest.model.window import Window, instant_iso
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Planned, Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import CachedCodeBook
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.spec.quotas import rules_of
from patra_ingest_tests.builders import an_endpoint, pack_text
from patra_ingest_tests.fakes import FakeClock

BEGIN = datetime(2025, 9, 1, tzinfo=UTC)
STEP = timedelta(minutes=15)
LAG = timedelta(minutes=30)
DAY = timedelta(days=1)
TERM = timedelta(minutes=20)
MAX_QUEUED = 40
LANES = 8
RECORDS_PER_HOUR = 4
DAILY, HOURLY = 400.0, 40.0  # tight: with more, no window ever fills


def source() -> dict[str, Any]:
    """Return the pack of a source with ids first, records after, and one quota for both."""
    works = an_endpoint(
        window={
            "safety_lag": "30m",
            "max_span": "1d",
            "min_span": "1m",
            "granularity": "MINUTE",
            "initial_from": instant_iso(BEGIN),
        },
        paging={"page_size": 100},
        response={"items": "$.ids", "id": "$"},
        detail={"endpoint": "fetch", "batch": 50},
        changed="HASH",
    )
    del works["response"]["updated_at"], works["fields"]
    fetch = {
        "usage": "DETAIL",
        "operations": ["UPDATE"],
        "request": {"path": "/fetch", "query": {"id": "${ids|join(',')}"}},
        "paging": {"type": "NONE"},
        "batching": {"ids_per_request": 50},
        "response": {"items": "$.items", "id": "$.id"},
        "changed": "HASH",
        "fields": {"title": "$.title"},
    }
    quotas = [{"limit": DAILY, "per": "1d"}, {"limit": HOURLY, "per": "1h"}]
    written = pack_text(works=works, fetch=fetch)
    written["rate"]["quotas"] = quotas
    written["planning"] = {"max_queued": MAX_QUEUED}
    return written


@dataclass
class Month:
    """The ledger, the clock that all of it shares, and the luck of this month."""

    db: Db
    clock: FakeClock
    luck: Random
    is_calm: bool = False  # nothing fails any more
    ends: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codes = CachedCodeBook(40 * DAY, self.clock)
        self.planner = Planner(self.db, self.clock, codes, lacking=lambda _spec: [])
        self.cursors = CursorManager(self.db, self.clock)
        # A plan's spec never changes: it is read once.
        self.plan_of = cache(self._plan)
        with self.db.write() as tx:
            apply_pack(
                tx, parse_pack(PackText("the month's pack", source(), {})), BEGIN - 400 * DAY
            )

    def _plan(self, plan_id: PlanId) -> Plan:
        with self.db.read() as tx:
            return get_plan(tx, plan_id)

    def harvest(self) -> Planned:
        """Trigger what is new, as the schedule does every quarter of an hour."""
        return self._tick(Trigger("example", "works", at=self.clock.now()))

    def backfill(self, days: int) -> Planned:
        """Trigger so many days before the month."""
        asked = Asked(BEGIN - days * DAY, BEGIN)
        return self._tick(Trigger("example", "works", Operation.BACKFILL, asked))

    def update(self) -> Planned:
        """Trigger what nobody has looked at for long."""
        return self._tick(Trigger("example", "fetch", Operation.UPDATE))

    def _tick(self, trigger: Trigger) -> Planned:
        return self.planner.plan(replace(trigger, trigger_type=TriggerType.SCHEDULE))

    def hold(self, endpoint: str | None) -> None:
        """Stop an endpoint, or the whole source."""
        with self.db.write() as tx:
            place_hold(tx, "example", endpoint, "OPERATOR", "maintenance", "ada", self.clock.now())

    def resume(self) -> None:
        """Lift every hold."""
        with self.db.write() as tx:
            resume(tx, "example", None, "ada", self.clock.now())

    def work(self, most: int = LANES) -> int:
        """Lease up to `most` due tasks and let each of them come to some end."""
        with self.db.write() as tx:
            now = self.db.now(tx)
            free_silent(tx, now)
            claim = f"worker#{self.luck.getrandbits(32):08x}"
            leases = lease_tasks(tx, claim, most, now, TERM)
            for lease in leases:
                follow_task(tx, lease.slice_id, SliceStatus.DISPATCHED, now)
        for lease in leases:
            end = self._execute(lease)
            self.ends[end] = self.ends.get(end, 0) + 1
        return len(leases)

    def _execute(self, lease: Lease) -> str:
        plan = self.plan_of(lease.plan_id)
        with self.db.write() as tx:
            now = self.db.now(tx)
            require_lease(tx, lease, now)
            one, retries = get_slice_of(tx, lease.task_id)
            run = start_run(tx, lease, plan, one.window, now)
            mark_executing(tx, lease, now)
            follow_task(tx, lease.slice_id, SliceStatus.EXECUTING, now)
            end = self._try(tx, Try(lease, plan, one, run, retries, now))
        if end == "succeeded":
            lineage = _lineage(lease, run)
            evidence = Evidence(lineage, one.expr_hash)
            self.cursors.advance(plan.namespace, plan.direction, evidence)
        return end

    def _try(self, tx: Connection, this: "Try") -> str:
        landed = self._landed(this.one)
        short = this.spend(tx, landed)
        if short is not None:
            this.give_back(tx, short.end, None)
            return "no quota"
        chance = 1.0 if self.is_calm else self.luck.random()
        if chance < 0.02:
            return "silent"
        if chance < 0.05:
            this.fail(tx)
            return "failed"
        if chance < 0.09 and this.retries < 3:
            this.give_back(tx, this.now + timedelta(seconds=30), ("L1", "a timeout"))
            return "retried"
        if chance < 0.13 and this.ask_to_reslice(tx, landed, self.luck):
            return "re-sliced"
        this.succeed(tx, landed)
        return "succeeded"

    def _landed(self, one: Slice) -> int:
        bounds = read_bounds(one.spec)
        if bounds.ids is not None:
            return len(bounds.ids.ids)
        hours = (one.window.duration if one.window else DAY) / timedelta(hours=1)
        return round(hours * RECORDS_PER_HOUR * self.luck.uniform(0.5, 1.5))


@dataclass(frozen=True)
class Try:
    """One attempt at a task; each of its ends is what a real executor writes."""

    lease: Lease
    plan: Plan
    one: Slice
    run: Run
    retries: int
    now: datetime

    def spend(self, tx: Connection, landed: int) -> Refusal | None:
        """Pay for each request; return the quota window that has too little left, if one has."""
        spec = self.plan.spec
        requests = 1 + landed // spec.paging.page_size + -(-landed // 50)
        charges = charges_at(rules_of(spec.rate), self.now, Decimal(str(spec.rate.cost)))
        paid = (try_spend(tx, self.one.id, charges, self.now) for _ in range(requests))
        return next((short for short in paid if short is not None), None)

    def give_back(self, tx: Connection, due: datetime, error: tuple[str, str] | None) -> None:
        """Put the task back into the queue until `due`."""
        status = RunStatus.PARTIAL if error is None else RunStatus.FAILED
        finish_run(tx, self.run.id, RunEnd(status, {}), self.now)
        release_task(tx, self.lease, self.now, due, error)
        follow_task(tx, self.one.id, SliceStatus.READY, self.now)

    def fail(self, tx: Connection) -> None:
        """End for good without success."""
        finish_run(tx, self.run.id, RunEnd(RunStatus.FAILED, {}), self.now)
        self._end(tx, TaskStatus.FAILED, SliceStatus.FAILED)

    def succeed(self, tx: Connection, landed: int) -> None:
        """Store records and end well, with a certificate."""
        self._store(tx)
        proof = {"landed": landed, "verdict": "COMPLETE"}
        finish_run(tx, self.run.id, RunEnd(RunStatus.SUCCEEDED, {}, proof), self.now)
        self._end(tx, TaskStatus.SUCCEEDED, SliceStatus.SUCCEEDED)

    def _end(self, tx: Connection, task: TaskStatus, one: SliceStatus) -> None:
        finish_task(tx, self.lease, task, self.now, None)
        follow_task(tx, self.one.id, one, self.now)
        try_complete_plan(tx, self.plan.id, self.now)
        free(tx, [self.one.id], self.now)

    def _store(self, tx: Connection) -> None:
        """Store one record for each window, or those that were asked for by id."""
        asked = read_bounds(self.one.spec).ids
        name = self.plan.namespace
        endpoint, ids = name.endpoint, (f"{name.operation}-{self.one.id}",)
        if asked is not None:
            endpoint, ids = asked.endpoint, asked.ids
        records = [NewRecord(one, None, "1" * 64, False, b"{}", b"{}") for one in ids]
        stamp = {
            **_lineage(self.lease, self.run).columns(),
            "spec_fingerprint": self.plan.fingerprint,
            "expr_hash": self.one.expr_hash,
        }
        rule = self.plan.spec.changed
        upsert_newer(tx, name.provenance, endpoint, records, rule, stamp, self.now)

    def ask_to_reslice(self, tx: Connection, landed: int, luck: Random) -> bool:
        """Ask for finer slices, sometimes only of the second half; not below two minutes."""
        window = self.one.window
        if window is None or window.duration < timedelta(minutes=4):
            return False
        has_head = luck.random() < 0.5
        remaining = _second_half(window) if has_head else {}
        lineage, measured = _lineage(self.lease, self.run), {"total": landed, "pages": 1}
        request = NewRequest(lineage, ResliceReason.RESULT_CAP, remaining, measured)
        finish_run(tx, self.run.id, RunEnd(RunStatus.PARTIAL, {}), self.now)
        add_request(tx, request, self.now)
        brought = TaskStatus.PARTIAL if has_head else TaskStatus.CANCELLED
        finish_task(tx, self.lease, brought, self.now, ("RESULT_CAP", "too many"))
        return True


def _lineage(lease: Lease, run: Run) -> Lineage:
    ids = (lease.schedule_instance_id, lease.plan_id, lease.slice_id, lease.task_id)
    return Lineage(*ids, run.id)


def _second_half(window: Window) -> dict[str, Any]:
    middle = window.start + window.duration // timedelta(minutes=2) * timedelta(minutes=1)
    span = {"from": instant_iso(middle), "to": instant_iso(window.end)}
    return {"bounds": {"time": span}}
