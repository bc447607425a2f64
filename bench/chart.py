"""A drawing of what was allowed, answered and refused, second by second, as SVG."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 24, 64, 52
TICK_SECONDS, TICK_REQUESTS = 10, 5
INK, FAINT = "#24292f", "#d8dee4"
ALLOWED, ANSWERED, REFUSED = "#8250df", "#0969da", "#cf222e"
_FONT = "font-family='Helvetica, Arial, sans-serif'"


class Second(NamedTuple):
    """What happened in one second."""

    allowed: int
    answered: int
    refused: int


def draw_recovery(path: Path, history: Sequence[Second]) -> None:
    """Write the drawing; the same history gives the same file."""
    path.write_text("\n".join(_lines(history)) + "\n")


def _lines(history: Sequence[Second]) -> Iterator[str]:
    chart = _Chart(history)
    yield (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}'"
        f" width='{WIDTH}' height='{HEIGHT}' role='img' {_FONT} font-size='12' fill='{INK}'>"
    )
    yield "<title>Requests per second while the source halves its limit and restores it</title>"
    yield f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>"
    yield _text(LEFT, 24, "The source halves its limit without a word, then restores it", size=16)
    yield from _legend()
    yield from chart.grid()
    yield _path(chart.steps(), ALLOWED, "2", "stroke-dasharray='6 4'")
    yield _path(chart.walk(), ANSWERED, "2")
    yield from chart.marks()
    yield "</svg>"


class _Chart:
    """Where things lie: seconds to the right, requests upwards."""

    def __init__(self, history: Sequence[Second]) -> None:
        self._history = history
        most = max(max(second) for second in history)
        self._top = (most // TICK_REQUESTS + 1) * TICK_REQUESTS

    def x(self, second: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * second / len(self._history)

    def y(self, requests: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * requests / self._top

    def grid(self) -> Iterator[str]:
        for requests in range(0, self._top + 1, TICK_REQUESTS):
            y = self.y(requests)
            yield _line(LEFT, y, WIDTH - RIGHT, y, INK if requests == 0 else FAINT)
            yield _text(LEFT - 8, y + 4, str(requests), anchor="end")
        for second in range(0, len(self._history) + 1, TICK_SECONDS):
            x, y = self.x(second), self.y(0)
            yield _line(x, y, x, y + 5, INK)
            yield _text(x, y + 19, str(second), anchor="middle")
        yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "seconds", anchor="middle")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f"transform='rotate(-90 18 {middle:.1f})'"
        yield _text(18, middle, "requests per second", anchor="middle", more=turned)

    def steps(self) -> Iterator[tuple[float, float]]:
        """The limit: level through each second."""
        for number, second in enumerate(self._history):
            yield self.x(number), self.y(second.allowed)
            yield self.x(number + 1), self.y(second.allowed)

    def walk(self) -> Iterator[tuple[float, float]]:
        """The answered requests: a point in the middle of each second."""
        for number, second in enumerate(self._history):
            yield self.x(number + 0.5), self.y(second.answered)

    def marks(self) -> Iterator[str]:
        """The refused requests: a dot with a stem from the ground."""
        for number, second in enumerate(self._history):
            if second.refused:
                x, y = self.x(number + 0.5), self.y(second.refused)
                yield _line(x, self.y(0), x, y, REFUSED, "1.5")
                yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.5' fill='{REFUSED}'/>"


def _legend() -> Iterator[str]:
    entries = (
        (ALLOWED, "allowed by the source"),
        (ANSWERED, "answered"),
        (REFUSED, "refused: 429"),
    )
    for number, (colour, words) in enumerate(entries):
        x = LEFT + 190 * number
        dashes = "stroke-dasharray='6 4'" if colour == ALLOWED else ""
        if colour == REFUSED:
            yield f"<circle cx='{x + 12}' cy='44' r='3.5' fill='{colour}'/>"
        else:
            yield _line(x, 44, x + 24, 44, colour, "2", dashes)
        yield _text(x + 32, 48, words)


def _path(points: Iterable[tuple[float, float]], colour: str, width: str, more: str = "") -> str:
    written = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f"fill='none' stroke='{colour}' stroke-width='{width}' stroke-linejoin='round'"
    return f"<polyline points='{written}' {style} {more}/>"


def _line(  # noqa: PLR0913 - two points and how to draw
    x1: float, y1: float, x2: float, y2: float, colour: str, width: str = "1", more: str = ""
) -> str:
    ends = f"x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
    return f"<line {ends} stroke='{colour}' stroke-width='{width}' {more}/>"


def _text(
    x: float, y: float, words: str, anchor: str = "start", size: int = 12, more: str = ""
) -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}'"
    return f"<text {place} {more}>{words}</text>"
