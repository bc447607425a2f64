"""What ends the pages of a slice, and what must never end them."""

from datetime import timedelta

import pytest

from patra_ingest.errors import SliceIncomplete, SliceTooBig
from patra_ingest.executor.paging import (
    Ended,
    IdsWalk,
    Page,
    RangeWalk,
    Seen,
    first_page,
    next_page,
)
from patra_ingest.model.bounds import PageRange
from patra_ingest.model.window import instant_iso
from patra_ingest.spec.paging import (
    NoPaging,
    OffsetPaging,
    PagePaging,
    TimePaging,
    TokenPaging,
    UrlPaging,
)
from patra_ingest.spec.words import SizePolicy, Step, StopRule
from patra_ingest_tests.builders import NOON

NO_TOKEN, SAME_TOKEN = StopRule.NO_TOKEN, StopRule.SAME_TOKEN
EMPTY, SHORT, TOTAL = StopRule.EMPTY_PAGE, StopRule.SHORT_PAGE, StopRule.TOTAL_REACHED
NO_MORE, ONE = StopRule.NO_MORE, StopRule.ONE_PAGE
FIRST = Page(1, token="t1")
LATER = NOON + timedelta(minutes=1)
OBEYED = {"size_policy": SizePolicy.OBEYED}


def offset(*stop, **more):
    return OffsetPaging(page_size=50, stop=stop, **more)


def numbered(*stop, **more):
    return PagePaging(page_size=50, stop=stop, **more)


def token(*stop, **more):
    return TokenPaging(page_size=50, stop=stop, next_token={"path": "$.next"}, **more)


def url(*stop, **more):
    return UrlPaging(page_size=50, stop=stop, next_url={"path": "$.next"}, **more)


def by_time(*stop, **more):
    return TimePaging(page_size=50, stop=stop, order="ASC", **more)


def in_range(paging, first, past=None):
    return RangeWalk(paging, PageRange(first, past))


def case(name, walk, page, seen, expected):
    return pytest.param(walk, page, seen, expected, id=name)


def guard(name, walk, page, seen):
    return pytest.param(walk, page, seen, id=name)


ALONE, TWO, T2 = Page(), Page(2, offset=50), Page(2, token="t2")
AT_NOON = Page(2, token=instant_iso(NOON))


@pytest.mark.parametrize(
    ("walk", "page", "seen", "expected"),
    [
        case("a full page may hide another", offset(SHORT), ALONE, Seen(50), TWO),
        case("offsets grow by a page", offset(SHORT), TWO, Seen(50), Page(3, offset=100)),
        case("a short page, and a total", offset(SHORT), ALONE, Seen(49, total=49), Ended(SHORT)),
        case("a short page, and no word", offset(SHORT), ALONE, Seen(49), Page(2, offset=49)),
        case("a short page is the last", offset(SHORT, **OBEYED), ALONE, Seen(49), Ended(SHORT)),
        case("unless a token is there", token(SHORT, **OBEYED), FIRST, Seen(49, "t2"), T2),
        case("a short page and no token", token(SHORT), FIRST, Seen(49), Ended(SHORT)),
        case("short, and no more", numbered(SHORT), ALONE, Seen(49, has_more=False), Ended(SHORT)),
        case("a short page is no rule", offset(EMPTY, **OBEYED), ALONE, Seen(49), TWO),
        case("a short page by time", by_time(SHORT), ALONE, Seen(9, last_time=NOON), AT_NOON),
        case("nothing later", by_time(SHORT), AT_NOON, Seen(1, last_time=NOON), Ended(SHORT)),
        case("an empty page is the last", offset(EMPTY), ALONE, Seen(0), Ended(EMPTY)),
        case(
            "a total is reached exactly",
            offset(TOTAL),
            TWO,
            Seen(50, total=100, before=50),
            Ended(TOTAL),
        ),
        case(
            "one is missing to the total",
            offset(TOTAL),
            TWO,
            Seen(50, total=101, before=50),
            Page(3, offset=100),
        ),
        case("a total nobody told is not reached", offset(TOTAL), ALONE, Seen(50), TWO),
        case("no token says nothing of offsets", offset(SAME_TOKEN, SHORT), ALONE, Seen(50), TWO),
        case("the first rule gives the name", offset(EMPTY, SHORT), ALONE, Seen(0), Ended(EMPTY)),
        case("a rule beats max_pages", offset(SHORT, max_pages=1), ALONE, Seen(3), Ended(SHORT)),
        case("no more", offset(NO_MORE), ALONE, Seen(50, has_more=False), Ended(NO_MORE)),
        case("more", offset(NO_MORE), ALONE, Seen(50, has_more=True), TWO),
        case("silence is not no more", offset(NO_MORE), ALONE, Seen(50), TWO),
        case(
            "an empty page with more behind it", offset(NO_MORE), ALONE, Seen(0, has_more=True), TWO
        ),
        case(
            "a clamped page moves by its items",
            offset(EMPTY, step=Step.ITEMS),
            ALONE,
            Seen(20),
            Page(2, offset=20),
        ),
        case(
            "a reported step is believed",
            offset(EMPTY, step=Step.REPORTED),
            Page(4, offset=60),
            Seen(17, step=20),
            Page(5, offset=80),
        ),
        case(
            "a smaller page is a smaller step",
            offset(SHORT),
            Page(3, offset=100, size=25),
            Seen(25),
            Page(4, offset=125, size=25),
        ),
        case(
            "a full small page is not short",
            numbered(SHORT),
            Page(3, offset=5, size=25),
            Seen(25),
            Page(4, offset=6, size=25),
        ),
        case("page numbers grow by one", numbered(EMPTY), Page(offset=1), Seen(9), Page(2, 2)),
        case("follow the token", token(NO_TOKEN), FIRST, Seen(50, "t2"), T2),
        case("no token, no page", token(NO_TOKEN), FIRST, Seen(50), Ended(NO_TOKEN)),
        case("an empty page with a token goes on", token(NO_TOKEN), FIRST, Seen(0, "t2"), T2),
        case("the token stands still", token(SAME_TOKEN), FIRST, Seen(50, "t1"), Ended(SAME_TOKEN)),
        case(
            "one token may serve all pages",
            token(EMPTY, token_stays=True),
            FIRST,
            Seen(50, "t1"),
            Page(2, token="t1"),
        ),
        case(
            "the total ends token pages, too",
            token(TOTAL),
            T2,
            Seen(7, "t3", total=57, before=50),
            Ended(TOTAL),
        ),
        case("a next address", url(NO_TOKEN), ALONE, Seen(50, "/b"), Page(2, token="/b")),
        case("no address, no page", url(NO_TOKEN), Page(2, token="/b"), Seen(5), Ended(NO_TOKEN)),
        case(
            "time goes on at the last item",
            by_time(SHORT),
            ALONE,
            Seen(50, last_time=NOON),
            AT_NOON,
        ),
        case(
            "the rest of a walk by time has its own total",
            by_time(TOTAL),
            AT_NOON,
            Seen(50, total=60, before=50, last_time=LATER),
            Page(3, token=instant_iso(LATER)),
        ),
        case(
            "the last question of a walk by time",
            by_time(TOTAL),
            AT_NOON,
            Seen(50, total=50, before=50, last_time=LATER),
            Ended(TOTAL),
        ),
        case("one page is all", NoPaging(page_size=50, stop=(ONE,)), ALONE, Seen(50), Ended(ONE)),
        case("ids are left", IdsWalk(("a", "b", "c"), 2), ALONE, Seen(0), Page(2, 2)),
        case("no id is left", IdsWalk(("a", "b", "c"), 2), Page(2, 2), Seen(0), Ended("IDS_END")),
        case(
            "the last page of a range",
            in_range(offset(SHORT), 3, 5),
            Page(2, offset=150),
            Seen(50),
            Ended("RANGE_END"),
        ),
        case(
            "a range of small pages goes on to its last item",
            in_range(offset(EMPTY, step=Step.ITEMS), 3, 5),
            Page(2, offset=150),
            Seen(20),
            Page(3, offset=170),
        ),
        case(
            "a range may end before",
            in_range(offset(SHORT, **OBEYED), 3, 5),
            Page(1, offset=100),
            Seen(9),
            Ended(SHORT),
        ),
        case(
            "the last range counts what lies before it",
            in_range(numbered(TOTAL), 3),
            Page(1, offset=3),
            Seen(9, total=109),
            Ended(TOTAL),
        ),
        case(
            "a range of numbered pages",
            in_range(numbered(SHORT, first_page=0), 3, 4),
            Page(1, offset=2),
            Seen(50),
            Ended("RANGE_END"),
        ),
    ],
)
def test_next_page(walk, page, seen, expected):
    assert next_page(walk, page, seen) == expected


@pytest.mark.parametrize(
    ("paging", "page", "seen"),
    [
        guard("no token, and no rule speaks of it", token(EMPTY), FIRST, Seen(50)),
        guard("its own token: a loop", token(EMPTY), FIRST, Seen(50, "t1")),
        guard("no token is not the same token", token(SAME_TOKEN), ALONE, Seen(50)),
        guard("its own address", url(EMPTY), Page(2, token="/b"), Seen(50, "/b")),
        guard("no address, no rule", url(EMPTY), ALONE, Seen(50)),
        guard("no time to go on at", by_time(SHORT), ALONE, Seen(50)),
        guard("an empty page nobody speaks of", offset(TOTAL), TWO, Seen(0, total=99)),
        guard("an empty numbered page", numbered(TOTAL), TWO, Seen(0, has_more=False)),
        guard("no items, no step", offset(NO_MORE, step=Step.ITEMS), TWO, Seen(0, has_more=True)),
        guard("no reported step", offset(SHORT, step=Step.REPORTED), TWO, Seen(50)),
        guard("a reported step of 0", offset(SHORT, step=Step.REPORTED), TWO, Seen(50, step=0)),
    ],
)
def test_silence_is_never_taken_for_the_end(paging, page, seen):
    with pytest.raises(SliceIncomplete) as error:
        next_page(paging, page, seen)
    assert not isinstance(error.value, SliceTooBig)


@pytest.mark.parametrize(
    ("paging", "page", "seen", "reason"),
    [
        case("offset", offset(SHORT, max_pages=2), TWO, Seen(50, total=7), "PAGE_DEPTH"),
        case("token", token(NO_TOKEN, max_pages=1), FIRST, Seen(50, "t", 7), "PAGE_DEPTH"),
        case(
            "a whole page at one instant",
            by_time(SHORT),
            AT_NOON,
            Seen(50, last_time=NOON, total=7),
            "RESULT_CAP",
        ),
        case(
            "time that goes back",
            by_time(SHORT),
            Page(2, token=instant_iso(LATER)),
            Seen(50, last_time=NOON, total=7),
            "RESULT_CAP",
        ),
    ],
)
def test_a_walk_that_cannot_get_further_is_cut_again(paging, page, seen, reason):
    with pytest.raises(SliceTooBig) as error:
        next_page(paging, page, seen)
    assert (error.value.reason, error.value.total) == (reason, 7)


@pytest.mark.parametrize(
    ("walk", "expected"),
    [
        (offset(SHORT), Page()),
        (offset(SHORT, first_offset=1), Page(offset=1)),
        (numbered(SHORT), Page(offset=1)),
        (numbered(SHORT, first_page=0), Page()),
        (token(NO_TOKEN), Page(token=None)),
        (token(NO_TOKEN, initial_token="*"), Page(token="*")),
        (url(NO_TOKEN), Page()),
        (by_time(SHORT), Page()),
        (in_range(offset(SHORT, first_offset=1), 3, 5), Page(offset=101)),
        (in_range(numbered(SHORT, first_page=0), 3, 5), Page(offset=2)),
        (IdsWalk(("a",), 2), Page()),
    ],
)
def test_the_first_page(walk, expected):
    assert first_page(walk) == expected
