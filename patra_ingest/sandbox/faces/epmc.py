"""As Europe PMC: a cursor, days, ids that need their source, and errors with status 200."""

import re
from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_days
from patra_ingest.sandbox.faces.stage import Ask, BadAsk, Face, Stage, answer_json, title_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.habits.totals import say_total
from patra_ingest.sandbox.tokens import read_token, write_token
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"UPDATE_DATE:\[(\S+) TO (\S+)\]")
_VERSION = "6.9"


def name(_world: World, index: int) -> str:
    """Return the source and the id: one number stands for an article and for a preprint."""
    return f"{_source(index)}:{_number(index)}"


def _source(index: int) -> str:
    return "PPR" if index % 2 else "MED"


def _number(index: int) -> str:
    return str(35_000_000 + index // 2)


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a search; the last page ends the cursor, or echoes it."""
    if "error-code" in stage.habits:
        return answer_json({"version": _VERSION, "errCode": 404, "errMsg": "Invalid page size."})
    if "bare-envelope" in stage.habits:
        return answer_json({"version": _VERSION})
    scope = ask.need("query")
    first, past = read_days(*find_span(_RANGE, scope), stage.zone)
    entries = stage.shelf.between(first, past)
    sent = ask.params.get("cursorMark", "*")
    position = 0 if sent == "*" else read_token(sent, scope)
    if position is None:
        raise BadAsk(f"the cursor {sent} was not made for this query")
    page = entries[position : position + ask.number("pageSize", 25, most=1000)]
    told = {
        "version": _VERSION,
        "hitCount": say_total(len(entries), stage.habits),
        "nextCursorMark": _next(stage, entries, position + len(page), scope),
        "request": {"queryString": scope, "cursorMark": sent},
        "resultList": {"result": [_result(entry) for entry in page]},
    }
    if "echo-cursor" in stage.habits and not page:
        told["nextCursorMark"] = sent
    known = {key: value for key, value in told.items() if value is not None}
    return answer_json(known, page=f"epmc:{scope}@{position}")


def _next(stage: Stage, entries: list[Entry], reached: int, scope: str) -> str | None:
    ends = reached >= len(entries) and "echo-cursor" not in stage.habits
    return None if ends else write_token(reached, scope)


def _result(entry: Entry) -> dict[str, Any]:
    return {
        "id": _number(entry.index),
        "source": _source(entry.index),
        "title": title_of(entry),
        "versionNumber": entry.version,
        "isOpenAccess": "Y" if entry.index % 3 else "N",
    }


FACE = Face(answer, name, tells=lambda _stage, _entry: None)
