"""When a work was last stamped, if a day swells (22) or works change during a walk (20). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from patra_ingest.sandbox.world import World

_DAY = 86_400
_RESTAMPED = 11  # one in eleven works is stamped anew
_HIT = 4
_SPREAD = 60


@dataclass(frozen=True)
class Entry:
    """One work as it stands now: when it was stamped, how often, and whether it is gone."""

    second: int
    index: int
    version: int = 1
    deleted: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """Where it stands in the order of a source."""
        return self.second, self.index


def second_in_big_day(world: World, index: int) -> int:
    """Return the stamp of a work when three fifths of all fall on the world's middle day."""
    low, high = world.records // 5, world.records * 4 // 5
    middle = world.first_second + (world.seconds // 2 // _DAY) * _DAY
    spans = (
        (0, low, world.first_second, middle),
        (low, high, middle, middle + _DAY),
        (high, world.records, middle + _DAY, world.first_second + world.seconds),
    )
    first, past, start, end = next(span for span in spans if index < span[1])
    return start + (index - first) * max(end - start, 1) // max(past - first, 1)


def restamp(
    window: tuple[int, int], mark: tuple[int, int], entries: Sequence[Entry], descending: bool
) -> dict[int, int]:
    """Return the new stamps of works that change while a walk stands at `mark`.

    Ascending: what was served comes again, newer; what was not moves behind the window.
    Descending: what was not served jumps to the top of the window, which the walk has passed,
    or behind the window. What a descending walk has served stays: nobody could see it change.
    """
    chosen = [entry for entry in entries if entry.index % _RESTAMPED == _HIT]
    if descending:
        waiting = [entry for entry in chosen if entry.key < mark]
        at_top, behind = waiting[::2], waiting[1::2]
        return _stamps(at_top, window[1] - _SPREAD) | _stamps(behind, window[1] + _SPREAD)
    ahead = (mark[0] + window[1]) // 2
    served = [entry for entry in chosen if entry.key <= mark]
    waiting = [entry for entry in chosen if entry.key > mark]
    return _stamps(served, ahead) | _stamps(waiting, window[1] + _SPREAD)


def _stamps(entries: Sequence[Entry], second: int) -> dict[int, int]:
    return {entry.index: second + entry.index % _SPREAD for entry in entries}
