"""As Semantic Scholar: a search that gives ids, and a batch that answers place by place."""

from typing import Any

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import read_second
from patra_ingest.sandbox.faces.stage import (
    MAX_PAGE,
    Ask,
    BadAsk,
    Face,
    Stage,
    answer_json,
    title_of,
)
from patra_ingest.sandbox.habits.losses import Loss, loss_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.tokens import read_token, write_token
from patra_ingest.sandbox.world import World


def name(world: World, index: int) -> str:
    """Return the paperId of a work."""
    return f"{world.dice(index):016x}{index:024x}"


def _index(world: World, paper_id: object) -> int | None:
    text = str(paper_id)
    index = int(text[16:], 16) if len(text) == 40 else world.records
    return index if index < world.records and name(world, index) == text else None


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a search, or a batch of ids."""
    if ask.path == "/search":
        return _search(stage, ask)
    if ask.path == "/batch":
        return _batch(stage, ask)
    raise BadAsk(f"there is no {ask.path}")


def _search(stage: Stage, ask: Ask) -> Answer:
    first, last = (read_second(ask.need(key)) for key in ("from", "until"))
    entries, size = stage.shelf.between(first, last + 1), ask.number("limit", 100, MAX_PAGE)
    scope = f"{first}-{last}"
    token = ask.params.get("token")
    position = read_token(token, scope) if token else 0
    if position is None:
        raise BadAsk("the token was not made for this search")
    page = entries[position : position + size]
    data = [{"paperId": name(stage.world, entry.index)} for entry in page]
    more = position + size < len(entries)
    told = {
        "total": len(entries),
        "token": write_token(position + size, scope) if more else None,
        "data": data,
    }
    return answer_json(told, page=f"s2:{scope}@{position}")


def _batch(stage: Stage, ask: Ask) -> Answer:
    wanted = ask.body.get("ids") if isinstance(ask.body, dict) else None
    if not isinstance(wanted, list):
        raise BadAsk("the body is a list of ids")
    indexes = [_index(stage.world, one) for one in wanted]
    losses = [None if one is None else loss_of(one, stage.habits) for one in indexes]
    if Loss.POISON in losses:
        return answer_json({"message": "Internal Server Error"}, status=500)
    entries = {entry.index: entry for entry in stage.shelf.entries}
    pairs = zip(indexes, losses, strict=True)
    return answer_json([_paper(stage, entries, index, loss) for index, loss in pairs])


def _paper(
    stage: Stage, entries: dict[int, Entry], index: int | None, loss: Loss | None
) -> dict[str, Any] | None:
    """Return the paper in its place: null for one that is not known, another for a merged one."""
    if index is None or loss is Loss.GONE:
        return None
    entry = entries[index - 1 if loss is Loss.MERGED else index]
    return {
        "paperId": name(stage.world, entry.index),
        "title": title_of(entry),
        "updated": iso_second(entry.second),
        "version": entry.version,
    }


FACE = Face(answer, name, loses=loss_of)
