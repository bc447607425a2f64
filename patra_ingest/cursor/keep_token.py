"""Cursors that hold a token: it has no order, so the newest event says what the cursor is.

A source that outlives a harvest with one token (a scroll, a change feed) can be resumed with it,
until the source forgets it.
"""

from typing import NamedTuple

from patra_ingest.cursor.step import Stepper
from patra_ingest.ledger.cursor_events import find_good_token, find_newest_event
from patra_ingest.ledger.cursors import (
    CursorEvent,
    find_any_cursor,
    lock_cursor,
    try_create_cursor,
    try_move_cursor,
)
from patra_ingest.ledger.db import Db
from patra_ingest.model.codes import CursorDirection, CursorReason, CursorType
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace


class Compensated(NamedTuple):
    """The token to go on with; `is_new` when it took the place of a dead one just now."""

    token: str | None
    is_new: bool


def keep_token(
    db: Db, stepper: Stepper, namespace: Namespace, token: str, lineage: Lineage
) -> None:
    """Write down a token, then let the cursor hold the newest one."""
    with db.read() as tx:
        cursor = find_any_cursor(tx, namespace)
    before = cursor.value if cursor else None
    if before != token:
        stepper.write(_event(namespace, before, token, lineage, CursorReason.ADVANCE))
    _follow(db, namespace)


def compensate(
    db: Db, stepper: Stepper, namespace: Namespace, dead: str, lineage: Lineage
) -> Compensated:
    """Replace a dead token by the last good one; leave alone what is another one by now."""
    with db.read() as tx:
        cursor = find_any_cursor(tx, namespace)
        good = find_good_token(tx, namespace, dead)
    if cursor is None or cursor.value != dead:
        return Compensated(cursor.value if cursor else None, False)
    stepper.write(_event(namespace, dead, good, lineage, CursorReason.COMPENSATE))
    return Compensated(_follow(db, namespace), True)


def _follow(db: Db, namespace: Namespace) -> str | None:
    """Let the cursor hold what the newest event says, whoever wrote it; return that."""
    with db.write() as tx:
        cursor, newest = lock_cursor(tx, namespace), find_newest_event(tx, namespace)
        if cursor is None and newest is not None:
            try_create_cursor(tx, newest, db.now(tx))
            # Another worker may have been first: from here on its row is locked.
            cursor, newest = lock_cursor(tx, namespace), find_newest_event(tx, namespace)
        if cursor is None or newest is None:
            return None
        try_move_cursor(tx, newest, cursor, db.now(tx))
        return str(newest.reached)


def _event(
    namespace: Namespace,
    before: str | None,
    token: str,
    lineage: Lineage,
    reason: CursorReason,
) -> CursorEvent:
    return CursorEvent(
        namespace,
        CursorDirection.FORWARD,
        before,
        token,
        None,
        None,
        lineage,
        kind=CursorType.TOKEN,
        reason=reason,
        note="the source has forgotten this token" if reason is CursorReason.COMPENSATE else None,
        # A source may hand out a token again; a repeated call of the same batch is no new step.
        of=[lineage.run_id, lineage.batch_id],
    )
