"""FORCE_FORWARD: a person moves a cursor past what will never succeed, and says why."""

from datetime import datetime
from typing import Any

from patra_ingest.cursor.position import is_forward
from patra_ingest.cursor.step import Stepper, Taken
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.cursor_events import goes_up
from patra_ingest.ledger.cursors import Cursor, CursorEvent, find_any_cursor, write_value
from patra_ingest.ledger.db import Db
from patra_ingest.model.codes import CursorDirection, CursorReason, CursorType, direction
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import instant_iso


def force(
    db: Db, stepper: Stepper, namespace: Namespace, to: datetime, by: str, reason: str
) -> Taken:
    """Move a cursor to `to`; raise PersonMustAct for what nobody should be able to do."""
    return stepper.take(lambda: foresee_force(db, namespace, to, by, reason))


def foresee_force(
    db: Db, namespace: Namespace, to: datetime, by: str, reason: str
) -> tuple[Cursor[Any] | None, CursorEvent]:
    """Return the cursor as it is and the event that would move it; change nothing.

    Raises PersonMustAct for a step back, one beyond now, or one without a reason.
    """
    why = _require_reason(reason)
    with db.read() as tx:
        _require_past(to, db.now(tx))
        cursor = find_any_cursor(tx, namespace)
        way = direction(namespace.operation)
        if way is CursorDirection.BACKFILL and goes_up(tx, namespace):
            way = CursorDirection.FORWARD
    before = cursor.value if cursor else None
    _require_forward(namespace, way, before, to)
    event = CursorEvent(
        namespace,
        way,
        before,
        to,
        cursor.observed_max if cursor else None,
        None,
        Lineage(),
        reason=CursorReason.FORCE_FORWARD,
        by=by,
        note=why,
        of=[by, why],
    )
    return cursor, event


def _require_reason(reason: str) -> str:
    why = " ".join(reason.split())
    if not why:
        raise PersonMustAct(
            "A cursor is not forced without a reason.", "Say why, for whoever reads it later."
        )
    return why


def _require_past(to: datetime, now: datetime) -> None:
    if to > now:
        raise PersonMustAct(
            f"{instant_iso(to)} is in the future (it is {instant_iso(now)} now).",
            "What is still to come cannot be passed.",
        )


def _require_forward(namespace: Namespace, way: CursorDirection, before: Any, to: datetime) -> None:
    if before is not None and not isinstance(before, datetime):
        raise PersonMustAct(
            f"The cursor {namespace.cursor_key} does not measure time (it is at {before}).",
            "Only a cursor of time can be forced.",
        )
    if not is_forward(CursorType.TIME, way, before, to):
        further = "a later" if way is CursorDirection.FORWARD else "an earlier"
        raise PersonMustAct(
            f"The cursor stands at {write_value(before)}; {instant_iso(to)} is not ahead of it.",
            f"A cursor is never moved back: give {further} instant.",
        )
