"""What the headers of real sources say about our budget, and what of it is not believed."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.rate.told import Told, read_told
from patra_ingest.spec.policies import RateHeaders, Reset
from patra_ingest.spec.words import ResetUnit
from patra_ingest_tests.builders import NOON

EPOCH_OF_NOON = int(NOON.timestamp())
USUAL = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")

CROSSREF = RateHeaders(
    limit="x-rate-limit-limit", interval="x-rate-limit-interval", concurrency="x-concurrency-limit"
)
OPENALEX = RateHeaders(
    limit=USUAL[0],
    remaining=USUAL[1],
    reset=Reset(header=USUAL[2], unit=ResetUnit.SECONDS_LEFT),
    cost="X-RateLimit-Credits-Used",
)
OPENALEX_MONEY = RateHeaders(
    limit="X-RateLimit-Limit-USD",
    remaining="X-RateLimit-Remaining-USD",
    cost="X-RateLimit-Cost-USD",
)
ZENODO = RateHeaders(
    limit=USUAL[0],
    remaining=USUAL[1],
    reset=Reset(header=USUAL[2], unit=ResetUnit.EPOCH_SECONDS),
)
OPENAIRE = RateHeaders(limit="x-ratelimit-limit", used="x-ratelimit-used")
IETF = RateHeaders(
    limit="RateLimit-Policy",
    remaining="RateLimit",
    reset=Reset(header="RateLimit", unit=ResetUnit.SECONDS_LEFT),
)


def usual(unit):
    return RateHeaders(reset=Reset(header="Reset", unit=unit))


def told(words, **headers):
    """Read headers written with underscores, received at noon."""
    return read_told(words, {name.replace("_", "-"): text for name, text in headers.items()}, NOON)


def said(found):
    """Return what was read, without when it came and without what is missing."""
    shown = found.as_json()
    assert shown.pop("at") == "2025-09-20T12:00:00.000000Z"
    return shown


def in_hours(hours):
    return f"2025-09-20T{12 + hours:02d}:00:00.000000Z"


SOURCES = {
    "Crossref, polite, lists": (
        CROSSREF,
        {"X-Rate-Limit-Limit": "3", "x-rate-limit-interval": "1s", "X-Concurrency-Limit": "3"},
        {"ratePerSecond": "3", "inFlight": 3, "limit": "3", "intervalSeconds": 1.0},
    ),
    "OpenAlex, credits, seconds left": (
        OPENALEX,
        {
            "x-ratelimit-limit": "100000",
            "x-ratelimit-remaining": "99987",
            "x-ratelimit-credits-used": "10",
            "x-ratelimit-reset": "36000",
        },
        {"limit": "100000", "remaining": "99987", "cost": "10", "resetsAt": in_hours(10)},
    ),
    "OpenAlex, money, as a float is written": (
        OPENALEX_MONEY,
        {
            "x-ratelimit-limit-usd": "1",
            "x-ratelimit-remaining-usd": "0.9987",
            "x-ratelimit-cost-usd": "5e-05",
        },
        {"limit": "1", "remaining": "0.9987", "cost": "0.00005"},
    ),
    "OpenAlex, budget gone": (
        OPENALEX,
        {"x-ratelimit-limit": "100000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "0"},
        {"limit": "100000", "remaining": "0", "resetsAt": in_hours(0)},
    ),
    "Zenodo, epoch seconds": (
        ZENODO,
        {
            "X-RateLimit-Limit": "60",
            "X-RateLimit-Remaining": "59",
            "X-RateLimit-Reset": str(EPOCH_OF_NOON + 3600),
        },
        {"limit": "60", "remaining": "59", "resetsAt": in_hours(1)},
    ),
    "OpenAIRE, used": (
        OPENAIRE,
        {"x-ratelimit-limit": "7200", "x-ratelimit-used": "7000"},
        {"limit": "7200", "remaining": "200"},
    ),
    "OpenAIRE, more used than allowed": (
        OPENAIRE,
        {"x-ratelimit-limit": "60", "x-ratelimit-used": "61"},
        {"limit": "60", "remaining": "0"},
    ),
    "the IETF's draft 8": (
        IETF,
        {"RateLimit-Policy": '"burst";q=100;w=60', "RateLimit": '"burst";r=40;t=3600'},
        {
            "ratePerSecond": "1.666666666",
            "limit": "100",
            "intervalSeconds": 60.0,
            "remaining": "40",
            "resetsAt": in_hours(1),
        },
    ),
    "the IETF's draft 7": (
        IETF.model_copy(update={"limit": "RateLimit"}),
        {"RateLimit": "limit=100, remaining=40, reset=7200", "RateLimit-Policy": "100;w=60"},
        {"limit": "100", "remaining": "40", "resetsAt": in_hours(2)},
    ),
    "the IETF's draft 3": (
        RateHeaders(limit="RateLimit-Limit"),
        {"RateLimit-Limit": "10, 10;w=1"},
        {"ratePerSecond": "10", "limit": "10", "intervalSeconds": 1.0},
    ),
    "a header that came twice": (
        ZENODO,
        {"X-RateLimit-Limit": "60, 60", "X-RateLimit-Remaining": "0, 0"},
        {"limit": "60", "remaining": "0"},
    ),
    "ClinicalTrials.gov, nothing": (OPENALEX, {"content-type": "application/json"}, {}),
    "nothing declared": (RateHeaders(), {"X-RateLimit-Limit": "60"}, {}),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_understood(name):
    words, headers, expected = SOURCES[name]
    found = read_told(words, headers, NOON)

    assert said(found) == expected
    assert found.says_nothing is (expected == {})


@pytest.mark.parametrize(
    ("interval", "rate"),
    [
        ("1s", "120"),
        ("1S", "120"),
        ("second", "120"),
        ("60s", "2"),
        ("1m", "2"),
        ("Minute", "2"),
        ("PT1M", "2"),
        ("60", "2"),
        ("0.5", "240"),
        ("1h", "0.033333333"),
        ("1d", "0.001388888"),
    ],
)
def test_a_limit_per_interval_is_a_rate_rounded_down(interval, rate):
    assert told(
        CROSSREF, x_rate_limit_limit="120", x_rate_limit_interval=interval
    ).rate_per_second == Decimal(rate)


@pytest.mark.parametrize("missing", ["x_rate_limit_limit", "x_rate_limit_interval"])
def test_half_a_rate_is_none(missing):
    both = {"x_rate_limit_limit": "50", "x_rate_limit_interval": "1s"}
    del both[missing]

    assert (told(CROSSREF, **both).rate_per_second, told(CROSSREF, **both).unreadable) == (None, ())


@pytest.mark.parametrize(
    ("unit", "text", "after"),
    [
        (ResetUnit.SECONDS_LEFT, "90", 90),
        (ResetUnit.SECONDS_LEFT, "1.5", 1.5),
        (ResetUnit.EPOCH_SECONDS, str(EPOCH_OF_NOON + 90), 90),
        (ResetUnit.EPOCH_SECONDS, str(EPOCH_OF_NOON - 59), 0),
        (ResetUnit.EPOCH_MILLIS, f"{EPOCH_OF_NOON + 90}250", 90.25),
        (ResetUnit.HTTP_DATE, "Sat, 20 Sep 2025 12:01:30 GMT", 90),
        (ResetUnit.HTTP_DATE, "2025-09-20T12:01:30Z", 90),
        (ResetUnit.HTTP_DATE, "2025-09-20T14:01:30+0200", 90),
    ],
)
def test_a_reset_is_read_in_its_unit_and_small_differences_of_clocks_do_not_matter(
    unit, text, after
):
    found = told(usual(unit), reset=text)

    assert (found.resets_at, found.unreadable) == (NOON + timedelta(seconds=after), ())


ABSURD = [
    (CROSSREF, "x-rate-limit-limit", "-3", "not a number from 0 on"),
    (CROSSREF, "x-rate-limit-limit", "0", "not above 0"),
    (CROSSREF, "x-rate-limit-limit", "NaN", "not a number from 0 on"),
    (CROSSREF, "x-rate-limit-limit", "٣", "not a number from 0 on"),
    (CROSSREF, "x-rate-limit-limit", "unlimited", "not a number from 0 on"),
    (CROSSREF, "x-rate-limit-limit", "", "not a number from 0 on"),
    (CROSSREF, "x-rate-limit-limit", "9e99", "too large"),
    (CROSSREF, "x-rate-limit-limit", "10, 20", "several policies at once"),
    (CROSSREF, "x-rate-limit-limit", "1" * 201, "too long"),
    (CROSSREF, "x-rate-limit-interval", "0s", "not an interval that can be"),
    (CROSSREF, "x-rate-limit-interval", "1000d", "not an interval that can be"),
    (CROSSREF, "x-rate-limit-interval", "soon", "not an interval"),
    (CROSSREF, "x-rate-limit-interval", "1e30", "not an interval"),
    (CROSSREF, "x-concurrency-limit", "0", "not above 0"),
    (CROSSREF, "x-concurrency-limit", "1.5", "not a whole number"),
    (OPENALEX, "X-RateLimit-Remaining", "-1", "not a number from 0 on"),
    (OPENALEX, "X-RateLimit-Credits-Used", "Infinity", "not a number from 0 on"),
    (OPENALEX, "X-RateLimit-Reset", "1758369600", "too far away"),
    (OPENALEX, "X-RateLimit-Reset", "1e15", None),
    (OPENAIRE, "x-ratelimit-used", "many", "not a number from 0 on"),
    (ZENODO, "X-RateLimit-Reset", "3600", "in the past"),
    (ZENODO, "X-RateLimit-Reset", str(EPOCH_OF_NOON - 61), "in the past"),
    (ZENODO, "X-RateLimit-Reset", f"{EPOCH_OF_NOON}000", None),
    (IETF, "RateLimit-Policy", '"a";q=10;w=1, "b";q=500;w=60', "several policies at once"),
    (IETF, "RateLimit", '"a"', "no number"),
    (usual(ResetUnit.EPOCH_MILLIS), "Reset", str(EPOCH_OF_NOON), "in the past"),
    (usual(ResetUnit.HTTP_DATE), "Reset", "Sat, 20 Sep 2099 12:00:00 GMT", "too far away"),
    (usual(ResetUnit.HTTP_DATE), "Reset", "Fri, 19 Sep 2025 12:00:00 GMT", "in the past"),
    (usual(ResetUnit.HTTP_DATE), "Reset", "CANARY-41b7", "not a date"),
    (usual(ResetUnit.HTTP_DATE), "Reset", "2025-13-01", "not a date"),
]


@pytest.mark.parametrize(("words", "name", "value", "why"), ABSURD)
def test_what_makes_no_sense_is_named_and_ignored(words, name, value, why):
    found = read_told(words, {name.upper(): value}, NOON)

    assert found.says_nothing
    assert len(found.unreadable) == 1 or name == "RateLimit"
    assert all(reason.startswith(f"{name}: ") for reason in found.unreadable)
    if why is not None:
        assert f"{name}: {why}" in found.unreadable
    assert "CANARY" not in str(found.as_json())


def test_one_absurd_header_does_not_hide_the_others():
    found = told(
        ZENODO, x_ratelimit_limit="60", x_ratelimit_remaining="-5", x_ratelimit_reset="1800"
    )

    assert said(found) == {
        "limit": "60",
        "unreadable": [
            "X-RateLimit-Remaining: not a number from 0 on",
            "X-RateLimit-Reset: in the past",
        ],
    }


def test_nothing_told_says_nothing():
    assert Told().says_nothing
    assert Told().as_json() == {}


VALUES = st.one_of(
    st.text(max_size=30),
    st.from_regex(r'[-+0-9eE.,;=a-z" ]{0,20}', fullmatch=True),
    st.decimals().map(str),
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
)


@given(
    st.lists(VALUES, min_size=7, max_size=7),
    st.sampled_from(ResetUnit),
    st.datetimes(NOON.replace(tzinfo=None)),
)
def test_no_header_is_ever_an_error_and_what_is_read_is_sane(values, unit, received):
    names = ["limit", "interval", "remaining", "used", "reset", "concurrency", "cost"]
    words = {name: name for name in names if name != "reset"}
    rules = RateHeaders(**words, reset=Reset(header="reset", unit=unit))
    at = received.replace(tzinfo=UTC)

    found = read_told(rules, dict(zip(names, values, strict=True)), at)

    assert found.rate_per_second is None or found.rate_per_second > 0
    assert found.in_flight is None or found.in_flight >= 1
    assert all(n is None or n >= 0 for n in (found.limit, found.remaining, found.cost))
    assert found.resets_at is None or at <= found.resets_at <= at + timedelta(days=366)
    assert {reason.partition(":")[0] for reason in found.unreadable} <= set(names)
