"""As DataCite: a page number or a cursor, and a next URL that the source builds itself."""

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
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.tokens import read_token, write_token
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"updated:\[(\S+) TO (\S+)\]")
_BROKEN_AT = 2  # the page whose next cursor is cut short, once


def name(world: World, index: int) -> str:
    """Return the DOI of a work."""
    return world.doi(index)


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a page; a question without a query is about everything."""
    entries = _asked_for(stage, ask)
    size = min(ask.number("page[size]", 25), MAX_PAGE)
    by_cursor = "page[cursor]" in ask.params
    position = _cursor(stage, ask) if by_cursor else _numbered(stage, ask, size, len(entries))
    page = entries[position : position + size]
    told: dict[str, Any] = {
        "data": [_doi(stage, entry) for entry in page],
        "meta": {"total": len(entries)},
        "links": {"self": ask.link("/datacite/dois", ask.params)},
    }
    if position + len(page) < len(entries):
        told["links"]["next"] = _next(stage, ask, position, size)
    return answer_json(told, page=f"datacite:{_scope(ask)}@{position}")


def _scope(ask: Ask) -> str:
    return ask.params.get("query", "")


def _asked_for(stage: Stage, ask: Ask) -> list[Entry]:
    if not _scope(ask):
        return stage.shelf.entries
    first, last = (read_second(text) for text in find_span(_RANGE, _scope(ask)))
    return stage.shelf.between(first, last + 1)


def _cursor(stage: Stage, ask: Ask) -> int:
    """Return where a cursor stands; `1` begins, and so may anything that is no cursor."""
    token = ask.params["page[cursor]"]
    # A cursor is bound to no query: one that comes back without it walks over everything.
    found = read_token(token, "datacite")
    if found is None and token != "1" and "restarting-cursor" not in stage.habits:
        raise BadAsk("page[cursor] is not a cursor")
    return found or 0


def _numbered(stage: Stage, ask: Ask, size: int, total: int) -> int:
    number = max(ask.number("page[number]", 1), 1)
    if "clamped-page" in stage.habits:
        reachable = max(min(total, stage.cap) - 1, 0) // size + 1
        number = min(number, reachable)
    return (number - 1) * size


def _next(stage: Stage, ask: Ask, position: int, size: int) -> str:
    kept = {name: text for name, text in ask.params.items() if name.startswith("page[")}
    params = kept if "lost-params" in stage.habits else dict(ask.params)
    if "page[cursor]" in ask.params:
        token = write_token(position + size, "datacite")
        breaks = "restarting-cursor" in stage.habits and position == _BROKEN_AT * size
        if breaks and stage.memory.is_first(("broken", _scope(ask))):
            token = token[:-9]
        return ask.link("/datacite/dois", {**params, "page[cursor]": token})
    number = str(position // size + 2)
    return ask.link("/datacite/dois", {**params, "page[number]": number})


def _doi(stage: Stage, entry: Entry) -> dict[str, Any]:
    attributes = {
        "titles": [{"title": title_of(entry)}],
        "updated": iso_second(entry.second),
        "metadataVersion": entry.version,
        "state": "findable",
    }
    return {"id": name(stage.world, entry.index), "type": "dois", "attributes": attributes}


FACE = Face(answer, name)
