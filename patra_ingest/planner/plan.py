"""One trigger becomes plans, slices and tasks: compile, open, go on.

Each step commits what it did and may be repeated: a plan, slice or task that is there is found
again. Whoever dies in between leaves a plan that the next trigger of the same endpoint completes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from patra_ingest.clock import Clock
from patra_ingest.errors import CompileError, IngestError, NotReady, PlanError
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.holds import Hold, find_hold
from patra_ingest.ledger.plans import Plan, get_plan, list_unfinished, lock_plan, mark_plan
from patra_ingest.ledger.remarks import append_remark
from patra_ingest.ledger.schedules import (
    TriggerRow,
    add_schedule_instance,
    complete_trigger,
    note_problems,
)
from patra_ingest.model.codes import Operation, PlanStatus, TriggerType
from patra_ingest.model.lifecycle import is_final
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId
from patra_ingest.planner.cut_plan import cut_plan
from patra_ingest.planner.namespaces import parts_of
from patra_ingest.planner.open_plan import open_plan
from patra_ingest.planner.queue_tasks import queue_tasks
from patra_ingest.planner.reslice import reslice
from patra_ingest.planner.trigger import (
    Opened,
    Part,
    Planned,
    PlannedPart,
    Progress,
    Resliced,
    Rooted,
    Trigger,
)
from patra_ingest.registry.code_book import CachedCodeBook
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import Compiled, compile_spec
from patra_ingest.spec.readiness import find_missing
from patra_ingest.spec.references import at_hand
from patra_ingest.spec.secrets import without_values
from patra_ingest.spec.snapshot import SpecSnapshot

Earlier = Mapping[PlanId | None, Progress]


class Planner:
    """Turns triggers into plans. Several planners may run at once.

    `lacking` says what the executors of this installation cannot do; it is never planned.
    """

    def __init__(
        self,
        db: Db,
        clock: Clock,
        codes: CachedCodeBook | None = None,
        has_secret: Callable[[str], bool] = lambda _reference: False,
        lacking: Callable[[SpecSnapshot], Sequence[str]] = find_missing,
    ) -> None:
        self._db = db
        self._clock = clock
        self._codes = codes or CachedCodeBook(timedelta(0), clock)
        self._has_secret = has_secret
        self._lacking = lacking

    def plan(self, trigger: Trigger) -> Planned:
        """Compile, open and go on in one call."""
        rooted = self.compile(trigger)
        opened = self.open_plans(rooted)
        parts = tuple(self._planned(one) for one in opened)
        first = opened[0]
        return Planned(rooted.root, parts, first.resliced, first.earlier)

    def _planned(self, opened: Opened) -> PlannedPart:
        progress = None
        if opened.plan_id is not None:
            progress = self.go_on(opened.plan_id).after(opened.before)
        return PlannedPart(
            opened.plan_id, opened.partition, opened.window, opened.reason, progress, opened.cuts
        )

    def compile(self, trigger: Trigger) -> Rooted:
        """Store the trigger, then compile its spec; why it was refused stays on the root row."""
        # By name only: a value may be the very secret it is refused for.
        shown = replace(trigger, overrides=without_values(trigger.overrides))
        with self._db.write() as tx:
            root = add_schedule_instance(tx, _root_row(shown, self._now(trigger)))
        try:
            compiled = self._compiled(trigger)
            parts = parts_of(trigger, compiled)
        except IngestError as error:
            self._note(root, error)
            raise
        with self._db.write() as tx:
            complete_trigger(tx, root, compiled.spec.endpoint, trigger.params())
        return Rooted(trigger, root, compiled, parts)

    def _compiled(self, trigger: Trigger) -> Compiled:
        if trigger.operation is Operation.METRICS:
            raise PlanError(
                "METRICS is known but disabled: no source can be asked for metrics yet.",
                "Use HARVEST, BACKFILL or UPDATE.",
            )
        compiled = self.look(trigger, self._clock.now())
        if lacking := self._lacking(compiled.spec):
            spec = compiled.spec
            raise NotReady(f"{spec.provenance}/{spec.endpoint}", lacking)
        return compiled

    def _note(self, root: ScheduleInstanceId, error: IngestError) -> None:
        problems = error.problems if isinstance(error, CompileError | NotReady) else (str(error),)
        with self._db.write() as tx:
            note_problems(tx, root, problems)

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
            return not self._lacking(self.look(trigger, self._clock.now()).spec)
        except CompileError:
            return False

    def open_plans(self, rooted: Rooted) -> list[Opened]:
        """Go on with what earlier triggers left, then open the plan of every part."""
        name = rooted.namespace
        with self._db.read() as tx:
            hold = find_hold(tx, name.provenance, name.endpoint)
        if hold is not None:
            return self._held(rooted, hold)
        resliced = tuple(self.reslice(name.provenance))
        earlier = self._finish_earlier(rooted)
        try:
            opened = [self._open(rooted, part, earlier) for part in rooted.parts]
            first, *rest = (
                replace(one, before=earlier.get(one.plan_id) or one.before) for one in opened
            )
            own = {one.plan_id for one in opened}
            others = tuple((name, done) for name, done in earlier.items() if name not in own)
            moved = tuple((name, done) for name, done in others if name and done.queued)
            return [replace(first, resliced=resliced, earlier=moved), *rest]
        except PlanError as error:
            self._note(rooted.root, error)
            raise

    def _held(self, rooted: Rooted, hold: Hold) -> list[Opened]:
        """A person who asks for what is held is told so; a schedule just finds nothing to do."""
        why = f"held by {hold.held_by}: {hold.reason}"
        if rooted.trigger.trigger_type is TriggerType.SCHEDULE:
            return [Opened(rooted, None, None, why, part.partition) for part in rooted.parts]
        error = PlanError(
            f"{hold.place} is {why}; nothing of it is planned or executed.",
            f"Let it go on with `patra resume {hold.place}`.",
        )
        self._note(rooted.root, error)
        raise error

    def _open(self, rooted: Rooted, part: Part, earlier: Earlier) -> Opened:
        asked = rooted.trigger.asked
        waiting = None
        if asked.start is None and asked.end is None:
            waiting = self._find_waiting(part, earlier)
        if waiting is not None:
            # Its window is the same one, only shorter: first things first.
            return Opened(rooted, waiting, None, f"plan {waiting} still waits", part.partition)
        with self._db.write() as tx:
            return open_plan(tx, rooted, part, self._now(rooted.trigger))

    def _find_waiting(self, part: Part, earlier: Earlier) -> PlanId | None:
        waiting = [name for name, progress in earlier.items() if name and progress.waiting]
        with self._db.read() as tx:
            named = {name: get_plan(tx, name).namespace for name in waiting}
        return next((name for name in waiting if named[name] == part.namespace), None)

    def _finish_earlier(self, rooted: Rooted) -> Earlier:
        """Go on with the plans of the endpoint that earlier triggers left unfinished."""
        with self._db.read() as tx:
            found = list_unfinished(tx, rooted.namespace)
        return {plan_id: self.go_on(plan_id) for plan_id in found}

    def go_on(self, plan_id: PlanId) -> Progress:
        """Write the slices a plan still lacks, and queue as many tasks as there is room for."""
        with self._db.read() as tx:
            plan = get_plan(tx, plan_id)
        if "strategy" not in plan.slice_params:
            return self._abandon(plan)
        written = cut_plan(self._db, self._clock, plan)
        return replace(queue_tasks(self._db, self._clock, plan), new_slices=written)

    def _abandon(self, plan: Plan) -> Progress:
        """Give a plan up that an earlier version left uncut: it does not say how it is cut."""
        why = "an earlier version left it uncut; its window is planned again"
        with self._db.write() as tx:
            status = lock_plan(tx, plan.id)
            if not is_final(status):
                now = self._clock.now()
                mark_plan(tx, plan.id, status, PlanStatus.FAILED, now)
                append_remark(tx, "ing_plan", [plan.id], "planner", why, now)
        return Progress(PlanStatus.FAILED.value, reason=why)

    def go_on_all(self) -> list[tuple[PlanId, Progress]]:
        """Go on with every plan that still waits, whosever it is."""
        with self._db.read() as tx:
            found = list_unfinished(tx)
        return [(plan_id, self.go_on(plan_id)) for plan_id in found]

    def reslice(
        self, provenance: str | None = None, plan_id: PlanId | None = None
    ) -> list[Resliced]:
        """Answer the requests of executors to cut the rest of a slice again."""
        return reslice(self._db, self._clock, provenance, plan_id)

    def _now(self, trigger: Trigger) -> datetime:
        return trigger.at or self._clock.now()


def _root_row(trigger: Trigger, now: datetime) -> TriggerRow:
    return TriggerRow(
        trigger.provenance,
        trigger.endpoint,
        trigger.operation,
        now,
        trigger.scheduler,
        trigger.trigger_type,
        trigger.scheduler_job,
        trigger.scheduler_run_id,
        trigger.params(),
    )
