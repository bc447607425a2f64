"""One trigger becomes a plan, slices and tasks: compile, open, cut.

Each step commits what it did and may be repeated: a plan, slice or task that is there is found
again. Whoever dies in between leaves a plan that the same trigger, or the next, completes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.clock import Clock
from patra_ingest.errors import CompileError, NotReady, PlanError
from patra_ingest.ledger.cursors import find_cursor
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.plans import NewPlan, ensure_plan, lock_planning, mark_plan
from patra_ingest.ledger.schedules import TriggerRow, add_schedule_instance, note_problems
from patra_ingest.ledger.slices import ensure_slices, list_windows
from patra_ingest.ledger.tasks import ensure_tasks
from patra_ingest.model import keys
from patra_ingest.model.codes import (
    PlanStatus,
    direction,
    namespace_scope,
)
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import missing, refilled
from patra_ingest.planner.derivation import TaskOrigin, new_slice, task_row
from patra_ingest.planner.slicing import cut
from patra_ingest.planner.trigger import Opened, Planned, Rooted, Trigger
from patra_ingest.planner.windowing import NothingNew, harvest_window
from patra_ingest.registry.code_book import CachedCodeBook
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import Compiled, compile_spec
from patra_ingest.spec.readiness import find_missing
from patra_ingest.spec.references import at_hand
from patra_ingest.spec.secrets import without_values

_GROUP = 500


class Planner:
    """Turns triggers into plans. Several planners may run at once."""

    def __init__(
        self,
        db: Db,
        clock: Clock,
        codes: CachedCodeBook | None = None,
        has_secret: Callable[[str], bool] = lambda _reference: False,
    ) -> None:
        self._db = db
        self._clock = clock
        self._codes = codes or CachedCodeBook(timedelta(0), clock)
        self._has_secret = has_secret

    def plan(self, trigger: Trigger) -> Planned:
        """Compile, open and cut in one call."""
        opened = self.open_plan(self.compile(trigger))
        slices = self.cut_slices(opened)
        return Planned(opened.plan_id, opened.rooted.root, opened.window, slices, opened.reason)

    def compile(self, trigger: Trigger) -> Rooted:
        """Store the trigger and compile its spec; why it was refused stays on the root row."""
        now = self._clock.now()
        try:
            compiled = self.look(trigger, now)
            _require_ready(compiled)
        except (CompileError, NotReady) as error:
            with self._db.write() as tx:
                # By name only: a value may be the very secret it is refused for.
                shown = replace(trigger, overrides=without_values(trigger.overrides))
                root = add_schedule_instance(tx, _root_row(shown, trigger.endpoint, now))
                note_problems(tx, root, error.problems)
            raise
        with self._db.write() as tx:
            root = add_schedule_instance(tx, _root_row(trigger, compiled.spec.endpoint, now))
        scope = namespace_scope(trigger.operation)
        namespace = Namespace(
            compiled.spec.provenance,
            compiled.spec.endpoint,
            trigger.operation,
            compiled.spec.window.watermark_key,
            scope,
            keys.namespace_key(scope, compiled.proto_hash, None),
        )
        return Rooted(trigger, root, compiled, namespace)

    def look(self, trigger: Trigger, at: datetime) -> Compiled:
        """Compile what the Registry said at `at`, and write nothing."""
        with self._db.read() as tx:
            declaration = read_declaration(
                tx,
                trigger.provenance,
                trigger.endpoint,
                trigger.operation,
                at,
                self._codes.get(tx),
            )
        available = at_hand(declaration, self._has_secret)
        return compile_spec(declaration, trigger.overrides, available)

    def can_run(self, trigger: Trigger) -> bool:
        """Return whether this version can execute what the Registry says now."""
        try:
            return not find_missing(self.look(trigger, self._clock.now()).spec)
        except CompileError:
            return False

    def open_plan(self, rooted: Rooted) -> Opened:
        """Decide the window and make sure its plan exists."""
        try:
            return self._open_plan(rooted)
        except PlanError as error:
            with self._db.write() as tx:
                note_problems(tx, rooted.root, (str(error),))
            raise

    def _open_plan(self, rooted: Rooted) -> Opened:
        spec = rooted.compiled.spec.window
        now = self._clock.now()
        with self._db.write() as tx:
            cursor = find_cursor(tx, rooted.namespace)
            reached = cursor.value if cursor else None
            window = harvest_window(spec, reached, rooted.trigger.asked, now)
            if isinstance(window, NothingNew):
                return Opened(rooted, None, None, window.reason)
            covered = list_windows(tx, rooted.namespace, window.start)
            holes = missing(window, covered)
            if not holes:
                return Opened(rooted, None, window, f"{window} is covered already")
            remark = {"cursor": reached, "asked": rooted.trigger.params(), "now": now}
            new = NewPlan(
                rooted.root,
                _plan_key(rooted, window, [i for hole in holes for i in refilled(hole, covered)]),
                rooted.namespace,
                direction(rooted.trigger.operation),
                window,
                rooted.compiled,
                {"maxSpanSeconds": spec.max_span.total_seconds(), "zone": spec.zone},
                _remarks(rooted.compiled, now, remark),
            )
            plan_id, _ = ensure_plan(tx, new)
        return Opened(rooted, plan_id, window)

    def cut_slices(self, opened: Opened) -> int:
        """Cut what the namespace still lacks into slices, one queued task each; return how many.

        One planner at a time decides this for a provenance, so no window is planned twice.
        """
        if opened.plan_id is None or opened.window is None:
            return 0
        rooted, now = opened.rooted, self._clock.now()
        with self._db.write() as tx:
            lock_planning(tx, rooted.namespace.provenance)
            status = _status(tx, opened.plan_id)
            if status not in (PlanStatus.DRAFT, PlanStatus.SLICING):
                return 0
            if status == PlanStatus.DRAFT:
                mark_plan(tx, opened.plan_id, status, PlanStatus.SLICING, now)
            covered = list_windows(tx, rooted.namespace, opened.window.start)
            windows = cut(missing(opened.window, covered), rooted.compiled.spec.window)
            count = 0
            while group := list(islice(windows, _GROUP)):
                self._write_group(tx, opened, group, count, covered)
                count += len(group)
            mark_plan(tx, opened.plan_id, PlanStatus.SLICING, PlanStatus.READY, now)
            if count == 0:
                mark_plan(tx, opened.plan_id, PlanStatus.READY, PlanStatus.COMPLETED, now)
        return count

    def _write_group(
        self,
        tx: Connection,
        opened: Opened,
        windows: Sequence[Window],
        first_no: int,
        covered: Sequence[CoveredWindow],
    ) -> None:
        rooted, plan_id, trigger = opened.rooted, opened.plan_id, opened.rooted.trigger
        if plan_id is None:
            raise ValueError("a slice needs its plan")
        slices = [
            new_slice(rooted.compiled.spec, rooted.namespace.operation, first_no + i, window)
            for i, window in enumerate(windows)
        ]
        ids = ensure_slices(tx, plan_id, rooted.namespace, slices)
        origin = TaskOrigin(
            rooted.root, plan_id, rooted.namespace, trigger.trigger_type, trigger.scheduler
        )
        rows = [
            task_row(origin, new, ids[new.signature], refilled(new.window, covered))
            for new in slices
        ]
        ensure_tasks(tx, rows)
        found = tx.execute(
            text("SELECT COUNT(*) FROM ing_task WHERE plan_id = :id AND slice_id >= :first"),
            {"id": plan_id, "first": min(row["slice_id"] for row in rows)},
        ).scalar_one()
        if found != len(rows):
            raise PlanError(
                f"Plan {plan_id}: {len(rows) - found} slices got no task because an equal task"
                " exists in another plan.",
                "Report this: the ledger is inconsistent; nothing of the plan was written.",
            )


def _require_ready(compiled: Compiled) -> None:
    if missing_parts := find_missing(compiled.spec):
        spec = compiled.spec
        raise NotReady(f"{spec.provenance}/{spec.endpoint}", missing_parts)


def _remarks(compiled: Compiled, now: datetime, decided: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a plan notes of itself: how its window came about, and every downgrade."""
    notes = [{"time": now, "by": "planner", "note": "window decided", "data": decided}]
    for warning in compiled.spec.warnings:
        notes.append({"time": now, "by": "compiler", "note": warning, "type": "downgrade"})
    return notes


def _root_row(trigger: Trigger, endpoint: str | None, now: datetime) -> TriggerRow:
    return TriggerRow(
        trigger.provenance,
        endpoint,
        trigger.operation,
        now,
        trigger.scheduler,
        trigger.trigger_type,
        trigger.scheduler_job,
        trigger.scheduler_run_id,
        trigger.params(),
    )


def _plan_key(rooted: Rooted, window: Window, refills: Sequence[int]) -> str:
    """Return the plan's key; a window that failed before is a plan of its own, not the old one."""
    return keys.plan_key(
        provenance=rooted.namespace.provenance,
        operation=rooted.namespace.operation,
        endpoint=rooted.namespace.endpoint,
        window=window,
        expr_proto_hash=rooted.compiled.proto_hash,
        campaign=f"refill-{keys.digest(sorted(set(refills)))[:12]}" if refills else None,
    )


def _status(tx: Connection, plan_id: PlanId) -> PlanStatus:
    query = text("SELECT status_code FROM ing_plan WHERE id = :id")
    return PlanStatus(tx.execute(query, {"id": plan_id}).scalar_one())
