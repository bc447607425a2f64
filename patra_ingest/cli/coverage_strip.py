"""Coverage as a picture: a strip of equal cells, the time below it, and the shares."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from patra_ingest.model.window import Window
from patra_ingest.planner.coverage import Cover, Interval

if TYPE_CHECKING:
    from rich.table import Table

CELLS = 72
_FEWEST = 36  # the axis needs room for its dates
GLYPHS = {Cover.SUCCEEDED: "█", Cover.LIVE: "▒", Cover.FAILED: "✗", Cover.MISSING: "·"}
_STYLES = {
    Cover.SUCCEEDED: "green",
    Cover.LIVE: "cyan",
    Cover.FAILED: "bold red",
    Cover.MISSING: "yellow",
}
# The later one is worse: it alone is seen when a cell holds both.
_SEVERITY = (Cover.SUCCEEDED, Cover.LIVE, Cover.MISSING, Cover.FAILED)


def fill_cells(window: Window, intervals: Iterable[Interval], cells: int = CELLS) -> list[Cover]:
    """Return the cover of every cell: the worst that is in it, so that no hole is invisible."""
    worst = [Cover.SUCCEEDED] * cells
    for interval in intervals:
        first = (interval.window.start - window.start) * cells // window.duration
        past = -((window.start - interval.window.end) * cells // window.duration)
        for cell in range(first, past):
            worst[cell] = max(worst[cell], interval.cover, key=_SEVERITY.index)
    return worst


def draw_strip(window: Window, intervals: Iterable[Interval], cursor: datetime | None) -> "Table":
    """Return the strip, its dates and the mark of the cursor, ready to be printed."""
    from rich.table import Table
    from rich.text import Text

    cells = max(_FEWEST, min(CELLS, get_terminal_size().columns))
    strip = Text()
    for kind in fill_cells(window, intervals, cells):
        strip.append(GLYPHS[kind], _STYLES[kind])
    drawing = Table.grid()
    drawing.add_column(overflow="fold")  # a strip that is cut would hide its last holes
    drawing.add_row(strip)
    if cursor is not None and window.start <= cursor <= window.end:
        drawing.add_row(Text(mark_cursor(window, cursor, cells)))
    drawing.add_row(Text(write_axis(window, cells), "dim"))
    return drawing


def mark_cursor(window: Window, cursor: datetime, cells: int = CELLS) -> str:
    """Return a line with a mark under the cell in which the cursor stands."""
    cell = min((cursor - window.start) * cells // window.duration, cells - 1)
    label = "cursor"
    if cell + 2 + len(label) <= cells:
        return " " * cell + f"▲ {label}"
    return f"{label} ▲".rjust(cell + 1)


def write_axis(window: Window, cells: int = CELLS) -> str:
    """Return a line with the first, the middle and the last moment of a strip."""
    pattern = "%Y-%m-%d" if window.duration >= timedelta(days=4) else "%Y-%m-%d %H:%MZ"
    middle = window.start + window.duration / 2
    first, half, last = (at.strftime(pattern) for at in (window.start, middle, window.end))
    return first + half.center(cells - len(first) - len(last)) + last


def write_shares(seconds: Mapping[Cover, float]) -> str:
    """Return how much of the time has which cover; what is there is never rounded to nothing."""
    total = sum(seconds.values())
    return "   ".join(f"{GLYPHS[kind]} {kind} {_share(seconds[kind], total)}" for kind in Cover)


def _share(part: float, total: float) -> str:
    percent = 100 * part / total
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %"


def write_moment(instant: datetime) -> str:
    """Write an instant as short as it can be typed: a date, or a date and a time in UTC."""
    if instant.time() == datetime.min.time():
        return instant.strftime("%Y-%m-%d")
    return instant.isoformat().replace("+00:00", "Z")


def write_span(window: Window) -> str:
    """Write a window as a person reads it."""
    return f"[{write_moment(window.start)}, {write_moment(window.end)})"


def write_length(length: timedelta) -> str:
    """Write a length in the largest unit that fits."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if length.total_seconds() >= size:
            return f"{length.total_seconds() / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{length.total_seconds():g} s"
