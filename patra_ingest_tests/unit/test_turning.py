"""What an answer means for its slice: records, numbers, and where the walk goes on."""

from dataclasses import replace

import pytest

from patra_ingest.errors import EndpointHalted, SliceIncomplete, SliceTooBig
from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Details, Place
from patra_ingest.executor.paging import Page
from patra_ingest.executor.turning import (
    IdsSeen,
    after_details,
    ends_too_early,
    turn_ids,
    turn_page,
)
from patra_ingest.executor.two_phase import BadId
from patra_ingest.model.bounds import Bounds, PageRange
from patra_ingest.spec.words import StopRule
from patra_ingest_tests.builders import a_spec, an_item
from patra_ingest_tests.unit.working import a_search, a_work, by_ids

FIRST, SECOND = Place(Page()), Place(Page(2, token="t2"))
NUMBERED = {
    "type": "OFFSET",
    "next_token": None,
    "offset_param": "start",
    "page_size": 2,
    "stop": ["EMPTY_PAGE"],
}


def numbered(**paging):
    return a_spec(
        request={"query": {"from": "${window.from|iso}", "to": "${window.last|iso}"}},
        paging={**NUMBERED, **paging},
    )


def came(*names, **more):
    return Decoded([an_item(name) for name in names], **more)


def seen(*ids, total=None, count=None):
    """Return the history of a slice that has walked one page with these ids."""
    listed = count or len(ids)
    page = {"itemsCount": listed, "listed": listed, "idKeys": pack_ids(ids), "total": total}
    return History.of([page]) if ids or count else History.of([])


def names(turned):
    return [record.provider_id for record in turned.mapped.records]


def test_a_page_becomes_records_numbers_and_the_next_place():
    turned = turn_page(a_work(), FIRST, came("a", "b", next="t2", total=9), seen())

    assert (names(turned), turned.following) == (["a", "b"], SECOND)
    numbers = turned.numbers
    assert (numbers["itemsCount"], numbers["listed"], numbers["total"]) == (2, 2, 9)
    assert (numbers["hasNext"], numbers["stopRule"]) == (True, None)
    assert numbers["nextHint"] == {"token": "t2", "page": 2, "url": None}


def test_the_last_page_says_which_rule_ended_it():
    turned = turn_page(a_work(), SECOND, came("c"), seen("a", "b"))

    assert (turned.following, turned.numbers["stopRule"]) == (None, "NO_TOKEN")
    assert turned.numbers["hasNext"] is False


def test_deletions_beside_the_items_are_records_of_their_own():
    turned = turn_page(a_work(), FIRST, came("a", gone=("x",), total=1), seen())

    assert [(one.provider_id, one.is_deleted) for one in turned.mapped.records] == [
        ("a", False),
        ("x", True),
    ]
    assert (turned.numbers["itemsCount"], turned.numbers["listed"]) == (2, 1)


@pytest.mark.parametrize(
    ("spec", "place", "decoded", "history", "error", "said"),
    [
        pytest.param(
            *(a_spec(), FIRST, Decoded([{"id": "a"}, {"id": "b"}], next="t2"), seen()),
            *(EndpointHalted, "every one of 2 items fails"),
            id="every item is broken",
        ),
        pytest.param(
            *(a_spec(cap={"max": 9}), FIRST, came("a", total=10), seen()),
            *(SliceTooBig, "the source gives 9"),
            id="more than the source gives",
        ),
    ],
)
def test_an_answer_that_cannot_be_what_was_asked_for(spec, place, decoded, history, error, said):
    with pytest.raises(error, match=said):
        turn_page(a_work(spec), place, decoded, history)


def test_a_page_that_came_before_is_a_circle_and_a_changed_record_is_not():
    once = turn_page(a_work(), FIRST, came("a", "b", next="t2"), seen())
    history = History.of([once.numbers])
    changed = Decoded([an_item("a", title="On a, corrected")], next="t3")

    with pytest.raises(SliceIncomplete, match="goes in a circle"):
        turn_page(a_work(), SECOND, came("a", "b", next="t3"), history)
    assert names(turn_page(a_work(), SECOND, changed, history)) == ["a"]


def test_one_page_with_less_than_it_says_is_too_big_or_incomplete():
    spec = numbered(type="NONE", offset_param=None, stop=["ONE_PAGE"])

    with pytest.raises(SliceTooBig, match="one page brings 2"):
        turn_page(a_work(spec), FIRST, came("a", "b", total=5), seen())
    turned = turn_page(a_work(spec), FIRST, came("a", total=5), seen())
    assert turned.numbers["total"] == 5, "a short page is not full; the certificate will tell"


def test_that_there_is_nothing_at_all_is_no_promise_in_the_middle_of_a_walk():
    work, history = a_work(numbered()), seen("a", "b", total=5)
    turned = turn_page(work, Place(Page(2, 2)), Decoded([], total=0), history)

    assert (turned.numbers["total"], turned.numbers["stopRule"]) == (None, "EMPTY_PAGE")
    assert ends_too_early(work, Place(Page(2, 2)), turned, history)
    assert turn_page(work, FIRST, Decoded([], total=0), seen()).numbers["total"] == 0


def test_a_total_that_only_the_first_page_tells_ends_the_walk_all_the_same():
    once = {"path": "$.total", "first_page_only": True}
    work = a_work(numbered(total=once, stop=["TOTAL_REACHED"]))
    place, history = Place(Page(2, 2)), seen("a", "b", total=4)

    assert turn_page(work, place, came("c"), history).following == Place(Page(3, 4))
    assert turn_page(work, place, came("c", "d"), history).numbers["stopRule"] == "TOTAL_REACHED"


@pytest.mark.parametrize(
    ("total", "promise", "history", "is_early"),
    [
        pytest.param({}, 5, seen("a", "b", total=5), True, id="two of five"),
        pytest.param({}, 2, seen("a", "b", total=2), False, id="all of two"),
        pytest.param({}, None, seen("a", "b"), False, id="nothing was promised"),
        pytest.param({}, None, seen("a", "b", total=5), True, id="only the first page promised"),
        pytest.param({"tolerance": 0.5}, 4, seen("a", "b", total=4), True, id="within tolerance"),
        pytest.param({"is_estimate": True}, 9, seen("a", "b", total=9), False, id="an estimate"),
    ],
)
def test_an_end_before_the_promise_is_looked_at_twice(total, promise, history, is_early):
    work = a_work(numbered(total={"path": "$.total", **total}))
    place = Place(Page(2, 2))
    turned = turn_page(work, place, Decoded([], total=promise), history)

    assert ends_too_early(work, place, turned, history) is is_early


@pytest.mark.parametrize("total", [{"tolerance": 0.5}, {"is_estimate": True}])
@pytest.mark.parametrize(("promise", "is_early"), [(2, True), (1, False), (None, False)])
def test_a_missing_token_is_looked_at_twice_however_little_is_missing(total, promise, is_early):
    work = a_work(a_spec(paging={"total": {"path": "$.total", **total}}))
    turned = turn_page(work, FIRST, came("a", total=promise), seen())

    assert ends_too_early(work, FIRST, turned, seen()) is is_early


@pytest.mark.parametrize(("probe", "is_early"), [(True, True), (False, False)])
def test_a_tail_is_probed_where_the_pack_says_so(probe, is_early):
    work = a_work(a_spec(paging={"probe_tail": probe}))
    turned = turn_page(work, FIRST, came("a", total=1), seen())

    assert ends_too_early(work, FIRST, turned, seen()) is is_early
    more = turn_page(work, FIRST, came("a", next="t2", total=1), seen())
    assert not ends_too_early(work, FIRST, more, seen())


@pytest.mark.parametrize(
    ("pages", "total", "promised"),
    [
        (PageRange(1, 3), 99, 4),
        (PageRange(3, 5), 5, 1),
        (PageRange(3), 99, 95),
        (PageRange(9), 5, 0),
    ],
)
def test_a_range_of_pages_is_promised_its_own_share(pages, total, promised):
    work = a_work(numbered(), Bounds(pages=pages))

    assert turn_page(work, FIRST, came("a", total=total), seen()).numbers["total"] == promised


def test_a_search_page_finds_new_ids_and_no_records():
    work = a_work(a_search(batch=2))
    turned = turn_page(work, SECOND, came("b", "c", "c", "d", next="t3"), seen("a", "b"))

    assert names(turned) == []
    assert turned.following == Place(SECOND.page, Details(("c", "d"), 0, 2, Page(3, token="t3")))
    numbers = turned.numbers
    assert (numbers["phase"], numbers["foundCount"], numbers["itemsCount"]) == ("SEARCH", 4, 0)
    assert (numbers["foundIds"], numbers["searchAt"]) == (["c", "d"], "token#2:t2")
    assert numbers["searchNext"] == "token#3:t3"


def test_a_search_page_that_finds_nothing_new_goes_on_with_the_search():
    spec = a_search()
    by_token_alone = spec.paging.model_copy(update={"stop": (StopRule.NO_TOKEN,)})
    work = a_work(spec.model_copy(update={"paging": by_token_alone}))
    turned = turn_page(work, SECOND, Decoded([], next="t3"), seen("a"))

    assert turned.following == Place(Page(3, token="t3"))
    assert after_details(Page(), Details((), 0, 2, None)) is None


def answered(*items, **more):
    plain = {"tombstones": (), "missing": (), "merged": {}, "bad": ()}
    return IdsSeen([an_item(one) for one in items], **{**plain, **more})


def test_every_id_becomes_a_record_or_is_gone_merged_or_bad():
    work = a_work(a_search(batch=5, aliases=True))
    place = Place(Page(), Details(tuple("abcde"), 0, 5, Page(2, token="t2")))
    bad = BadId("c", "answered 500")
    came_back = answered("a", "x", missing=("d",), merged={"b": "x"}, bad=(bad,), tombstones=("e",))

    turned = turn_ids(work, place, came_back, seen())

    assert [(r.provider_id, r.is_deleted) for r in turned.mapped.records] == [
        *(("a", False), ("x", False), ("e", True))
    ]
    assert (turned.gone, turned.bad_ids) == (("d", "b"), (bad,))
    numbers = turned.numbers
    assert (numbers["phase"], numbers["askedCount"], numbers["itemsCount"]) == ("DETAIL", 5, 3)
    assert (numbers["goneIds"], numbers["badIds"], numbers["merged"]) == (2, 1, {"b": "x"})
    assert turned.following == Place(Page(2, token="t2"))


def test_ids_go_on_with_the_next_ones_and_promise_all_of_them():
    work = by_ids(*"abc")
    spec = work.plan.spec
    few = spec.batching.model_copy(update={"ids_per_request": 2})
    work = replace(work, plan=replace(work.plan, spec=spec.model_copy(update={"batching": few})))

    first = turn_ids(work, FIRST, answered("a", "b"), seen())
    last = turn_ids(work, first.following, answered("c"), seen())

    assert (first.following, first.numbers["total"]) == (Place(Page(2, offset=2)), 3)
    assert (last.following, last.numbers["stopRule"]) == (None, "IDS_END")
    assert not ends_too_early(work, FIRST, last, seen())


def test_a_missing_id_fails_where_the_pack_says_so():
    with pytest.raises(SliceIncomplete, match="the source has no b"):
        turn_ids(by_ids(*"ab", missing="FAIL"), FIRST, answered("a", missing=("b",)), seen())


def test_several_details_that_are_all_broken_are_a_new_shape_and_one_alone_is_not():
    broken = [{"id": "a"}, {"id": "b"}]

    with pytest.raises(EndpointHalted, match="every one of 2 items"):
        turn_ids(by_ids(*"ab"), FIRST, replace(answered(), items=broken), seen())
    alone = turn_ids(by_ids("a"), FIRST, replace(answered(), items=broken[:1]), seen())
    assert len(alone.mapped.bad) == 1
