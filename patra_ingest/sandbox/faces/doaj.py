"""As DOAJ's search: the query in the path, pages by number, and a cap it forgets in `next`."""

import re
from typing import Any
from urllib.parse import quote, unquote

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_second
from patra_ingest.sandbox.faces.stage import Ask, BadAsk, Face, Stage, answer_json, title_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"last_updated:\[(\S+) TO (\S+)\]")
_MOST = 100  # a larger page is silently made smaller


def name(world: World, index: int) -> str:
    """Return an id that tells nothing."""
    return f"{world.dice(index):016x}{index:016x}"


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a page of articles, or refuse what lies past the cap."""
    query = unquote(ask.path.removeprefix("/search/articles/"))
    first, last = (read_second(text) for text in find_span(_RANGE, query))
    entries = stage.shelf.between(first, last + 1)
    size = min(ask.number("pageSize", 10), _MOST)
    number = ask.number("page", 1)
    if number < 1:
        raise BadAsk("pages are counted from 1")
    start = (number - 1) * size
    if "next-past-cap" in stage.habits and start >= stage.cap:
        told = f"You cannot access results beyond {stage.cap} records via this API"
        return answer_json({"status": "bad_request", "error": told}, status=400)
    page = entries[start : start + size]
    answered: dict[str, Any] = {
        "total": len(entries),
        "page": number,
        "pageSize": size,
        "results": [_article(stage, entry) for entry in page],
    }
    if start + len(page) < len(entries):
        params = {"page": str(number + 1), "pageSize": str(size)}
        answered["next"] = ask.link(f"/doaj/search/articles/{quote(query, safe='')}", params)
    return answer_json(answered, page=f"doaj:{query}@{start}")


def _article(stage: Stage, entry: Entry) -> dict[str, Any]:
    return {
        "id": name(stage.world, entry.index),
        "last_updated": iso_second(entry.second),
        "bibjson": {"title": title_of(entry), "version": entry.version},
    }


FACE = Face(answer, name)
