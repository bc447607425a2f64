"""What forward means: to a later time or a larger id, and to an earlier one for a BACKFILL."""

from typing import Any

from patra_ingest.model.codes import CursorDirection, CursorType


def is_forward(kind: CursorType, direction: CursorDirection, old: Any, new: Any) -> bool:
    """Say whether a cursor at `old` may move to `new`; one that is nowhere yet may move anywhere.

    Tokens have no order: any other one will do.
    """
    if old is None:
        return True
    if kind is CursorType.TOKEN:
        return bool(new != old)
    return bool(new < old if direction is CursorDirection.BACKFILL else new > old)
