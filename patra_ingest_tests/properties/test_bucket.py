"""What a bucket promises whatever is asked of it, whenever."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.rate.bucket import (
    BucketState,
    Grant,
    Limits,
    Wait,
    WaitReason,
    decide,
    decide_ahead,
    full,
)
from patra_ingest.rate.pocket import LEASE_SECONDS
from patra_ingest.rate.sharing import Ask, Granted, new_bucket, refresh, visit

NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

amounts = st.decimals(min_value="0.001", max_value=50, places=3)
limits_ = st.builds(
    Limits, st.decimals("0.000011", 200, places=6), amounts, st.none() | st.integers(1, 4)
)
steps = st.lists(
    st.tuples(st.timedeltas(timedelta(0), timedelta(seconds=20)), amounts), max_size=40
)
around_noon = st.timedeltas(timedelta(days=-1), timedelta(days=1)).map(lambda span: NOON + span)
states = st.builds(
    BucketState,
    st.decimals(min_value=-50, max_value=50, places=9),
    around_noon,
    st.none() | around_noon,
)


def seconds(span):
    return Decimal(span // MICROSECOND) / 1_000_000


def assert_within(limits, grants):
    """Check every span between two grants, not only the whole history."""
    for first, (start, _) in enumerate(grants):
        spent, dearest = Decimal(0), Decimal(0)
        for at, cost in grants[first:]:
            spent, dearest = spent + cost, max(dearest, cost)
            most = max(limits.burst, dearest) + limits.rate_per_second * seconds(at - start)
            assert spent <= most, (start, at)


@given(limits_, steps)
def test_no_span_is_granted_more_than_burst_plus_rate_times_span(limits, steps):
    state, now, grants = full(limits, NOON), NOON, []
    for pause, cost in steps:
        now += pause
        state, decision = decide(state, limits, cost, 0, now)
        if isinstance(decision, Grant):
            grants.append((now, cost))

    assert_within(limits, grants)


@given(limits_, steps)
def test_booking_ahead_grants_no_more_and_serves_in_order(limits, steps):
    state, now, grants = full(limits, NOON), NOON, []
    for pause, cost in steps:
        now += pause / 100
        latest = now + timedelta(seconds=5)
        state, decision = decide_ahead(state, limits, cost, 0, now, latest)
        if isinstance(decision, Grant):
            assert now <= decision.at <= latest
            grants.append((decision.at, cost))

    instants = [at for at, _ in grants]
    assert instants == sorted(instants)
    assert_within(limits, grants)


@given(limits_, st.lists(st.tuples(st.integers(-30, 30), amounts), max_size=40))
def test_a_wild_clock_never_adds_tokens(limits, steps):
    state = full(limits, NOON)
    latest, spent = NOON, Decimal(0)
    dearest = limits.burst
    for offset, cost in steps:
        now = NOON + timedelta(seconds=offset)
        latest = max(latest, now)
        state, decision = decide(state, limits, cost, 0, now)
        if isinstance(decision, Grant):
            spent, dearest = spent + cost, max(dearest, cost)

    assert spent <= dearest + limits.rate_per_second * seconds(latest - NOON)


@given(states, limits_, amounts)
def test_whoever_waits_until_then_is_granted_then_and_not_a_microsecond_before(state, limits, cost):
    seen, decision = decide(state, limits, cost, 0, NOON)
    if not isinstance(decision, Wait):
        return

    assert decision.until > NOON
    for waited_in in (state, seen):  # whether or not the refill was written down
        assert decide(waited_in, limits, cost, 0, decision.until)[1] == Grant(decision.until)
    early = decide(seen, limits, cost, 0, decision.until - MICROSECOND)[1]
    assert isinstance(early, Wait)


@given(states, limits_, amounts, st.integers(0, 6))
def test_places_in_flight_are_never_exceeded_and_silence_is_kept(state, limits, cost, in_flight):
    _, decision = decide(state, limits, cost, in_flight, NOON)

    if isinstance(decision, Grant):
        assert limits.in_flight is None or in_flight < limits.in_flight
        assert state.cool_down_until is None or state.cool_down_until <= NOON
    if state.cool_down_until is not None and state.cool_down_until > NOON:
        assert isinstance(decision, Wait)
        assert decision.reason is WaitReason.COOL_DOWN
        assert decision.until >= state.cool_down_until


fast = st.builds(Limits, st.sampled_from([60, 200, 333]), st.sampled_from([40, 60, 100]))
visits = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from([0, 0, 1, 50, 240, 260]),  # milliseconds since the visit before
        st.sampled_from([0, 60, 60]),  # tokens to take along
        st.sampled_from([0, 0, 1, 2]),  # of every two, so many come back unused
        st.sampled_from([1, 1, 30]),
    ),
    max_size=40,
)


@given(fast, visits)
def test_tokens_taken_along_and_spent_as_late_as_allowed_break_no_span(limits, visits):
    row, now, sent, pockets = new_bucket("k", limits, NOON), NOON, [], {}
    for name, gap, wish, back, price in visits:
        now += timedelta(milliseconds=gap)
        for other, (tokens, until) in list(pockets.items()):
            if until <= now:
                sent.append((until, tokens))
                pockets[other] = (Decimal(0), until)
        tokens, _ = pockets.pop(name, (Decimal(0), now))
        left = tokens * back // 2
        sent.append((now, tokens - left))
        ask = Ask(name, Decimal(price), now, timedelta(minutes=1), wish=wish, left=left)
        row, answer = visit(refresh(row, limits, now), ask, limits.manners, now)
        if isinstance(answer, Granted):
            sent.append((answer.at, ask.price))
            pockets[name] = (Decimal(answer.tokens), now + timedelta(seconds=LEASE_SECONDS))
    sent += [(until, tokens) for tokens, until in pockets.values()]

    assert_within(limits, sorted(sent))
