"""What one slice asks for: a window of time, a range of pages or a set of ids.

A window may be narrowed further: to one partition of the source, and to parts of a second dimension
when the window itself cannot be cut any finer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patra_ingest.model.window import Window, instant_iso, parse_instant


@dataclass(frozen=True)
class PageRange:
    """Pages `[first, past)`, counted from 1; without `past` it goes on to the last page."""

    first: int
    past: int | None = None


@dataclass(frozen=True)
class IdSet:
    """The ids of records that are stored under `endpoint`; `bucket` if they were cut by hash."""

    endpoint: str
    ids: tuple[str, ...]
    bucket: int | None = None


@dataclass(frozen=True)
class SplitPart:
    """One part of a second dimension: a range of numbers, both inclusive, or one value."""

    rule: int  # which of the declared splits it belongs to
    low: int | None = None
    high: int | None = None
    value: str | None = None


@dataclass(frozen=True)
class Bounds:
    """The boundary of one slice; exactly one of `window`, `pages` and `ids` is there."""

    window: Window | None = None
    pages: PageRange | None = None
    ids: IdSet | None = None
    splits: tuple[SplitPart, ...] = ()
    partition: str | None = None

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.window, self.pages, self.ids)) != 1:
            raise ValueError("a slice is cut by time, by pages or by ids: by exactly one of them")

    @property
    def dimension(self) -> str:
        """The word of the slice_spec for what it is cut by."""
        if self.window is not None:
            return "TIME"
        return "PAGE" if self.pages is not None else "ID"

    def as_json(self) -> dict[str, Any]:
        """Return the boundary as a slice_spec keeps it; what is not there is left out."""
        written: dict[str, Any] = {"dimension": self.dimension, "bounds": self._cut()}
        if self.splits:
            written["split"] = [_present(vars(part)) for part in self.splits]
        if self.partition is not None:
            written["partition"] = self.partition
        return written

    def _cut(self) -> dict[str, Any]:
        if self.window is not None:
            start, end = instant_iso(self.window.start), instant_iso(self.window.end)
            return {"time": {"from": start, "to": end}}
        if self.pages is not None:
            return {"page": _present({"from": self.pages.first, "past": self.pages.past})}
        if self.ids is None:
            raise ValueError("a slice without bounds")
        kept = {"endpoint": self.ids.endpoint, "ids": list(self.ids.ids)}
        return {"id": _present({**kept, "hashBucket": self.ids.bucket})}


def read_bounds(slice_spec: Mapping[str, Any]) -> Bounds:
    """Return the boundary that a slice_spec holds; the opposite of `Bounds.as_json`."""
    cut = slice_spec["bounds"]
    window = pages = ids = None
    if (time := cut.get("time")) is not None:
        window = Window(parse_instant(time["from"]), parse_instant(time["to"]))
    if (page := cut.get("page")) is not None:
        pages = PageRange(page["from"], page.get("past"))
    if (named := cut.get("id")) is not None:
        ids = IdSet(named["endpoint"], tuple(named["ids"]), named.get("hashBucket"))
    splits = tuple(SplitPart(**part) for part in slice_spec.get("split", ()))
    return Bounds(window, pages, ids, splits, slice_spec.get("partition"))


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
