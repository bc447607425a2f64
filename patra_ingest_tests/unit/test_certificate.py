"""When the pages of a slice add up to what was promised."""

import pytest

from patra_ingest.executor.certificate import Verdict, certify, pack_ids, unpack_ids


def page(ids="", total=None, without_id=0, retries=0, stop=None):
    return {
        "itemsCount": len(ids) + without_id,
        "withoutId": without_id,
        "total": total,
        "idKeys": pack_ids(ids),
        "retryCount": retries,
        "stopRule": stop,
    }


def verdict(*pages):
    return certify(pages, "$.total").verdict


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
        pytest.param([page("ab", 3), page("cd", 4)], "DRIFTED", id="the total rose, all are here"),
        pytest.param([page("ab", 3), page("c", 4)], "INCOMPLETE", id="the total rose, one lacks"),
        pytest.param([page("abcd", 3)], "DRIFTED", id="more than promised"),
        pytest.param([page("ab", 2), page("", None)], "COMPLETE", id="a page may keep silent"),
    ],
)
def test_the_verdict(pages, expected):
    assert verdict(*pages) == expected


def test_a_certificate_counts_over_all_pages():
    pages = [page("abc", 5, retries=2), page("cd", 5, without_id=1, retries=1, stop="SHORT_PAGE")]

    certificate = certify(pages, "$.total")

    assert certificate.as_json() == {
        "promised": 5,
        "promised_from": "$.total",
        "landed": 5,
        "pages": 2,
        "duplicates": 1,
        "retries": 3,
        "stop_rule": "SHORT_PAGE",
        "verdict": Verdict.COMPLETE,
        "gone": 0,
    }


def test_a_certificate_can_be_read():
    assert str(certify([page("ab", 3, stop="EMPTY_PAGE")], "$.total")) == (
        "INCOMPLETE: 3 promised, 2 landed over 1 pages, 0 seen twice, ended by EMPTY_PAGE"
    )


def test_without_a_promise_nobody_is_named_as_its_source():
    certificate = certify([page("ab")], "$.total")

    assert (certificate.promised, certificate.promised_from) == (None, None)
    assert "no total promised" in str(certificate)


def test_packed_ids_can_be_counted_again():
    assert len(unpack_ids(pack_ids(["a", "b", "a"]))) == 2
    assert unpack_ids(pack_ids([])) == set()
    assert unpack_ids(pack_ids(["a"])) != unpack_ids(pack_ids(["b"]))
