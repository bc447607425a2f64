"""What a status code means for us."""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.errors import EndpointHalted, RequestRejected, Throttled, TransientError
from patra_ingest.executor.triage import find_retry_at, judge, sample
from patra_ingest_tests.builders import NOON, a_response, a_spec

RETRY = a_spec().retry


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, None),
        (204, None),
        (299, None),
        (301, RequestRejected),
        (304, RequestRejected),
        (400, RequestRejected),
        (401, EndpointHalted),
        (403, EndpointHalted),
        (404, RequestRejected),
        (408, TransientError),
        (410, RequestRejected),
        (425, TransientError),
        (429, Throttled),
        (500, TransientError),
        (501, TransientError),
        (503, TransientError),
        (504, TransientError),
        (599, TransientError),
    ],
)
def test_every_family_of_statuses_has_its_level(status, expected):
    error = judge(a_response(b"said so", status), RETRY)

    assert type(error) is (expected or type(None))


def test_the_error_says_who_answered_what():
    error = judge(a_response(b"<h1>\nno   such\tfilter</h1>", 400), RETRY)

    assert str(error) == "https://api.example.org/works answered 400: <h1> no such filter</h1>"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("7", NOON + timedelta(seconds=7), id="seconds"),
        pytest.param(" 0 ", NOON, id="at once"),
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
    error = judge(a_response(status=status, retry_after=header), RETRY)

    assert isinstance(error, Throttled)
    assert error.retry_at == expected
    assert error.retry_at.tzinfo is not None


@pytest.mark.parametrize("header", ["", "soon", "-5", "1.5", "\xb2", "9" * 30])
def test_an_unreadable_retry_after_is_none(header):
    assert find_retry_at(a_response(retry_after=header)) is None


def test_without_a_readable_retry_after_a_429_pauses_and_a_503_is_transient():
    throttled = judge(a_response(status=429, retry_after="soon"), RETRY)
    transient = judge(a_response(status=503, retry_after="soon"), RETRY)

    assert isinstance(throttled, Throttled)
    assert throttled.retry_at > NOON
    assert type(transient) is TransientError


def test_a_source_may_declare_more_statuses_that_pass():
    patient = a_spec(retry={"statuses": [404]}).retry

    assert type(judge(a_response(status=404), patient)) is TransientError
    assert type(judge(a_response(status=500), patient)) is TransientError


def test_a_sample_is_short_and_without_secrets():
    shown = sample(b'{"api_key": "CANARY-1"} ' + b"x" * 5000)

    assert "CANARY" not in shown
    assert len(shown) <= 320
