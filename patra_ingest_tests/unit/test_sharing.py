"""Many processes and one key: who may send, how many places, what is taken along."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.ledger.db import open_db
from patra_ingest.model.rates import Holder
from patra_ingest.rate.bucket import Limits, Manners, Wait, WaitReason
from patra_ingest.rate.desk import Desk
from patra_ingest.rate.permit import Budget
from patra_ingest.rate.pocket import Pocket
from patra_ingest.rate.sharing import (
    WAITING_TERM,
    Ask,
    Granted,
    allot_places,
    flight_limit,
    new_bucket,
    refresh,
    settle,
    visit,
)
from patra_ingest.rate.signals import Complaint, after
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.fakes import FakeClock

TERM = timedelta(minutes=2)
FAST = Limits(200, burst=100)
ONE_PLACE = Limits(40, burst=20, in_flight=1)


def later(seconds):
    return NOON + timedelta(seconds=seconds)


def ask(holder, now=NOON, **fields):
    return Ask(**{"holder": holder, "price": Decimal(1), "latest": now, "term": TERM, **fields})


def come(row, limits, holder, now=NOON, **fields):
    """Visit once; return the key and the answer."""
    fresh = refresh(row, limits, now)
    return visit(fresh, ask(holder, now, **fields), limits.manners, now)


def a_key(limits, **fields):
    return replace(new_bucket("k", limits, NOON), **fields)


def waits_for_place(answer):
    return isinstance(answer, Wait) and answer.reason is WaitReason.IN_FLIGHT


def test_what_is_taken_along_comes_out_of_the_bucket():
    row, answer = come(a_key(FAST), FAST, "a", wish=30)

    assert answer == Granted(NOON, 30)
    assert (row.tokens, row.holders["a"].tokens) == (90 - 1 - 30, 30)


def test_half_of_the_burst_at_most_is_on_the_way():
    row, first = come(a_key(FAST), FAST, "a", wish=40)
    row, second = come(row, FAST, "b", wish=40)
    row, third = come(row, FAST, "c", wish=40)

    assert (first.tokens, second.tokens, third.tokens) == (40, 10, 0)


def test_what_is_left_goes_back_before_anything_new_is_taken():
    row, _ = come(a_key(FAST), FAST, "a", wish=40)
    row, answer = come(row, FAST, "a", wish=5, left=Decimal(38))

    assert answer.tokens == 5
    assert row.tokens + row.holders["a"].tokens == 90 - 1 - 2 - 1


@pytest.mark.parametrize(("rate", "along"), [(1, 0), (20, 0), (50, 0), (51, 0), (60, 30)])
def test_a_slow_key_is_asked_for_every_single_request(rate, along):
    limits = Limits(rate, burst=100)

    assert come(a_key(limits), limits, "a", wish=30)[1].tokens == along


def test_what_was_spent_without_the_ledger_is_paid_first():
    row, answer = come(a_key(Limits(1, burst=5)), Limits(1, burst=5), "a", owed=Decimal(7))

    assert isinstance(answer, Wait)
    assert row.tokens < -2


def test_a_dead_process_is_forgotten_after_its_term():
    limits = Limits(200, burst=100, in_flight=1)
    row, _ = come(a_key(limits), limits, "dead", wish=40)

    row, early = come(row, limits, "b", TERM + later(-0.001))
    row, then = come(row, limits, "b", TERM + later(0))
    row, _ = come(row, limits, "b", TERM + later(1), busy=1)

    assert waits_for_place(early)
    assert then.at == TERM + later(0)
    assert list(row.holders) == ["b"]
    assert refresh(row, limits, TERM + later(9)).tokens == 90


def test_settling_keeps_the_places_of_requests_in_flight_only():
    limits = Limits(200, burst=100, in_flight=5)
    row, _ = come(a_key(limits), limits, "a", wish=20)
    row, _ = come(row, limits, "a", busy=1, left=Decimal(20))

    busy = settle(row, ask("a", busy=1), NOON)
    done = settle(row, ask("a"), NOON)

    assert (busy.holders["a"].places, done.holders) == (1, {})


@pytest.mark.parametrize(
    ("limits", "told", "expected"),
    [(None, None, None), (3, None, 3), (None, 2, 2), (3, 2, 2), (3, 9, 3), (3, 0, 1)],
)
def test_the_lower_of_configured_and_told_places_holds(limits, told, expected):
    row = a_key(Limits(1, 1, limits), told=None if told is None else {"inFlight": told})

    assert flight_limit(row) == expected


def holder(places, waits=None):
    return Holder(places, Decimal(0), later(60), None if waits is None else later(waits))


@pytest.mark.parametrize(
    ("limit", "others", "mine", "asking", "expected"),
    [
        pytest.param(None, {}, None, {"busy": 7}, 8, id="no limit"),
        pytest.param(3, {}, None, {}, 1, id="the first place"),
        pytest.param(3, {"b": holder(2)}, None, {}, 1, id="the last place"),
        pytest.param(3, {"b": holder(3)}, None, {}, 0, id="none is free"),
        pytest.param(3, {"b": holder(2)}, holder(1), {"busy": 1}, 1, id="no second one for us"),
        pytest.param(3, {}, holder(3), {}, 3, id="nobody waits: places are kept"),
        pytest.param(
            3, {"b": holder(0, -1)}, holder(3), {"busy": 2}, 2, id="one waits: one is left"
        ),
        pytest.param(
            1, {"b": holder(0, -1)}, holder(1), {}, 1, id="one waits: our turn is not over"
        ),
        pytest.param(
            1, {"b": holder(0, -1)}, holder(1), {"turn_over": True}, 0, id="our turn is over"
        ),
        pytest.param(
            1, {"b": holder(0, -1)}, holder(0, -2), {"turn_over": True}, 1, id="we waited longer"
        ),
        pytest.param(1, {"b": holder(0, -2)}, holder(0, -1), {}, 0, id="he waited longer"),
        pytest.param(
            2, {"b": holder(0, -2)}, holder(0, -1), {}, 1, id="he waited longer, but two are free"
        ),
        pytest.param(2, {"b": holder(2)}, holder(3), {"busy": 3}, 3, id="what is sent is sent"),
    ],
)
def test_places(limit, others, mine, asking, expected):
    row = a_key(Limits(40, 20, limit), holders={**others, **({"a": mine} if mine else {})})

    assert allot_places(row, ask("a", **asking), NOON) == expected


def test_who_waits_longest_gets_the_place_that_is_free():
    row, _ = come(a_key(ONE_PLACE), ONE_PLACE, "a")
    row, b_first = come(row, ONE_PLACE, "b", later(0.01))
    row, c_first = come(row, ONE_PLACE, "c", later(0.02))
    row = settle(row, ask("a"), later(0.03))
    row, c_then = come(row, ONE_PLACE, "c", later(0.04))
    row, b_then = come(row, ONE_PLACE, "b", later(0.05))

    assert all(waits_for_place(one) for one in (b_first, c_first, c_then))
    assert c_first.until - later(0.02) > b_first.until - later(0.01)  # asks less often
    assert isinstance(b_then, Granted)


def test_two_who_began_to_wait_in_the_same_instant_do_not_wait_for_ever():
    row, _ = come(a_key(ONE_PLACE), ONE_PLACE, "a")
    row, _ = come(row, ONE_PLACE, "b")
    row, _ = come(row, ONE_PLACE, "c")
    row = settle(row, ask("a"), NOON)
    row, one = come(row, ONE_PLACE, "b", later(0.1))
    row, other = come(row, ONE_PLACE, "c", later(0.1))

    assert sorted([waits_for_place(one), waits_for_place(other)]) == [False, True]


def test_who_stops_coming_loses_his_place_in_the_line():
    row, _ = come(a_key(ONE_PLACE), ONE_PLACE, "a")
    row, _ = come(row, ONE_PLACE, "gone", later(0.01))
    row = settle(row, ask("a"), later(0.02))
    row, early = come(row, ONE_PLACE, "b", later(0.5))
    row, then = come(row, ONE_PLACE, "b", later(0.01) + WAITING_TERM)

    assert waits_for_place(early)
    assert isinstance(then, Granted)


CUT = after(a_key(Limits(10, burst=5)), Complaint(), Manners(), "a", NOON)


@pytest.mark.parametrize(
    ("row", "rate", "expected"),
    [
        pytest.param(a_key(Limits(10, burst=5)), 20, 20, id="raised"),
        pytest.param(a_key(Limits(10, burst=5)), 4, 4, id="lowered"),
        pytest.param(CUT, 20, 5, id="raised after a cut: no reason to hurry"),
        pytest.param(CUT, 8, 5, id="lowered after a cut: even less so"),
        pytest.param(CUT, 4, 4, id="lowered below the cut"),
    ],
)
def test_new_limits_hold_at_once(row, rate, expected):
    found = refresh(row, Limits(rate, burst=3, in_flight=2), NOON)

    assert (found.rate_per_second, found.configured_rate) == (expected, rate)
    assert (found.burst, found.in_flight_limit) == (3, 2)
    assert found.tokens <= 3


def test_two_plans_with_different_limits_do_not_undo_a_cut():
    row = CUT
    for second in range(8):
        row = refresh(row, Limits(20 if second % 2 else 10, burst=5), later(second))

    assert row.rate_per_second == 5


QUICK = ("quick", Limits(2, burst=10))
SLOW = ("slow", Limits(Decimal("0.2")))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def book(sqlite_url, clock):
    """Ask for one request under some keys; the moment it may leave, or when to come again."""
    db = open_db(sqlite_url, clock=clock)

    def ask_desk(holder, *keys):
        wanted = [(Budget(key, limits), Pocket(limits)) for key, limits in keys]
        return Desk(db, holder, TERM).ask(wanted, timedelta(seconds=5), 0.0, may_lease=False)[1]

    yield ask_desk
    db.close()


def test_a_request_under_two_keys_hands_out_nothing_unearned(book):
    moments = [book("a", QUICK, SLOW) for _ in range(3)]
    moments += [book("b", QUICK) for _ in range(30)]

    leaving = sorted(moment for moment in moments if not isinstance(moment, Wait))
    assert len(leaving) > 10
    for first, start in enumerate(leaving):
        for number, moment in enumerate(leaving[first:], 1):
            assert number <= 10 + 2 * (moment - start).total_seconds()


def test_a_request_under_two_keys_is_not_starved_by_those_who_need_one(book, clock):
    other = ("other", Limits(5, burst=5))
    for _ in range(50):
        for _lane in range(4):
            book("a", QUICK)
        answer = book("b", QUICK, other)
        if not isinstance(answer, Wait):
            return
        clock.at = answer.until

    pytest.fail("fifty visits, each when it was told to come, and no permit")


def test_a_request_as_dear_as_the_burst_is_not_kept_for_ever():
    limits = Limits(Decimal("3.333333333"), burst=5)

    assert isinstance(come(a_key(limits), limits, "a", later(9), price=Decimal(5))[1], Granted)


def test_a_dear_request_waits_for_what_others_took_along():
    limits = Limits(100, burst=100)
    row, along = come(a_key(limits), limits, "a", wish=50)
    row, dear = come(row, limits, "b", price=Decimal(60), latest=later(1))

    seconds = Decimal(str((dear.at - NOON).total_seconds())) if isinstance(dear, Granted) else 99
    assert 1 + along.tokens + 60 <= 100 + 100 * seconds
