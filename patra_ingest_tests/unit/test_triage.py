"""What an answer means when no rule of the pack speaks: its status and its Retry-After."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    RequestRejected,
    Throttled,
    TransientError,
)
from patra_ingest.executor.triage import find_retry_at, judge, sample, shown_answer
from patra_ingest_tests.builders import NOON, a_response, a_spec

SPEC = a_spec()


def judged(response, spec=SPEC, now=NOON):
    def unread():
        raise AssertionError("no rule looks into the body, so nobody may read it")

    return judge(response, spec, unread, now)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, None),
        (204, None),
        (206, None),
        (299, None),
        (301, RequestRejected),
        (304, RequestRejected),
        (400, RequestRejected),
        (401, CredentialRefused),
        (402, EndpointHalted),
        (403, EndpointHalted),
        (404, RequestRejected),
        (407, EndpointHalted),
        (408, TransientError),
        (409, RequestRejected),
        (410, RequestRejected),
        (413, RequestRejected),
        (414, RequestRejected),
        (422, RequestRejected),
        (425, TransientError),
        (429, Throttled),
        (451, RequestRejected),
        (500, TransientError),
        (501, TransientError),
        (503, TransientError),
        (504, TransientError),
        (511, EndpointHalted),
        (522, TransientError),
        (599, TransientError),
    ],
)
def test_every_family_of_statuses_has_its_level(status, expected):
    assert type(judged(a_response(b"said so", status))) is (expected or type(None))


def test_the_error_says_who_answered_what():
    error = judged(a_response(b"<h1>\nno   such\tfilter</h1>", 400))

    assert str(error) == "https://api.example.org/works answered 400: <h1> no such filter</h1>"


def test_an_answer_without_a_body_is_said_to_have_none():
    assert str(judged(a_response(b" \n", 404))).endswith("answered 404: an empty body")


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("7", NOON + timedelta(seconds=7), id="seconds"),
        pytest.param("1.5", NOON + timedelta(seconds=1.5), id="parts of a second"),
        pytest.param("30, 60", NOON + timedelta(seconds=60), id="said twice"),
        pytest.param("54000", NOON + timedelta(hours=15), id="tomorrow, as OpenAlex says"),
        pytest.param(
            "Sat, 20 Sep 2025 12:01:00 GMT", datetime(2025, 9, 20, 12, 1, tzinfo=UTC), id="a date"
        ),
        pytest.param(
            "Sat, 20 Sep 2025 14:01:00 +0200",
            datetime(2025, 9, 20, 12, 1, tzinfo=UTC),
            id="a date elsewhere",
        ),
        pytest.param(
            "Sat, 20 Sep 2025 12:01:00", datetime(2025, 9, 20, 12, 1, tzinfo=UTC), id="no zone: UTC"
        ),
        pytest.param(
            "Sat, 20 Sep 2025 12:01:00 -0000",
            datetime(2025, 9, 20, 12, 1, tzinfo=UTC),
            id="an unknown zone: UTC",
        ),
    ],
)
def test_retry_after_says_when_to_come_back(status, header, expected):
    error = judged(a_response(b"slow down", status, retry_after=header))

    assert isinstance(error, Throttled)
    assert error.retry_at == expected
    assert error.retry_at.utcoffset() == timedelta(0)
    assert f"answered {status}: slow down" in str(error)


@pytest.mark.parametrize("header", ["9" * 30, "9" * 400])
def test_an_endless_pause_is_a_year_long(header):
    error = judged(a_response(status=429, retry_after=header))

    assert isinstance(error, Throttled)
    assert error.retry_at == NOON + timedelta(days=365)


def test_seconds_count_from_the_answer_and_not_from_the_judgement():
    later = NOON + timedelta(seconds=3)

    error = judged(a_response(status=429, retry_after="7"), now=later)

    assert isinstance(error, Throttled)
    assert error.retry_at == NOON + timedelta(seconds=7)


@pytest.mark.parametrize("header", ["", "soon", "-5", "1.5.2", "\xb2", "٣", "5 s", "Sat, 99 Foo"])
def test_an_unreadable_retry_after_is_none(header):
    assert find_retry_at(a_response(retry_after=header), SPEC.http, NOON) is None


@pytest.mark.parametrize("header", ["soon", "0", "0, 0", "Sat, 20 Sep 2025 11:00:00 GMT"])
def test_a_retry_after_that_names_no_later_instant_pauses_a_429_and_leaves_a_503_transient(header):
    throttled = judged(a_response(status=429, retry_after=header))
    transient = judged(a_response(status=503, retry_after=header))

    assert isinstance(throttled, Throttled)
    assert throttled.retry_at == NOON + timedelta(seconds=1)
    assert type(transient) is TransientError


@pytest.mark.parametrize(
    ("http", "expected"),
    [
        ({"retry_after": "RESPECT"}, 900),
        ({"retry_after": "CLAMP", "retry_after_cap": "5m"}, 300),
        ({"retry_after": "CLAMP", "retry_after_cap": "1h"}, 900),
        ({"retry_after": "IGNORE"}, None),
    ],
)
@pytest.mark.parametrize("header", ["900", "Sat, 20 Sep 2025 12:15:00 GMT"])
def test_the_pack_says_what_a_retry_after_is_worth(http, expected, header):
    found = find_retry_at(a_response(retry_after=header), a_spec(http=http).http, NOON)

    assert found == (None if expected is None else NOON + timedelta(seconds=expected))


def test_a_429_whose_retry_after_is_ignored_still_pauses():
    spec = a_spec(http={"retry_after": "IGNORE"})

    error = judged(a_response(status=429, retry_after="900"), spec)

    assert isinstance(error, Throttled)
    assert error.retry_at == NOON + timedelta(seconds=1)


def test_a_retry_after_on_what_will_not_be_asked_again_changes_nothing():
    assert type(judged(a_response(status=404, retry_after="60"))) is RequestRejected
    assert judged(a_response(status=200, retry_after="60")) is None


def test_a_source_may_declare_more_statuses_that_pass():
    patient = a_spec(retry={"statuses": [403, 404]})

    assert type(judged(a_response(status=404), patient)) is TransientError
    assert type(judged(a_response(status=403), patient)) is TransientError
    assert type(judged(a_response(status=500), patient)) is TransientError


def test_a_source_may_declare_statuses_that_never_pass():
    spec = a_spec(retry={"statuses": [503], "give_up": [429, 500]})

    for status in (429, 500):
        error = judged(a_response(status=status, retry_after="5"), spec)
        assert type(error) is RequestRejected
        assert "retry.give_up" in str(error)
    assert type(judged(a_response(status=502), spec)) is TransientError


@pytest.mark.parametrize(
    ("status", "key"),
    [
        (405, "request.method"),
        (406, "http.headers"),
        (407, "http.proxy"),
        (413, "paging.page_size"),
        (414, "request.post_when_longer"),
        (431, "http.headers"),
    ],
)
def test_an_error_that_the_pack_can_mend_names_the_key(status, key):
    assert key in str(judged(a_response(b"<html>", status)))


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_says_whether_the_pack_has_credentials_at_all(status):
    error = judged(a_response(b'{"message":"Forbidden"}', status))

    assert "does not accept our credentials; the pack declares none" in str(error)


def test_a_redirect_that_was_not_followed_says_where_it_points_without_secrets():
    there = "https://other.example.org/works?api_key=CANARY-1&from=2025"
    error = judged(a_response(b"", 302, location=there))

    assert "it points to https://other.example.org/works?api_key=***&from=2025" in str(error)
    assert "http.redirects is REFUSE" in str(error)


def test_a_sample_is_short_and_without_secrets():
    seen = sample(b'{"api_key": "CANARY-1"} ' + b"x" * 5000)

    assert "CANARY" not in seen
    assert len(seen) <= 320


def test_a_sample_cannot_rewrite_the_terminal_of_its_reader():
    assert sample(b"\x1b[2Jgone\x00\xff") == "�[2Jgone��"


@pytest.mark.parametrize("before", [0, 290, 299])
def test_a_key_that_the_source_repeats_is_hidden_also_where_the_sample_ends(before):
    body = b"x" * before + b" no such key: CANARY-0123456789 "
    response = replace(a_response(body, 403), hidden=frozenset({"CANARY-0123456789"}))

    assert "CANARY" not in shown_answer(response)
    assert "CANARY" not in str(judged(response))


def test_a_redirect_hides_the_key_by_its_value():
    response = a_response(b"", 302, location="/login/CANARY-0123456789")

    error = judged(replace(response, hidden=frozenset({"CANARY-0123456789"})))

    assert "it points to /login/***" in str(error)
