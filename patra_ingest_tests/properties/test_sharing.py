"""What one key promises, whoever visits, dies, complains or changes the limits, and whenever."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from patra_ingest.rate.bucket import Limits, Manners, Wait
from patra_ingest.rate.pocket import LEASE_SECONDS, QUANTUM
from patra_ingest.rate.sharing import Ask, Granted, flight_limit, new_bucket, refresh, settle, visit
from patra_ingest.rate.signals import Complaint, Cost, Silence, Words, after
from patra_ingest.rate.told import Told
from patra_ingest_tests.builders import NOON

TERM = timedelta(seconds=30)
LEASE = timedelta(seconds=LEASE_SECONDS)
NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
manners_ = st.builds(
    Manners, st.just(Decimal(2)), st.just(timedelta(seconds=2)),
    st.sampled_from([timedelta(0), timedelta(seconds=4)]),
)  # fmt: skip
limits_ = st.builds(
    Limits,
    st.sampled_from([Decimal("0.5"), 20, 60, 200, 200, Decimal("333.333333333")]),
    st.sampled_from([1, 5, 40, 40, 100]),
    st.none() | st.integers(1, 4),
    manners_,
)
prices = st.sampled_from([Decimal(1), Decimal(1), Decimal("0.4"), Decimal(25)])


@dataclass
class Process:
    """What one process believes to have; a real one keeps it in its pocket."""

    tokens: Decimal = Decimal(0)
    good_until: datetime = NOON
    busy: int = 0
    places: int = 0
    uses: int = 0


class OneKey(RuleBasedStateMachine):
    """Three processes, one key, and a record of every token that left."""

    @initialize(limits=limits_, steady=st.booleans())
    def begin(self, limits, steady):
        self.limits, self.now, self.steady = limits, NOON, steady
        self.row = new_bucket("k", limits, NOON)
        self.processes = {name: Process() for name in NAMES}
        self.sent = []
        self.highest = limits
        self.lowered = []  # when a burst became smaller
        self.places = 0

    def _ask(self, name, price=Decimal(0), ahead=0.0, wish=0):
        mine, held = self.processes[name], self.row.holders.get(name)
        # What left while nobody counted places is counted when its process tells of it.
        self.places += max(0, mine.busy - (held.places if held else 0))
        latest = self.now + timedelta(seconds=ahead)
        turn_over = mine.uses >= QUANTUM
        return Ask(name, price, latest, TERM, mine.busy, wish, mine.tokens, turn_over=turn_over)

    def _refreshed(self):
        return refresh(self.row, self.limits, self.now)

    @rule(
        name=names,
        price=prices,
        ahead=st.sampled_from([0.0, 5.0]),
        wish=st.sampled_from([0, 3, 60]),
    )
    def come(self, name, price, ahead, wish):
        mine, ask = self.processes[name], self._ask(name, price, ahead, wish)
        self.row, answer = visit(self._refreshed(), ask, self.limits.manners, self.now)
        mine.tokens, mine.places = Decimal(0), mine.busy
        if isinstance(answer, Wait):
            assert answer.until > self.now
            return
        held = self.row.holders.get(name)
        assert held.places > mine.busy if held else flight_limit(self.row) is None
        assert self.now <= answer.at <= max(self.now, ask.latest)
        assert self.row.cool_down_until is None or self.row.cool_down_until <= answer.at
        self.sent.append((answer.at, price))
        mine.uses = 1 if ask.turn_over else mine.uses + 1
        mine.busy, mine.places = mine.busy + 1, held.places if held else mine.busy + 1
        mine.tokens, mine.good_until = Decimal(answer.tokens), self.now + LEASE
        assert answer.tokens == 0 or self.limits.rate_per_second > 50

    @rule(name=names, late=st.booleans())
    def spend_what_was_taken_along(self, name, late):
        mine = self.processes[name]
        open_ = flight_limit(self.row) is None or mine.busy < mine.places
        if not (mine.tokens >= 1 and self.now < mine.good_until and open_):
            return
        if late:
            self.now = mine.good_until
        while mine.tokens >= 1 and (flight_limit(self.row) is None or mine.busy < mine.places):
            self.sent.append((self.now, Decimal(1)))
            mine.tokens, mine.busy = mine.tokens - 1, mine.busy + 1

    @rule(name=names)
    def answer_one(self, name):
        self.processes[name].busy = max(0, self.processes[name].busy - 1)

    @rule(name=names)
    def settle_one(self, name):
        mine = self.processes[name]
        self.row = settle(self._refreshed(), self._ask(name), self.now)
        mine.tokens, mine.places = Decimal(0), mine.busy

    @rule(name=names)
    def die(self, name):
        """Its requests may be open and its tokens spent: nobody knows until its term is over."""
        self.processes[name] = Process()
        held = self.row.holders.get(name)
        if held:  # the next process has another name
            rest = {other: one for other, one in self.row.holders.items() if other != name}
            ghost = f"{name}-{len(self.sent)}-{self.now.timestamp()}"
            self.row = replace(self.row, holders={**rest, ghost: held})

    @precondition(lambda self: not self.steady)
    @rule(signal=st.sampled_from(["complaint", "silence", "told", "gone", "cost"]))
    def be_answered(self, signal):
        soon = self.now + timedelta(seconds=2)
        said = {
            "complaint": Complaint(),
            "silence": Silence(soon),
            "told": Words(Told(rate_per_second=Decimal(2), in_flight=2, at=self.now)),
            "gone": Words(Told(remaining=Decimal(0), resets_at=soon)),
            "cost": Cost(Decimal(2)),
        }[signal]
        self.row = after(self._refreshed(), said, self.limits.manners, "a", self.now)

    @precondition(lambda self: not self.steady)
    @rule(limits=limits_)
    def change_the_limits(self, limits):
        self.limits = replace_limits(limits, self.limits.manners)
        high = self.highest
        if limits.burst < self.row.burst:
            self.lowered.append(self.now)
        self.highest = Limits(
            max(high.rate_per_second, limits.rate_per_second), max(high.burst, limits.burst)
        )
        self.row = self._refreshed()

    @rule(micros=st.sampled_from([1, 1000, 20_000, 100_000, 300_000, 1_000_000, 9_000_000]))
    def let_time_pass(self, micros):
        self.now += timedelta(microseconds=micros)
        for name, mine in self.processes.items():
            if micros >= 1_000_000 and (mine.busy or mine.tokens):  # say that it is alive
                self.settle_one(name)

    @precondition(lambda self: self.row.holders)
    @rule()
    def let_all_terms_end(self):
        self.processes = {name: Process() for name in NAMES}
        self.now = max(self.now, *(held.until for held in self.row.holders.values()))
        self.row = self._refreshed()
        assert self.row.holders == {}

    @invariant()
    def no_more_places_are_given_than_there_are(self):
        limit, holders = flight_limit(self.row), self.row.holders
        given_ = sum(held.places for held in holders.values())
        busy = sum(process.busy for process in self.processes.values())
        dead = sum(held.places for name, held in holders.items() if name not in NAMES)
        if limit is not None:  # one that was lowered calls no request back, and gives no place
            assert given_ <= max(limit, self.places, busy + dead)
        self.places = given_
        if self.steady and self.limits.in_flight is not None:
            assert busy <= given_

    @invariant()
    def bucket_and_pockets_hold_the_burst_at_most(self):
        row = self._refreshed()
        pockets = sum(held.tokens for held in row.holders.values())
        assert row.tokens + pockets <= self.highest.burst
        assert row.rate_per_second <= row.configured_rate

    def teardown(self):
        if not hasattr(self, "sent"):
            return
        assert_within(self.highest, self.sent, self.lowered)


TestOneKey = OneKey.TestCase
TestOneKey.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def replace_limits(limits, manners):
    return Limits(limits.rate_per_second, limits.burst, limits.in_flight, manners)


def assert_within(limits, sent, lowered=()):
    """Check every span between two departures against burst + rate × span.

    A bucket that was made smaller is full, however much has just been taken from the larger one,
    and a request dearer than all of it leaves a full bucket in debt: once for each time.
    """
    leaving = sorted(sent)
    for first, (start, _) in enumerate(leaving):
        total, dearest = Decimal(0), Decimal(0)
        for at, price in leaving[first:]:
            total, dearest = total + price, max(dearest, price)
            span = Decimal((at - start) // timedelta(microseconds=1)) / 1_000_000
            smaller = sum(start <= moment <= at for moment in lowered)
            most = max(limits.burst, dearest) + limits.rate_per_second * span + smaller * dearest
            assert total <= most, (start, at, total, most)


@given(limits_, st.permutations([name for name in "abcdefgh"]), st.sampled_from([0, 1, 5]))
def test_the_order_of_those_who_come_at_once_does_not_matter_for_the_total(limits, order, ahead):
    def granted(names_):
        row, moments = refresh(new_bucket("k", limits, NOON), limits, NOON), []
        for name in names_:
            ask = Ask(name, Decimal(1), NOON + timedelta(seconds=ahead), TERM)
            row, answer = visit(row, ask, limits.manners, NOON)
            moments += [answer.at] if isinstance(answer, Granted) else []
        return moments, row.tokens

    assert granted(order) == granted(sorted(order))


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(2, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_everybody_who_waits_gets_a_place_within_a_bounded_number_of_turns(
    limit, people, length, dice
):
    limits = Limits(1000, 1000, limit)
    row, order = new_bucket("k", limits, NOON), [f"p{number}" for number in range(people)]
    uses, ends, hungry = dict.fromkeys(order, 0), {}, dict.fromkeys(order, 0)
    for turn in range(200):
        now = NOON + timedelta(milliseconds=50 * turn)
        dice.shuffle(order)
        for name in order:
            if ends.get(name, -1) > turn:
                continue  # its request is open
            over = uses[name] >= QUANTUM
            ask = Ask(name, Decimal(1), now, TERM, turn_over=over)
            row, answer = visit(refresh(row, limits, now), ask, limits.manners, now)
            if isinstance(answer, Wait):
                uses[name], hungry[name] = 0, hungry[name] + 1
            else:
                uses[name] = 1 if over else uses[name] + 1
                hungry[name], ends[name] = 0, turn + length
            assert hungry[name] <= people * (QUANTUM * length + 2), (turn, name)
