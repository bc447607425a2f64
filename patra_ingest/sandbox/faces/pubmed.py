"""As PubMed: esearch gives ids as JSON and no more than the cap, efetch makes them XML."""

import re
from typing import Any
from xml.sax.saxutils import escape

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_days
from patra_ingest.sandbox.faces.stage import Ask, BadAsk, Face, Stage, answer_json, title_of
from patra_ingest.sandbox.habits.losses import Loss, loss_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.habits.table import Habits
from patra_ingest.sandbox.world import World

_DAYS = re.compile(r'"(\S+)"\[crdt\] : "(\S+)"\[crdt\]')
_UIDS = re.compile(r"(\d+):(\d+)\[UID\]")
_FIRST, _STEP = 1000, 3


def name(_world: World, index: int) -> str:
    """Return the PMID of a work."""
    return str(_FIRST + _STEP * index)


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer esearch or efetch."""
    if ask.path == "/esearch.fcgi":
        return _search(stage, ask)
    if ask.path == "/efetch.fcgi":
        return _fetch(stage, ask)
    raise BadAsk(f"there is no {ask.path}")


def _search(stage: Stage, ask: Ask) -> Answer:
    term = ask.need("term")
    found = stage.shelf.between(*read_days(*find_span(_DAYS, term), stage.zone))
    uids = _UIDS.search(term)
    if uids:
        low, high = map(int, uids.groups())
        found = [entry for entry in found if low <= _FIRST + _STEP * entry.index <= high]
    if ask.params.get("rettype") == "count":
        return answer_json({"esearchresult": {"count": str(len(found))}})
    start, most = ask.number("retstart", 0), ask.number("retmax", 20)
    return _ids(stage, term, found, start, most)


def _ids(stage: Stage, term: str, found: list[Entry], start: int, most: int) -> Answer:
    result: dict[str, Any] = {"count": str(len(found))}
    if "clamped-count" in stage.habits:
        if start >= stage.cap:
            told = f"Search Backend failed: 'retstart' cannot be larger than {stage.cap - 1}"
            return answer_json({"header": {}, "esearchresult": {"ERROR": told}})
        if start + most > stage.cap:
            most = stage.cap - start
            adjusted = f"Restrictions achieved. start and count adjusted to {start}, {most}"
            result["warninglist"] = {"outputmessages": [adjusted]}
    page = found[start : start + most]
    result |= {"retmax": str(len(page)), "retstart": str(start)}
    result["idlist"] = [name(stage.world, entry.index) for entry in page]
    return answer_json({"header": {}, "esearchresult": result}, page=f"pubmed:{term}@{start}")


def _fetch(stage: Stage, ask: Ask) -> Answer:
    wanted = [int(text) for text in ask.need("id").split(",") if text.isdecimal()]
    known = {_FIRST + _STEP * entry.index: entry for entry in stage.shelf.entries}
    found = [known[uid] for uid in wanted if uid in known and _comes(stage, known[uid].index)]
    articles = "".join(_article(stage, entry) for entry in found)
    body = f'<?xml version="1.0"?><PubmedArticleSet>{articles}</PubmedArticleSet>'
    return Answer(200, "text/xml; charset=UTF-8", body.encode())


def _comes(stage: Stage, index: int) -> bool:
    match loss_of(index, stage.habits):
        case Loss.GONE:
            return False
        case Loss.LATE:
            return not stage.memory.is_first(("fetched", index))
        case _:
            return True


def _article(stage: Stage, entry: Entry) -> str:
    # Inline markup in a title: whoever takes only the first text loses the rest.
    title = escape(title_of(entry)).replace("H2O", "H<sub>2</sub>O")
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="{entry.version}">'
        f"{name(stage.world, entry.index)}</PMID><Article><ArticleTitle>{title}</ArticleTitle>"
        f"</Article></MedlineCitation></PubmedArticle>"
    )


def loses(index: int, habits: Habits) -> Loss | None:
    """Return why an id never brings its record; one that comes late does come."""
    return Loss.GONE if loss_of(index, habits) is Loss.GONE else None


FACE = Face(answer, name, tells=lambda _stage, _entry: None, loses=loses)
