"""The table of a run of the suite: one row per source and kind of recordings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_HEAD = ("source", "recordings", "pages", "records", "errors as declared", "cases", "result")


@dataclass
class Row:
    """What the cases of one source did."""

    served: set[str] = field(default_factory=set)
    pages: int = 0
    records: int = 0
    errors: int = 0
    cases: int = 0
    failed: int = 0

    def add(self, outcome: str, numbers: Mapping[str, Any] | None) -> None:
        """Add a case that has run."""
        self.cases += 1
        self.failed += outcome != "passed"
        if numbers:
            self.served |= set(numbers["served"])
            self.pages += numbers["pages"]
            self.records += numbers["records"]
            self.errors += numbers["errors"]

    def cells(self, name: str) -> tuple[str, ...]:
        """Return the row as text."""
        result = "ok" if not self.failed else f"{self.failed} FAILED"
        numbers = (len(self.served), self.pages, self.records, self.errors, self.cases)
        return name, *(f"{one:,}" for one in numbers), result


def write_table(rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """Yield the lines of the table: real recordings first, then our own."""
    for kind, title in (("recorded", "Recorded answers of real sources"), ("handmade", "Our own")):
        own = {source: row for (of, source), row in sorted(rows.items()) if of == kind}
        if own:
            total = Row(
                {f"{source}/{name}" for source, row in own.items() for name in row.served},
                *(sum(getattr(row, name) for row in own.values()) for name in _SUMMED),
            )
            cells = [_HEAD, *(row.cells(source) for source, row in own.items())]
            yield from ("", title)
            yield from _lines([*cells, total.cells("all")])


_SUMMED = ("pages", "records", "errors", "cases", "failed")


def _lines(cells: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    for number, row in enumerate(cells):
        if number in (1, len(cells) - 1):
            yield "  ".join("─" * width for width in widths)
        padded = (
            one.rjust(width) if 0 < column < len(_HEAD) - 1 else one.ljust(width)
            for column, (one, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()
