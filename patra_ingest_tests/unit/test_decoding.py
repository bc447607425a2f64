"""An answer becomes items and what stands beside them, or an error; never silently nothing."""

import json

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.decoding import Decoded, decode, read_tree
from patra_ingest.spec.places import Expectation
from patra_ingest_tests.builders import a_response, a_spec

SPEC = a_spec()
BY_OFFSET = a_spec(
    request={"query": {"q": "${window.from}/${window.last}", "offset": "${page.offset}"}},
    paging={"type": "OFFSET", "next_token": None, "stop": ["EMPTY_PAGE"]},
)
ASKED = {"window": {"from": "2025-09-01"}, "query": None}


def reading(spec=SPEC, **response):
    """Return a spec that reads its answers so."""
    changed = spec.response.model_copy(update=response)
    return spec.model_copy(update={"response": changed})


def decoded(body, spec=SPEC, **headers):
    answer = a_response(body, **headers)
    return decode(answer, read_tree(answer, spec.response), spec, spec.paging, ASKED)


def answer(tree, spec=SPEC, **headers):
    return decoded(json.dumps(tree).encode(), spec, **headers)


def test_a_page_is_its_items_its_total_and_the_next_token():
    page = {"items": [{"id": 1}], "total": 7, "next": "t2"}

    assert answer(page) == Decoded([{"id": 1}], 7, "t2")


def test_a_detail_call_has_no_paging_and_so_neither_total_nor_token():
    response = a_response(b'{"items": [1], "total": 7, "next": "t2"}')
    tree = read_tree(response, SPEC.response)

    assert decode(response, tree, SPEC, None, {}) == Decoded([1])


def test_offset_paging_looks_for_no_token():
    assert answer({"items": [], "next": "t2"}, BY_OFFSET).next is None


SEVERAL = ("$.a", "$.b")
KEYED = {"items": ("$.result",), "items_order": "$.result.uids"}


@pytest.mark.parametrize(
    ("response", "page", "items"),
    [
        pytest.param({}, {"items": []}, [], id="an empty list"),
        pytest.param({"items": ("$",)}, [1, 2], [1, 2], id="the answer is the list"),
        pytest.param({"items": ("$[*]",)}, [1, 2], [1, 2], id="the answer, one by one"),
        pytest.param({"items": ("$.items[*]",)}, {"items": [1]}, [1], id="one by one"),
        pytest.param({}, {"items": [1, None, 2]}, [1, None, 2], id="nulls keep their place"),
        pytest.param({"items": SEVERAL}, {"b": [3], "a": [1, 2]}, [1, 2, 3], id="places in order"),
        pytest.param(
            {"items": ("$.groups[*].docs",)},
            {"groups": [{"docs": [1]}, {"docs": []}, {"docs": [2, 3]}]},
            [1, 2, 3],
            id="the lists of several groups",
        ),
        pytest.param(
            {"items": ("$.data[?(@.type == 'w')]",)},
            {"data": [{"type": "w"}, {"type": "x"}]},
            [{"type": "w"}],
            id="only those that pass a filter",
        ),
        pytest.param(
            {"items": ("$.data[?(@.type == 'w')]",)}, {"data": []}, [], id="a filtered empty list"
        ),
        pytest.param({"null_is_empty": True}, {"items": None}, [], id="null is empty"),
        pytest.param(
            {"null_is_empty": True}, {"total": 0}, [], id="no list, and the total says why"
        ),
        pytest.param(
            {"items": SEVERAL, "null_is_empty": True}, {"a": [1], "b": None}, [1], id="one is null"
        ),
        pytest.param(
            {"items": ("$.message",), "single": True},
            {"message": {"DOI": "x"}},
            [{"DOI": "x"}],
            id="one item alone",
        ),
        pytest.param({"items": ("$",), "single": True}, {"id": 1}, [{"id": 1}], id="all of it"),
        pytest.param(
            {"items": ("$.message",), "single": True, "null_is_empty": True},
            {"message": None},
            [],
            id="no item alone",
        ),
        pytest.param(
            KEYED,
            {"result": {"7": {"uid": "7"}, "3": {"uid": "3"}, "uids": ["7", "3"]}},
            [{"uid": "7"}, {"uid": "3"}],
            id="an object by id, in the order of the ids",
        ),
        pytest.param(
            KEYED, {"result": {"7": 1, "uids": [7, 9]}}, [1, None], id="an id that has no member"
        ),
        pytest.param(KEYED, {"result": {"uids": []}}, [], id="no ids"),
        pytest.param(
            {"items": ("$.result",), "items_order": "$.uids"},
            {"result": [], "uids": []},
            [],
            id="an empty object as PHP writes it",
        ),
        pytest.param(
            KEYED | {"null_is_empty": True}, {"result": {"uids": None}}, [], id="null for no ids"
        ),
    ],
)
def test_items_are_found_in_all_the_ways_sources_keep_them(response, page, items):
    assert answer(page, reading(**response)).items == items


def test_items_kept_by_id_say_what_they_stand_for():
    page = {"result": {"7": {"title": "x"}, "uids": [7, 9]}}

    assert answer(page, reading(**KEYED)).places == ("7", "9")
    assert answer({"items": []}).places is None


@pytest.mark.parametrize("listed", [[{"by": "a"}, {"by": "b"}], []])
def test_all_items_together_may_be_one_item_of_the_id_that_was_asked_for(listed):
    spec = reading(items=("$",), grouped=True)
    response = a_response(json.dumps(listed).encode())

    page = decode(response, listed, spec, None, {"ids": ["10.1000/x"]})

    assert page.items == [{"asked": "10.1000/x", "items": listed}]


@pytest.mark.parametrize(
    ("tree", "ids", "reason"),
    [
        ({"error": "quota"}, ["x"], r"there is no list at \$"),
        ([], None, "the one id that was asked for"),
        ([], ["x", "y"], "the one id that was asked for"),
    ],
)
def test_a_group_is_a_list_of_one_id_or_an_error(tree, ids, reason):
    spec = reading(items=("$",), grouped=True)

    with pytest.raises(EndpointHalted, match=reason):
        decode(a_response(b""), tree, spec, None, {"ids": ids})


@pytest.mark.parametrize(
    ("response", "page", "reason"),
    [
        *(
            pytest.param({}, page, r"there is no list at \$\.items", id=json.dumps(page))
            for page in (
                {},
                [],
                None,
                {"items": None},
                {"items": {"id": 1}},
                {"items": "none"},
                {"error": "quota"},
            )
        ),
        ({"items": SEVERAL}, {"a": []}, r"there is no list at \$\.a or \$\.b"),
        ({"null_is_empty": True}, {"error": "quota"}, "there is no list"),
        ({"null_is_empty": True}, {"total": 3}, "there is no list"),
        ({"null_is_empty": True}, {"items": "none", "total": 0}, "there is no list"),
        ({"items": ("$.groups[*].docs",)}, {"groups": [{"docs": [1]}, {"docs": 2}]}, "no list"),
        ({"items": ("$.data[?(@.type == 'w')]",)}, {"data": "none"}, "there is no list"),
        ({"items": ("$.a",), "single": True}, {"a": [{"id": 1}]}, r"there is no item at \$\.a"),
        ({"items": ("$.a",), "single": True}, {}, r"there is no item at \$\.a"),
        (KEYED, {"result": {"7": {}}}, r"there is no list at \$\.result\.uids"),
        (KEYED, {"result": {"uids": [{}]}}, r"\$\.result\.uids holds \{\}"),
        (
            {"items": ("$.r",), "items_order": "$.uids"},
            {"r": [1], "uids": [7]},
            r"no object at \$\.r",
        ),
    ],
)
def test_an_answer_without_its_list_halts_the_endpoint(response, page, reason):
    with pytest.raises(EndpointHalted, match=reason):
        answer(page, reading(**response))


@pytest.mark.parametrize(
    ("response", "page"),
    [
        ({"require": ("$.items", "$.total")}, {"items": [], "total": 0}),
        ({"require": ("$.items",)}, {"items": []}),
        ({"require": ("$.items",), "null_is_empty": True}, {"items": None}),
        ({"expect": ("$.status", "ok", None)}, {"items": [], "status": "ok"}),
        ({"expect": ("$.n", "1", None)}, {"items": [], "n": 1}),
        ({"expect": ("$.n", "true", None)}, {"items": [], "n": True}),
        ({"expect": ("$.from", "${window.from}", None)}, {"items": [], "from": "2025-09-01"}),
        ({"expect": ("$.q", "(${query})", None)}, {"items": [], "q": "anything"}),
        ({"expect": ("$.version", None, r"^2\.")}, {"items": [], "version": "2.1"}),
        ({"expect": ("$.version", None, r"^2$")}, {"items": [], "version": 2}),
    ],
)
def test_an_answer_that_has_what_it_must_have_is_read(response, page):
    assert answer(page, reading(**_said(response))).items == []


@pytest.mark.parametrize(
    ("response", "page", "reason"),
    [
        ({"require": ("$.hitCount",)}, {"items": []}, r"nothing at \$\.hitCount, which every"),
        ({"require": ("$.hits",)}, {"items": [], "hits": None}, r"nothing at \$\.hits"),
        ({"require": ("$.a",), "null_is_empty": True}, {"items": None}, r"nothing at \$\.a"),
        (
            {"expect": ("$.status", "ok", None)},
            {"items": [], "status": "failed"},
            r"\$\.status holds 'failed', expected was 'ok'",
        ),
        ({"expect": ("$.status", "ok", None)}, {"items": []}, "holds nothing, expected was 'ok'"),
        ({"expect": ("$.s", "ok", None)}, {"items": [], "s": ["ok"]}, r"holds \['ok'\], expected"),
        (
            {"expect": ("$.from", "${window.from}", None)},
            {"items": [], "from": "1900-01-01"},
            "holds '1900-01-01', expected was '2025-09-01'",
        ),
        (
            {"expect": ("$.version", None, r"^2\.")},
            {"items": [], "version": "3.0"},
            r"holds '3\.0', expected was what matches \^2\\\.",
        ),
        ({"expect": ("$.version", None, r"^2\.")}, {"items": []}, "holds nothing"),
    ],
)
def test_an_answer_that_lacks_what_it_must_have_halts_the_endpoint(response, page, reason):
    with pytest.raises(EndpointHalted, match=reason) as caught:
        answer(page, reading(**_said(response)))

    assert "https://api.example.org/works" in str(caught.value)
    assert '"items"' in str(caught.value)


def test_a_path_that_fails_on_an_answer_halts_the_endpoint():
    with pytest.raises(EndpointHalted, match="fails on this response"):
        answer({"items": [{"n": "a"}]}, reading(require=("$.items[?(@.n=~'(')]",)))


def test_the_sample_in_the_error_holds_no_secret():
    with pytest.raises(EndpointHalted) as caught:
        answer({"api_key": "CANARY-1", "items": "?api_key=CANARY-2"})

    assert "CANARY" not in str(caught.value)


def _said(response):
    if "expect" not in response:
        return response
    where, equals, matches = response["expect"]
    return {"expect": (Expectation(path=where, equals=equals, matches=matches),)}
