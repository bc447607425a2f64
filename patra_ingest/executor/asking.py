"""One question about to be asked: which slice, which page, which ids; and what templates may say.

Everything here is decided before a request is written, so that the same question is written the
same way by every worker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from patra_ingest.executor.paging import Page
from patra_ingest.model.lineage import RunId
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.spec.localize import window_variables
from patra_ingest.spec.paging import PagePaging, TimePaging
from patra_ingest.spec.snapshot import SpecSnapshot

TOOL = "patra-ingest"
CONTACT = "identity.contact"  # what a template calls the mail address that we can be reached at


@dataclass(frozen=True)
class Asking:
    """One batch about to be asked: its slice, its page, and who asks when."""

    window: Window | None  # None: the slice is cut by ids or by pages
    page: Page
    run_id: RunId
    batch_no: int
    contact: str
    now: datetime
    lookback: timedelta = timedelta(0)
    split: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    details: bool = False  # the ids go to the spec's detail endpoint
    tool: str = TOOL


def variables_of(spec: SpecSnapshot, asking: Asking) -> Mapping[str, object]:
    """Return what `${…}` may name in a request of this question."""
    page, query = asking.page, spec.query
    size = page.size or spec.paging.page_size
    if asking.details and spec.detail is not None:
        size = spec.detail.batch
    number = page.offset if isinstance(spec.paging, PagePaging) else page.number
    return {
        "window": _window(spec, asking),
        "ids": list(asking.ids) or None,
        "page": {"size": size, "offset": page.offset, "number": number, "token": page.token},
        "params": dict(spec.params),
        "identity": {"contact": asking.contact or None, "tool": asking.tool},
        "query": query.text if query else None,
        "asked": {name: ",".join(values) for name, values in query.placed.items()} if query else {},
        "split": asking.split,
        "partition": dict(asking.partition),
        "now": asking.now,
    }


def _window(spec: SpecSnapshot, asking: Asking) -> Mapping[str, object]:
    window, page = asking.window, asking.page
    if window is None:
        return {}
    if isinstance(spec.paging, TimePaging) and page.token is not None:
        # The walk goes on at the last item's time; what lies before it has been read.
        rest = Window(min(parse_instant(page.token), window.end), window.end)
        own = spec.window.model_copy(update={"overlap": timedelta(0)})
        return window_variables(own, rest)
    return window_variables(spec.window, window, asking.lookback)
