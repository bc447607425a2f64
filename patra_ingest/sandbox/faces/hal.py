"""As HAL: a Solr cursor over records in order of their change, while they go on changing."""

import re
from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_second
from patra_ingest.sandbox.faces.stage import (
    MAX_PAGE,
    Ask,
    BadAsk,
    Face,
    Stage,
    answer_json,
    title_of,
)
from patra_ingest.sandbox.habits.stamps import Entry, restamp
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.tokens import read_token, write_token
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"modifiedDate_tdate:\[(\S+) TO (\S+)\}")
_INDEXES = 1 << 24  # a cursor is a second and an index in one number


def name(_world: World, index: int) -> str:
    """Return the docid of a work."""
    return str(4_000_000 + index)


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer from a cursor on; without more records the cursor comes back as it was sent."""
    scope = ask.need("fq")
    first, past = (read_second(text) for text in find_span(_RANGE, scope))
    sent, descending = ask.params.get("cursorMark", "*"), "descending" in stage.habits
    mark = _read_mark(sent, scope)
    if mark is not None and "restamped" in stage.habits:
        _change(stage, (first, past), mark, scope)
    entries = stage.shelf.between(first, past)
    following = [entry for entry in entries if mark is None or _is_after(entry, mark, descending)]
    page = (following[::-1] if descending else following)[: ask.number("rows", 30, MAX_PAGE)]
    reached = page[-1].second * _INDEXES + page[-1].index if page else None
    told: dict[str, Any] = {
        "response": {"numFound": len(entries), "docs": [_doc(stage, entry) for entry in page]},
        "nextCursorMark": sent if reached is None else write_token(reached, scope),
    }
    return answer_json(told, page=f"hal:{scope}@{mark}")


def _read_mark(sent: str, scope: str) -> tuple[int, int] | None:
    if sent == "*":
        return None
    found = read_token(sent, scope)
    if found is None:
        raise BadAsk("cursorMark was not made for this question")
    return divmod(found, _INDEXES)


def _is_after(entry: Entry, mark: tuple[int, int], descending: bool) -> bool:
    return entry.key < mark if descending else entry.key > mark


def _change(stage: Stage, window: tuple[int, int], mark: tuple[int, int], scope: str) -> None:
    """Stamp records anew when a walk has come far enough; what leaves it goes to the next."""
    last = window[1] >= stage.world.first_second + stage.world.seconds
    due = not last and not stage.memory.is_first(("walked", scope))
    if due and stage.memory.is_first(("changed", scope)):
        entries = stage.shelf.between(*window)
        stage.shelf.stamp(restamp(window, mark, entries, "descending" in stage.habits))


def _doc(stage: Stage, entry: Entry) -> dict[str, Any]:
    return {
        "docid": name(stage.world, entry.index),
        "title_s": [title_of(entry)],
        "modifiedDate_tdate": iso_second(entry.second),
        "version_i": entry.version,
    }


FACE = Face(answer, name)
