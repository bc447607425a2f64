"""Move cursors: to their frontier, over settled signals, to a token, or where a person says.

Event first, then the cursor; forward only. What a step is made of is in `reach`, how it is taken in
`step`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.cursor.force import force
from patra_ingest.cursor.keep_token import compensate, keep_token
from patra_ingest.cursor.reach import Reach, look
from patra_ingest.cursor.settle import see_signals, signals_of
from patra_ingest.cursor.step import Stepper, Taken, Tally
from patra_ingest.ledger.cursors import Cursor, CursorEvent, list_behind
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.settled_signals import list_signal_places
from patra_ingest.model.codes import CursorDirection, CursorReason, Operation
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import Window


@dataclass(frozen=True)
class Evidence:
    """What stands behind an advance: the slice that finished, its window, and what it asked."""

    lineage: Lineage
    expr_hash: str | None = None
    window: Window | None = None


@dataclass(frozen=True)
class Advanced:
    """Where a cursor was and where it is now; equal when nothing moved."""

    before: datetime | None
    after: datetime | None
    conflicts: int = field(default=0, compare=False)

    @property
    def moved(self) -> bool:
        """Whether this call moved the cursor."""
        return self.before != self.after


class CursorManager:
    """Advances the cursors of one ledger; any number of workers may do so at once."""

    def __init__(self, db: Db, clock: Clock, luck: Random | None = None) -> None:
        self._db = db
        self._clock = clock
        self.tally = Tally()
        self._stepper = Stepper(db, clock, self.tally, luck or Random())

    def advance(
        self, namespace: Namespace, direction: CursorDirection, evidence: Evidence
    ) -> Advanced:
        """Move the namespace's cursor to the frontier of its succeeded slices, if that is ahead.

        When a slice finished and it is not, the reason is written down.
        """
        seen: list[Reach] = []

        def see() -> tuple[Cursor[Any] | None, CursorEvent | None]:
            with self._db.read() as tx:
                reach = look(tx, namespace, direction, evidence.window)
            seen.append(reach)
            return reach.cursor, _step(namespace, reach, evidence)

        taken = self._stepper.take(see)
        if taken.before != taken.after:
            self.tally.add(advances=1)
        elif not taken.conflicts and evidence.lineage.slice_id is not None:
            self._note_no_forward(namespace, seen[-1], evidence)
        if namespace.operation is Operation.UPDATE:
            self._settle_signals(namespace.provenance, evidence.lineage)
        return Advanced(taken.before, taken.after, taken.conflicts)

    def catch_up(self) -> None:
        """Advance every cursor that is behind its frontier: somebody died before he could."""
        with self._db.read() as tx:
            behind = list_behind(tx)
            sources = {provenance for provenance, _ in list_signal_places(tx)}
        for namespace, direction, lineage in behind:
            self.advance(namespace, direction, Evidence(lineage))
        for provenance in sorted(sources):
            self._settle_signals(provenance, Lineage())

    def force(self, namespace: Namespace, to: datetime, by: str, reason: str) -> Taken:
        """Move a cursor past what will never succeed: a person says so, and the ledger keeps why.

        Raises PersonMustAct for a step back, one beyond now, or one without a reason.
        """
        taken = force(self._db, self._stepper, namespace, to, by, reason)
        self.tally.add(forced=1)
        return taken

    def keep_token(self, namespace: Namespace, token: str, evidence: Evidence) -> None:
        """Keep a page token for the next run; of several writers the last one wins."""
        keep_token(self._db, self._stepper, namespace, token, evidence.lineage)
        self.tally.add(advances=1)

    def compensate(self, namespace: Namespace, dead_token: str, evidence: Evidence) -> str | None:
        """Put the last good token, or none, in the place of one that the source has forgotten.

        Returns the token to go on with, empty to begin anew; None when there is no cursor.
        """
        found = compensate(self._db, self._stepper, namespace, dead_token, evidence.lineage)
        self.tally.add(compensations=1 if found.is_new else 0)
        return found.token

    def _note_no_forward(self, namespace: Namespace, reach: Reach, evidence: Evidence) -> None:
        if reach.origin is None:
            return
        self.tally.add(no_forwards=1)
        self._stepper.write(
            CursorEvent(
                namespace,
                reach.direction,
                reach.origin,
                reach.origin,
                reach.observed,
                evidence.window,
                evidence.lineage,
                evidence.expr_hash,
                reason=CursorReason.NO_FORWARD,
                note=_why(reach, evidence.window),
            )
        )

    def _settle_signals(self, provenance: str, lineage: Lineage) -> None:
        """Move the cursor of every endpoint's signals over those that are settled."""
        with self._db.read() as tx:
            places = list_signal_places(tx, provenance)
        for _, endpoint in places:
            namespace = signals_of(provenance, endpoint)
            taken = self._stepper.take(partial(see_signals, self._db, namespace, lineage))
            if taken.before != taken.after:
                self.tally.add(advances=1)


def _step(namespace: Namespace, reach: Reach, evidence: Evidence) -> CursorEvent | None:
    if reach.step is None:
        return None
    return CursorEvent(
        namespace,
        reach.direction,
        reach.cursor.value if reach.cursor else None,
        reach.reached,
        reach.observed,
        reach.step,
        evidence.lineage,
        evidence.expr_hash,
    )


def _why(reach: Reach, finished: Window | None) -> str:
    down = reach.direction is CursorDirection.BACKFILL
    if finished and reach.cursor:
        at = reach.cursor.value
        if finished.start >= at if down else finished.end <= at:
            return f"the cursor is past {finished} already"
    if reach.gap is not None:
        return f"waits for the gap {reach.gap}"
    return "nothing next to the cursor is planned"
