"""Which works exist in the sandbox and when each of them was indexed. Pure.

Nothing is stored: work `i` follows from the seed and `i` alone, in every process alike.
Index times never fall as `i` grows, so any span of time is a range of works.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

_DAY_SECONDS = 86_400
_STEPS = 1024  # a work's place inside its own share of the span, in 1024ths of that share
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class World:
    """`records` works, indexed at whole seconds inside `[start, start + days)`."""

    records: int
    start: datetime
    days: float
    seed: int

    def __post_init__(self) -> None:
        if self.records < 0 or self.seed < 0:
            raise ValueError("records and seed are never negative")
        if self.start.utcoffset() != timedelta(0) or self.start.microsecond:
            raise ValueError("start is a whole second of UTC")
        if self.seconds < 1:
            raise ValueError("the world lasts at least one second")

    @cached_property
    def first_second(self) -> int:
        """The second, counted from 1970, at which the world begins."""
        return int(self.start.timestamp())

    @cached_property
    def seconds(self) -> int:
        """How many whole seconds the world lasts."""
        return int(self.days * _DAY_SECONDS)

    def doi(self, index: int) -> str:
        """Return the DOI of a work, in lower case as Crossref writes it."""
        return f"10.5555/sbx.{self.seed}.{index:07d}"

    def index_of(self, doi: str) -> int | None:
        """Return the work that has a DOI; None if none has."""
        number = doi.rpartition(".")[2]
        index = int(number) if number.isdecimal() else self.records
        return index if index < self.records and self.doi(index) == doi else None

    def dice(self, index: int) -> int:
        """Return 64 bits that look random and are always the same for this work."""
        mixed = (self.seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 1) & _WORD
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        return mixed ^ (mixed >> 31)

    def indexed_second(self, index: int) -> int:
        """Return the second, counted from 1970, at which a work was indexed."""
        # Of every eight works the last three share a second, however thin the world is:
        # a client that takes "later than the last one seen" must lose some of them.
        sharer = index - index % 8 + min(index % 8, 5)
        place = sharer * _STEPS + self.dice(sharer) % _STEPS
        return self.first_second + place * self.seconds // (self.records * _STEPS)

    def indexed_at(self, index: int) -> datetime:
        """Return the instant at which a work was indexed."""
        return datetime.fromtimestamp(self.indexed_second(index), UTC)

    def within(
        self, first: int | None = None, past: int | None = None, newest: int | None = None
    ) -> range:
        """Return the works indexed in the seconds `[first, past)`; None leaves that side open.

        Those after the second `newest` are left out.
        """
        works = range(self.records)
        if newest is not None:
            past = newest + 1 if past is None else min(past, newest + 1)
        low = 0 if first is None else bisect_left(works, first, key=self.indexed_second)
        high = self.records if past is None else bisect_left(works, past, key=self.indexed_second)
        return range(low, max(low, high))
