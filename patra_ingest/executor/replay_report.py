"""A replay for scripts and for people: JSON, and a page of markdown, its verdict first. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from patra_ingest.executor.replaying import BatchReplay, Check, Match, Outcome, worst
from patra_ingest.model.evidence import CursorStep

_SHOWN = 50  # records that a person still reads
_CELL_CHARS = 600  # a problem is a sentence, and whole


@dataclass(frozen=True)
class Replay:
    """What replaying a run, or one batch of it, has shown."""

    run_id: int
    provenance: str
    endpoint: str
    operation: str
    window: tuple[datetime, datetime] | None
    lineage: Mapping[str, int | None]
    is_live: bool
    at: datetime
    batches: tuple[BatchReplay, ...]
    steps: tuple[CursorStep, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Return the worst of what its batches show."""
        return worst(batch.outcome for batch in self.batches)

    @property
    def is_fine(self) -> bool:
        """Whether everything is as it was, or was changed by later batches only."""
        return self.outcome in (Outcome.EQUAL, Outcome.CHANGED_SINCE)

    @property
    def counts(self) -> dict[Match, int]:
        """Return how many records have which match, over all batches."""
        found = {
            match: sum((batch.counts or {}).get(match, 0) for batch in self.batches)
            for match in Match
        }
        return {match: count for match, count in found.items() if count}

    @property
    def verdict(self) -> str:
        """Return what was found in one sentence."""
        if not self.batches:
            return f"Run {self.run_id} has no batch that succeeded: there is nothing to replay."
        what = f"{_many(len(self.batches))} of run {self.run_id}"
        told = ", ".join(f"{count} {_spoken(match)}" for match, count in self.counts.items())
        records = f"; records: {told}" if told else ""
        return f"{self.outcome}: {what} {self._how()}{records}."

    def _how(self) -> str:
        told = "told again and held against " + ("the source" if self.is_live else "the ledger")
        match self.outcome:
            case Outcome.EQUAL:
                return f"{told}: nothing differs"
            case Outcome.CHANGED_SINCE:
                return f"{told}: nothing differs but what later batches changed"
            case Outcome.DIFFERS:
                return f"{told}: not everything is the same"
            case Outcome.UNREADABLE:
                unread = sum(batch.outcome is Outcome.UNREADABLE for batch in self.batches)
                return f"{told}: {_many(unread)} cannot be read any more"

    def as_json(self) -> dict[str, Any]:
        """Return everything, for scripts."""
        return {
            "outcome": self.outcome.value,
            "verdict": self.verdict,
            "run": self.run_id,
            "provenance": self.provenance,
            "endpoint": self.endpoint,
            "operation": self.operation,
            "window": self.window and {"from": self.window[0], "to": self.window[1]},
            "lineage": dict(self.lineage),
            "live": self.is_live,
            "at": self.at,
            "records": _named(self.counts),
            "batches": [_batch_form(batch) for batch in self.batches],
            "cursorSteps": [asdict(step) for step in self.steps],
        }

    def as_markdown(self) -> str:
        """Return a page for people: the verdict, then batches, records and cursor steps."""
        lines = [
            f"## {'Live replay' if self.is_live else 'Replay'} of run {self.run_id}",
            "",
            f"**{self.verdict}**",
            "",
            f"{self.provenance}/{self.endpoint} {self.operation}{self._span()}",
            *self._batch_lines(),
            *self._trouble_lines(),
            *self._record_lines(),
            *self._step_lines(),
        ]
        return "\n".join(lines) + "\n"

    def _span(self) -> str:
        if self.window is None:
            return ""
        return f", window [{_moment(self.window[0])}, {_moment(self.window[1])})"

    def _batch_lines(self) -> list[str]:
        head = ("batch", "position", "outcome", "items", "records")
        all_ = self.batches
        odd = [batch for batch in all_ if batch.outcome is not Outcome.EQUAL]
        listed = all_ if len(all_) <= _SHOWN else odd[:_SHOWN]
        rows = [
            (
                f"{batch.run_id}/{batch.batch_no}",
                batch.position,
                batch.outcome,
                _items(batch),
                ", ".join(f"{count} {_spoken(m)}" for m, count in (batch.counts or {}).items()),
            )
            for batch in listed
        ]
        lines = _table("Batches", head, rows)
        more = len(all_) - len(listed)
        return [*lines, "", f"… and {_many(more)} more (the JSON lists all)"] if more else lines

    def _trouble_lines(self) -> list[str]:
        rows: list[tuple[object, ...]] = []
        for batch in self.batches:
            name = f"{batch.run_id}/{batch.batch_no}"
            rows += [(name, c.name, c.then, c.now) for c in batch.checks if not c.is_equal]
            rows += [(name, "note", "", note) for note in batch.notes]
            if batch.problem:
                rows.append((name, "problem", "", batch.problem))
        return _table("What differs", ("batch", "what", "then", "now"), rows)

    def _record_lines(self) -> list[str]:
        rows = [
            (f"{batch.run_id}/{batch.batch_no}", one.provider_id, _spoken(one.match), one.why)
            for batch in self.batches
            for one in batch.matches
        ]
        lines = _table("Records", ("batch", "id", "match", "why"), rows[:_SHOWN])
        more = len(rows) - _SHOWN
        return [*lines, "", f"… and {more} more (the JSON lists all)"] if more > 0 else lines

    def _step_lines(self) -> list[str]:
        head = ("event", "cursor", "reason", "from", "to")
        rows = [(s.event_id, s.cursor_key, s.reason, s.previous, s.reached) for s in self.steps]
        return _table("Cursor steps", head, rows)


def _batch_form(batch: BatchReplay) -> dict[str, Any]:
    return {
        "batch": batch.batch_no,
        "batchId": batch.batch_id,
        "position": batch.position,
        "outcome": batch.outcome.value,
        "problem": batch.problem,
        "notes": list(batch.notes),
        "checks": [{**asdict(check), "equal": check.is_equal} for check in batch.checks],
        "records": _named(batch.counts or {}),
        "matches": [
            {"id": one.provider_id, "match": one.match.value, "why": one.why}
            for one in batch.matches
        ],
    }


def _named(counts: Mapping[Match, int]) -> dict[str, int]:
    return {match.value: count for match, count in counts.items()}


def _many(batches: int) -> str:
    return f"{batches} batch{'' if batches == 1 else 'es'}"


def _items(batch: BatchReplay) -> str:
    found: Iterator[Check] = (check for check in batch.checks if check.name == "items")
    return next((str(check.now) for check in found), "")


def _spoken(match: Match) -> str:
    return match.value.lower().replace("_", " ")


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%SZ")


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a markdown table under a heading; nothing without rows."""
    lines = [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    if not lines:
        return []
    rule = "|" + "---|" * len(head)
    return ["", f"### {title}", "", f"| {' | '.join(head)} |", rule, *lines]


def _cell(value: object) -> str:
    """Write a value so that it stays in its cell: what a source said must not draw tables."""
    text = "" if value is None else str(value)
    line = "".join(char if char.isprintable() else " " for char in text).replace("|", "\\|")
    return line if len(line) <= _CELL_CHARS else f"{line[:_CELL_CHARS]}…"
