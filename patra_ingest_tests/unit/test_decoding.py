"""A body becomes items, or an error; never silently nothing."""

import json

import pytest

from patra_ingest.errors import EndpointHalted, TransientError
from patra_ingest.executor.decoding import Decoded, decode
from patra_ingest_tests.builders import a_response, a_spec

SPEC = a_spec()
BY_OFFSET = a_spec(
    request={"query": {"q": "${window.from}/${window.last}", "offset": "${page.offset}"}},
    paging={"type": "OFFSET", "next_token": None, "stop": ["EMPTY_PAGE"]},
)


def answer(tree, spec=SPEC):
    return decode(a_response(json.dumps(tree).encode()), spec)


def test_a_page_is_its_items_its_total_and_the_next_token():
    page = {"items": [{"id": 1}], "total": 7, "next": "t2"}

    assert answer(page) == Decoded([{"id": 1}], 7, "t2")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param({"items": []}, Decoded([], None, None), id="nothing but an empty list"),
        pytest.param({"items": [], "total": "12"}, Decoded([], 12, None), id="a total as text"),
        pytest.param({"items": [], "next": 3}, Decoded([], None, "3"), id="a token as number"),
        pytest.param({"items": [], "next": None}, Decoded([], None, None), id="a null token"),
    ],
)
def test_what_may_be_absent_or_written_otherwise(page, expected):
    assert answer(page) == expected


def test_offset_paging_looks_for_no_token():
    assert answer({"items": [], "next": "t2"}, BY_OFFSET).next_token is None


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>busy</html>", b'{"items": [', b"\xff\xfe", b'{"items": [NaN]}'],
    ids=["nothing", "HTML", "cut off", "no text", "no JSON"],
)
def test_a_body_that_is_no_json_is_asked_for_again(body):
    with pytest.raises(
        TransientError, match=r"api\.example\.org/works answered 200 with text/html"
    ):
        decode(a_response(body, content_type="text/html"), SPEC)


@pytest.mark.parametrize(
    "page",
    [{}, [], None, {"items": None}, {"items": {"id": 1}}, {"items": "none"}, {"error": "quota"}],
)
def test_a_body_without_a_list_of_items_halts_the_endpoint(page):
    with pytest.raises(EndpointHalted, match=r"there is no list at \$\.items"):
        answer(page)


@pytest.mark.parametrize("total", ["many", {}, [1]])
def test_a_total_that_is_no_number_halts_the_endpoint(total):
    with pytest.raises(EndpointHalted, match=r"the total at \$\.total is"):
        answer({"items": [], "total": total})


def test_the_sample_in_the_error_holds_no_secret():
    with pytest.raises(EndpointHalted) as caught:
        answer({"api_key": "CANARY-1"})

    assert "CANARY" not in str(caught.value)
