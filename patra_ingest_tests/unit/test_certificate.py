"""When the pages of a slice add up to what was promised."""

import pytest

from patra_ingest.executor.certificate import (
    Promise,
    Verdict,
    certify,
    pack_ids,
    unpack_ids,
)

TOLD = Promise("$.total")


def page(ids="", total=None, without_id=0, retries=0, stop=None, **more):
    return {
        "itemsCount": len(ids) + without_id,
        "withoutId": without_id,
        "total": total,
        "idKeys": pack_ids(ids),
        "retryCount": retries,
        "stopRule": stop,
        **more,
    }


def search(ids, total=None, **more):
    found = {"phase": "SEARCH", "foundCount": len(ids), "foundIds": list(ids), "listed": len(ids)}
    return page(ids, total, **{**found, "itemsCount": 0, **more})


def asked(ids, total, count, **more):
    """A batch of a slice that is cut by ids."""
    return page(ids, total, askedCount=count, **more)


def details(ids, asked=None, **more):
    return page(ids, phase="DETAIL", askedCount=len(asked or ids), **more)


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        pytest.param([page("abc", 3)], "COMPLETE", id="all that was promised"),
        pytest.param([page("ab", 3), page("c", 3)], "COMPLETE", id="over two pages"),
        pytest.param([page("", 0)], "COMPLETE", id="nothing was promised, nothing came"),
        pytest.param([page("abc")], "COMPLETE", id="no promise: the stop rule decides"),
        pytest.param([page("ab", 3)], "INCOMPLETE", id="one is missing"),
        pytest.param([page("", 3)], "INCOMPLETE", id="an empty page before the total"),
        pytest.param([page("ab", 4), page("ab", 4)], "INCOMPLETE", id="a page came twice"),
        pytest.param([page("aab", 3)], "INCOMPLETE", id="an item came twice"),
        pytest.param([page("ab", 3, without_id=1)], "COMPLETE", id="one without id still came"),
        pytest.param([page("ab", 4), page("c", 3)], "DRIFTED", id="the total fell, all are here"),
        pytest.param(
            [page("ab", 4), page("c", 3, stop="TOTAL_REACHED")], "INCOMPLETE", id="it fell and ends"
        ),
        pytest.param(
            [page("ab", 4), page("c", 3, stop="SHORT_PAGE")], "INCOMPLETE", id="and short"
        ),
        pytest.param(
            [page("abc", 4), page("", 3, stop="TOTAL_REACHED")], "DRIFTED", id="and an empty page"
        ),
        pytest.param([page("ab", 9), page("cd", 4)], "INCOMPLETE", id="it fell by more than half"),
        pytest.param([page("ab", 3), page("cd", 4)], "DRIFTED", id="the total rose, all are here"),
        pytest.param([page("ab", 3), page("c", 4)], "INCOMPLETE", id="the total rose, one lacks"),
        pytest.param([page("abcd", 3)], "DRIFTED", id="more than promised"),
        pytest.param([page("ab", 2), page("", None)], "COMPLETE", id="only the first page tells"),
        pytest.param([page("ab", 3), page("", None)], "INCOMPLETE", id="the first page's promise"),
        pytest.param([asked("ab", 3, 3, goneIds=1)], "COMPLETE", id="a gone id was resolved"),
        pytest.param([asked("ab", 3, 3, badIds=1)], "COMPLETE", id="a bad id was resolved"),
        pytest.param([asked("ab", 3, 3)], "COMPLETE", id="two ids became one"),
        pytest.param([asked("ab", 4, 3)], "INCOMPLETE", id="one id was not asked for"),
        pytest.param(
            [asked("ab", 4, 4, badIds=1, unanswered=1)], "INCOMPLETE", id="one lacks an answer"
        ),
        pytest.param([search("abc", 3), details("abc")], "COMPLETE", id="all details came"),
        pytest.param([search("abc", 3), details("ab")], "INCOMPLETE", id="one was not asked for"),
        pytest.param([search("abc", 3)], "INCOMPLETE", id="details were never asked for"),
        pytest.param([search("abc", 4), details("abc")], "INCOMPLETE", id="the search lacks one"),
        pytest.param(
            [search("abc", 3), details("ab", "abc", goneIds=1)], "COMPLETE", id="one is gone"
        ),
        pytest.param(
            [search("abc", 4), details("ab", "abc", goneIds=1)],
            "INCOMPLETE",
            id="a gone detail is no find of the search",
        ),
        pytest.param(
            [search("ab", 3), details("ab"), search("bc", 3, foundIds=["c"]), details("c")],
            "COMPLETE",
            id="found twice, asked for once",
        ),
        pytest.param([search("", 0)], "COMPLETE", id="a search that finds nothing"),
        pytest.param(
            [search("abc", 3, foundIds=["a", "b"]), details("ab")],
            "COMPLETE",
            id="a hit that is skipped has no details",
        ),
        pytest.param(
            [search("abc", 3), details("ab", "abc", unanswered=1)],
            "INCOMPLETE",
            id="a detail without an end",
        ),
    ],
)
def test_the_verdict(pages, expected):
    assert certify(pages, TOLD).verdict == expected


@pytest.mark.parametrize(
    ("promise", "landed", "expected"),
    [
        (Promise("$.n", tolerance=0.1), "abcdefghi", "DRIFTED"),
        (Promise("$.n", tolerance=0.1), "abcdefghij", "COMPLETE"),
        (Promise("$.n", tolerance=0.1), "abcdefgh", "INCOMPLETE"),
        (Promise("$.n", tolerance=0.09), "abcdefghi", "INCOMPLETE"),
        (Promise("$.n", is_estimate=True), "a", "DRIFTED"),
        (Promise("$.n", is_estimate=True), "", "INCOMPLETE"),
        (Promise("$.n", tolerance=1.0), "", "INCOMPLETE"),
    ],
)
def test_what_may_lack_is_declared(promise, landed, expected):
    assert certify([page(landed, 10)], promise).verdict == expected


@pytest.mark.parametrize(
    ("promise", "landed", "expected"),
    [
        (Promise("$.n"), "cdefghi", "DRIFTED"),
        (Promise("$.n", shifts=True), "cdefghi", "INCOMPLETE"),
        (Promise("$.n", shifts=True), "cdefghij", "DRIFTED"),
        (Promise("$.n", tolerance=0.2, shifts=True), "cdefghi", "DRIFTED"),
    ],
)
def test_where_pages_shift_a_total_that_fell_may_have_hidden_a_record(promise, landed, expected):
    assert certify([page("ab", 10), page(landed, 9)], promise).verdict == expected


def test_a_tolerance_never_lets_details_go():
    pages = [search("abcdefghij", 10), details("abcdefghi")]

    assert certify(pages, Promise("$.n", tolerance=0.5)).verdict == "INCOMPLETE"


def test_a_certificate_counts_over_all_pages():
    pages = [page("abc", 5, retries=2), page("cd", 5, without_id=1, retries=1, stop="SHORT_PAGE")]

    assert certify(pages, TOLD).as_json() == {
        "promised": 5,
        "promised_from": "$.total",
        "landed": 5,
        "pages": 2,
        "duplicates": 1,
        "retries": 3,
        "stop_rule": "SHORT_PAGE",
        "verdict": Verdict.COMPLETE,
        "gone": 0,
        "bad": 0,
        "found": None,
        "quarantined": 0,
        "outOfWindow": 0,
    }


def test_in_two_phases_pages_are_those_of_the_search_and_records_those_of_the_details():
    pages = [
        search("abc", 4, stop=None),
        details("ab", retries=1),
        details("", "c", badIds=1),
        search("cd", 4, stop="NO_TOKEN", foundIds=["d"]),
        details("", "d", goneIds=1),
    ]

    found = certify(pages, TOLD)

    assert (found.found, found.landed, found.gone, found.bad) == (4, 2, 1, 1)
    assert (found.pages, found.duplicates, found.retries) == (2, 1, 1)
    assert (found.stop_rule, found.verdict) == ("NO_TOKEN", "COMPLETE")
    assert "4 promised, 4 found, 2 landed over 2 pages" in str(found)


@pytest.mark.parametrize(
    ("counts", "duplicates"),
    [
        pytest.param({"itemsCount": 2, "listed": 3, "ignored": 1}, 0, id="one was skipped"),
        pytest.param({"itemsCount": 5, "listed": 3}, 0, id="two deletions came beside them"),
        pytest.param({"itemsCount": 4, "listed": 4}, 1, id="one came twice"),
    ],
)
def test_only_what_a_page_lists_can_be_there_twice(counts, duplicates):
    certificate = certify([page("abc", 3, **counts)], TOLD)

    assert (certificate.duplicates, certificate.verdict) == (duplicates, "COMPLETE")


def test_a_certificate_can_be_read():
    assert str(certify([page("ab", 3, stop="EMPTY_PAGE")], TOLD)) == (
        "INCOMPLETE: 3 promised, 2 landed over 1 pages, 0 seen twice, ended by EMPTY_PAGE"
    )


def test_without_a_promise_nobody_is_named_as_its_source():
    certificate = certify([page("ab")], TOLD)

    assert (certificate.promised, certificate.promised_from) == (None, None)
    assert "no total promised" in str(certificate)


def test_packed_ids_can_be_counted_again():
    assert len(unpack_ids(pack_ids(["a", "b", "a"]))) == 2
    assert unpack_ids(pack_ids([])) == set()
    assert unpack_ids(pack_ids(["a"])) != unpack_ids(pack_ids(["b"]))


def test_a_certificate_says_how_much_of_what_landed_is_no_record():
    pages = [page("abc", 6, quarantined=2), page("def", 6, quarantined=2, outOfWindow=1, stop="X")]

    proof = certify(pages, TOLD)

    assert (proof.verdict, proof.landed) == (Verdict.COMPLETE, 6)
    assert (proof.as_json()["quarantined"], proof.as_json()["outOfWindow"]) == (4, 1)
    assert "6 landed over 2 pages, 4 quarantined, 1 out of the window, 0 seen" in str(proof)


def test_a_certificate_of_records_alone_does_not_speak_of_others():
    proof = certify([page("abc", 3, quarantined=0, outOfWindow=0, stop="X")], TOLD)

    assert "3 landed over 1 pages, 0 seen twice" in str(proof)
