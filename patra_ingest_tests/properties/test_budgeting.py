"""What the quotas promise whatever is planned, spent and given back, in any order."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patra_ingest.model.quotas import QuotaRule, Usage, charges_at, window_at
from patra_ingest.planner.budgeting import Book, Budget, place
from patra_ingest.planner.courtesy import next_courtesy
from patra_ingest.spec.planning import Courtesy
from patra_ingest.spec.policies import Quota
from patra_ingest.spec.quotas import rules_of
from patra_ingest_tests.builders import a_spec

DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
RATE = a_spec().rate

zones = st.sampled_from(["UTC", "America/New_York", "Europe/London", "Africa/Cairo", "Asia/Tokyo"])
# Four years, and the days on which clocks change.
changes = [datetime(2025, month, day, 5, tzinfo=UTC) for month, day in [(3, 9), (3, 30), (10, 26)]]
spans = st.timedeltas(timedelta(0), timedelta(days=1461))
instants = spans.map(lambda span: datetime(2024, 1, 1, tzinfo=UTC) + span) | st.sampled_from(
    changes
)
periods = st.sampled_from([1, 2, 5, 6, 7, 24, 36, 48, 168, 720]).map(lambda n: timedelta(hours=n))
limits = st.decimals(5, 200, places=2)
amounts = st.decimals(0, 90, places=2)
rules = st.builds(QuotaRule, st.sampled_from(["a", "b"]), limits, periods, zones)
shares = st.sampled_from([0.3, 0.6, 0.8, 1.0])
margins = st.sampled_from([0.0, 0.1, 0.25])
night = Courtesy(zone="America/New_York", hours="21:00-05:00", weekends=True)
courtesies = st.sampled_from([None, night])
rule_sets = st.lists(rules, min_size=1, max_size=3).map(tuple)
budgets = st.builds(Budget, rule_sets, shares, margins, courtesies)


def book_of(usages, reservations, sign=1):
    """Return the usages with the reservations added, or taken away."""
    after = dict(usages)
    for item in reservations:
        spot = (item.key, item.window)
        old = after.get(spot, Usage(Decimal(0)))
        after[spot] = Usage(old.limit, old.reserved + sign * item.amount, old.spent)
    return after


def most_of(budget, key, window):
    sharing = (rule for rule in budget.rules if rule.key == key)
    same = (rule.limit for rule in sharing if window_at(rule, window.start) == window)
    return budget.part_of(min(same))


@given(rules, instants, st.integers(0, 40))
def test_the_windows_of_a_rule_tile_time(rule, instant, steps):
    window = window_at(rule, instant)
    assert window.contains(instant)
    for _ in range(steps):
        assert window_at(rule, window.start) == window == window_at(rule, window.end - MICROSECOND)
        after = window_at(rule, window.end)
        assert after.start == window.end
        window = after


@given(
    st.floats(2, 5000),
    st.integers(1, 90 * 86_400_000_000).map(lambda n: n * MICROSECOND),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    instants,
)
def test_a_sliding_quota_is_kept_over_every_span(limit, period, moments, start):
    quota = Quota(limit=limit, per=period, kind="SLIDING", zone="Europe/London")
    (rule,) = rules_of(RATE.model_copy(update={"quotas": (quota,), "cost": 1.0}))
    assert rule.limit >= 1 or limit < 2
    span = (start, start + period)  # every window that it touches may be full
    touched = {window_at(rule, start), window_at(rule, span[1] - MICROSECOND)}
    window = window_at(rule, start)
    while window.end < span[1]:
        window = window_at(rule, window.end)
        touched.add(window)

    assert len(touched) * rule.limit <= Decimal(str(limit))
    assert all(
        window_at(rule, start + moment * (period - MICROSECOND)) in touched for moment in moments
    )


steps_ = st.lists(
    st.tuples(
        st.sampled_from(["PLACE", "PLACE", "PLACE", "SPEND", "FREE", "WAIT"]),
        amounts,
        st.integers(0, 1000),
    ),
    max_size=25,
)


@settings(max_examples=80)
@given(budgets, shares, steps_, instants)
def test_no_window_is_ever_oversold(budget, other_share, steps, now):
    budget_pair = (budget, Budget(budget.rules, other_share, budget.margin))
    usages, standing = {}, []
    for what, amount, number in steps:
        if what == "PLACE":
            mine = budget_pair[number % 2]
            placed = place(amount, mine, usages, now)
            if placed is None:
                continue
            added = book_of({}, placed.reservations)
            usages = book_of(usages, placed.reservations)
            assert all(usages[spot].taken <= most_of(mine, *spot) for spot in added)
            standing.append(placed.reservations)
        elif what == "SPEND":
            charges = charges_at(budget.rules, now, amount)
            for item in charges:
                old = usages.get((item.key, item.window), Usage(item.limit))
                if old.spent + amount <= item.limit:
                    usages[item.key, item.window] = Usage(
                        item.limit, old.reserved, old.spent + amount
                    )
        elif what == "FREE" and standing:
            usages = book_of(usages, standing.pop(number % len(standing)), sign=-1)
        else:
            now += number * timedelta(minutes=3)


@settings(max_examples=40)
@given(budgets, st.lists(amounts, max_size=12), instants)
def test_a_slice_gets_all_it_asked_for_under_every_rule(budget, asked, now):
    book = Book(budget, {}, now)
    for amount in asked:
        placed = book.place(amount)
        if placed is None:
            continue
        at = placed.at or now
        assert at >= now
        assert budget.courtesy is None or next_courtesy(budget.courtesy, at) == at
        for rule in budget.rules:
            own = [
                item
                for item in placed.reservations
                if item.key == rule.key and window_at(rule, item.window.start) == item.window
            ]
            assert sum(item.amount for item in own) >= amount
            assert all(item.window.end > at for item in own)


@settings(max_examples=40)
@given(budgets, st.lists(amounts, max_size=12), instants)
def test_a_book_answers_as_if_every_slice_were_placed_alone(budget, asked, now):
    book, usages = Book(budget, {}, now), {}
    for amount in asked:
        placed = book.place(amount)
        assert placed == place(amount, budget, usages, now)
        if placed is not None:
            usages = book_of(usages, placed.reservations)


@settings(max_examples=40)
@given(rule_sets, st.decimals(1, 60, places=2), instants)
def test_who_has_the_higher_share_gets_in_where_the_lower_one_is_refused(rules, amount, now):
    low, high = Budget(rules, 0.6, 0.1), Budget(rules, 1.0, 0.1)
    book, usages = Book(low, {}, now), {}
    while (placed := book.place(amount)) is not None and placed.at is None:
        usages = book_of(usages, placed.reservations)
    around = {(rule.key, window_at(rule, now)) for rule in rules}
    rooms = [most_of(high, *spot) - usages.get(spot, Usage(Decimal(0))).taken for spot in around]
    assume(min(rooms) >= amount)

    assert place(amount, low, usages, now) == placed
    assert place(amount, high, usages, now).at is None
