"""Slices as values: one that is about to be written, and one that stands for its window."""

from dataclasses import dataclass
from typing import Any

from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.window import Window


@dataclass(frozen=True)
class NewSlice:
    """Everything a slice row is made of."""

    no: int
    window: Window | None  # None when it is not cut by time
    signature: str
    spec: dict[str, Any]
    expr_hash: str
    localized: dict[str, Any]


@dataclass(frozen=True)
class CoveredWindow:
    """A window some slice of the namespace stands for, and how far that slice is.

    `slice_id` is None for the part of a plan that is claimed but not cut into slices yet.
    """

    slice_id: SliceId | None
    window: Window
    status: SliceStatus
