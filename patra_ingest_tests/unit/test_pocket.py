"""What one process has of one key."""

from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.permit import Decision, Facts
from patra_ingest.rate.pocket import LEASE_SECONDS, QUANTUM, TURN_SECONDS, Pocket, Seen
from patra_ingest_tests.builders import NOON

FAST = Limits(1000, burst=100)
ONE = Decimal(1)
START = 5000.0


def facts(in_flight=None, rate=1000, burst=100):
    return Facts(Decision.ALLOW, Decimal(rate), Decimal(burst), in_flight)


def a_pocket(tokens=5, places=1, **seen):
    pocket = Pocket(FAST)
    pocket.fill(tokens, places, facts(**seen), START)
    return pocket


def taken(pocket, at, most=100):
    return sum(pocket.try_take(ONE, at) for _ in range(most))


def test_an_empty_pocket_gives_nothing():
    assert not Pocket(FAST).try_take(ONE, START)


def test_what_was_taken_along_is_given_out_and_no_more():
    pocket = a_pocket(5)

    assert taken(pocket, START) == 5
    assert (pocket.tokens, pocket.busy) == (0, 5)


def test_a_dear_request_needs_its_whole_price():
    pocket = a_pocket(5)

    assert pocket.try_take(Decimal(3), START)
    assert not pocket.try_take(Decimal(3), START)
    assert pocket.tokens == 2


@pytest.mark.parametrize(("age", "expected"), [(0.0, 5), (0.249, 5), (LEASE_SECONDS, 0), (9, 0)])
def test_what_was_taken_along_is_good_for_a_moment_only(age, expected):
    assert taken(a_pocket(5), START + age) == expected


def test_what_is_stale_stays_in_the_pocket_until_it_is_given_back():
    pocket = a_pocket(5)
    pocket.try_take(ONE, START + 1)
    assert (pocket.tokens, pocket.holds_anything) == (5, True)

    pocket.empty()
    assert (pocket.tokens, pocket.holds_anything) == (0, False)


def test_no_more_requests_are_open_than_places_were_given():
    pocket = a_pocket(5, places=2, in_flight=3)
    assert taken(pocket, START) == 2

    pocket.end(START)
    assert taken(pocket, START) == 1


def test_a_request_that_ends_wakes_the_lane_that_waits():
    pocket = a_pocket(1)
    pocket.try_take(ONE, START)
    assert not pocket.freed.is_set()

    pocket.end(START)
    assert (pocket.freed.is_set(), pocket.busy) == (True, 0)


def test_tokens_are_not_spent_faster_than_the_key_allows():
    pocket = a_pocket(50, rate=100, burst=10)

    at_once = taken(pocket, START)
    soon = taken(pocket, START + 0.1)

    assert at_once == 10
    assert 9 <= soon <= 11


def test_a_second_lease_does_not_make_the_spending_faster():
    pocket = a_pocket(50, rate=100, burst=10)
    taken(pocket, START)
    pocket.fill(50, 1, facts(rate=100, burst=10), START)

    assert taken(pocket, START) == 0


def test_a_turn_is_over_after_its_quantum():
    pocket = a_pocket(50)
    for _ in range(QUANTUM - 1):
        pocket.begin(START)
    assert not pocket.turn_over(START)

    pocket.begin(START)
    assert pocket.turn_over(START)


def test_a_turn_is_over_after_its_time():
    pocket = a_pocket(50)
    assert not pocket.turn_over(START + 99)  # it has not begun
    pocket.begin(START)

    assert not pocket.turn_over(START + TURN_SECONDS - 0.001)
    assert pocket.turn_over(START + TURN_SECONDS)


def test_a_new_turn_counts_from_the_start():
    pocket = a_pocket(50)
    for _ in range(QUANTUM):
        pocket.begin(START)
    pocket.new_turn()
    pocket.begin(START + 60)

    assert not pocket.turn_over(START + 60)


def test_a_visit_within_a_turn_does_not_prolong_it():
    pocket = a_pocket(50)
    pocket.begin(START)
    pocket.fill(5, 1, facts(), START + 1)
    pocket.begin(START + 1)

    assert pocket.turn_over(START + TURN_SECONDS)


@pytest.mark.parametrize(
    ("uses", "seconds", "expected"),
    [
        pytest.param(0, 1, 0, id="nothing was used: nothing is taken along"),
        pytest.param(1, 1, 1, id="one in a second: one"),
        pytest.param(100, 1, 25, id="a quarter of what a second needs"),
        pytest.param(100, 0.25, 100, id="all were used in a lease: as many again"),
        pytest.param(10, 100, 1, id="seldom: one"),
    ],
)
def test_the_lease_adapts_to_use(uses, seconds, expected):
    pocket = a_pocket(200)
    for _ in range(uses):
        pocket.begin(START)

    assert pocket.wish(START + seconds) == expected


def test_a_process_that_was_never_there_takes_one_along():
    assert Pocket(FAST).wish(START) == 1


def test_a_process_that_was_never_busy_has_no_tenth_percentile():
    assert Seen().tenth_percentile() is None


def having_sent(*counts):
    """Return what a process saw that sent so many requests in each span of ten seconds."""
    seen = Seen()
    for span, count in enumerate(counts):
        for _ in range(count):
            seen.note(START + 10 * span)
    seen.note(START + 10 * len(counts))  # a span counts when it is over
    return seen


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([7], "0.7", id="one span"),
        pytest.param([90, 50, 70], "5", id="of a few the slowest"),
        pytest.param([1, 2, *[10] * 18], "1", id="of twenty the third slowest"),
        pytest.param([3, *[10] * 9], "1", id="of ten the second slowest"),
        pytest.param([4, 0, 0, 6], "0.4", id="idle spans are not slow ones"),
        pytest.param([*[1] * 100, *[90] * 60], "9", id="only the last ten minutes are remembered"),
    ],
)
def test_the_tenth_percentile_of_the_busy_spans(counts, expected):
    assert having_sent(*counts).tenth_percentile() == Decimal(expected)


def test_a_silence_is_remembered_and_never_shortened():
    pocket = Pocket(FAST)
    for seconds in (3, 60, None, 10):
        until = None if seconds is None else NOON + timedelta(seconds=seconds)
        pocket.keep_silent(until)

    assert pocket.silent_until == NOON + timedelta(seconds=60)
