"""What becomes of ids that are asked for in batches (16). Pure."""

from enum import StrEnum

from patra_ingest.sandbox.habits.table import Habits

POISON = 40  # the work that no batch survives


class Loss(StrEnum):
    """Why an id does not bring its own record."""

    LATE = "LATE"  # not when it is asked for first
    GONE = "GONE"  # never
    MERGED = "MERGED"  # it brings the record of the work before it
    POISON = "POISON"


def loss_of(index: int, habits: Habits) -> Loss | None:
    """Return what is wrong with a work in a batch; None if it comes as it should."""
    if "poison-id" in habits and index == POISON:
        return Loss.POISON
    if _is_gone(index, habits):
        return Loss.GONE
    if "merged-ids" in habits and index % 19 == 2 and not _is_gone(index - 1, habits):
        return Loss.MERGED
    return Loss.LATE if "lost-ids" in habits and index % 17 == 3 else None


def _is_gone(index: int, habits: Habits) -> bool:
    return bool({"lost-ids", "null-ids"} & habits) and index % 17 == 11
