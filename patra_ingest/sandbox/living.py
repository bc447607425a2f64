"""A world that does not stand still: works come, change and go as time passes. Pure.

What there is at any second follows from the world alone, so nobody has to write anything down.
When the world ends, everything stays as it is.
"""

from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.world import World

CHANGES_EVERY = 150  # seconds
DIES_AFTER = 90
_CHANGED = (7, 2)  # of every seven works the one at two changes again and again
_DELETED = (13, 5)


def entry_at(world: World, index: int, second: int) -> Entry | None:
    """Return a work as it stands at a second; None if it has not come yet."""
    born = world.indexed_second(index)
    if born > second:
        return None
    age = min(second, world.first_second + world.seconds - 1) - born
    if _is(index, _DELETED):
        return Entry(born + DIES_AFTER, index, 2, True) if age >= DIES_AFTER else Entry(born, index)
    times = age // CHANGES_EVERY if _is(index, _CHANGED) else 0
    return Entry(born + times * CHANGES_EVERY, index, 1 + times)


def _is(index: int, kind: tuple[int, int]) -> bool:
    return index % kind[0] == kind[1]
