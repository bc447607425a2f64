"""How a window is cut into slices."""

from collections.abc import Iterable, Iterator
from zoneinfo import ZoneInfo

from patra_ingest.model.window import Window
from patra_ingest.spec.snapshot import WindowSpec


def cut(holes: Iterable[Window], spec: WindowSpec) -> Iterator[Window]:
    """Yield windows of at most `max_span` that tile the holes exactly, on the source's grid."""
    zone = ZoneInfo(spec.zone)
    for hole in holes:
        yield from hole.split_aligned(spec.max_span, spec.granularity, zone)
