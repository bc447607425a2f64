"""As an OAI-PMH repository: XML, a resumption token that comes alone, deleted headers.

`/oai` reports a dead token inside the answer, `/zenodo` with status 422.
"""

from dataclasses import dataclass, replace

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.oai_xml import write_error, write_records
from patra_ingest.sandbox.faces.spans import read_second
from patra_ingest.sandbox.faces.stage import Ask, Face, Stage
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.tokens import write_token
from patra_ingest.sandbox.world import World

PAGE = 50
_HELD_BACK = 0.6  # with `clamped-until`: what comes after this share of the world is not shown


@dataclass(frozen=True)
class Walk:
    """What a resumption token stands for."""

    start: str
    until: str
    position: int = 0
    began: int | None = None  # a living world is shown as it was at this second


def name(_world: World, index: int) -> str:
    """Return the OAI identifier of a work."""
    return f"oai:sandbox.example:{index}"


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer ListRecords, from the start or from a token."""
    walk = _walk(stage, ask)
    if walk is None:
        return write_error(stage.habits, "badResumptionToken", "the token has expired")
    if walk.began is not None:
        stage.shelf.move_to(walk.began)
    first, last = read_second(walk.start), read_second(walk.until)
    entries = stage.shelf.between(first, last + 1)
    if not entries:
        return write_error(stage.habits, "noRecordsMatch", "nothing matches", walk.until)
    page = entries[walk.position : walk.position + _page_size(stage, walk)]
    reached = walk.position + len(page)
    token = None
    if reached < len(entries):
        following = replace(walk, position=reached)
        token = write_token(reached, f"{walk.start}/{walk.until}/{walk.began}")
        stage.memory.hand_out(token, stage.now, following)
    named = [(name(stage.world, entry.index), entry) for entry in page]
    listed = (walk.until, len(entries), token)
    key = f"oai:{walk.start}/{walk.until}@{walk.position}"
    return write_records(stage.habits, named, listed, key)


def _page_size(stage: Stage, walk: Walk) -> int:
    # A list of one looks like no list to a careless parser.
    alone = "odd-xml" in stage.habits and walk.position == 0
    return 1 if alone else PAGE


def _walk(stage: Stage, ask: Ask) -> Walk | None:
    """Return where to go on; None for a token that is unknown or too old."""
    token = ask.params.get("resumptionToken")
    if token is None:
        return Walk(ask.need("from"), _until(stage, ask.need("until")), began=stage.newest)
    walk = stage.memory.walk(token)
    known = isinstance(walk, Walk) and not stage.is_dead(token)
    return walk if known and len(ask.params) == 2 else None


def _until(stage: Stage, asked: str) -> str:
    """Return the end that is served; what is newer is kept for those who pay."""
    if "clamped-until" not in stage.habits:
        return asked
    world = stage.world
    shown = iso_second(world.first_second + int(world.seconds * _HELD_BACK))
    return min(asked, shown)


def answer_zenodo(stage: Stage, ask: Ask) -> Answer:
    """Answer as above, but a dead token is status 422."""
    if "resumptionToken" in ask.params and _walk(stage, ask) is None:
        return Answer(422, "application/json", b'{"status":422,"message":"Unprocessable"}')
    return answer(stage, ask)


FACE = Face(answer, name, deletes=True)
ZENODO = Face(answer_zenodo, name, deletes=True)
