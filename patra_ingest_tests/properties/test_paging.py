"""Any source, walked in any way it may page, is read whole and comes to an end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.executor.paging import (
    Ended,
    IdsWalk,
    Page,
    RangeWalk,
    Seen,
    Walk,
    first_page,
    next_page,
    shrunk,
)
from patra_ingest.executor.positions import page_at, position
from patra_ingest.model.bounds import PageRange
from patra_ingest.model.window import instant_iso, parse_instant
from patra_ingest.spec.paging import OffsetPaging, PagePaging, TimePaging, TokenPaging, UrlPaging
from patra_ingest.spec.words import Step, StopRule
from patra_ingest_tests.builders import NOON

NO_TOKEN, EMPTY, SHORT = StopRule.NO_TOKEN, StopRule.EMPTY_PAGE, StopRule.SHORT_PAGE
TOTAL, NO_MORE = StopRule.TOTAL_REACHED, StopRule.NO_MORE
PLACE = {"path": "$.next"}
BY_NUMBER = st.sampled_from([(EMPTY,), (SHORT,), (TOTAL,), (NO_MORE,), (EMPTY, TOTAL), (SHORT,)])


@dataclass(frozen=True)
class Source:
    """So many items, one a second, served in any of the ways that sources page."""

    count: int
    clamp: int = 10_000  # it never serves more at once

    def serve(self, walk: Walk, page: Page) -> tuple[range, Seen]:
        """Return the items of a page and what is said beside them."""
        paging = walk.paging if isinstance(walk, RangeWalk) else walk
        assert not isinstance(paging, IdsWalk)
        size = min(page.size or paging.page_size, self.clamp)
        start = self._start(paging, page, size)
        items = range(min(start, self.count), min(start + size, self.count))
        more = items.stop < self.count
        last = NOON + timedelta(seconds=items.stop - 1) if items else None
        counted = self.count - start if isinstance(paging, TimePaging) else self.count
        return items, Seen(
            len(items),
            str(items.stop) if more else None,
            counted,
            more,
            len(items),
            last_time=last,
        )

    def _start(self, paging: Walk, page: Page, size: int) -> int:
        match paging:
            case OffsetPaging(first_offset=first):
                return page.offset - first
            case PagePaging(first_page=first):
                return (page.offset - first) * size
            case TimePaging() if page.token:
                return int((parse_instant(page.token) - NOON).total_seconds())
            case _:
                return int(page.token or 0)


def walk_through(
    source: Source, walk: Walk, shrinks: set[int], resume: Callable[[Page], Page]
) -> tuple[list[int], int]:
    """Return every item of a walk in order, and how many pages it took; it must end by itself."""
    page, read, pages = first_page(walk), list[int](), 0
    while True:
        pages += 1
        assert pages <= 4 * source.count + 10, "it goes on for ever"
        if pages in shrinks:
            page = shrunk(walk, page) or page
        items, seen = source.serve(walk, page)
        after = next_page(walk, page, replace(seen, before=len(read)))
        read += items
        if isinstance(after, Ended):
            return read, pages
        page = resume(after)


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    size = draw(st.integers(2, 16))
    numbered = draw(BY_NUMBER)
    kinds: list[Walk] = [
        OffsetPaging(page_size=size, stop=numbered, first_offset=draw(st.integers(0, 1))),
        OffsetPaging(page_size=size, stop=(EMPTY,), step=Step.ITEMS),
        OffsetPaging(page_size=size, stop=(TOTAL,), step=Step.REPORTED),
        PagePaging(page_size=size, stop=numbered, first_page=draw(st.integers(0, 1))),
        TokenPaging(page_size=size, stop=(NO_TOKEN,), next_token=PLACE),
        TokenPaging(page_size=size, stop=(TOTAL,), next_token=PLACE, initial_token="0"),
        UrlPaging(page_size=size, stop=(NO_TOKEN,), next_url=PLACE),
        TimePaging(page_size=size, stop=draw(st.sampled_from([(SHORT,), (TOTAL,)])), order="ASC"),
    ]
    return draw(st.sampled_from(kinds))


@given(walks(), st.integers(0, 60), st.sets(st.integers(1, 8), max_size=3), st.booleans())
def test_every_item_of_a_source_is_read_and_the_walk_ends(walk, count, shrinks, resumes):
    if isinstance(walk, TimePaging):
        # Two items must fit a page: one of eight may be halved twice.
        shrinks = set(sorted(shrinks)[:2]) if walk.page_size >= 8 else set()

    def resume(page: Page) -> Page:
        return page_at(walk, page.number, position(walk, page)) if resumes else page

    read, _ = walk_through(Source(count), walk, shrinks, resume)

    assert sorted(set(read)) == list(range(count))
    if not isinstance(walk, TimePaging):  # by time, the last item of a page begins the next one
        assert len(read) == count, "and none of them twice"


@given(st.integers(0, 60), st.integers(2, 16), st.integers(1, 16))
def test_a_source_that_serves_less_than_asked_for_is_read_whole(count, size, clamp):
    walk = OffsetPaging(page_size=size, stop=(EMPTY,), step=Step.ITEMS)

    read, _ = walk_through(Source(count, clamp), walk, set(), lambda page: page)

    assert read == list(range(count))


@given(
    st.integers(0, 60),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([OffsetPaging, PagePaging]),
    BY_NUMBER,
)
def test_ranges_of_pages_tile_a_source(count, size, pages, kind, stop):
    paging = kind(page_size=size, stop=stop)
    ranges = [
        PageRange(1, 1 + pages),
        PageRange(1 + pages, 1 + 2 * pages),
        PageRange(1 + 2 * pages),
    ]
    total = []
    for one in ranges:
        total += walk_through(Source(count), RangeWalk(paging, one), set(), lambda page: page)[0]

    assert total == list(range(count))


@given(st.integers(1, 60), st.integers(1, 16))
def test_ids_are_asked_for_once_each(count, per_request):
    ids = tuple(map(str, range(count)))
    walk, asked, page = IdsWalk(ids, per_request), list[str](), Page()
    while True:
        asked += walk.asked(page)
        after = next_page(walk, page, Seen(0))
        if isinstance(after, Ended):
            break
        page = page_at(walk, after.number, position(walk, after))

    assert tuple(asked) == ids


NUMBERS = st.integers(0, 10**9)
TEXTS = st.none() | st.text(min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("walk", "pages"),
    [
        (OffsetPaging(page_size=9, stop=()), st.builds(Page, NUMBERS, NUMBERS)),
        (
            PagePaging(page_size=9, stop=()),
            st.builds(Page, NUMBERS, NUMBERS, size=st.none() | st.integers(1, 500)),
        ),
        (
            TokenPaging(page_size=9, stop=(), next_token=PLACE),
            st.builds(Page, NUMBERS, token=TEXTS),
        ),
        (UrlPaging(page_size=9, stop=(), next_url=PLACE), st.builds(Page, NUMBERS, token=TEXTS)),
        (
            TimePaging(page_size=9, stop=()),
            st.builds(
                Page,
                NUMBERS,
                token=st.none() | st.datetimes(timezones=st.just(UTC)).map(instant_iso),
            ),
        ),
        (IdsWalk(("a", "b"), 1), st.builds(Page, NUMBERS, NUMBERS)),
        (
            RangeWalk(PagePaging(page_size=9, stop=()), PageRange(1, 5)),
            st.builds(Page, NUMBERS, NUMBERS),
        ),
    ],
    ids=lambda value: getattr(value, "type", type(value).__name__),
)
@given(st.data())
def test_a_stored_position_leads_back_to_its_page(walk, pages, data):
    page, other = data.draw(pages), data.draw(pages)

    assert page_at(walk, page.number, position(walk, page)) == page
    if isinstance(walk, TokenPaging | UrlPaging):
        same = (page.number, page.token) == (other.number, other.token)
    else:
        same = replace(page, number=0) == replace(other, number=0)
    assert (position(walk, page) == position(walk, other)) == same
