"""Where the events alone put a cursor: one pass over them, in the order they were written."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from patra_ingest.model.codes import CursorDirection, CursorReason, CursorType

# id, reason, direction, previous value, new value. Values only have to compare.
Step = tuple[int, str | None, str | None, Any, Any]

_STEPS = frozenset({CursorReason.ADVANCE, CursorReason.FORCE_FORWARD, CursorReason.COMPENSATE})
_DOWN = CursorDirection.BACKFILL.value


@dataclass(frozen=True)
class Fold:
    """What a chain of events says.

    `advances` moved the value, `ignored` did not: a NO_FORWARD, or a step that somebody else had
    already passed. `gaps` are the ids of events that begin where no event before them has come to:
    something is missing in front of them. `last` is the event that set the value.
    """

    value: Any = None
    events: int = 0
    advances: int = 0
    ignored: int = 0
    gaps: tuple[int, ...] = ()
    last: int | None = None


def fold(kind: CursorType, steps: Iterable[Step]) -> Fold:
    """Return where `steps` lead, oldest first; each is looked at once and none is kept."""
    return _fold_tokens(steps) if kind is CursorType.TOKEN else _fold_ordered(steps)


def _fold_ordered(steps: Iterable[Step]) -> Fold:
    value: Any = None
    last: int | None = None
    events = advances = 0
    gaps: list[int] = []
    for number, reason, direction, previous, reached in steps:
        events += 1
        if reason not in _STEPS:
            continue
        down = direction == _DOWN
        if previous is not None and _is_ahead(value, previous, down):
            gaps.append(number)
        if value is None or (reached < value if down else reached > value):
            value, last = reached, number
            advances += 1
    return Fold(value, events, advances, events - advances, tuple(gaps), last)


def _is_ahead(value: Any, previous: Any, down: bool) -> bool:
    """Say whether a step begins beyond what was reached before it."""
    return value is None or bool(previous < value if down else previous > value)


def _fold_tokens(steps: Iterable[Step]) -> Fold:
    """Tokens have no order: the newest event wins, and only a missing beginning can be seen."""
    value: Any = None
    last: int | None = None
    events = advances = 0
    gaps: list[int] = []
    for number, reason, _, previous, reached in steps:
        events += 1
        if reason not in _STEPS:
            continue
        if previous and last is None:
            gaps.append(number)
        value, last = reached, number
        advances += 1
    return Fold(value, events, advances, events - advances, tuple(gaps), last)
