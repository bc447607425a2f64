"""As arXiv's query interface: Atom, minutes, offsets, and errors that look like answers."""

import re
from xml.sax.saxutils import escape

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.spans import find_span, read_second
from patra_ingest.sandbox.faces.stage import MAX_PAGE, Ask, Face, Stage, title_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.notation import iso_second
from patra_ingest.sandbox.world import World

_RANGE = re.compile(r"lastUpdatedDate:\[(\d{12}) TO (\d{12})\]")
_ATOM = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<feed xmlns="http://www.w3.org/2005/Atom"'
    ' xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
    "<opensearch:totalResults>{total}</opensearch:totalResults>{entries}</feed>"
)
_ERROR = (
    "<entry><id>http://arxiv.org/api/errors</id><title>Error</title>"
    "<updated>2025-01-01T00:00:00Z</updated><summary>malformed query</summary></entry>"
)


def name(_world: World, index: int) -> str:
    """Return the arXiv id of a work, without its version."""
    return f"2501.{index:05d}"


def answer(stage: Stage, ask: Ask) -> Answer:
    """Answer a feed; an error is a feed too, and throttling is a bare sentence."""
    if "rate-text" in stage.habits:
        return Answer(200, "text/plain", b"Rate exceeded.")
    if "error-entry" in stage.habits:
        return _feed(1, _ERROR)
    query = ask.need("search_query")
    first, last = (_minute(text) for text in find_span(_RANGE, query))
    entries = stage.shelf.between(first, last + 60)
    start = ask.number("start", 0)
    page = entries[start : start + ask.number("max_results", 10, MAX_PAGE)]
    written = "".join(_entry(stage, entry) for entry in page)
    return _feed(len(entries), written, f"arxiv:{query}@{start}")


def _minute(text: str) -> int:
    return read_second(f"{text[:8]}T{text[8:]}00")


def _feed(total: int, entries: str, page: str = "") -> Answer:
    body = _ATOM.format(total=total, entries=entries).encode()
    return Answer(200, "application/atom+xml; charset=UTF-8", body, page=page)


def _entry(stage: Stage, entry: Entry) -> str:
    own = name(stage.world, entry.index)
    # A feed wraps its lines, also inside a title.
    title = escape(title_of(entry)).replace(", ", ",\n  ")
    return (
        f"<entry><id>http://arxiv.org/abs/{own}v{entry.version}</id><title>{title}</title>"
        f"<updated>{iso_second(entry.second)}</updated></entry>"
    )


FACE = Face(answer, name)
