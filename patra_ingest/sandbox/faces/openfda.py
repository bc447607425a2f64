"""As openFDA: the next page in a Link header, days without dashes, and 404 for nothing."""

import re
from dataclasses import replace
from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_days
from patra_ingest.sandbox.faces.stage import (
    MAX_PAGE,
    UTC_ZONE,
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

_RANGE = re.compile(r"receiptdate:\[(\d{8}) TO (\d{8})\]")


def name(_world: World, index: int) -> str:
    """Return the id and the version of a report: a later version is another record."""
    return f"{_report(index)}-{index % 2 + 1}"


def _report(index: int) -> str:
    return str(10_000_000 + index // 2)


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a page; its Link header leads on as deep as one likes, unless `skip` was sent."""
    search = ask.need("search")
    entries = stage.shelf.between(*read_days(*find_span(_RANGE, search), UTC_ZONE))
    if not entries and "nothing-is-404" in stage.habits:
        return _refuse(404, "NOT_FOUND", "No matches found!")
    skips = "skip" in ask.params and "skip-degrades" in stage.habits
    position, size = _position(ask, search), ask.number("limit", 1, MAX_PAGE)
    if skips and position >= stage.cap:
        return _refuse(400, "BAD_REQUEST", f"Skip value must {stage.cap} or less.")
    page = entries[position : position + size]
    told = {
        "meta": {"results": {"skip": position, "limit": size, "total": len(entries)}},
        "results": [_report_of(entry) for entry in page],
    }
    answered = answer_json(told, page=f"openfda:{search}@{position}")
    if position + len(page) == len(entries):
        return answered
    link = f'<{_next(ask, position + size, search, skips)}>; rel="next"'
    return replace(answered, headers=((b"link", link.encode()),))


def _refuse(status: int, code: str, message: str) -> Answer:
    return answer_json({"error": {"code": code, "message": message}}, status)


def _position(ask: Ask, search: str) -> int:
    token = ask.params.get("search_after")
    if token is None:
        return ask.number("skip", 0)
    found = read_token(token, search)
    if found is None:
        raise BadAsk("search_after was not made for this search")
    return found


def _next(ask: Ask, position: int, search: str, skips: bool) -> str:
    kept = {key: text for key, text in ask.params.items() if key not in ("skip", "search_after")}
    way = {"skip": str(position)} if skips else {"search_after": write_token(position, search)}
    return ask.link("/openfda/drug/event.json", {**kept, **way})


def _report_of(entry: Entry) -> dict[str, Any]:
    return {
        "safetyreportid": _report(entry.index),
        "safetyreportversion": str(entry.index % 2 + 1),
        "receiptdate": day_of(entry.second, UTC_ZONE).replace("-", ""),
        "title": title_of(entry),
        "revision": entry.version,
    }


FACE = Face(answer, name, tells=lambda _stage, _entry: None)
