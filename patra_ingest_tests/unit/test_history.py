"""What a walk has seen: going in a circle is noticed, meeting a changed record again is not one."""

import pytest

from patra_ingest.errors import EndpointHalted, SliceIncomplete
from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.decoding import Decoded, require_echo
from patra_ingest.executor.history import History, is_known, page_hash, require_sense
from patra_ingest.executor.mapping import Mapped
from patra_ingest.executor.paging import Page
from patra_ingest.model.records import NewRecord
from patra_ingest.spec.places import Expectation
from patra_ingest_tests.builders import a_response, a_spec


def mapped(ids, content="1"):
    records = [NewRecord(one, None, f"{one}{content}", False, b"{}", b"{}") for one in ids]
    return Mapped(records, [], 0, list(ids))


def walked(history, page, **more):
    known = is_known(page, history)
    stats = {"idKeys": pack_ids(page.ids), "itemsCount": len(page.ids), "onlyKnown": known}
    history.add({**stats, "pageHash": page_hash(page), **more})


def a_walk(*pages):
    history = History([], set())
    for page in pages:
        walked(history, page)
    return history


def look(history, page, number=9):
    require_sense(Decoded(list(page.ids)), page, Page(number), history)


@pytest.mark.parametrize(
    ("before", "page"),
    [
        pytest.param(["abc", "def"], "def", id="the last page for ever"),
        pytest.param(["abc", "def"], "abc", id="the first page again"),
    ],
)
def test_a_page_that_came_before_is_a_circle(before, page):
    with pytest.raises(SliceIncomplete, match="circle"):
        look(a_walk(*map(mapped, before)), mapped(page))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(mapped("cd"), id="one of its records is new"),
        pytest.param(mapped("ab", content="2"), id="its records were changed meanwhile"),
        pytest.param(mapped(""), id="it is empty"),
    ],
)
def test_a_page_that_tells_anything_new_is_none(page):
    look(a_walk(mapped("abc")), page)


def test_the_first_page_of_a_walk_is_never_one():
    look(a_walk(mapped("abc")), mapped("abc"), number=1)


def test_pages_that_only_ever_change_known_records_are_a_circle_after_all():
    history = a_walk(mapped("abc"), *(mapped("ab", content=n) for n in "234"))

    with pytest.raises(SliceIncomplete, match="circle"):
        look(history, mapped("ab", content="5"))


def test_pages_that_overlap_are_no_circle_however_many():
    history = a_walk(*(mapped(pair) for pair in ("ab", "bc", "cd", "de", "ef", "fg")))

    look(history, mapped("gh"))
    assert history.known_pages == 0


def test_a_few_empty_pages_are_passed_and_many_are_not():
    history = a_walk(mapped("abc"))
    for _ in range(5):
        look(history, mapped(""))
        walked(history, mapped(""))

    with pytest.raises(SliceIncomplete, match="6 pages in a row are empty"):
        look(history, mapped(""))


ECHO = (Expectation(path="$.until", equals="${window.last}"),)
ASKED = {"window": {"last": "2025-09-02"}}


def empty_answer(body):
    spec = a_spec()
    echoing = spec.response.model_copy(update={"expect": ECHO})
    call = spec.model_copy(update={"response": echoing})
    require_echo(a_response(b"{}"), body, call, ASKED)


def test_an_empty_answer_to_another_question_is_not_believed():
    with pytest.raises(EndpointHalted, match=r"2025-08-01.*2025-09-02.*has not done as asked"):
        empty_answer({"until": "2025-08-01"})


@pytest.mark.parametrize("body", [{"until": "2025-09-02"}, {}, "no matches"])
def test_an_empty_answer_need_not_repeat_the_question(body):
    empty_answer(body)
