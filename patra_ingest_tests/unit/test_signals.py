"""What everybody knows after one process was answered."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.ledger.db import json_text
from patra_ingest.rate.bucket import Limits, Manners, Wait, WaitReason
from patra_ingest.rate.sharing import Ask, new_bucket, refresh, visit
from patra_ingest.rate.signals import Complaint, Cost, Silence, Words, after
from patra_ingest.rate.told import Told
from patra_ingest_tests.builders import NOON

POLITE = Manners()
TEN = Limits(10, burst=5)
SECOND = timedelta(seconds=1)


def later(seconds):
    return NOON + timedelta(seconds=seconds)


def a_key(**fields):
    return replace(new_bucket("crossref", TEN, NOON), **fields)


def tell(row, *signals, now=NOON, manners=POLITE):
    for signal in signals:
        row = after(row, signal, manners, "worker-a", now)
    return row


def told(**said):
    return Words(Told(**said))


def at_rate(rate):
    return told(rate_per_second=Decimal(rate), limit=Decimal(rate), interval=SECOND)


def asked(row, now):
    ask = Ask("worker-b", Decimal(1), now, timedelta(minutes=2))
    return visit(refresh(row, TEN, now), ask, POLITE, now)[1]


@pytest.mark.parametrize("order", [(3, 60), (60, 3)])
def test_the_longer_silence_wins_whoever_heard_it_first(order):
    row = tell(a_key(), *(Silence(later(seconds)) for seconds in order))

    assert row.cool_down_until == later(60)


def test_nobody_sends_before_the_silence_is_over():
    row = tell(a_key(), Silence(later(3)))

    early, then = asked(row, later(2.999999)), asked(row, later(3))

    assert early == Wait(later(3), WaitReason.COOL_DOWN)
    assert not isinstance(then, Wait)


def test_a_silence_does_not_slow_down_what_comes_after():
    assert tell(a_key(), Silence(later(3))).rate_per_second == 10


def test_complaints_of_many_requests_are_one_cut():
    row = a_key()
    for tenth in range(50):
        row = tell(row, Complaint(), now=later(tenth / 10))

    assert row.rate_per_second == 5


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        pytest.param("8", "8", id="told more than the cut left: that is true"),
        pytest.param("2", "2", id="told less than the cut left: that is true, too"),
        pytest.param("0.01", "0.01", id="told less than any floor"),
        pytest.param("10", "10", id="told what is configured: the cut is undone"),
        pytest.param("50", "10", id="told more than is configured: never above it"),
    ],
)
def test_what_the_source_tells_wins_over_a_cut(rate, expected):
    row = tell(a_key(), Complaint(), at_rate(rate))

    assert row.rate_per_second == Decimal(expected)
    assert refresh(row, TEN, NOON).rate_per_second == Decimal(expected)


def test_the_same_words_again_do_not_undo_a_cut():
    row = tell(a_key(), at_rate("8"), Complaint(), at_rate("8"))

    assert row.rate_per_second == 4


def test_an_amount_per_hour_is_no_speed():
    hourly = told(rate_per_second=Decimal("0.5"), interval=timedelta(hours=1))

    row = tell(a_key(), hourly)

    assert row.rate_per_second == 10
    assert "ratePerSecond" not in row.told


def test_an_answer_without_the_rate_leaves_the_rate_that_was_told_before():
    row = tell(a_key(), at_rate("2"), told(remaining=Decimal(40)))

    assert (row.rate_per_second, row.told["ratePerSecond"]) == (2, "2")
    assert refresh(row, TEN, later(9999)).rate_per_second == 2


@pytest.mark.parametrize(("remaining", "tokens"), [("2", 2), ("0.5", "0.5"), ("900", "4.5")])
def test_no_more_tokens_are_left_than_the_source_counts(remaining, tokens):
    row = tell(a_key(), told(remaining=Decimal(remaining)))

    assert (row.tokens, row.cool_down_until) == (Decimal(tokens), None)


@pytest.mark.parametrize("remaining", ["0", "0.4"])
def test_a_spent_budget_is_silence_until_it_is_renewed(remaining):
    row = tell(a_key(), told(remaining=Decimal(remaining), resets_at=later(7200)))

    assert row.cool_down_until == later(7200)
    assert row.last_signal["signal"] == "BUDGET_GONE"
    assert asked(row, later(60)) == Wait(later(7200), WaitReason.COOL_DOWN)


def test_a_spent_budget_does_not_shorten_a_longer_silence():
    gone = told(remaining=Decimal(0), resets_at=later(60))

    assert tell(a_key(), Silence(later(600)), gone).cool_down_until == later(600)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"remaining": Decimal(1), "resets_at": later(60)}, id="one is left"),
        pytest.param({"remaining": Decimal(0)}, id="nobody knows until when"),
        pytest.param({"remaining": Decimal(0), "resets_at": NOON}, id="already renewed"),
        pytest.param({"resets_at": later(60)}, id="only the reset is told"),
    ],
)
def test_no_silence_without_a_spent_budget_and_its_end(said):
    assert tell(a_key(), told(**said)).cool_down_until is None


def test_a_dear_answer_is_paid_by_those_who_come_after():
    row = tell(a_key(), Cost(Decimal("24.5")))

    assert row.tokens == -20
    assert asked(row, NOON).until > later(2)


def test_a_cheap_answer_gives_back_no_more_than_the_burst():
    assert tell(a_key(), Cost(Decimal(-100))).tokens == 5
    assert refresh(tell(a_key(), Cost(Decimal(-100))), TEN, NOON).tokens <= 5


@pytest.mark.parametrize(
    ("signal", "name", "fact"),
    [
        pytest.param(Complaint(), "HTTP_429", ("rate", "5.000000000"), id="complaint"),
        pytest.param(Complaint("HTTP_503"), "HTTP_503", ("rate", "5.000000000"), id="overload"),
        pytest.param(
            Silence(later(3)), "RETRY_AFTER", ("until", "2025-09-20T12:00:03+00:00"), id="silence"
        ),
        pytest.param(
            told(remaining=Decimal(0), resets_at=later(3)),
            "BUDGET_GONE",
            ("until", "2025-09-20T12:00:03+00:00"),
            id="budget",
        ),
    ],
)
def test_the_last_signal_names_who_when_and_why_and_is_json(signal, name, fact):
    noted = json.loads(json_text(tell(a_key(), signal).last_signal))

    assert noted.pop("at") == "2025-09-20T12:00:00+00:00"
    assert noted == {"signal": name, "holder": "worker-a", fact[0]: fact[1]}


def test_all_that_was_told_is_json():
    words = Told(
        rate_per_second=Decimal("2.5"),
        in_flight=3,
        limit=Decimal(5),
        remaining=Decimal("1.5"),
        resets_at=later(60),
        interval=2 * SECOND,
        unreadable=("x-cost: not a number from 0 on",),
        at=NOON,
    )
    row = tell(a_key(), Words(words))

    assert json.loads(json_text(row.told)) == row.told
    assert (row.told["ratePerSecond"], row.told["inFlight"]) == ("2.5", 3)
