"""Quotas, their windows, and the place of a slice in them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from patra_ingest.errors import PlanError
from patra_ingest.model.quotas import (
    Charge,
    QuotaRule,
    Reservation,
    Usage,
    charges_at,
    window_at,
)
from patra_ingest.model.window import Window
from patra_ingest.planner.budgeting import Book, Budget, place
from patra_ingest.spec.planning import Courtesy
from patra_ingest.spec.quotas import rules_of
from patra_ingest_tests.builders import DAY, NOON, a_spec

HOUR = timedelta(hours=1)
DAILY = QuotaRule("example", Decimal(100), DAY)
HOURLY = QuotaRule("example", Decimal(10), HOUR)
TODAY, TOMORROW = (window_at(DAILY, NOON + n * DAY) for n in range(2))


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def rules(**rate):
    return rules_of(a_spec(rate={"key": "example", **rate}).rate)


def a_budget(*rules, share=1.0, margin=0.0, courtesy=None):
    return Budget(rules or (DAILY,), share, margin, courtesy)


def used(amount, window=TODAY, rule=DAILY):
    return {(rule.key, window): Usage(rule.limit, Decimal(amount), Decimal(0))}


def amounts(placed):
    return [(item.window.start, item.amount) for item in placed.reservations]


def test_the_rules_are_those_of_the_key_and_of_every_other_budget():
    own = [{"limit": 900.0, "per": "1d", "zone": "America/New_York"}, {"limit": 1.5, "per": "1h"}]
    also = [{"key": "all", "per_second": 9.0, "quotas": [{"limit": 5000.0, "per": "7d"}]}]

    assert rules(quotas=own, also=also) == (
        QuotaRule("all", Decimal(5000), timedelta(days=7)),
        QuotaRule("example", Decimal("1.5"), HOUR),
        QuotaRule("example", Decimal(900), DAY, "America/New_York"),
    )


def test_of_two_limits_for_the_same_windows_the_smaller_one_counts():
    quotas = [{"limit": 70.0, "per": "24h", "scope": "CREDENTIAL"}, {"limit": 30.0, "per": "1d"}]

    assert rules(quotas=quotas) == (QuotaRule("example", Decimal(30), DAY),)


@pytest.mark.parametrize(
    ("limit", "per", "cost", "expected"),
    [
        (1300.0, "1d", 1.0, (Decimal(100), timedelta(hours=2))),
        (1000.0, "7d", 1.0, (Decimal("76.923076"), timedelta(hours=14))),
        (10.0, "1h", 1.0, (Decimal(1), timedelta(minutes=6, seconds=40))),
        (2.0, "1h", 1.0, (Decimal(1), HOUR)),
        (1.3, "1d", 0.001, (Decimal("0.1"), timedelta(hours=2))),
        (1300.0, "1s", 1.0, (Decimal(100), timedelta(microseconds=83_334))),  # 83,333 ⅓
    ],
)
def test_a_sliding_quota_is_cut_into_parts_that_hold_a_request_each(limit, per, cost, expected):
    quota = {"limit": limit, "per": per, "kind": "SLIDING", "zone": "America/New_York"}

    (rule,) = rules(quotas=[quota], cost=cost)

    assert (rule.limit, rule.period) == expected
    assert rule.zone == "UTC"


def test_a_sliding_quota_of_one_request_is_refused():
    with pytest.raises(PlanError, match=r"1 per 1h of example .* rate\.min_interval"):
        rules(quotas=[{"limit": 1.0, "per": "1h", "kind": "SLIDING"}])


@pytest.mark.parametrize(
    ("period", "zone", "instant", "start", "end"),
    [
        (DAY, "UTC", "2025-09-20T12:00", "2025-09-20T00:00", "2025-09-21T00:00"),
        (DAY, "America/New_York", "2025-03-09T12:00", "2025-03-09T05:00", "2025-03-10T04:00"),
        (DAY, "America/New_York", "2025-11-02T12:00", "2025-11-02T04:00", "2025-11-03T05:00"),
        (HOUR, "Asia/Kolkata", "2025-09-20T12:00", "2025-09-20T11:30", "2025-09-20T12:30"),
        (6 * HOUR, "America/New_York", "2025-11-03T04:30", "2025-11-03T04:00", "2025-11-03T05:00"),
        (36 * HOUR, "UTC", "1970-01-02T12:00", "1970-01-02T12:00", "1970-01-04T00:00"),
        (5 * HOUR, "UTC", "1970-01-01T23:00", "1970-01-01T20:00", "1970-01-02T01:00"),
    ],
)
def test_a_window_is_that_of_the_zones_calendar(period, zone, instant, start, end):
    rule = QuotaRule("example", Decimal(1), period, zone)

    assert window_at(rule, utc(instant)) == Window(utc(start), utc(end))


def test_a_request_is_charged_once_per_window():
    berlin = QuotaRule("example", Decimal(7), HOUR, "Europe/Berlin")

    assert charges_at((HOURLY, DAILY, berlin), NOON, Decimal("0.1234567")) == [
        Charge("example", TODAY, Decimal(100), Decimal("0.123457")),
        Charge("example", Window(NOON, NOON + HOUR), Decimal(7), Decimal("0.123457")),
    ]


def test_what_fits_now_is_placed_now():
    placed = place(Decimal(100), a_budget(), {}, NOON)

    assert placed.at is None
    assert placed.reservations == (Reservation("example", TODAY, Decimal(100)),)


@pytest.mark.parametrize(
    ("amount", "share", "margin", "fits"),
    [
        (10, 1.0, 0.1, True),  # 80 are taken, 90 may be
        ("10.000001", 1.0, 0.1, False),
        (1, 0.8, 0.0, False),
        ("0.5", 0.805, 0.0, True),
    ],
)
def test_the_share_and_the_margin_say_how_far_a_window_is_filled(amount, share, margin, fits):
    placed = place(Decimal(amount), a_budget(share=share, margin=margin), used(80), NOON)

    assert placed.at == (None if fits else TOMORROW.start)


def test_every_rule_must_have_room_at_the_same_moment():
    usages = used(95) | used(10, Window(TOMORROW.start, TOMORROW.start + HOUR), HOURLY)

    placed = place(Decimal(6), a_budget(DAILY, HOURLY), usages, NOON)

    assert placed.at == TOMORROW.start + HOUR
    assert len(placed.reservations) == 2


def test_what_no_window_holds_begins_where_there_is_any_room_and_goes_on_from_there():
    usages = used(100) | used(70, TOMORROW)

    placed = place(Decimal(250), a_budget(), usages, NOON)

    assert placed.at == TOMORROW.start
    starts = [TOMORROW.start + n * DAY for n in range(4)]
    assert amounts(placed) == list(zip(starts, [30, 100, 100, 20], strict=True))


def test_a_window_that_is_too_full_already_gets_no_more():
    placed = place(Decimal(130), a_budget(share=0.5), used(99), NOON)

    assert amounts(placed)[0] == (TOMORROW.start, Decimal(50))


@pytest.mark.parametrize(
    ("amount", "budget"),
    [
        (1, a_budget(share=0.0)),
        (1, a_budget(margin=1.0)),
        (201, a_budget()),
        (1, a_budget(QuotaRule("example", Decimal(1), timedelta(microseconds=1)), share=0.0)),
    ],
)
def test_what_has_no_room_within_the_horizon_is_not_placed(amount, budget):
    assert place(Decimal(amount), budget, {}, NOON, horizon=DAY) is None


def test_nothing_to_spend_needs_no_room():
    assert place(Decimal(0), a_budget(share=0.0), used(100), NOON).reservations == ()
    assert place(Decimal(5), Budget((), 1.0, 0.1), {}, NOON).at is None
    with pytest.raises(ValueError, match="cannot spend -1"):
        place(Decimal(-1), a_budget(), {}, NOON)


def test_a_large_job_waits_for_the_courtesy_hours_and_for_room_in_them():
    night = Courtesy(zone="America/New_York", hours="21:00-05:00", weekends=True)
    monday = utc("2025-09-22T15:00")
    tuesday = window_at(DAILY, utc("2025-09-23T12:00"))

    free = place(Decimal(5), a_budget(courtesy=night), {}, monday)
    full = place(Decimal(5), a_budget(courtesy=night), used(100, tuesday), monday)

    assert free.at == utc("2025-09-23T01:00")
    assert full.at == utc("2025-09-24T00:00") + HOUR


def test_two_rules_with_the_same_windows_are_one_amount_under_the_smaller_limit():
    berlin = QuotaRule("example", Decimal(4), HOUR, "Europe/Berlin")
    book = Book(a_budget(HOURLY, berlin), {}, NOON)

    placed = book.place(Decimal(9))

    assert amounts(placed) == [(NOON + n * HOUR, part) for n, part in enumerate([4, 4, 1])]
    assert book.limits["example", Window(NOON, NOON + HOUR)] == 4


def test_a_book_remembers_what_it_has_placed():
    book = Book(a_budget(), {}, NOON)

    found = [book.place(Decimal(amount)).at for amount in (40, 40, 40, 20, 40, 1)]

    assert found == [None, None, TOMORROW.start, None, TOMORROW.start, TOMORROW.start]


def test_an_empty_quota_of_microseconds_does_not_make_a_plan_crawl():
    tiny = QuotaRule("example", Decimal(5), timedelta(microseconds=1))
    month = used(100, window_at(QuotaRule("a", Decimal(1), 30 * DAY), NOON))
    thirty = QuotaRule("example", Decimal(100), 30 * DAY)

    assert place(Decimal(5), a_budget(thirty, tiny), month, NOON).at > NOON
