"""Which page comes next. Pure: the answer depends on the arguments and nothing else."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from patra_ingest.errors import SliceIncomplete, SliceTooBig
from patra_ingest.model.bounds import PageRange
from patra_ingest.model.codes import ResliceReason
from patra_ingest.model.window import instant_iso
from patra_ingest.spec.paging import (
    NoPaging,
    OffsetPaging,
    PagePaging,
    Paging,
    TimePaging,
    TokenPaging,
    UrlPaging,
)
from patra_ingest.spec.words import SizePolicy, Step, StopRule

RANGE_END = "RANGE_END"  # a slice cut by pages has read its last one
IDS_END = "IDS_END"  # every id of the slice was asked for


@dataclass(frozen=True)
class Page:
    """Where one batch starts: the n-th page of its slice, at an offset, a token or an address."""

    number: int = 1
    offset: int = 0  # OFFSET: items before it · PAGE: its number at the source · ids: its first one
    token: str | None = None  # TOKEN: the token · URL: the address · TIME: the instant
    size: int | None = None  # None: as declared; less after the source refused a larger one


@dataclass(frozen=True)
class IdsWalk:
    """A walk over ids: one page is one request for as many as the source takes at once."""

    ids: tuple[str, ...]
    per_request: int

    def asked(self, page: Page) -> tuple[str, ...]:
        """Return the ids that a page asks for."""
        return self.ids[page.offset : page.offset + self.per_request]


@dataclass(frozen=True)
class RangeWalk:
    """A walk over some pages of a source that cannot be cut by time."""

    paging: OffsetPaging | PagePaging
    pages: PageRange


Walk = Paging | IdsWalk | RangeWalk


@dataclass(frozen=True)
class Seen:
    """What the slice so far and its last response tell about paging."""

    item_count: int
    next: str | None = None
    total: int | None = None
    has_more: bool | None = None
    step: int | None = None
    before: int = 0  # items on the pages before this one
    last_time: datetime | None = None  # the update time of the last item
    repeats: int = 0  # items, here and before, whose id another one had
    most: int = 0  # the largest total that the pages before have named


@dataclass(frozen=True)
class Ended:
    """There is no next page, and the rule that says so."""

    rule: str


def first_page(walk: Walk) -> Page:
    """Return where a slice begins."""
    match walk:
        case OffsetPaging(first_offset=offset):
            return Page(offset=offset)
        case PagePaging(first_page=index):
            return Page(offset=index)
        case TokenPaging(initial_token=token):
            return Page(token=token)
        case RangeWalk(paging=OffsetPaging() as paging, pages=pages):
            return Page(offset=paging.first_offset + (pages.first - 1) * paging.page_size)
        case RangeWalk(paging=paging, pages=pages):
            return replace(first_page(paging), offset=first_page(paging).offset + pages.first - 1)
        case _:
            return Page()


def next_page(walk: Walk, page: Page, seen: Seen) -> Page | Ended:
    """Return the page after `page`, or the declared stop rule that makes it the last.

    Only declared rules end a slice. A token that does not move, or no token where none of the
    rules speaks of it, is an error: silence is never taken for the end.
    """
    match walk:
        case IdsWalk(ids=ids, per_request=count):
            following = page.offset + count
            return Page(page.number + 1, following) if following < len(ids) else Ended(IDS_END)
        case RangeWalk(paging=paging, pages=pages):
            skipped = (pages.first - 1) * paging.page_size
            most = skipped + seen.most if seen.most else 0
            whole = replace(seen, before=skipped + seen.before, most=most)
            after = _following(paging, page, whole)
            return Ended(RANGE_END) if isinstance(after, Page) and _is_past(walk, after) else after
        case _:
            return _following(walk, page, seen)


def _is_past(walk: RangeWalk, page: Page) -> bool:
    """Return whether a page belongs to the next range already; offsets may move in odd steps."""
    paging, past = walk.paging, walk.pages.past
    if past is None:
        return False
    if isinstance(paging, OffsetPaging):
        return page.offset >= paging.first_offset + (past - 1) * paging.page_size
    return page.offset >= paging.first_page + past - 1


def _following(paging: Paging, page: Page, seen: Seen) -> Page | Ended:
    for rule in paging.stop:
        if _holds(rule, paging, page, seen):
            return Ended(rule.value)
    _require_depth(paging, page, seen)
    _require_life(paging, page, seen)
    match paging:
        case OffsetPaging():
            step = _step(paging, page, seen)
            return replace(page, number=page.number + 1, offset=page.offset + step)
        case PagePaging():
            return replace(page, number=page.number + 1, offset=page.offset + 1)
        case TokenPaging() | UrlPaging():
            return _by_token(paging, page, seen)
        case TimePaging():
            return _by_time(page, seen)
        case NoPaging():
            raise SliceIncomplete("a walk of one page has no rule that ends it")
        case _:
            assert_never(paging)


def _require_depth(paging: Paging, page: Page, seen: Seen) -> None:
    if paging.max_pages is not None and page.number >= paging.max_pages:
        raise SliceTooBig(
            ResliceReason.PAGE_DEPTH,
            f"page {page.number} is the last allowed (max_pages) and no stop rule holds yet",
            seen.total,
        )


def _require_life(paging: Paging, page: Page, seen: Seen) -> None:
    """Raise for an empty page that no rule speaks of: a number can be counted up for ever."""
    by_number = isinstance(paging, OffsetPaging | PagePaging)
    if by_number and seen.item_count == 0 and seen.has_more is not True:
        raise SliceIncomplete(f"page {page.number} is empty and no stop rule says that it is last")


def _step(paging: OffsetPaging, page: Page, seen: Seen) -> int:
    match paging.step:
        case Step.PAGE_SIZE:
            step: int | None = page.size or paging.page_size
            if seen.item_count and _is_short(paging, page, seen) and _is_doubtful(paging, seen):
                step = seen.item_count
        case Step.ITEMS:
            step = seen.item_count
        case Step.REPORTED:
            step = seen.step
        case _:
            assert_never(paging.step)
    if not step:
        raise SliceIncomplete(f"a page of {seen.item_count} items moves the offset by {step}")
    return step


def _by_token(paging: TokenPaging | UrlPaging, page: Page, seen: Seen) -> Page:
    word = "token" if isinstance(paging, TokenPaging) else "address"
    if not seen.next:
        raise SliceIncomplete(f"page {page.number} hands out no {word} and is not the last")
    stays = isinstance(paging, TokenPaging) and paging.token_stays
    if seen.next == page.token and not stays:
        raise SliceIncomplete(f"page {page.number} hands out its own {word}: a loop")
    return replace(page, number=page.number + 1, token=seen.next)


def _by_time(page: Page, seen: Seen) -> Page:
    if seen.last_time is None:
        raise SliceIncomplete(f"the last item of page {page.number} has no update time to go on at")
    at = instant_iso(seen.last_time)
    if page.token is not None and at <= page.token:
        raise SliceTooBig(
            ResliceReason.RESULT_CAP,
            f"a whole page lies at {page.token}: the walk by time cannot get past it",
            seen.total,
        )
    return replace(page, number=page.number + 1, token=at)


def _holds(rule: StopRule, paging: Paging, page: Page, seen: Seen) -> bool:
    match rule:
        case StopRule.NO_TOKEN:
            return not seen.next
        case StopRule.SAME_TOKEN:
            return bool(seen.next) and seen.next == page.token
        case StopRule.EMPTY_PAGE:
            return seen.item_count == 0
        case StopRule.SHORT_PAGE:
            return _is_short(paging, page, seen) and _is_proof(paging, page, seen)
        case StopRule.TOTAL_REACHED:
            return _is_reached(paging, seen)
        case StopRule.NO_MORE:
            return seen.has_more is False
        case StopRule.ONE_PAGE:
            return True
        case _:
            assert_never(rule)


def _is_short(paging: Paging, page: Page, seen: Seen) -> bool:
    return seen.item_count < (page.size or paging.page_size)


def _is_doubtful(paging: Paging, seen: Seen) -> bool:
    """Return whether a short page may be a clamped one: no total tells, and the pack does not."""
    is_told = seen.total is not None and not (paging.total and paging.total.is_estimate)
    return not is_told and paging.size_policy not in (SizePolicy.OBEYED, SizePolicy.FIXED)


def _is_proof(paging: Paging, page: Page, seen: Seen) -> bool:
    """Return whether a short page is the last one; where it is not, the next page will tell."""
    if seen.item_count == 0 or seen.has_more is False:
        return True
    if isinstance(paging, TokenPaging | UrlPaging):
        stays = isinstance(paging, TokenPaging) and paging.token_stays
        leads_on = bool(seen.next) and (stays or seen.next != page.token)
        return not leads_on or _is_reached(paging, seen)
    if not _is_doubtful(paging, seen) or page.number == paging.max_pages:
        return True
    if isinstance(paging, TimePaging):  # a page asks for the last instant again: it is never empty
        return seen.last_time is None or page.token == instant_iso(seen.last_time)
    return False


def _is_reached(paging: Paging, seen: Seen) -> bool:
    """Return whether all that was promised has come. Less than this very page is no promise."""
    if seen.total is None or seen.total < seen.item_count:
        return False
    if isinstance(paging, TimePaging):  # each page is a question of its own, with its own total
        return seen.item_count >= seen.total
    reached = seen.before + seen.item_count
    if reached - seen.repeats >= max(seen.total, seen.most):
        return True
    # A total that fell, or that repeats have filled, ends only a walk that has nowhere to go.
    by_token = isinstance(paging, TokenPaging | UrlPaging)
    is_dry = not (seen.next if by_token else seen.item_count)
    return is_dry and reached >= seen.total


def shrunk(walk: Walk, page: Page) -> Page | None:
    """Return the same place asked for at half its size; None where that is not possible."""
    if isinstance(walk, IdsWalk | RangeWalk):
        return None  # ids are halved where they are asked for; a range counts in whole pages
    size = page.size or walk.page_size
    match walk:
        case PagePaging(first_page=first) if size % 2 == 0:
            # The n-th page of 100 begins where the 2n-th of 50 does.
            return replace(page, size=size // 2, offset=first + (page.offset - first) * 2)
        case TokenPaging() | TimePaging() if size > 1:
            return replace(page, size=size // 2)
        case OffsetPaging() if size > 1:
            return replace(page, size=size // 2)
        case _:
            return None
