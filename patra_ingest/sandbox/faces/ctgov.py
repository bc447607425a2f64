"""As ClinicalTrials.gov: a page token, days, a total only when asked for, and empty pages."""

import re
from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_days
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
from patra_ingest.sandbox.shelf import day_of
from patra_ingest.sandbox.tokens import read_token, write_token
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"AREA\[LastUpdatePostDate\]RANGE\[([^,\]]+),([^,\]]+)\]")
_EMPTY_AT = 1  # the page before which an empty one comes


def name(_world: World, index: int) -> str:
    """Return the NCT number of a study."""
    return f"NCT{index:08d}"


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a page of studies; a token tells whether there may be more."""
    scope = ask.need("filter.advanced")
    first, past = read_days(*find_span(_RANGE, scope), stage.zone)
    entries, size = stage.shelf.between(first, past), ask.number("pageSize", 10, MAX_PAGE)
    position, was_empty = _place(ask, scope)
    hollow = "empty-middle" in stage.habits and position == _EMPTY_AT * size and not was_empty
    page = [] if hollow else entries[position : position + size]
    told: dict[str, Any] = {"studies": [_study(stage, entry) for entry in page]}
    if ask.params.get("countTotal") == "true":
        told["totalCount"] = len(entries)
    reached = position + len(page)
    full = "full-last-page" in stage.habits and len(page) == size
    if hollow or full or reached < len(entries):
        told["nextPageToken"] = write_token(reached * 2 + hollow, scope)
    return answer_json(told, page=f"ctgov:{scope}@{position}{'e' * hollow}")


def _place(ask: Ask, scope: str) -> tuple[int, bool]:
    """Return where a token goes on, and whether it was handed out by the empty page."""
    token = ask.params.get("pageToken")
    if token is None:
        return 0, False
    found = read_token(token, scope)
    if found is None:
        raise BadAsk("the pageToken was not made for this query")
    return found // 2, bool(found % 2)


def _study(stage: Stage, entry: Entry) -> dict[str, Any]:
    return {
        "protocolSection": {
            "identificationModule": {
                "nctId": name(stage.world, entry.index),
                "briefTitle": title_of(entry),
            },
            "statusModule": {
                "lastUpdatePostDateStruct": {"date": day_of(entry.second, stage.zone)},
                "versionNumber": str(entry.version),
            },
        }
    }


FACE = Face(answer, name, tells=lambda _stage, _entry: None)
