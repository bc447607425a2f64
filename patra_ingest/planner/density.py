"""How many records a span of time should hold: from history, else as declared, else unknown.

The planner makes no request, so this is all it can know. What it knew is stored with the plan:
whoever goes on with the plan cuts it exactly as it was begun.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from patra_ingest.model.window import Window, instant_iso, parse_instant

_CELLS = 48
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


class Basis(StrEnum):
    """Where an estimate comes from."""

    HISTORY = "HISTORY"
    DECLARED = "DECLARED"


@dataclass(frozen=True)
class Density:
    """Records per day: by cell where slices were harvested before, one number elsewhere."""

    cells: tuple[tuple[Window, float], ...] = ()  # in order, apart from each other
    per_day: float | None = None
    basis: Basis | None = None

    def expected(self, window: Window) -> float | None:
        """Return how many records `window` should hold; None when nobody can know."""
        if self.per_day is None:
            return None
        spans = self._spans(window)
        return sum((per_day * (span.duration / _DAY) for span, per_day in spans), 0.0)

    def reach(self, start: datetime, records: float, limit: datetime) -> datetime:
        """Return up to when `records` are expected from `start` on, `limit` at the latest."""
        reached = start
        for span, per_day in self._spans(Window(start, limit)):
            held = per_day * (span.duration / _DAY)
            if held >= records > 0:
                return reached + span.duration * (records / held)
            records -= held
            reached = span.end
        return limit

    def _spans(self, window: Window) -> Iterable[tuple[Window, float]]:
        at = window.start
        for cell, per_day in self.cells:
            shared = cell.intersect(window)
            if shared is None:
                continue
            if shared.start > at:
                yield Window(at, shared.start), self.per_day or 0.0
            yield shared, per_day
            at = shared.end
        if at < window.end:
            yield Window(at, window.end), self.per_day or 0.0

    def as_json(self) -> dict[str, Any] | None:
        """Return the density as a plan keeps it."""
        if self.basis is None:
            return None
        cells = [[instant_iso(c.start), instant_iso(c.end), n] for c, n in self.cells]
        return {"basis": self.basis.value, "perDay": self.per_day, "cells": cells}


def read_density(written: Mapping[str, Any] | None) -> Density:
    """Return the density that a plan keeps; the opposite of `Density.as_json`."""
    if written is None:
        return Density()
    cells = tuple(
        (Window(parse_instant(start), parse_instant(end)), float(per_day))
        for start, end, per_day in written["cells"]
    )
    return Density(cells, float(written["perDay"]), Basis(written["basis"]))


def measure(
    history: Sequence[tuple[Window, int]], window: Window, declared: float | None
) -> Density:
    """Return what succeeded slices say of `window`: newest first in, at most 48 cells out."""
    apart = _apart(history)
    seconds = sum(span.duration / _SECOND for span, _ in apart)
    if not apart or seconds == 0:
        return Density((), declared, Basis.DECLARED) if declared else Density()
    average = sum(count for _, count in apart) / (seconds / (_DAY / _SECOND))
    return Density(_cells(window, apart), average, Basis.HISTORY)


def _cells(
    window: Window, measured: Sequence[tuple[Window, int]]
) -> tuple[tuple[Window, float], ...]:
    """Return the density of the cells of a window that were measured for at least half."""
    width = window.duration / _CELLS
    inside = [(span, count) for span, count in measured if span.intersect(window)]
    if width < _SECOND or not inside:
        return ()
    edges = [window.start + n * width for n in range(_CELLS)]
    cells = (Window(start, end) for start, end in pairwise([*edges, window.end]))
    found = (_cell(cell, inside) for cell in cells)
    return tuple(cell for cell in found if cell is not None)


def _apart(history: Sequence[tuple[Window, int]]) -> list[tuple[Window, int]]:
    """Return the newest measurement of every span, in order of time."""
    kept: list[tuple[Window, int]] = []
    for window, count in history:
        place = bisect_left(kept, window.start, key=_start)
        neighbours = kept[max(place - 1, 0) : place + 1]
        if not any(window.intersect(other) for other, _ in neighbours):
            kept.insert(place, (window, count))
    return kept


def _start(measured: tuple[Window, int]) -> datetime:
    return measured[0].start


def _cell(cell: Window, measured: Sequence[tuple[Window, int]]) -> tuple[Window, float] | None:
    """Return the density of a cell of which at least half was measured."""
    known, records = timedelta(0), 0.0
    for window, count in measured:
        if shared := cell.intersect(window):
            known += shared.duration
            records += count * (shared.duration / window.duration)
    if known * 2 < cell.duration:
        return None
    return cell, records / (known / _DAY)
