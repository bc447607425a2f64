"""What a plan leaves to an auditor: the days that are whole, and the runs to look at."""

from datetime import date, timedelta

from sqlalchemy import text

from patra_ingest.model.codes import TaskStatus
from patra_ingest.views.health_plan import DAYS, audit_plan
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.ledger.health import harvested
from patra_ingest_tests.ledger.planning import a_planner, finish, slices_of


def audit(db, plan):
    with db.read() as tx:
        return audit_plan(tx, plan)


def days_of(db, plan):
    """Return the whole days of September that a plan tells."""
    return [one.day.day for one in audit(db, plan).days]


def test_a_day_is_whole_when_every_part_of_it_succeeded(db):
    plan = harvested(db)  # up to noon of the 19th

    assert days_of(db, plan) == list(range(1, 19))

    third = slices_of(db, plan)[2]["id"]
    with db.write() as tx:
        tx.execute(text(f"UPDATE ing_plan_slice SET status_code = 'FAILED' WHERE id = {third}"))
    assert 3 not in days_of(db, plan)


def test_a_plan_completes_the_day_that_another_has_begun(db):
    noon = day(1) + timedelta(hours=12)
    first = harvested(db, end=noon)
    second = harvested(db, start=noon, end=day(2))

    assert days_of(db, first)[:1] == [1]
    assert days_of(db, second) == [2]


def test_numbers_of_a_day_are_those_of_its_own_slices_and_none_for_longer_ones(db):
    long = a_pack(works=an_endpoint(window={"max_span": "7d"}))

    by_day, by_week = harvested(db, end=day(7)), harvested(db, pack=long, start=day(7), end=day(14))

    assert {one.counts is None for one in audit(db, by_day).days} == {False}
    assert {one.counts is None for one in audit(db, by_week).days} == {True}
    assert days_of(db, by_week) == list(range(8, 15))


def test_of_many_days_the_newest_are_told_and_the_others_counted(db):
    plan = harvested(db, start=day(-30))

    told = audit(db, plan)

    assert (len(told.days), told.earlier_days) == (DAYS, 48 - DAYS)
    assert told.days[-1].day == date(2025, 9, 18)


def test_days_before_the_source_begins_are_not_told(db):
    began = a_pack(works=an_endpoint(planning={"earliest": "2025-09-05"}))

    plan = harvested(db, pack=began, start=day(4), end=day(7))
    with db.write() as tx:  # as if asked for before the pack said so
        tx.execute(text("UPDATE ing_plan SET window_from = '2025-09-01 00:00:00.000000'"))
        first = slices_of(db, plan)[0]["id"]
        wide = "UPDATE ing_plan_slice SET window_from = '2025-09-01 00:00:00.000000' WHERE id = "
        tx.execute(text(f"{wide}{first}"))

    assert days_of(db, plan) == [5, 6, 7]


def test_an_update_brings_no_days(db):
    plan = harvested(db, end=day(2))
    with db.write() as tx:
        tx.execute(text("UPDATE ing_plan SET operation_code = 'UPDATE'"))

    assert days_of(db, plan) == []


def test_the_newest_runs_are_named_and_the_others_counted(db):
    plan = harvested(db, end=day(7))

    told = audit(db, plan)

    assert [run.status for run in told.runs] == ["SUCCEEDED"] * 5
    assert [run.run_id for run in told.runs] == sorted(run.run_id for run in told.runs)
    assert told.more_runs == 2


def test_a_plan_that_failed_altogether_has_neither_days_nor_runs(db):
    plan = a_planner(db).plan(a_trigger(start=day(0), end=day(2))).plan_id
    finish(db, plan, 2, TaskStatus.FAILED)

    told = audit(db, plan)

    assert (told.days, told.runs, told.more_runs, told.cursor) == ((), (), 0, None)
