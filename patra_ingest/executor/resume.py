"""Where a task goes on after what earlier runs have committed. Pure.

A token that is older than its declared life is not resumed, nor one that serves all pages of a walk
at once: nobody knows what it would bring now. The slice is then walked again from its first page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Details, Place, Work
from patra_ingest.executor.paging import Page, first_page
from patra_ingest.executor.positions import page_at
from patra_ingest.executor.turning import after_details
from patra_ingest.ledger.batches import DoneBatch
from patra_ingest.spec.paging import TokenPaging, UrlPaging
from patra_ingest.transport.redact import HIDDEN


@dataclass(frozen=True)
class Resumed:
    """Where a run begins: at a place (None: there is nothing left to ask), with a history."""

    place: Place | None
    history: History
    void: str | None = None  # why nothing of what was walked before counts any more
    dead_token: str | None = None  # the one that would have been next


def resume(work: Work, done: Sequence[DoneBatch], now: datetime) -> Resumed:
    """Return where the slice goes on after its committed batches."""
    beginning = Place(first_page(work.walk))
    if not done:
        return Resumed(beginning, History.of([]))
    place, address = _place_after(work, done), done[-1].address
    if place is not None and address is not None:
        place = place.at_address(address)
    why = _why_void(work, place, done, now)
    if why is not None:
        return Resumed(beginning, History.of([]), why, place.page.token if place else None)
    return Resumed(place, History.of([batch.stats for batch in done]))


def _place_after(work: Work, done: Sequence[DoneBatch]) -> Place | None:
    last = done[-1]
    searches = [n for n, batch in enumerate(done) if batch.stats.get("phase") == "SEARCH"]
    if not searches or work.plan.spec.detail is None:
        after = last.after_position
        return Place(page_at(work.walk, last.page_no + 1, after)) if after else None
    search = done[searches[-1]]
    fetched = sum(batch.stats["askedCount"] for batch in done[searches[-1] + 1 :])
    stats, number = search.stats, search.page_no
    following = stats["searchNext"]
    after_page = page_at(work.walk, number + 1, following) if following else None
    found = tuple(stats["foundIds"])
    details = Details(found, fetched, work.plan.spec.detail.batch, after_page)
    return after_details(_page_of(work, search), details)


def _page_of(work: Work, search: DoneBatch) -> Page:
    return page_at(work.walk, search.page_no, search.stats["searchAt"])


def _bringer(done: Sequence[DoneBatch]) -> DoneBatch:
    """Return the batch that brought the last token: details bring none."""
    return next((one for one in reversed(done) if one.stats.get("phase") != "DETAIL"), done[-1])


def _why_void(
    work: Work, place: Place | None, done: Sequence[DoneBatch], now: datetime
) -> str | None:
    """Return why a walk cannot be resumed at a place, or None when it can."""
    paging = work.plan.spec.paging
    if place is None or not isinstance(paging, TokenPaging | UrlPaging) or work.bounds.ids:
        return None
    needed = place.needed
    if needed is None:
        return None
    is_hidden = done[-1].address is None and HIDDEN in (needed.token or "")
    if isinstance(paging, UrlPaging) and is_hidden:
        return "TOKEN_EXPIRED"  # the whole address was let go when the task ended
    if isinstance(paging, TokenPaging) and paging.token_stays:
        return "TOKEN_STAYS"
    if paging.token_life is not None and _bringer(done).committed_at + paging.token_life < now:
        return "TOKEN_EXPIRED"
    return None
