"""The works of one world as the faces show them now: in order of their stamps, with changes."""

from bisect import bisect_left
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from patra_ingest.sandbox.habits.stamps import Entry, second_in_big_day
from patra_ingest.sandbox.habits.table import Habits
from patra_ingest.sandbox.living import entry_at
from patra_ingest.sandbox.world import World

_DELETED_EVERY, _DELETED_AT = 13, 5


class Shelf:
    """All entries by stamp; a work that is stamped anew moves and gets its next version."""

    def __init__(self, world: World, habits: Habits) -> None:
        self.world = world
        self._big_day = "big-day" in habits
        self._stamped: dict[int, tuple[int, int]] = {}
        self._second: int | None = None

    def move_to(self, second: int) -> None:
        """Show a living world as it stands at a second."""
        if second != self._second:
            self._second = second
            self.__dict__.pop("entries", None)

    def stamp(self, changes: dict[int, int]) -> None:
        """Give works new stamps."""
        for index, second in changes.items():
            version = self._stamped.get(index, (0, 1))[1]
            self._stamped[index] = (second, version + 1)
        self.__dict__.pop("entries", None)

    @cached_property
    def entries(self) -> list[Entry]:
        """Every work as it stands now, the oldest stamp first."""
        found = map(self._entry, range(self.world.records))
        return sorted((one for one in found if one is not None), key=lambda entry: entry.key)

    def between(self, first: int, past: int) -> list[Entry]:
        """Return the entries stamped in the seconds `[first, past)`."""
        low = bisect_left(self.entries, (first, -1), key=lambda entry: entry.key)
        high = bisect_left(self.entries, (past, -1), key=lambda entry: entry.key)
        return self.entries[low : max(low, high)]

    def _entry(self, index: int) -> Entry | None:
        if self._second is not None:
            return entry_at(self.world, index, self._second)
        second = self.world.indexed_second(index)
        if self._big_day:
            second = second_in_big_day(self.world, index)
        second, version = self._stamped.get(index, (second, 1))
        return Entry(second, index, version, index % _DELETED_EVERY == _DELETED_AT)


def day_of(second: int, zone: ZoneInfo) -> str:
    """Return the day of a second on a zone's calendar, as 2025-01-31."""
    return datetime.fromtimestamp(second, zone).date().isoformat()
