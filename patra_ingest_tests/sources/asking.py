"""What a pack asks, written by the functions that the executor writes it with."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.executor.asking import Asking
from patra_ingest.executor.paging import Page
from patra_ingest.executor.request import render
from patra_ingest.model.lineage import RunId
from patra_ingest.model.window import Window
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.messages import Request

ONE_DAY = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
CONTACT = "suite@uni-x.de"


def request_for(
    spec: SpecSnapshot,
    page: Page | None = None,
    ids: Sequence[str] = (),
    contact: str = CONTACT,
    window: Window = ONE_DAY,
) -> Request:
    """Return the request for a page of a window, the first one unless told, or for ids."""
    own = None if ids else window
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    asking = Asking(own, page or Page(), RunId(7), 1, contact, now, ids=tuple(ids))
    return render(spec, asking)


def sent(request: Request) -> dict[str, str]:
    """Return the parameters in the address of a request."""
    return dict(parse_qsl(urlsplit(request.full_url).query, keep_blank_values=True))
