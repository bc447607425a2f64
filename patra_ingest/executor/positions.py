"""The place of a page as text, and back: what the ledger stores of a walk. Pure."""

from typing import assert_never

from patra_ingest.executor.paging import IdsWalk, Page, RangeWalk, Walk
from patra_ingest.spec.paging import (
    NoPaging,
    OffsetPaging,
    PagePaging,
    TimePaging,
    TokenPaging,
    UrlPaging,
)
from patra_ingest.transport.redact import hide_parameters


def position(walk: Walk, page: Page) -> str:
    """Return the page's place in its slice as text: what the ledger stores and compares.

    What a source has signed an address with is not in it.
    """
    match walk:
        case IdsWalk():
            return f"ids:{page.offset}"
        case RangeWalk(paging=paging):
            return position(paging, page)
        case OffsetPaging():
            return f"offset:{page.offset}"
        case PagePaging():
            # The same number means another place when pages are smaller.
            return f"page:{page.offset}" + (f"/{page.size}" if page.size else "")
        case TokenPaging() | UrlPaging():
            # With its number: some sources hand out one and the same token for every page.
            token = page.token or ""
            shown = hide_parameters(token) if isinstance(walk, UrlPaging) else token
            return f"{walk.type.lower()}#{page.number}:{shown}"
        case TimePaging():
            return f"time:{page.token or ''}"
        case NoPaging():
            return "only:"
        case _:
            assert_never(walk)


def page_at(walk: Walk, number: int, text: str) -> Page:
    """Return the page a stored position names; the opposite of `position`."""
    value = text.partition(":")[2]
    if isinstance(walk, OffsetPaging | PagePaging | IdsWalk | RangeWalk):
        offset, _, size = value.partition("/")
        return Page(number, offset=int(offset), size=int(size) if size else None)
    return Page(number, token=value or None)
