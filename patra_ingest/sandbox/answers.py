"""What the sandbox sends back, written as Crossref writes it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from patra_ingest.sandbox.bodies import Bodies
from patra_ingest.sandbox.notation import iso_second, to_json
from patra_ingest.sandbox.queries import Query, Refusal
from patra_ingest.sandbox.tokens import write_token
from patra_ingest.sandbox.world import World

_TRUTH_CHUNK = 5_000  # works written at once, so that a million of them never stand in memory
_HTML = "<html><body><h1>{}</h1>\n{}\n</body></html>\n"


@dataclass(frozen=True)
class Answer:
    """One response: status, kind of body, body, headers besides, and the name of its page."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    page: str = ""


def answer_page(bodies: Bodies, query: Query, token: str | None = None) -> Answer:
    """Return a page of works; with a cursor there is always a next one, even after the last."""
    items = bodies.write(query.page)
    if query.select:
        items = [_select(b"".join(items), query.select)]
    opening = (
        b'{"status":"ok","message-type":"work-list","message-version":"1.0.0","message":{'
        b'"facets":{},%s"total-results":%d,"items":'
        % (_next_cursor(query, token), len(query.works))
    )
    start = 0 if query.cursor else query.position
    closing = b',"items-per-page":%d,"query":{"start-index":%d,"search-terms":null}}}' % (
        query.rows,
        start,
    )
    body = b"".join((opening, *items, closing))
    return Answer(200, "application/json", body, page=query.page_key)


def _next_cursor(query: Query, token: str | None) -> bytes:
    cursor = token or next_cursor(query)
    return b"" if cursor is None else b'"next-cursor":%s,' % to_json(cursor)


def next_cursor(query: Query) -> str | None:
    """Return the cursor that a page hands out; none to those who page by offset."""
    if query.cursor is None:
        return None
    # Without rows there is no step: Crossref then repeats the cursor it was sent.
    reached = query.position + len(query.page)
    return write_token(reached, query.scope) if query.rows else query.cursor


def _select(items: bytes, names: tuple[str, ...]) -> bytes:
    works = orjson.loads(items)
    return to_json([{name: work[name] for name in names if name in work} for work in works])


def answer_refusal(refusal: Refusal) -> Answer:
    """Return the refusal in Crossref's shape: a list of reasons under `message`."""
    kind = "resource-failure" if refusal.status == 404 else "validation-failure"
    reason = {"type": refusal.type, "value": refusal.value, "message": refusal.message}
    body = to_json({"status": "failed", "message-type": kind, "message": [reason]})
    return Answer(refusal.status, "application/json;charset=utf-8", body)


def answer_throttled(retry_after: int) -> Answer:
    """Return 429, and in how many seconds to come back; 0 does not say."""
    text = "You have sent too many requests in a given amount of time."
    body = _HTML.format("429 Too Many Requests", text).encode()
    headers = ((b"retry-after", b"%d" % retry_after),) if retry_after else ()
    return Answer(429, "text/html", body, headers)


def answer_unavailable() -> Answer:
    """Return 503 as a load balancer does: HTML, and nothing about when to come back."""
    text = "No server is available to handle this request."
    return Answer(503, "text/html", _HTML.format("503 Service Unavailable", text).encode())


def answer_not_found() -> Answer:
    """Return Crossref's 404 for a path it does not know: plain text."""
    return Answer(404, "text/plain", b"Resource not found.")


def answer_json(value: object, status: int = 200) -> Answer:
    """Return something the sandbox says about itself."""
    return Answer(status, "application/json", orjson.dumps(value))


def write_truth(world: World, works: range) -> Iterator[bytes]:
    """Yield, piece by piece, the JSON of which works exist and when each was indexed."""
    chunks = [works[low : low + _TRUTH_CHUNK] for low in range(0, len(works), _TRUTH_CHUNK)]
    yield b'{"count":%d,"ids":[' % len(works)
    for number, chunk in enumerate(chunks):
        ids = ",".join(f'"{world.doi(index)}"' for index in chunk)
        yield ("," * (number > 0) + ids).encode()
    yield b'],"updated_at":{'
    for number, chunk in enumerate(chunks):
        pairs = ",".join(
            f'"{world.doi(index)}":"{iso_second(world.indexed_second(index))}"' for index in chunk
        )
        yield ("," * (number > 0) + pairs).encode()
    yield b"}}"
