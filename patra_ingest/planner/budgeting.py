"""When a slice may be executed so that no quota is oversold, and what it speaks for until then."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from patra_ingest.model.quotas import (
    QuotaRule,
    QuotaWindow,
    Reservation,
    Usages,
    ceil_amount,
    ceiling_share,
    floor_amount,
    window_at,
)
from patra_ingest.model.window import Window
from patra_ingest.planner.courtesy import next_courtesy
from patra_ingest.spec.planning import Courtesy

HORIZON = timedelta(days=62)
_NOTHING = Decimal(0)


@dataclass(frozen=True)
class Budget:
    """What a plan may fill of each quota, and the hours it must keep if it is large."""

    rules: tuple[QuotaRule, ...]
    share: float
    margin: float
    courtesy: Courtesy | None = None

    def part_of(self, limit: Decimal) -> Decimal:
        """Return how much of `limit` may be spent or spoken for before this plan must wait."""
        return floor_amount(limit * ceiling_share(self.share, self.margin))


@dataclass(frozen=True)
class Placed:
    """When a task may be leased (None: now), and what its slice speaks for."""

    at: datetime | None
    reservations: tuple[Reservation, ...]


def place(
    amount: Decimal, budget: Budget, usages: Usages, now: datetime, horizon: timedelta = HORIZON
) -> Placed | None:
    """Return the earliest place for one slice; `Book` is for many."""
    return Book(budget, usages, now, horizon).place(amount)


@dataclass
class _Cell:
    """One quota window: what it allows, what of that may be planned, what of that is free."""

    key: str
    window: Window
    limit: Decimal
    most: Decimal
    free: Decimal


@dataclass
class _Row:
    """The windows of one rule, each looked up once per instant."""

    rule: QuotaRule
    cells: dict[datetime, _Cell] = field(default_factory=dict)


class Book:
    """The quotas as one plan sees them; it remembers what it has placed."""

    def __init__(
        self, budget: Budget, usages: Usages, now: datetime, horizon: timedelta = HORIZON
    ) -> None:
        self._budget = budget
        self._usages = usages
        self._now = now
        self._end = now + horizon
        self._rows = [_Row(rule) for rule in budget.rules]
        self._cells: dict[QuotaWindow, _Cell] = {}
        self._allowed: dict[datetime, datetime] = {}
        # Room only ever shrinks here: where an amount was refused once, it always is.
        self._reached: dict[Decimal, datetime] = {}

    @property
    def limits(self) -> Mapping[QuotaWindow, Decimal]:
        """What the windows looked at allow, without share and margin."""
        return {place: cell.limit for place, cell in self._cells.items()}

    def place(self, amount: Decimal) -> Placed | None:
        """Return the earliest place for a slice that will spend `amount`, and remember it.

        It is inside the courtesy hours, and every rule has room in its window around it. What is
        more than a whole empty window may hold takes what is free there and in the windows after
        it. None: no room within the horizon.
        """
        price = ceil_amount(amount)
        if price < 0:
            raise ValueError(f"a slice cannot spend {amount}")
        instant = self._reached.get(price) or self._courteous(self._now)
        while instant < self._end:
            taken = self._take_all(price, instant)
            if not isinstance(taken, datetime):
                self._reached[price] = instant
                return self._remember(instant, taken)
            instant = self._courteous(taken)
        self._reached[price] = instant
        return None

    def _courteous(self, instant: datetime) -> datetime:
        if self._budget.courtesy is None:
            return instant
        if instant not in self._allowed:
            self._allowed[instant] = next_courtesy(self._budget.courtesy, instant)
        return self._allowed[instant]

    def _take_all(self, price: Decimal, instant: datetime) -> list[Reservation] | datetime:
        """Return what all rules together give at `instant`, or before when none of them would."""
        tried = [self._take(row, price, instant) for row in self._rows]
        refused = [until for until in tried if isinstance(until, datetime)]
        if refused:
            return max(refused)
        parts: dict[QuotaWindow, Decimal] = {}
        for cell, part in (pair for taken in tried if isinstance(taken, list) for pair in taken):
            # Two rules of a key may share a window, such as hours in two zones: it is one amount.
            spot = (cell.key, cell.window)
            parts[spot] = max(part, parts.get(spot, _NOTHING))
        return sorted(Reservation(key, window, part) for (key, window), part in parts.items())

    def _take(
        self, row: _Row, price: Decimal, instant: datetime
    ) -> list[tuple[_Cell, Decimal]] | datetime:
        """Return what one rule gives, or before when it would give nothing."""
        first = self._cell(row, instant)
        if first.most <= 0 < price:
            return self._end
        has_room = first.free >= price if price <= first.most else first.free > 0
        return self._spread(row, price, first) if has_room else first.window.end

    def _spread(
        self, row: _Row, price: Decimal, cell: _Cell
    ) -> list[tuple[_Cell, Decimal]] | datetime:
        parts = []
        while price > 0:
            if cell.window.start >= self._end:
                return self._end
            part = min(price, cell.free)
            if part > 0:
                parts.append((cell, part))
                price -= part
            if price > 0:
                cell = self._cell(row, cell.window.end)
        return parts

    def _remember(self, instant: datetime, taken: list[Reservation]) -> Placed:
        for reservation in taken:
            self._cells[reservation.key, reservation.window].free -= reservation.amount
        return Placed(None if instant == self._now else instant, tuple(taken))

    def _cell(self, row: _Row, instant: datetime) -> _Cell:
        if instant not in row.cells:
            spot = (row.rule.key, window_at(row.rule, instant))
            if spot not in self._cells:
                self._cells[spot] = self._new_cell(*spot)
            row.cells[instant] = self._cells[spot]
        return row.cells[instant]

    def _new_cell(self, key: str, window: Window) -> _Cell:
        limit = min(rule.limit for rule in self._sharing(key, window))
        most = self._budget.part_of(limit)
        used = self._usages.get((key, window))
        free = most if used is None else max(_NOTHING, most - used.taken)
        return _Cell(key, window, limit, most, free)

    def _sharing(self, key: str, window: Window) -> Iterator[QuotaRule]:
        for rule in self._budget.rules:
            if rule.key == key and window_at(rule, window.start) == window:
                yield rule
