"""As bioRxiv: days and an offset in the path, a page size of its own, a total that is a text."""

from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import read_days
from patra_ingest.sandbox.faces.stage import Ask, BadAsk, Face, Stage, answer_json, title_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.habits.table import Habits
from patra_ingest.sandbox.shelf import day_of
from patra_ingest.sandbox.world import World

_PAGE = 100
_SMALL_PAGE = 30


def name(world: World, index: int) -> str:
    """Return the DOI and the version: two postings of one preprint are two records."""
    return f"{_doi(world, index)}v{index % 2 + 1}"


def _doi(world: World, index: int) -> str:
    return world.doi(index // 2)


def page_size(endpoint: str, habits: Habits) -> int:
    """Return how many records a page has: the documentation says a hundred."""
    small = endpoint == "details" and "small-pages" in habits
    return _SMALL_PAGE if small else _PAGE


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer from any offset, also one past the end."""
    parts = ask.path.strip("/").split("/")
    if len(parts) != 5 or parts[0] not in ("details", "pubs") or not parts[4].isdecimal():
        raise BadAsk("the path is /details|pubs/SERVER/FROM/TO/CURSOR")
    entries = stage.shelf.between(*read_days(parts[2], parts[3], stage.zone))
    offset = int(parts[4])
    page = entries[offset : offset + page_size(parts[0], stage.habits)]
    message: dict[str, Any] = {"status": "no posts found"}
    if page:
        message = {
            "status": "ok",
            "interval": f"{parts[2]}:{parts[3]}",
            "cursor": str(offset) if offset else 0,  # a text or a number, as it comes
            "count": len(page),
            "total": str(len(entries)),
        }
    told = {"messages": [message], "collection": [_posting(stage, entry) for entry in page]}
    return answer_json(told, page=f"biorxiv:{'/'.join(parts)}")


def _posting(stage: Stage, entry: Entry) -> dict[str, Any]:
    return {
        "doi": _doi(stage.world, entry.index),
        "version": str(entry.index % 2 + 1),
        "title": title_of(entry),
        "date": day_of(entry.second, stage.zone),
        "published": "NA",
        "revision": entry.version,
    }


FACE = Face(answer, name, tells=lambda _stage, _entry: None)
