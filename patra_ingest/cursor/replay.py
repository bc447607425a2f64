"""Tell cursors again from their events: compare, and rebuild one that has fallen behind.

Only forward, never over a gap, and without a new event: what happened is written down already.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from patra_ingest.clock import Clock
from patra_ingest.cursor.fold import Fold, fold
from patra_ingest.cursor.position import is_forward
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.cursor_events import Known, get_event, list_known, read_value, stream_steps
from patra_ingest.ledger.cursors import (
    Cursor,
    find_any_cursor,
    try_create_cursor,
    try_move_cursor,
    write_value,
)
from patra_ingest.ledger.db import Db
from patra_ingest.model.codes import CursorDirection, CursorType
from patra_ingest.model.namespace import Namespace

REBUILD_REQUIRED = "cursor.rebuild.required"
_LOOKS = 3
_PAUSE_SECONDS = 0.3


@dataclass(frozen=True)
class Check:
    """A cursor beside what its events say; `seconds` is how long they took to read."""

    known: Known
    cursor: Cursor[Any] | None
    fold: Fold
    direction: CursorDirection
    seconds: float = 0.0

    @property
    def value(self) -> Any:
        """Where the cursor stands; None when there is none."""
        return self.cursor.value if self.cursor else None

    @property
    def is_equal(self) -> bool:
        """Whether events and cursor say the same."""
        return bool(self.value == self.fold.value)

    @property
    def is_fine(self) -> bool:
        """Whether there is nothing that a person must look at."""
        return self.is_equal and not self.fold.gaps

    def refusal(self) -> str | None:
        """Return why the cursor cannot be rebuilt; None when it can, or need not be."""
        if self.fold.gaps:
            listed = ", ".join(map(str, self.fold.gaps[:5]))
            return f"there are gaps before its events {listed}: what is missing cannot be guessed"
        if self.is_equal:
            return None
        told = write_value(self.fold.value)
        if told is None:
            return f"no event tells how the cursor came to {write_value(self.value)}"
        if not is_forward(self.known.kind, self.direction, self.value, self.fold.value):
            return f"its events lead to {told} only, and a cursor is never moved back"
        return None


def replay(tx: Connection, namespace: Namespace, kind: CursorType = CursorType.TIME) -> Fold:
    """Return where the events of a namespace alone put its cursor."""
    told = fold(kind, stream_steps(tx, namespace, kind))
    return replace(told, value=read_value(kind, told.value))


def check_cursors(
    db: Db, clock: Clock, wanted: Callable[[Namespace], bool], provenance: str | None = None
) -> Iterator[Check]:
    """Yield every wanted cursor beside its events.

    A worker writes its event a moment before it moves the cursor: what differs is looked at again.
    """
    with db.read() as tx:
        known = [one for one in list_known(tx, provenance) if wanted(one.namespace)]
    for one in known:
        check = _check(db, clock, one)
        for _ in range(_LOOKS - 1):
            if check.is_equal:
                break
            clock.sleep(_PAUSE_SECONDS)
            check = _check(db, clock, one)
        yield check


def _check(db: Db, clock: Clock, known: Known) -> Check:
    began = clock.monotonic()
    with db.read() as tx:
        cursor = find_any_cursor(tx, known.namespace)
        told = replay(tx, known.namespace, known.kind)
        way = get_event(tx, told.last).direction if told.last else CursorDirection.FORWARD
    return Check(known, cursor, told, way, clock.monotonic() - began)


def rebuild(db: Db, check: Check) -> datetime | int | str | None:
    """Move a cursor to where its events lead and return that; None when it is there already.

    Raises PersonMustAct where only a person can tell what is right.
    """
    refused = check.refusal()
    if refused is not None:
        raise PersonMustAct(
            f"The cursor {check.known.namespace.cursor_key} is not rebuilt: {refused}.",
            "Look at `patra cursor timeline`, then decide.",
        )
    if check.is_equal or check.fold.last is None:
        return None
    with db.write() as tx:
        event, now = get_event(tx, check.fold.last), db.now(tx)
        if check.cursor is None:
            done = try_create_cursor(tx, event, now)
        else:
            done = try_move_cursor(tx, event, check.cursor, now)
    if not done:
        raise PersonMustAct("The cursor has moved meanwhile.", "Verify it again.")
    return event.reached  # type: ignore[no-any-return]
