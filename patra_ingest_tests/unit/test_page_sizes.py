"""A page that is too big is asked for again at half its size, from the same place on."""

from dataclasses import replace

import pytest

from patra_ingest.executor.paging import IdsWalk, Page, shrunk
from patra_ingest.spec.paging import NoPaging
from patra_ingest_tests.unit.test_paging import (
    ALONE,
    FIRST,
    NO_TOKEN,
    ONE,
    SHORT,
    TWO,
    by_time,
    in_range,
    numbered,
    offset,
    token,
    url,
)


@pytest.mark.parametrize(
    ("walk", "page", "expected"),
    [
        (offset(SHORT), TWO, Page(2, 50, size=25)),
        (offset(SHORT), replace(TWO, size=25), Page(2, 50, size=12)),
        (offset(SHORT), replace(TWO, size=1), None),
        (numbered(SHORT), Page(3, 3), Page(3, 5, size=25)),
        (numbered(SHORT, first_page=0), Page(3, 2), Page(3, 4, size=25)),
        (numbered(SHORT), Page(3, 5, size=25), None),
        (token(NO_TOKEN), FIRST, Page(1, token="t1", size=25)),
        (by_time(SHORT), Page(2, token="t"), Page(2, token="t", size=25)),
        (url(NO_TOKEN), FIRST, None),
        (NoPaging(page_size=50, stop=(ONE,)), ALONE, None),
        (IdsWalk(("a", "b"), 2), ALONE, None),
        (in_range(offset(SHORT), 1, 2), ALONE, None),
    ],
)
def test_half_a_page_begins_at_the_same_place_or_is_not_asked_for(walk, page, expected):
    assert shrunk(walk, page) == expected
