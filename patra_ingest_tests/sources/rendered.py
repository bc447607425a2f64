"""Requests of a pack as the executor writes them, taken apart so that they can be compared."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from patra_ingest.executor.paging import Page, first_page
from patra_ingest.executor.request import Asking, render
from patra_ingest.model.window import Window
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest_tests.builders import NOON


@dataclass(frozen=True)
class Sent:
    """What goes over the wire."""

    method: str
    address: str  # without its parameters
    params: dict[str, str]
    url: str
    headers: dict[str, str]
    body: Any = None


def hours(start: str, end: str) -> Window:
    """Return the window between two instants, such as 2026-11-01T04Z."""
    return Window(datetime.fromisoformat(start), datetime.fromisoformat(end))


def sent_for(
    spec: SpecSnapshot, window: Window | None = None, page: Page | None = None, **more: Any
) -> Sent:
    """Return the request for a page of a window, for the first one unless told otherwise."""
    at = page or first_page(spec.paging)
    request = render(spec, Asking(window, at, 7, at.number, "me@example.org", NOON, **more))
    parts = urlsplit(request.full_url)
    return Sent(
        request.method,
        f"{parts.scheme}://{parts.netloc}{parts.path}",
        dict(parse_qsl(parts.query, keep_blank_values=True)),
        request.full_url,
        {name.lower(): value for name, value in request.headers.items()},
        orjson.loads(request.body) if request.body else None,
    )
