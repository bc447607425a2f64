"""What ends the pages of a slice, and what must never end them."""

import pytest

from patra_ingest.errors import SliceIncomplete
from patra_ingest.executor.paging import (
    Ended,
    Page,
    Seen,
    first_page,
    next_page,
    page_at,
    position,
)
from patra_ingest.spec.paging import OffsetPaging, TokenPaging
from patra_ingest.spec.words import StopRule

NO_TOKEN, SAME_TOKEN = StopRule.NO_TOKEN, StopRule.SAME_TOKEN
EMPTY, SHORT, TOTAL = StopRule.EMPTY_PAGE, StopRule.SHORT_PAGE, StopRule.TOTAL_REACHED
FIRST = Page(1, token="t1")


def offset(*stop, **more):
    return OffsetPaging(page_size=50, stop=stop, **more)


def token(*stop, **more):
    return TokenPaging(page_size=50, stop=stop, next_token={"path": "$.next"}, **more)


@pytest.mark.parametrize(
    ("paging", "page", "seen", "expected"),
    [
        pytest.param(
            offset(SHORT), Page(), Seen(50), Page(2, offset=50), id="a full page may hide another"
        ),
        pytest.param(
            offset(SHORT),
            Page(3, offset=100),
            Seen(50),
            Page(4, offset=150),
            id="offsets grow by the page size",
        ),
        pytest.param(offset(SHORT), Page(), Seen(49), Ended(SHORT), id="a short page is the last"),
        pytest.param(offset(SHORT), Page(), Seen(0), Ended(SHORT), id="an empty page is short"),
        pytest.param(
            offset(EMPTY),
            Page(),
            Seen(49),
            Page(2, offset=50),
            id="a short page is not the last unless declared",
        ),
        pytest.param(offset(EMPTY), Page(), Seen(0), Ended(EMPTY), id="an empty page is the last"),
        pytest.param(
            offset(TOTAL),
            Page(2, offset=50),
            Seen(50, total=100),
            Ended(TOTAL),
            id="the total is reached exactly",
        ),
        pytest.param(
            offset(TOTAL),
            Page(2, offset=50),
            Seen(50, total=101),
            Page(3, offset=100),
            id="one is missing to the total",
        ),
        pytest.param(
            offset(TOTAL),
            Page(),
            Seen(0),
            Page(2, offset=50),
            id="a total nobody told is not reached",
        ),
        pytest.param(
            offset(NO_TOKEN, SAME_TOKEN, SHORT),
            Page(),
            Seen(50),
            Page(2, offset=50),
            id="rules about tokens say nothing about offsets",
        ),
        pytest.param(
            offset(EMPTY, SHORT), Page(), Seen(0), Ended(EMPTY), id="the first rule gives the name"
        ),
        pytest.param(
            token(NO_TOKEN),
            FIRST,
            Seen(50, "t2"),
            Page(2, token="t2"),
            id="follow the token",
        ),
        pytest.param(token(NO_TOKEN), FIRST, Seen(50), Ended(NO_TOKEN), id="no token, no page"),
        pytest.param(token(NO_TOKEN), FIRST, Seen(50, ""), Ended(NO_TOKEN), id="empty is no token"),
        pytest.param(
            token(NO_TOKEN),
            FIRST,
            Seen(0, "t2"),
            Page(2, token="t2"),
            id="an empty page with a token goes on",
        ),
        pytest.param(
            token(SAME_TOKEN), FIRST, Seen(50, "t1"), Ended(SAME_TOKEN), id="the token stands still"
        ),
        pytest.param(
            token(TOTAL),
            Page(2, token="t2"),
            Seen(7, "t3", total=57),
            Ended(TOTAL),
            id="the total ends token pages, too",
        ),
        pytest.param(
            token(EMPTY, SHORT),
            FIRST,
            Seen(50, "t2"),
            Page(2, token="t2"),
            id="a token that is always there ends nothing",
        ),
        pytest.param(
            offset(SHORT, max_pages=1), Page(), Seen(3), Ended(SHORT), id="a rule beats max_pages"
        ),
    ],
)
def test_next_page(paging, page, seen, expected):
    assert next_page(paging, page, seen) == expected


@pytest.mark.parametrize(
    ("paging", "page", "seen"),
    [
        pytest.param(token(EMPTY), FIRST, Seen(50), id="no token, and no rule speaks of it"),
        pytest.param(token(EMPTY), FIRST, Seen(50, "t1"), id="its own token: a loop"),
        pytest.param(
            token(SAME_TOKEN), Page(1, token=None), Seen(50), id="no token is not the same token"
        ),
        pytest.param(offset(SHORT, max_pages=2), Page(2, offset=50), Seen(50), id="max_pages"),
        pytest.param(token(NO_TOKEN, max_pages=1), FIRST, Seen(50, "t2"), id="max_pages, token"),
    ],
)
def test_silence_is_never_taken_for_the_end(paging, page, seen):
    with pytest.raises(SliceIncomplete, match=f"page {page.number} "):
        next_page(paging, page, seen)


@pytest.mark.parametrize(
    ("paging", "expected"),
    [
        (offset(SHORT), Page(1, offset=0)),
        (token(NO_TOKEN), Page(1, token=None)),
        (token(NO_TOKEN, initial_token="*"), Page(1, token="*")),
    ],
)
def test_the_first_page(paging, expected):
    assert first_page(paging) == expected


@pytest.mark.parametrize(
    ("paging", "page"),
    [
        (offset(SHORT), Page(1)),
        (offset(SHORT), Page(7, offset=300)),
        (token(NO_TOKEN), Page(1, token=None)),
        (token(NO_TOKEN), Page(3, token="AoE/B:c==")),
    ],
)
def test_a_stored_position_leads_back_to_its_page(paging, page):
    assert page_at(paging, page.number, position(paging, page)) == page
