"""How far requests may go into a quota, and what the source itself says about it."""

from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.errors import RequestRejected
from patra_ingest.ledger.quotas import (
    correct_spent,
    list_usages,
    lock_usages,
    reserve,
    settle,
    try_spend,
)
from patra_ingest.ledger.rates import create_bucket
from patra_ingest.model.codes import Operation
from patra_ingest.model.quotas import (
    Charge,
    QuotaRule,
    Refusal,
    Reservation,
    Usage,
    charges_at,
    charges_told,
    floor_amount,
    soft_limit,
    spending_share,
    window_at,
)
from patra_ingest.model.rates import Holder, SharedBucket
from patra_ingest.planner.budgeting import Budget
from patra_ingest.rate.told import Told
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest.views.budget import list_budgets
from patra_ingest_tests.builders import DAY, NOON

DAILY = QuotaRule("a", Decimal(100), DAY)
HOURLY = QuotaRule("a", Decimal(10), timedelta(hours=1))
BY_MINUTE = QuotaRule("a", Decimal(10), timedelta(minutes=1))
TODAY = window_at(DAILY, NOON)
HOUR, MINUTE = window_at(HOURLY, NOON), window_at(BY_MINUTE, NOON)
HARVEST, UPDATE, BACKFILL = (
    spending_share(one, PlanningSpec().share_of(one), PlanningSpec().quota_margin)
    for one in (Operation.HARVEST, Operation.UPDATE, Operation.BACKFILL)
)
SOFT, HARD = Refusal("a", TODAY, is_hard=False), Refusal("a", TODAY, is_hard=True)


def usage(db, window=TODAY):
    with db.write() as tx:
        return list_usages(tx, ["a"], NOON)["a", window]


def charges(amount, *rules):
    return charges_at(rules or (DAILY,), NOON, Decimal(str(amount)))


def spend(db, amount, share, slice_id=None, rules=(DAILY,)):
    with db.write() as tx:
        return try_spend(tx, slice_id, charges(amount, *rules), NOON, share)


def book(db, slice_id, amount, window=TODAY):
    with db.write() as tx:
        item = Reservation("a", window, Decimal(amount))
        reserve(tx, slice_id, [item], {("a", window): Decimal(100)}, NOON)


def correct(db, remaining, *rules):
    with db.write() as tx:
        return correct_spent(tx, charges(1, *rules), Decimal(str(remaining)), NOON)


def pay_true_cost(db, declared, true, slice_id=None):
    with db.write() as tx:
        settle(tx, slice_id, charges(declared), Decimal(str(true)), NOON)


def test_the_shares_are_those_of_planning_but_harvest_goes_to_the_limit():
    planning = PlanningSpec()
    for operation, share in ((Operation.UPDATE, UPDATE), (Operation.BACKFILL, BACKFILL)):
        budget = Budget((), planning.share_of(operation), planning.quota_margin)
        for limit in (Decimal(1), Decimal(50), Decimal("0.000007"), Decimal(120_000)):
            assert soft_limit(limit, TODAY, share) == budget.part_of(limit)
    shares = [str(share.normalize()) for share in (HARVEST, UPDATE, BACKFILL)]
    assert shares == ["1", "0.72", "0.54"]
    assert soft_limit(Decimal(50), TODAY, HARVEST) == 50


def test_each_operation_stops_at_its_own_mark(db):
    assert spend(db, 54, BACKFILL) is None
    assert spend(db, "0.000001", BACKFILL) == SOFT
    assert spend(db, 18, UPDATE) is None
    assert spend(db, 1, UPDATE) == SOFT
    assert spend(db, 28, HARVEST) is None
    assert [spend(db, 1, share) for share in (HARVEST, UPDATE, BACKFILL)] == [HARD] * 3
    assert usage(db) == Usage(Decimal(100), Decimal(0), Decimal(100))
    assert (SOFT.end, HARD.end) == (TODAY.end, TODAY.end)
    assert (SOFT.reason, HARD.reason) == (
        "the rest of the quota is kept for more urgent operations",
        "the quota is used up",
    )


def test_what_others_have_spoken_for_is_not_free_for_a_lower_operation(db):
    book(db, 1, 50)

    assert spend(db, 4, BACKFILL) is None
    assert spend(db, 1, BACKFILL) == SOFT
    assert spend(db, 1, HARVEST) is None


def test_a_slice_may_always_spend_its_own_reservation_up_to_the_limit(db):
    book(db, 1, 30)
    assert spend(db, 60, HARVEST) is None

    assert spend(db, 1, BACKFILL) == SOFT
    assert [spend(db, 15, BACKFILL, slice_id=1) for _ in range(2)] == [None, None]
    assert spend(db, 1, BACKFILL, slice_id=1) == SOFT
    assert usage(db) == Usage(Decimal(100), Decimal(0), Decimal(90))
    book(db, 2, 20)
    assert spend(db, 20, BACKFILL, slice_id=2) == HARD


def test_a_request_that_is_partly_reserved_needs_room_for_the_rest_only(db):
    book(db, 1, 50)

    assert spend(db, 54, BACKFILL, slice_id=1) is None
    assert usage(db) == Usage(Decimal(100), Decimal(0), Decimal(54))
    assert spend(db, 1, BACKFILL, slice_id=1) == SOFT


def test_nothing_is_kept_back_of_what_is_full_again_within_the_hour(db):
    assert spend(db, 10, BACKFILL, rules=(BY_MINUTE,)) is None
    assert spend(db, 1, BACKFILL, rules=(BY_MINUTE,)) == Refusal("a", MINUTE, is_hard=True)
    assert spend(db, 6, BACKFILL, rules=(HOURLY,)) is None
    assert spend(db, 1, BACKFILL, rules=(HOURLY,)) == Refusal("a", HOUR, is_hard=False)


def test_a_request_dearer_than_its_share_has_a_window_for_itself(db):
    assert spend(db, 80, BACKFILL) is None
    assert spend(db, 1, BACKFILL) == SOFT


def test_a_request_that_no_window_could_pay_is_still_an_error(db):
    with pytest.raises(RequestRejected, match="costs 101, more than the 100"):
        spend(db, 101, BACKFILL)


def test_of_several_refusals_the_longest_wait_is_named_with_its_own_kind(db):
    both = (HOURLY, DAILY)
    assert spend(db, 10, HARVEST, rules=(HOURLY,)) is None
    assert spend(db, 1, BACKFILL, rules=both) == Refusal("a", HOUR, is_hard=True)
    assert spend(db, 60, HARVEST) is None
    assert spend(db, 1, BACKFILL, rules=both) == SOFT
    assert spend(db, 1, HARVEST, rules=both) == Refusal("a", HOUR, is_hard=True)


def test_a_refused_request_leaves_everything_as_it_was(db):
    book(db, 1, 50)
    spend(db, 5, HARVEST)
    before = usage(db)

    assert spend(db, 51, BACKFILL, slice_id=1) == SOFT
    assert usage(db) == before


def test_the_source_knows_of_others_who_spend(db):
    spend(db, 10, HARVEST)

    assert correct(db, 70) is True
    assert usage(db).spent == 30
    assert [correct(db, 70), correct(db, 95), correct(db, "70.5")] == [False] * 3
    assert usage(db).spent == 30
    assert correct(db, 0) is True
    assert spend(db, 1, HARVEST) == HARD


def test_a_window_nobody_has_used_can_be_corrected_and_reservations_stay(db):
    assert correct(db, "99.9999999") is True
    book(db, 1, 5)
    assert correct(db, 40) is True

    assert usage(db) == Usage(Decimal(100), Decimal(5), Decimal(60))


def test_more_left_than_we_ever_allow_ourselves_changes_nothing(db):
    with db.write() as tx:
        lock_usages(tx, [("a", TODAY, Decimal(80))], NOON)

    assert correct(db, 100_000) is False
    assert correct(db, 30) is True
    assert usage(db) == Usage(Decimal(80), Decimal(0), Decimal(50))


def test_the_true_cost_is_paid_afterwards_even_beyond_the_limit(db):
    book(db, 1, 5)
    assert spend(db, 1, HARVEST, slice_id=1) is None

    pay_true_cost(db, 1, 4, slice_id=1)
    assert usage(db) == Usage(Decimal(100), Decimal(1), Decimal(4))

    pay_true_cost(db, 1, "113.5", slice_id=1)
    assert usage(db) == Usage(Decimal(100), Decimal(0), Decimal("116.5"))
    assert spend(db, 1, HARVEST) == HARD
    assert correct(db, 3) is False


def test_what_was_paid_too_much_is_given_back_but_never_more_than_was_spent(db):
    book(db, 1, 5)
    assert spend(db, 10, HARVEST) is None

    pay_true_cost(db, 10, "0.5", slice_id=1)
    assert usage(db) == Usage(Decimal(100), Decimal(5), Decimal("0.5"))

    pay_true_cost(db, 10, 0)
    assert usage(db).spent == 0


def test_the_cost_that_was_expected_changes_nothing(db):
    spend(db, 3, HARVEST)
    pay_true_cost(db, 3, 3)

    assert usage(db) == Usage(Decimal(100), Decimal(0), Decimal(3))


SHARED = QuotaRule("both", Decimal(100), DAY)
ALL = charges_at((DAILY, HOURLY, BY_MINUTE, SHARED), NOON, Decimal(1))


@pytest.mark.parametrize(
    ("asked", "limit", "resets_in", "windows"),
    [
        # Zenodo: limit and reset of the minute, beside an hour.
        ((DAILY, BY_MINUTE), 10, timedelta(seconds=60), [MINUTE]),
        ((DAILY, BY_MINUTE), 100, timedelta(hours=12), [TODAY]),
        # A limit that is not ours: the reset tells.
        ((DAILY, BY_MINUTE), 60, timedelta(seconds=58), [MINUTE]),
        ((DAILY, BY_MINUTE), None, timedelta(hours=12), [TODAY]),
        # OpenAIRE: only the limit, no reset.
        ((DAILY, BY_MINUTE), 100, None, [TODAY]),
        # Nobody can tell.
        ((DAILY, BY_MINUTE), 60, None, []),
        ((DAILY, BY_MINUTE), None, None, []),
        # Only one: it is meant, unless its budget is full again long before our window ends.
        ((DAILY,), None, None, [TODAY]),
        ((DAILY,), 7, timedelta(days=9), [TODAY]),
        ((DAILY,), 100, timedelta(hours=2), []),
        ((DAILY,), 100, timedelta(hours=11), [TODAY]),
        ((SHARED,), None, None, []),
    ],
)
def test_a_source_speaks_of_the_window_that_fits_and_of_none_if_it_is_not_clear(
    asked, limit, resets_in, windows
):
    spoken = charges_told(
        charges_at(asked, NOON, Decimal(1)),
        "a",
        None if limit is None else Decimal(limit),
        None if resets_in is None else NOON + resets_in,
    )

    assert [charge.window for charge in spoken] == windows


def test_two_windows_with_the_same_limit_are_both_meant():
    spoken = charges_told(ALL, "a", Decimal(10), None)

    assert sorted(spoken) == sorted(
        Charge("a", window, Decimal(10), floor_amount(1)) for window in (HOUR, MINUTE)
    )


def test_both_engines_show_the_same_budget(db):
    spend(db, 40, HARVEST)
    holders = {"one": Holder(2, Decimal(0), NOON + DAY)}
    told = Told(remaining=Decimal(60), at=NOON).as_json()
    numbers = (Decimal(1), NOON, Decimal("1.5"), Decimal(3), 3, Decimal(3))
    with db.write() as tx:
        create_bucket(tx, SharedBucket("a", *numbers, NOON + DAY, holders, told=told))
        [found] = list_budgets(tx, NOON)

    shown = found.as_json(NOON)
    assert found.rate.words(NOON) == (
        "1.5 of 3 per second (it rises with use), burst 3; 2 of 3 in flight (one 2);"
        " silent until 2025-09-21 12:00:00Z, 1 d more"
    )
    assert shown["rate"]["told"] == told
    assert [quota["spent"] for quota in shown["quotas"]] == [40]
