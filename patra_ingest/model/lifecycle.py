"""The five state machines: every status change of the ledger passes `ensure_transition`.

`moves` is what happens by itself. `reopens` is the only way out of a final status, and only on
request: a FAILED task goes back to the queue when an operator, or a new trigger that meets the
same task key, asks for it; its slice and plan follow; a FAILED batch is retried in place, in its
own run. SUCCEEDED, COMPLETED, SKIPPED and CANCELLED stay: who wants that work again asks for it
under a new campaign. A PARTIAL task or slice stays too: its rest belongs to the slices that
replace it. A PARTIAL plan is not final, it waits to be continued.

A status never moves to itself: a repeated call has nothing to change and must not pretend to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from patra_ingest.model.codes import BatchStatus, PlanStatus, RunStatus, SliceStatus, TaskStatus

Status = TypeVar("Status", bound=StrEnum)


@dataclass(frozen=True)
class Machine:
    """One lifecycle: where it starts, where each status leads, what may be opened again."""

    start: StrEnum
    moves: Mapping[StrEnum, frozenset[StrEnum]]
    reopens: Mapping[StrEnum, frozenset[StrEnum]]


def _table(moves: dict[Status, set[Status]]) -> Mapping[StrEnum, frozenset[StrEnum]]:
    return {old: frozenset(new) for old, new in moves.items()}


_P, _S, _T, _R, _B = PlanStatus, SliceStatus, TaskStatus, RunStatus, BatchStatus

_PLAN = Machine(
    start=_P.DRAFT,
    moves=_table(
        {
            # Too much in the queue already: the plan waits without having been sliced.
            _P.DRAFT: {_P.SLICING, _P.PARTIAL, _P.FAILED, _P.CANCELLED},
            _P.SLICING: {_P.READY, _P.PARTIAL, _P.FAILED, _P.CANCELLED},
            _P.READY: {_P.SLICING, _P.COMPLETED, _P.PARTIAL, _P.FAILED, _P.CANCELLED},
            _P.PARTIAL: {_P.SLICING, _P.READY, _P.COMPLETED, _P.FAILED, _P.CANCELLED},
            _P.FAILED: set(),
            _P.COMPLETED: set(),
            _P.CANCELLED: set(),
        }
    ),
    reopens=_table({_P.FAILED: {_P.SLICING, _P.READY}}),
)

_SLICE = Machine(
    start=_S.PENDING,
    moves=_table(
        {
            _S.PENDING: {_S.READY, _S.FAILED, _S.CANCELLED},
            # From here on a slice follows its one task; READY is the task in the queue.
            _S.READY: {_S.DISPATCHED, _S.CANCELLED},
            _S.DISPATCHED: {_S.EXECUTING, _S.READY, _S.FAILED, _S.CANCELLED},
            _S.EXECUTING: {_S.SUCCEEDED, _S.FAILED, _S.PARTIAL, _S.CANCELLED, _S.READY},
            _S.SUCCEEDED: set(),
            _S.FAILED: set(),
            _S.PARTIAL: set(),
            _S.CANCELLED: set(),
        }
    ),
    reopens=_table({_S.FAILED: {_S.READY}}),
)

_TASK = Machine(
    start=_T.QUEUED,
    moves=_table(
        {
            _T.QUEUED: {_T.DISPATCHED, _T.CANCELLED},
            # Back to QUEUED: the lease ran out, or the worker was told to stop.
            # FAILED without a run: the task cannot even be started, however often it is leased.
            _T.DISPATCHED: {_T.EXECUTING, _T.QUEUED, _T.FAILED, _T.CANCELLED},
            _T.EXECUTING: {_T.SUCCEEDED, _T.FAILED, _T.PARTIAL, _T.CANCELLED, _T.QUEUED},
            _T.SUCCEEDED: set(),
            _T.FAILED: set(),
            _T.PARTIAL: set(),
            _T.CANCELLED: set(),
        }
    ),
    reopens=_table({_T.FAILED: {_T.QUEUED}}),
)

_RUN = Machine(
    start=_R.PLANNED,
    moves=_table(
        {
            _R.PLANNED: {_R.RUNNING, _R.FAILED, _R.CANCELLED},
            _R.RUNNING: {_R.SUCCEEDED, _R.FAILED, _R.PARTIAL, _R.CANCELLED},
            _R.SUCCEEDED: set(),
            _R.FAILED: set(),
            _R.PARTIAL: set(),
            _R.CANCELLED: set(),
        }
    ),
    reopens={},  # a new attempt is a new run
)

_BATCH = Machine(
    start=_B.RUNNING,
    moves=_table(
        {
            _B.RUNNING: {_B.SUCCEEDED, _B.FAILED, _B.SKIPPED},
            _B.SUCCEEDED: set(),
            _B.FAILED: set(),
            _B.SKIPPED: set(),
        }
    ),
    reopens=_table({_B.FAILED: {_B.RUNNING}}),
)

# By class: members of different classes with one name are equal, being text.
MACHINES: Mapping[type[StrEnum], Machine] = {
    PlanStatus: _PLAN,
    SliceStatus: _SLICE,
    TaskStatus: _TASK,
    RunStatus: _RUN,
    BatchStatus: _BATCH,
}


def next_statuses(old: StrEnum) -> frozenset[StrEnum]:
    """Return every status that `old` may move to, on request or by itself."""
    machine = _machine(type(old))
    return machine.moves[old] | machine.reopens.get(old, frozenset())


def ensure_transition(old: Status, new: Status) -> Status:
    """Return `new` if `old` may move there; raise ValueError otherwise."""
    if type(old) is not type(new):
        raise ValueError(f"{old!r} and {new!r} are statuses of different things")
    allowed = next_statuses(old)
    if new not in allowed:
        ways = ", ".join(status for status in type(old) if status in allowed) or "nothing"
        raise ValueError(f"{type(old).__name__}: {old} cannot become {new}, only {ways}")
    return new


def is_final(status: StrEnum) -> bool:
    """Say whether a status is left only when someone asks for it."""
    return not _machine(type(status)).moves[status]


def mermaid(kind: type[StrEnum]) -> str:
    """Draw a lifecycle as a Mermaid state diagram, for the documentation."""
    machine = _machine(kind)
    lines = ["stateDiagram-v2", f"    [*] --> {machine.start}"]
    for old in kind:
        reopened = machine.reopens.get(old, frozenset())
        lines += [f"    {old} --> {new}" for new in kind if new in machine.moves[old]]
        lines += [f"    {old} --> {new} : on request" for new in kind if new in reopened]
        lines += [f"    {old} --> [*]"] if is_final(old) else []
    return "\n".join(lines) + "\n"


def _machine(kind: type[StrEnum]) -> Machine:
    if kind not in MACHINES:
        raise ValueError(f"{kind.__name__} has no lifecycle")
    return MACHINES[kind]
