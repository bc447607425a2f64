"""A response body becomes a tree that paths can walk; or an error with its first bytes.

The body decides what it is. Sources send JSON as text/html and XML as text/plain; the header only
helps to say why something cannot be read. A page for people is never data, whatever was asked for.
"""

import re
from contextlib import suppress
from typing import Any

import orjson

from patra_ingest.errors import EndpointHalted, IngestError, TransientError
from patra_ingest.executor.charset import Charset, as_text, charset_of, xml_names_its_charset
from patra_ingest.executor.malformed import MalformedList, MalformedObject, read_malformed
from patra_ingest.executor.tables import HeaderChanged, read_rows
from patra_ingest.executor.triage import shown_answer
from patra_ingest.expr.xml_stream import NO_LOOKS, Looks, find_trails, stream_xml
from patra_ingest.expr.xml_tree import XmlNode, read_xml
from patra_ingest.spec.snapshot import ResponseSpec
from patra_ingest.spec.words import BodyFormat
from patra_ingest.transport.messages import Response
from patra_ingest.transport.redact import redact_text

STREAM_FROM = 8 * 1024 * 1024  # bytes; a larger XML body is read item by item

_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_NAMES = {
    BodyFormat.JSON: "JSON",
    BodyFormat.NDJSON: "JSON Lines",
    BodyFormat.XML: "XML",
    BodyFormat.CSV: "CSV",
}


class BodyUnreadable(TransientError):
    """L1: the body is not what the source is known to send; proxies and busy servers do that."""


def read_tree(
    response: Response,
    spec: ResponseSpec,
    stream_from: int = STREAM_FROM,
    looks: Looks = NO_LOOKS,
) -> Any:
    """Return the body as a tree: what orjson reads, an XmlNode, or a list of lines or rows.

    JSON with values that JSON does not have, such as NaN or half a character, says so itself.
    `looks` is what will be looked for in the items: a large XML body is then read only once.

    Raises BodyUnreadable with the address, the status, the reason and the first bytes, and
    EndpointHalted for a table that has other columns than the pack reads.
    """
    try:
        return _read(response, spec, stream_from, looks)
    except ValueError as error:
        raise unreadable(response, spec, error) from error


def unreadable(response: Response, spec: ResponseSpec, error: ValueError) -> IngestError:
    """Return the error of a body that is not what the source is known to send."""
    kind = response.headers.get("content-type", "no content type")
    seen = f"{response.url} answered {response.status} with {kind}"
    why = redact_text(str(error), 300)
    first = shown_answer(response)
    if isinstance(error, HeaderChanged) and 200 <= response.status < 300:
        return EndpointHalted(f"{seen}: {why}: {first}")
    return BodyUnreadable(f"{seen} that is not {_NAMES[spec.format]} ({why}): {first}")


def plain(item: Any) -> Any:
    """Return an item as JSON holds it: an XML element as its text, anything else as it is."""
    return item.to_text() if isinstance(item, XmlNode) else item


def _read(response: Response, spec: ResponseSpec, stream_from: int, looks: Looks) -> Any:
    body = response.body
    is_nothing = not body.strip() if len(body) < 1024 else False
    may_be_nothing = spec.format is BodyFormat.NDJSON and response.status == 200
    if is_nothing and may_be_nothing and not _says_html(response):
        return []
    if is_nothing:
        raise ValueError("the body is empty")
    charset = charset_of(response)
    if _HTML.match(body, charset.mark):
        raise ValueError("it is an HTML page")
    match spec.format:
        case BodyFormat.JSON:
            return _json(_json_bytes(body, charset))
        case BodyFormat.NDJSON:
            return _lines(_json_bytes(body, charset))
        case BodyFormat.XML:
            return _elements(body, charset, spec, stream_from, looks)
        case BodyFormat.CSV:
            return read_rows(as_text(body, charset), spec.id, _says_html(response))


def _utf8(body: bytes, charset: Charset) -> bytes:
    """Return the body as orjson takes it: UTF-8 without a byte order mark."""
    if charset.is_utf8:
        return body[charset.mark :] if charset.mark else body
    return as_text(body, charset).encode()


def _json_bytes(body: bytes, charset: Charset) -> bytes:
    """Return the body as `_utf8` does; what does not fit its charset as bytes that are no UTF-8."""
    try:
        return _utf8(body, charset)
    except ValueError:
        with suppress(UnicodeError):
            text = body[charset.mark :].decode(charset.name, "surrogateescape")
            return text.encode("utf-8", "surrogatepass")
        raise


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        try:
            return read_malformed(body)
        except ValueError:
            raise error from None


def _lines(body: bytes) -> list[Any]:
    found = []
    for number, line in enumerate(body.split(b"\n"), 1):
        text = line.strip()
        if not text:
            continue
        try:
            found.append(_json(text))
        except orjson.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error}") from error
    is_sound = {*map(type, found)}.isdisjoint((MalformedObject, MalformedList))
    return found if is_sound else MalformedList(found)


def _elements(
    body: bytes, charset: Charset, spec: ResponseSpec, stream_from: int, looks: Looks
) -> XmlNode:
    if not (charset.mark or xml_names_its_charset(body)):
        body = _utf8(body, charset)
    text = body.lstrip() if body[:1].isspace() else body  # PHP likes to begin with a line break
    trails = find_trails(spec.items) if len(body) > stream_from else ()
    if trails:
        document = stream_xml(text, spec.namespaces, trails, looks=looks)
    else:
        document = read_xml(text, spec.namespaces)
    if document.children[0].name.rpartition(":")[2].lower() == "html":
        raise ValueError("it is an HTML page")
    return document


def _says_html(response: Response) -> bool:
    return "html" in response.headers.get("content-type", "").lower()
