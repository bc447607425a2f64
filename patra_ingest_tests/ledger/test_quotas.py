"""Quota windows and reservations on the real engines, alone and in races."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from patra_ingest.errors import RequestRejected
from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.quotas import (
    free,
    list_usages,
    lock_usages,
    reserve,
    reserve_all,
    try_spend,
)
from patra_ingest.model.quotas import (
    Charge,
    QuotaRule,
    Refusal,
    Reservation,
    Usage,
    charges_at,
    window_at,
)
from patra_ingest.planner.budgeting import Book, Budget
from patra_ingest.views.budget import list_quotas
from patra_ingest_tests.builders import DAY, NOON

DAILY = QuotaRule("a", Decimal(100), DAY)
HOURLY = QuotaRule("a", Decimal(10), timedelta(hours=1))
OTHER = QuotaRule("b", Decimal(5), DAY)
TODAY, TOMORROW = (window_at(DAILY, NOON + n * DAY) for n in range(2))
HOUR = window_at(HOURLY, NOON)
LIMITS = {(rule.key, window_at(rule, NOON)): rule.limit for rule in (DAILY, HOURLY, OTHER)}
LIMITS["a", TOMORROW] = DAILY.limit


def usages(db, *keys):
    with db.write() as tx:
        return dict(list_usages(tx, keys or ("a", "b"), NOON))


def usage(limit, reserved=0, spent=0):
    return Usage(Decimal(limit), Decimal(str(reserved)), Decimal(str(spent)))


def book(db, slice_id, *parts):
    with db.write() as tx:
        items = [Reservation(key, window, Decimal(str(part))) for key, window, part in parts]
        reserve(tx, slice_id, items, LIMITS, NOON)


def spend(db, amount, slice_id=None, rules=(DAILY,)):
    with db.write() as tx:
        charges = charges_at(rules, NOON, Decimal(str(amount)))
        refusal = try_spend(tx, slice_id, charges, NOON)
        return refusal and refusal.window


def give_back(db, *slice_ids):
    with db.write() as tx:
        free(tx, slice_ids, NOON)


def left(db):
    query = text("SELECT slice_id, amount, left_amount FROM ing_quota_reservation ORDER BY id")
    with db.read() as tx:
        return [(row[0], float(row[1]), float(row[2])) for row in tx.execute(query)]


def test_windows_are_made_when_they_are_asked_for_and_follow_their_limit(db):
    with db.write() as tx:
        first = lock_usages(tx, [("a", TODAY, Decimal(9)), ("a", TODAY, Decimal(7))], NOON)
    assert first == {("a", TODAY): usage(7)}
    spend(db, 3)

    with db.write() as tx:
        second = lock_usages(tx, [("a", TODAY, Decimal(50)), ("b", TODAY, Decimal(1))], NOON)

    assert second == {("a", TODAY): usage(50, spent=3), ("b", TODAY): usage(1)}
    assert usages(db) == second


def test_only_windows_of_the_keys_that_are_not_over_are_listed(db):
    yesterday = window_at(DAILY, NOON - DAY)
    spots = [("a", yesterday), ("a", TODAY), ("a", TOMORROW), ("b", TODAY), ("c", TODAY)]
    with db.write() as tx:
        lock_usages(tx, [(*spot, Decimal(1)) for spot in spots], NOON)

    assert set(usages(db, "a", "b", "nobody")) == {("a", TODAY), ("a", TOMORROW), ("b", TODAY)}


def test_a_slice_speaks_for_what_it_will_spend_and_repeating_it_changes_nothing(db):
    for _ in range(2):
        book(db, 1, ("a", TODAY, 40), ("a", TOMORROW, 10))
    book(db, 2, ("a", TODAY, "0.1"))

    assert usages(db) == {("a", TODAY): usage(100, "40.1"), ("a", TOMORROW): usage(100, 10)}
    assert left(db) == [(1, 40, 40), (1, 10, 10), (2, 0.1, 0.1)]


def test_what_a_slice_leaves_is_free_again_and_freeing_twice_frees_once(db):
    book(db, 1, ("a", TODAY, 40), ("b", TODAY, 2))
    book(db, 2, ("a", TODAY, 5))

    give_back(db, 1)
    give_back(db, 1, 3)

    assert usages(db) == {("a", TODAY): usage(100, 5), ("b", TODAY): usage(5)}
    assert left(db) == [(1, 40, 0), (1, 2, 0), (2, 5, 5)]


def test_a_freed_slice_may_be_planned_again(db):
    book(db, 1, ("a", TODAY, 40))
    give_back(db, 1)

    book(db, 1, ("a", TODAY, 60))

    assert usages(db) == {("a", TODAY): usage(100, 60)}
    assert left(db) == [(1, 60, 60)]


def test_nothing_is_freed_for_nobody(db):
    give_back(db)

    assert usages(db) == {}


def test_spending_shrinks_what_the_slice_had_reserved(db):
    book(db, 1, ("a", TODAY, 3), ("a", TOMORROW, 7))
    book(db, 2, ("a", TODAY, 5))

    assert [spend(db, 2, slice_id=1) for _ in range(2)] == [None, None]

    assert usages(db) == {
        ("a", TODAY): usage(100, reserved=5, spent=4),
        ("a", TOMORROW): usage(100, reserved=7),
    }
    assert left(db) == [(1, 3, 0), (1, 7, 7), (2, 5, 5)]
    give_back(db, 1, 2)
    assert usages(db)["a", TODAY] == usage(100, spent=4)


def test_the_real_limit_counts_when_spending_not_what_others_reserved(db):
    book(db, 1, ("a", TODAY, 90))

    assert spend(db, 100) is None
    assert spend(db, "0.000001") == TODAY


def test_a_charge_is_paid_whole_or_not_at_all(db):
    book(db, 1, ("a", TODAY, 9), ("b", TODAY, 4))
    for _ in range(5):
        assert spend(db, 1, 1, (DAILY, OTHER)) is None
    before = usages(db), left(db)

    assert spend(db, 1, 1, (DAILY, OTHER)) == TODAY

    assert (usages(db), left(db)) == before


def test_of_two_exhausted_windows_the_one_that_ends_last_is_named(db):
    assert spend(db, 10, rules=(HOURLY,)) is None
    assert spend(db, 1, rules=(HOURLY, DAILY)) == HOUR
    assert spend(db, 100) is None

    assert spend(db, 1, rules=(HOURLY, DAILY)) == TODAY


def test_the_limit_of_the_window_counts_not_that_of_an_older_snapshot(db):
    with db.write() as tx:
        lock_usages(tx, [("a", TODAY, Decimal(3))], NOON)

    assert [spend(db, 1) for _ in range(4)] == [None, None, None, TODAY]
    assert usages(db) == {("a", TODAY): usage(3, spent=3)}


def test_a_request_that_no_window_could_pay_is_an_error_not_a_wait(db):
    with pytest.raises(RequestRejected, match="costs 6, more than the 5 that the quota of b"):
        spend(db, 6, rules=(DAILY, OTHER))

    assert usages(db) == {}


def test_no_charge_is_always_paid(db):
    with db.write() as tx:
        assert try_spend(tx, 1, [], NOON) is None


def test_a_thousand_tenths_are_a_hundred(sqlite_db):
    with sqlite_db.write() as tx:
        charge = Charge("a", TODAY, Decimal(100), Decimal("0.1"))
        paid = [try_spend(tx, None, [charge], NOON) for _ in range(1001)]

    assert paid == [None] * 1000 + [Refusal("a", TODAY, is_hard=True)]


def test_many_slices_are_reserved_at_once(db):
    placed = {number: [Reservation("a", TODAY, Decimal("0.1"))] for number in range(1, 601)}
    with db.write() as tx:
        reserve_all(tx, placed, LIMITS, NOON)
    give_back(db, *range(1, 301))

    assert usages(db) == {("a", TODAY): usage(100, 30)}


def in_threads(url, work, count=4):
    """Run `work(db, number)` in threads that start together, each with its own pool."""
    together = threading.Barrier(count)

    def lane(number):
        db = open_db(url)
        together.wait()
        try:
            return work(db, number)
        finally:
            db.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lane, range(count)))


def test_two_planners_never_sell_the_same_quota(db, db_url):
    budget = Budget((DAILY, HOURLY, OTHER), share=0.6, margin=0.1)

    def plan(own, lane):
        for number in range(6):
            with own.write() as tx:
                desk = Book(budget, list_usages(tx, ("b", "a"), NOON), NOON)
                placed = desk.place(Decimal("0.9"))
                reserve(tx, lane * 100 + number, placed.reservations, desk.limits, NOON)

    in_threads(db_url, plan)

    found = usages(db)
    assert sum(item.reserved for item in found.values()) == Decimal("0.9") * 24 * 3
    assert all(item.taken <= budget.part_of(item.limit) for item in found.values())


def test_a_planner_waits_for_the_one_before_it_even_if_no_window_has_a_row_yet(db, db_url):
    other, seen = open_db(db_url), []
    second = threading.Thread(target=lambda: seen.append(usages(other, "b", "a")))

    with db.write() as tx:
        assert list_usages(tx, ("a",), NOON) == {}
        second.start()
        second.join(0.3)
        reserve(tx, 1, [Reservation("a", TODAY, Decimal(60))], LIMITS, NOON)
    second.join()
    other.close()

    assert seen == [{("a", TODAY): usage(100, 60)}]


def test_many_workers_never_spend_more_than_there_is_while_slices_come_and_go(db, db_url):
    def work(own, lane):
        paid = 0
        for number in range(10):
            slice_id = lane * 100 + number
            book(own, slice_id, ("a", TODAY, 2), ("a", HOUR, 2), ("b", TODAY, 1))
            paid += spend(own, "0.3", slice_id, (OTHER, HOURLY, DAILY)) is None
            give_back(own, slice_id)
        return paid

    paid = sum(in_threads(db_url, work))

    assert paid == 16  # 16 × 0.3 = 4.8 of 5
    spent = paid * Decimal("0.3")
    assert {spot[0]: (item.spent, item.reserved) for spot, item in usages(db).items()} == {
        "a": (spent, 0),
        "b": (spent, 0),
    }
    assert {amount for _, _, amount in left(db)} == {0}


def test_the_quotas_can_be_looked_at(db):
    book(db, 1, ("a", TODAY, 40), ("a", TOMORROW, "0.5"))
    spend(db, "1.25")

    with db.read() as tx:
        now, then = list_quotas(tx, NOON), list_quotas(tx, TODAY.end)

    assert [state.words() for state in now] == [
        f"1.25 of 100 spent, 40 reserved, in {TODAY}",
        f"0 of 100 spent, 0.5 reserved, in {TOMORROW}",
    ]
    assert [state.window for state in then] == [TOMORROW]
    assert (now[0].rate_key, now[0].limit) == ("a", 100)
