"""Move a cursor to its frontier: the event in one transaction, the cursor in another.

Whoever dies between the two leaves an event that the next advance of the same step finds again.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from patra_ingest.clock import Clock
from patra_ingest.cursor.frontier import frontier
from patra_ingest.ledger.coverage import list_windows
from patra_ingest.ledger.cursors import (
    CursorEvent,
    TimeCursor,
    append_event,
    find_cursor,
    list_behind,
    try_create_cursor,
    try_move_cursor,
)
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.plans import get_plan
from patra_ingest.ledger.records import find_newest_update
from patra_ingest.model import keys
from patra_ingest.model.codes import CursorDirection, SliceStatus
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window, instant_iso

_TRIES = 3
_BACKOFF_SECONDS = 0.05
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Evidence:
    """What stands behind an advance: the slice that finished, and what it asked."""

    lineage: Lineage
    expr_hash: str | None = None


@dataclass(frozen=True)
class Advanced:
    """Where a cursor was and where it is now; equal when nothing moved."""

    before: datetime | None
    after: datetime | None

    @property
    def moved(self) -> bool:
        """Whether this call moved the cursor."""
        return self.before != self.after


class CursorManager:
    """Advances the cursors of one ledger; any number of workers may do so at once."""

    def __init__(self, db: Db, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def advance(
        self, namespace: Namespace, direction: CursorDirection, evidence: Evidence
    ) -> Advanced:
        """Move the namespace's cursor to the frontier of its succeeded slices, if that is ahead."""
        event: CursorEvent | None = None
        before: datetime | None = None
        for attempt in range(_TRIES + 1):
            cursor, step, observed = self._look(namespace)
            if attempt == 0:
                before = cursor.value if cursor else None
            if step is None:
                return Advanced(before, cursor.value if cursor else None)
            if event is None or event.reached != step.end:
                event = _event(namespace, direction, cursor, step, evidence, observed)
                with self._db.write() as tx:
                    append_event(tx, event, self._db.now(tx))
            if self._try_move(event, cursor):
                return Advanced(before, event.reached)
            self._clock.sleep(_BACKOFF_SECONDS * 2**attempt)
        # Others keep moving it; their frontier includes our slice.
        return Advanced(before, before)

    def catch_up(self) -> None:
        """Advance every cursor that is behind its frontier: somebody died before he could."""
        with self._db.read() as tx:
            behind = list_behind(tx)
        for namespace, direction, plan_id in behind:
            with self._db.read() as tx:
                plan = get_plan(tx, plan_id)
            lineage = Lineage(plan.schedule_instance_id, plan_id)
            self.advance(namespace, direction, Evidence(lineage))

    def _look(
        self, namespace: Namespace
    ) -> tuple[TimeCursor | None, Window | None, datetime | None]:
        """Return the cursor, the step it may take now, and the newest update time we have seen."""
        with self._db.read() as tx:
            cursor = find_cursor(tx, namespace)
            windows = list_windows(tx, namespace, cursor.value if cursor else _BEGINNING)
            observed = find_newest_update(tx, namespace.provenance, namespace.endpoint)
        if not windows:
            return cursor, None, observed
        origin = cursor.value if cursor else windows[0].window.start
        done = (w.window for w in windows if w.status == SliceStatus.SUCCEEDED)
        reached = frontier(origin, done)
        return cursor, Window(origin, reached) if reached > origin else None, observed

    def _try_move(self, event: CursorEvent, cursor: TimeCursor | None) -> bool:
        with self._db.write() as tx:
            now = self._db.now(tx)
            if cursor is None:
                return try_create_cursor(tx, event, now)
            return try_move_cursor(tx, event, cursor, now)


def _event(
    namespace: Namespace,
    direction: CursorDirection,
    cursor: TimeCursor | None,
    step: Window,
    evidence: Evidence,
    observed_max: datetime | None,
) -> CursorEvent:
    previous = cursor.value if cursor else None
    key = keys.cursor_event_key(
        namespace.columns(),
        instant_iso(previous) if previous else None,
        instant_iso(step.end),
        step,
        evidence.lineage.run_id,
        evidence.lineage.batch_id,
    )
    return CursorEvent(
        namespace,
        direction,
        previous,
        step.end,
        observed_max,
        step,
        evidence.lineage,
        evidence.expr_hash,
        key,
    )
