"""What a compiled pack asks for, and whether what it kept is the common record."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.executor.paging import Page, first_page
from patra_ingest.executor.request import Asking, render
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.sandbox.recordings import read_recording
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.messages import Response
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.sources.recorded import Read
from patra_ingest_tests.sources.suite.cases import HANDMADE


def days_of(first: str, past: str) -> Window:
    """Return the window from one day to the one that does not belong to it any more."""
    return Window(parse_instant(first), parse_instant(past))


def question(
    spec: SpecSnapshot, window: Window | None, page: Page | None = None, **more: Any
) -> tuple[str, dict[str, str]]:
    """Return the address and the parameters of the request for a page of a window, the first."""
    page = page or first_page(spec.paging)
    request = render(spec, Asking(window, page, 7, page.number, "me@example.org", NOON, **more))
    asked = urlsplit(request.full_url)
    sent = dict(parse_qsl(asked.query, keep_blank_values=True))
    return f"{asked.scheme}://{asked.netloc}{asked.path}", sent


def handmade(source: str, name: str) -> Response:
    """Return an answer of our own."""
    one = read_recording(HANDMADE / source, name)
    return Response(one.status, dict(one.headers), one.body, 0.1, one.url, NOON)


def fields_of(page: Read, provider_id: str) -> Mapping[str, Any]:
    """Return the fields of one record."""
    fields: dict[str, Any] = json.loads(page.record(provider_id).fields_json)
    return fields


def misfits(page: Read) -> list[str]:
    """Return what the common record would write in another way, of all records of a page."""
    fields = [json.loads(record.fields_json) for record in page.mapped.records]
    return [sentence for one in fields for sentence in find_misfits(one)]
