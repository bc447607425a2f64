"""Which page comes next. Pure: the answer depends on the arguments and nothing else."""

from dataclasses import dataclass
from typing import NoReturn, assert_never

from patra_ingest.errors import EndpointHalted, SliceIncomplete, SliceTooBig
from patra_ingest.model.codes import ResliceReason
from patra_ingest.spec.paging import OffsetPaging, Paging, TokenPaging
from patra_ingest.spec.words import StopRule


@dataclass(frozen=True)
class Page:
    """Where one batch starts: the n-th page of its slice, at an offset or a token."""

    number: int = 1
    offset: int = 0
    token: str | None = None


@dataclass(frozen=True)
class IdsWalk:
    """A walk over ids: one page is one request for as many as the source takes at once."""

    ids: tuple[str, ...]
    per_request: int

    def asked(self, page: Page) -> tuple[str, ...]:
        """Return the ids that a page asks for."""
        return self.ids[page.offset : page.offset + self.per_request]


Walk = Paging | IdsWalk


@dataclass(frozen=True)
class Seen:
    """What the last response told us about paging."""

    item_count: int
    next_token: str | None = None
    total: int | None = None


@dataclass(frozen=True)
class Ended:
    """There is no next page, and the declared rule that says so."""

    rule: StopRule


def first_page(paging: Walk) -> Page:
    """Return where a slice begins."""
    match paging:
        case OffsetPaging() | IdsWalk():
            return Page()
        case TokenPaging(initial_token=token):
            return Page(token=token)
        case _:
            _unknown(paging)


def next_page(paging: Walk, page: Page, seen: Seen) -> Page | Ended:
    """Return the page after `page`, or the declared stop rule that makes it the last.

    Only declared rules end a slice. A token that does not move, or no token where none of the
    rules speaks of it, is an error: silence is never taken for the end.
    """
    if isinstance(paging, IdsWalk):
        following = page.offset + paging.per_request
        more = following < len(paging.ids)
        return Page(page.number + 1, following) if more else Ended(StopRule.TOTAL_REACHED)
    return _following(paging, page, seen)


def _following(paging: Paging, page: Page, seen: Seen) -> Page | Ended:
    for rule in paging.stop:
        if _holds(rule, paging, page, seen):
            return Ended(rule)
    if paging.max_pages is not None and page.number >= paging.max_pages:
        raise SliceTooBig(
            ResliceReason.PAGE_DEPTH,
            f"page {page.number} is the last allowed (max_pages) and no stop rule holds yet",
            seen.total,
        )
    match paging:
        case OffsetPaging(page_size=size):
            return Page(page.number + 1, offset=page.offset + size)
        case TokenPaging():
            if not seen.next_token:
                raise SliceIncomplete(f"page {page.number} hands out no token and is not the last")
            if seen.next_token == page.token:
                raise SliceIncomplete(f"page {page.number} hands out its own token: a loop")
            return Page(page.number + 1, token=seen.next_token)
        case _:
            _unknown(paging)


def _holds(rule: StopRule, paging: Paging, page: Page, seen: Seen) -> bool:
    match rule:
        case StopRule.NO_TOKEN:
            return isinstance(paging, TokenPaging) and not seen.next_token
        case StopRule.SAME_TOKEN:
            return bool(seen.next_token) and seen.next_token == page.token
        case StopRule.EMPTY_PAGE:
            return seen.item_count == 0
        case StopRule.SHORT_PAGE:
            return seen.item_count < paging.page_size
        case StopRule.TOTAL_REACHED:
            before = (page.number - 1) * paging.page_size
            return seen.total is not None and before + seen.item_count >= seen.total
        case StopRule.ONE_PAGE | StopRule.NO_MORE:
            _unknown(paging)
        case _:
            assert_never(rule)


def _unknown(paging: Paging) -> NoReturn:
    # The planner refuses such a spec; a plan made by a newer version may still be in the ledger.
    raise EndpointHalted(f"this version cannot walk pages of the kind {paging.type}")


def position(paging: Walk, page: Page) -> str:
    """Return the page's place in its slice as text: what the ledger stores and compares."""
    match paging:
        case IdsWalk():
            return f"ids:{page.offset}"
        case OffsetPaging():
            return f"offset:{page.offset}"
        case TokenPaging():
            return f"token:{page.token or ''}"
        case _:
            _unknown(paging)


def page_at(paging: Walk, number: int, text: str) -> Page:
    """Return the page a stored position names; the opposite of `position`."""
    value = text.partition(":")[2]
    match paging:
        case OffsetPaging() | IdsWalk():
            return Page(number, offset=int(value))
        case TokenPaging():
            return Page(number, token=value or None)
        case _:
            _unknown(paging)
