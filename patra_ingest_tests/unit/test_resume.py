"""Where a task goes on after what earlier runs have committed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.leased import Details, Place
from patra_ingest.executor.paging import Page
from patra_ingest.executor.resume import resume
from patra_ingest.spec.paging import UrlPaging
from patra_ingest.spec.places import NextPlace
from patra_ingest_tests.builders import NOON, a_spec
from patra_ingest_tests.unit.working import a_done, a_search, a_work, by_ids

HOUR = timedelta(hours=1)
AFTER_ONE = [a_done({"itemsCount": 50, "idKeys": pack_ids("abc")}, "token#2:t2")]


def a_walk(**paging):
    return a_work(a_spec(paging=paging))


def searched(found, following, done=0, asked=0):
    """Return the batches of a search page of which so many details have been fetched."""
    stats = {
        "phase": "SEARCH",
        "foundCount": len(found),
        "listed": len(found),
        "foundIds": list(found),
        "idKeys": pack_ids(found),
        "searchAt": "token#1:",
        "searchNext": following,
    }
    details = {"phase": "DETAIL", "askedCount": asked}
    return [a_done(stats, "ignored"), *(a_done(details, "ignored") for _ in range(done))]


def test_a_fresh_task_begins_at_the_first_page():
    resumed = resume(a_walk(), [], NOON)

    assert resumed.place == Place(Page())
    assert (resumed.history.batches, resumed.void) == ([], None)


def test_a_task_goes_on_after_its_last_page_with_all_that_was_seen():
    resumed = resume(a_walk(), AFTER_ONE, NOON)

    assert resumed.place == Place(Page(2, token="t2"))
    assert (len(resumed.history.ids), resumed.history.walked) == (3, 50)


def test_after_the_last_page_only_the_certificate_is_left():
    resumed = resume(a_walk(), [a_done({}, None)], NOON)

    assert resumed.place is None
    assert len(resumed.history.batches) == 1


@pytest.mark.parametrize(
    ("paging", "age", "void"),
    [
        pytest.param({"token_life": "1h"}, HOUR, None, id="as old as it may be"),
        pytest.param({"token_life": "1h"}, HOUR * 1.001, "TOKEN_EXPIRED", id="older"),
        pytest.param({}, HOUR * 1000, None, id="a token without a declared life"),
        pytest.param({"token_stays": True}, 0 * HOUR, "TOKEN_STAYS", id="one token for all"),
    ],
)
def test_a_token_is_resumed_only_while_it_lives(paging, age, void):
    resumed = resume(a_walk(**paging), AFTER_ONE, NOON + age)

    assert resumed.void == void
    assert resumed.place == Place(Page() if void else Page(2, token="t2"))
    assert len(resumed.history.batches) == (0 if void else 1), "nothing of a void walk counts"


def test_a_walk_that_has_ended_needs_no_token_any_more():
    resumed = resume(a_walk(token_life="1h"), [a_done({}, None)], NOON + 9 * HOUR)

    assert (resumed.place, resumed.void) == (None, None)


def test_ids_need_no_token_however_old():
    work = by_ids(*"abc")

    resumed = resume(work, [a_done({}, "ids:2")], NOON + 1000 * HOUR)

    assert resumed.place == Place(Page(2, offset=2))


@pytest.mark.parametrize(
    ("done", "following", "expected"),
    [
        (0, "token#2:t2", Place(Page(1), Details(tuple("abc"), 0, 2, Page(2, token="t2")))),
        (1, "token#2:t2", Place(Page(1), Details(tuple("abc"), 2, 2, Page(2, token="t2")))),
        (2, "token#2:t2", Place(Page(2, token="t2"))),
        (1, None, Place(Page(1), Details(tuple("abc"), 2, 2, None))),
        (2, None, None),
    ],
)
def test_details_go_on_with_the_next_request_and_then_with_the_search(done, following, expected):
    work = a_work(a_search(batch=2))

    assert resume(work, searched("abc", following, done, asked=2), NOON).place == expected


def test_only_the_details_of_the_last_search_page_count():
    work = a_work(a_search(batch=2))
    batches = [*searched("abc", "token#2:t2", 2, 2), *searched("de", None, 0)]

    assert resume(work, batches, NOON).place == Place(Page(1), Details(("d", "e"), 0, 2, None))


def test_a_search_whose_next_token_has_died_is_walked_again():
    spec = a_search()
    short = spec.paging.model_copy(update={"token_life": HOUR})
    work = a_work(spec.model_copy(update={"paging": short}))

    alive = resume(work, searched("abc", None, 1, 2), NOON + 2 * HOUR)
    dead = resume(work, searched("abc", "token#2:t2", 1, 2), NOON + 2 * HOUR)

    assert alive.void is None, "the rest of the details needs no token"
    assert (dead.void, dead.place) == ("TOKEN_EXPIRED", Place(Page()))


SIGNED = "https://a.example/works?after=9&sig=s3cr3t"


def by_address(**more):
    paging = UrlPaging(
        type="URL", next_url=NextPlace(path="$.next"), page_size=50, stop=("NO_TOKEN",)
    )
    return a_work(a_search().model_copy(update={"paging": paging, **more}))


def test_a_walk_goes_on_at_the_address_that_its_position_hides_a_part_of():
    work = by_address(detail=None)
    after = work.position(Place(Page(2, token=SIGNED)))

    resumed = resume(work, [a_done({}, after, address=SIGNED)], NOON)
    lost = resume(work, [a_done({}, after)], NOON)

    assert after == "url#2:https://a.example/works?after=9&sig=***"
    assert (resumed.place, resumed.void) == (Place(Page(2, token=SIGNED)), None)
    assert (lost.place, lost.void) == (Place(Page()), "TOKEN_EXPIRED")


def test_details_keep_the_address_at_which_their_search_goes_on():
    following = "url#2:https://a.example/works?after=9&sig=***"
    search, detail = searched("abc", following, 1, 2)

    place = resume(by_address(), [search, replace(detail, address=SIGNED)], NOON).place

    assert place.details == Details(tuple("abc"), 2, 2, Page(2, token=SIGNED))
