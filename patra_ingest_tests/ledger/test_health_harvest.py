"""The health checks that know where a HARVEST should be by now."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.model.codes import Operation, TaskStatus
from patra_ingest.model.window import instant_iso
from patra_ingest.views.health import Severity
from patra_ingest.views.health_cadence import longest_pause
from patra_ingest_tests.builders import NOON, a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.ledger.health import harvested, judged
from patra_ingest_tests.ledger.planning import a_planner, finish, slices_of
from patra_ingest_tests.ledger.test_health import verdict

WARN, ERROR = Severity.WARN, Severity.ERROR
HOUR = timedelta(hours=1)
QUERY = an_endpoint()["request"]["query"]


def scheduled(cron, enabled=True, **window):
    """Return the pack of an endpoint that declares when it is harvested."""
    schedule = {"HARVEST": {"cron": cron, "enabled": enabled}}
    return a_pack(works=an_endpoint(schedule=schedule, window=window))


def test_a_failed_slice_is_a_hole_with_its_reason(db):
    plan = harvested(db, failed=1)
    bad = slices_of(db, plan)[-1]
    with db.write() as tx:
        why = "UPDATE ing_task SET last_error_code = 'L2', last_error_msg = 'bad' WHERE slice_id = "
        tx.execute(text(f"{why}{bad['id']}"))

    hole = judged(db, "coverage")

    assert (verdict(hole), hole.value) == (ERROR, (12 * HOUR - HOUR / 2).total_seconds())
    assert hole.metadata["hole_from"] == instant_iso(day(18))
    assert f"its slice {bad['id']} is FAILED (L2: bad)" in hole.why


def test_what_is_in_work_is_no_hole(db):
    plan = a_planner(db).plan(a_trigger(start=day(0))).plan_id
    finish(db, plan, 3)

    assert judged(db, "coverage").passed


def test_time_between_two_plans_that_nobody_has_planned_is_a_hole(db):
    harvested(db, end=day(3))
    harvested(db, start=day(5))

    hole = judged(db, "coverage")

    assert (hole.metadata["hole_from"], hole.metadata["hole_to"]) == (
        instant_iso(day(3)),
        instant_iso(day(5)),
    )
    assert "nobody has planned it" in hole.why


def test_what_a_person_gave_up_behind_the_cursor_is_a_warning(db):
    plan = harvested(db)
    with db.write() as tx:
        given_up = slices_of(db, plan)[4]["id"]
        tx.execute(text(f"UPDATE ing_plan_slice SET status_code = 'FAILED' WHERE id = {given_up}"))

    hole = judged(db, "coverage")

    assert (verdict(hole), hole.metadata["hole_from"]) == (WARN, instant_iso(day(4)))


@pytest.mark.parametrize(
    ("later", "expected"),
    [(0 * HOUR, "PASSED"), (0.4 * HOUR, "PASSED"), (HOUR, WARN), (3 * HOUR, ERROR)],
)
def test_a_cursor_may_lag_half_an_hour_beyond_its_safety_lag(db, later, expected):
    harvested(db)

    lag = judged(db, "cursor_lag", NOON + later)

    assert (verdict(lag), lag.value) == (expected, later.total_seconds())


@pytest.mark.parametrize(
    ("later", "expected"), [(5 * HOUR, "PASSED"), (7 * HOUR, WARN), (9 * HOUR, ERROR)]
)
def test_a_cursor_waits_for_its_schedule(db, later, expected):
    harvested(db, pack=scheduled("0 */6 * * *"))

    assert verdict(judged(db, "cursor_lag", NOON + later)) == expected


def test_a_cursor_on_a_grid_of_days_is_not_late_before_the_day_is_over(db):
    harvested(db, pack=scheduled("0 3 * * *", granularity="DAY"))
    midnight = day(20)  # from then on the 19th is settled, and planned at 3 the latest a day later

    assert judged(db, "cursor_lag", midnight + 20 * HOUR).passed
    assert verdict(judged(db, "cursor_lag", midnight + 50 * HOUR)) == ERROR


@pytest.mark.parametrize("check", ["cursor_lag", "freshness", "coverage"])
def test_nobody_waits_for_an_endpoint_whose_schedule_is_switched_off(db, check):
    harvested(db, pack=scheduled("0 * * * *", enabled=False))

    assert judged(db, check, NOON + 100 * HOUR).passed


@pytest.mark.parametrize(
    ("cron", "hours", "expected"),
    [(None, 23, "PASSED"), (None, 25, WARN), ("0 * * * *", 1.9, "PASSED"), ("0 * * * *", 3, WARN)],
)
def test_a_plan_must_have_succeeded_within_two_rounds_or_a_day(db, cron, hours, expected):
    harvested(db, pack=scheduled(cron) if cron else None)

    assert verdict(judged(db, "freshness", NOON + hours * HOUR)) == expected


def test_a_plan_with_a_failed_slice_has_not_succeeded(db):
    harvested(db, failed=1)

    found = judged(db, "freshness")

    assert (verdict(found), found.why) == (WARN, "No plan has succeeded yet.")


def test_a_question_that_a_pack_no_longer_asks_is_not_judged(db):
    harvested(db, end=day(3))
    assert not judged(db, "cursor_lag").passed
    other = an_endpoint(request={"path": "/works/v2"})

    harvested(db, pack=a_pack(works=other))

    assert judged(db, "cursor_lag").passed
    assert judged(db, "coverage").passed


def test_what_a_campaign_or_a_persons_own_query_left_is_not_judged(db):
    harvested(db, end=day(3), campaign="again")
    asking = an_endpoint(request={"query": {**QUERY, "filter": "${params.filter}"}})
    harvested(db, end=day(2), pack=a_pack(works=asking), params={"filter": "x"})

    assert judged(db, "cursor_lag").passed


def test_a_backfill_is_not_behind_anything(db):
    plan = (
        a_planner(db)
        .plan(a_trigger(start=day(0), end=day(2), operation=Operation.BACKFILL))
        .plan_id
    )
    finish(db, plan, 2, TaskStatus.FAILED)

    assert judged(db, "cursor_lag").passed
    assert judged(db, "coverage").passed


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", timedelta(minutes=1)),
        ("*/15 * * * *", timedelta(minutes=15)),
        ("7 * * * *", HOUR),
        ("0 */6 * * *", 6 * HOUR),
        ("0 0-5 * * *", 19 * HOUR),
        ("30 3 * * *", 24 * HOUR),
        ("0 2,14 * * MON-FRI", 60 * HOUR),
        ("0 6 * * SUN", 168 * HOUR),
        ("0 6 * * 7", 168 * HOUR),
        ("0 0 1 * *", 31 * 24 * HOUR),
        ("0 0 1,15 * SUN", 7 * 24 * HOUR),  # either of the two
        ("5/20 * * * *", timedelta(minutes=20)),
        ("0 0 30 2 *", None),
    ],
)
def test_the_longest_pause_of_a_cron_line(cron, expected):
    assert longest_pause(cron) == expected
