"""Totals, tokens, flags, steps and tombstones: found where the pack says, or refused by name."""

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.places import find_count, linked
from patra_ingest.spec.paging import UrlPaging
from patra_ingest.spec.places import NextPlace, Total
from patra_ingest_tests.unit.test_decoding import BY_OFFSET, SPEC, answer, reading

BY_URL = SPEC.model_copy(
    update={
        "paging": UrlPaging(page_size=10, stop=("NO_TOKEN",), next_url=NextPlace(path="$.next"))
    }
)
DATACITE = "https://api.example.org/dois?page%5Bcursor%5D=MTY%2BLDE%3D&page%5Bsize%5D=2&a=+b"


def paging(spec=SPEC, **words):
    """Return a spec that pages so."""
    return spec.model_copy(update={"paging": spec.paging.model_copy(update=words)})


def by_token(**place):
    return paging(next_token=NextPlace(**place))


@pytest.mark.parametrize(
    ("found", "total"),
    [
        (7, 7),
        (0, 0),
        ("12", 12),
        (" 12\n", 12),
        ("1,234", 1234),
        ("1,234,567", 1234567),
        (12.0, 12),
        (None, None),
    ],
)
def test_a_total_may_be_written_as_text(found, total):
    assert answer({"items": [], "total": found}).total == total


@pytest.mark.parametrize(
    "found",
    [
        "many",
        "",
        "-1",
        -1,
        True,
        False,
        {},
        [1],
        1.5,
        "1.5",
        "12,34",
        "1,2345",
        "1e3",
        "٣",
        "9" * 40,
    ],
)
def test_a_total_that_is_no_number_halts_the_endpoint(found):
    with pytest.raises(EndpointHalted, match=r"the total at \$\.total is .*, not a number"):
        answer({"items": [], "total": found})


@pytest.mark.parametrize(
    ("found", "count"), [(7, 7), (0, 0), (" 12\n", 12), ("1,005", 1005), (12.0, 12)]
)
def test_a_count_is_read_as_a_total_is(found, count):
    assert find_count({"n": found}, "$.n") == count


@pytest.mark.parametrize("found", ["many", "", -1, "-1", True, 1.5, "12,34", [1], None])
def test_a_count_that_is_no_number_is_refused(found):
    with pytest.raises(ValueError, match=r"the count at \$\.n is .*, not a number"):
        find_count({"n": found}, "$.n")


def test_a_total_may_stand_in_a_header():
    counted = paging(total=Total(header="X-Total-Count"))

    assert answer({"items": []}, counted, x_total_count="1,204").total == 1204
    assert answer({"items": []}, counted).total is None
    with pytest.raises(EndpointHalted, match="the total at the header X-Total-Count is 'lots'"):
        answer({"items": []}, counted, x_total_count="lots")


@pytest.mark.parametrize(
    ("found", "token"),
    [
        ("t2", "t2"),
        (" t2\n", "t2"),
        (3, "3"),
        (1.5, "1.5"),
        ("", None),
        ("  ", None),
        (None, None),
        (False, None),
    ],
)
def test_a_token_is_text_and_an_empty_one_is_none(found, token):
    assert answer({"items": [], "next": found}).next == token


@pytest.mark.parametrize("found", [True, {}, [], ["t2"]])
def test_what_cannot_be_a_token_halts_the_endpoint(found):
    with pytest.raises(EndpointHalted, match=r"\$\.next holds"):
        answer({"items": [], "next": found})


NEXT = "/works?page=2"
LINK = '<https://a.org/?q=a,b;c&page=1>; rel="first", </works?page=2>; rel="next"'


@pytest.mark.parametrize(
    ("place", "page", "headers", "found"),
    [
        pytest.param({"header": "X-Next"}, {}, {"x_next": "t2"}, "t2", id="a header"),
        pytest.param({"header": "X-Next"}, {}, {}, None, id="no header"),
        pytest.param({"link": "next"}, {}, {"link": LINK}, NEXT, id="a Link header"),
        pytest.param({"link": "prev"}, {}, {"link": LINK}, None, id="no such link"),
        pytest.param({"link": "next"}, {}, {}, None, id="no Link header"),
        pytest.param(
            {"link": "next", "param": "page"}, {}, {"link": LINK}, "2", id="a link's parameter"
        ),
        pytest.param(
            {"path": "$.links.next", "param": "page[cursor]"},
            {"links": {"next": DATACITE}},
            {},
            "MTY+LDE=",
            id="an encoded parameter of an encoded name",
        ),
        pytest.param(
            {"path": "$.next", "param": "a"}, {"next": DATACITE}, {}, " b", id="a plus is a blank"
        ),
        pytest.param(
            {"path": "$.next", "param": "c"}, {"next": "/x?c=&d=1"}, {}, None, id="an empty one"
        ),
        pytest.param({"path": "$.next", "param": "c"}, {"next": None}, {}, None, id="no address"),
        pytest.param(
            {"last_item": "$.sequence"},
            {"items": [{"sequence": 4}, {"sequence": 9}]},
            {},
            "9",
            id="the last item",
        ),
        pytest.param({"last_item": "$.sequence"}, {"items": []}, {}, None, id="no last item"),
    ],
)
def test_the_next_token_is_taken_from_its_place(place, page, headers, found):
    assert answer({"items": [], **page}, by_token(**place), **headers).next == found


def test_an_address_without_the_declared_parameter_halts_the_endpoint():
    page = {"items": [], "next": "/works?page=2&api_key=CANARY"}

    with pytest.raises(
        EndpointHalted, match=r"the address at \$\.next has no parameter cursor"
    ) as e:
        answer(page, by_token(path="$.next", param="cursor"))

    assert "CANARY" not in str(e.value)


@pytest.mark.parametrize("address", ["https://api.example.org/works?page=2", "?page=2"])
def test_a_next_address_is_kept_as_it_is(address):
    assert answer({"items": [], "next": address}, BY_URL).next == address


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("<a>; rel=next", "a"),
        ("<a>;rel='x',<b>;rel=next", "b"),
        ('<a>; REL="Next"', "a"),
        ('<a>; rel="prev next"', "a"),
        ('<a>; rel="nextish"', None),
        ('<a>; title="; rel=next, <x>; rel=\\"next\\""; rel="last", <b>; rel="next"', "b"),
        ('<a>; rel="last"; rel="next"', None),
        ('< a >  ;  rel = "next"', "a"),
        ("<a>; rev=next", None),
        ("<a>", None),
        ("rel=next", None),
        ("", None),
        ("<" * 50_000, None),
    ],
)
def test_a_link_header_is_read_as_rfc_8288_says(header, address):
    assert linked(header, "next") == address


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("False", False),
        (1, True),
        (0, False),
        ("1", True),
        ("0", False),
    ],
)
def test_a_flag_may_be_written_in_several_ways(found, more):
    assert answer({"items": [], "more": found}, paging(has_more="$.more")).has_more is more


@pytest.mark.parametrize("found", [None, "", "yes", 2, [], {}, [True], 1.5])
def test_a_flag_that_says_neither_halts_the_endpoint(found):
    with pytest.raises(EndpointHalted, match=r"\$\.more says whether there is more, and holds"):
        answer({"items": [], "more": found}, paging(has_more="$.more"))


def test_a_source_without_a_flag_says_nothing():
    assert answer({"items": []}).has_more is None


def test_the_offset_moves_by_what_the_source_reports():
    reported = paging(BY_OFFSET, step="REPORTED", step_path="$.messages[0].count")

    assert answer({"items": [], "messages": [{"count": "30"}]}, reported).step == 30
    assert answer({"items": [], "messages": [{"status": "no posts found"}]}, reported).step is None
    with pytest.raises(EndpointHalted, match=r"the step at \$\.messages\[0\]\.count is 'all'"):
        answer({"items": [], "messages": [{"count": "all"}]}, reported)


@pytest.mark.parametrize(
    ("where", "page", "gone"),
    [
        ("$.removed[*].id", {"removed": [{"id": 1}, {"id": "b"}, {"id": 1}]}, ("1", "b")),
        ("$.removed", {"removed": ["a", None, " ", "b "]}, ("a", "b")),
        ("$.removed", {"removed": []}, ()),
        ("$.removed", {}, ()),
    ],
)
def test_the_ids_of_what_is_gone_are_listed_once(where, page, gone):
    assert answer({"items": [], **page}, reading(tombstones=where)).gone == gone


def test_a_tombstone_that_is_no_id_halts_the_endpoint():
    with pytest.raises(EndpointHalted, match=r"\$\.removed holds \{'id': 1\}, and not one value"):
        answer({"items": [], "removed": [{"id": 1}]}, reading(tombstones="$.removed"))
