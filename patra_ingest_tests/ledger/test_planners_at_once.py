"""Many planner processes at once, and planners that are killed: one plan, each slice and task once.

Every planner here is a process of its own on the same ledger, and all of them begin together.
"""

import multiprocessing
import os
import signal
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import open_db, read_instant
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import NOON, START, a_pack, a_trigger, an_endpoint, day, pack_text
from patra_ingest_tests.fakes import dying

# Processes of their own, born of one that has imported what they need and opened nothing.
SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(["patra_ingest.planner.plan", "patra_ingest_tests.builders"])
HOUR = timedelta(hours=1)
HOURLY = an_endpoint(
    window={"max_span": "1h", "initial_from": START.isoformat()},
    planning={"max_queued": 5000},
)
LIMIT = Decimal(100)


def register(db, *packs):
    with db.write() as tx:
        for pack in packs:
            apply_pack(tx, pack, day(-400))


def plan_once(url, trigger, together, answers):
    """Plan when all others are ready, and answer with the plan."""
    db = open_db(url)
    planner = Planner(db, SystemClock())
    together.wait(60)
    answers.put(planner.plan(trigger).plan_id)
    db.close()


def plan_days(url, source, first, together, answers):
    """Plan ten windows of two days one after another, and answer with the plans."""
    db = open_db(url)
    planner = Planner(db, SystemClock())
    together.wait(60)
    for number in range(first, first + 20, 2):
        asked = Asked(day(number), day(number + 2))
        answers.put(planner.plan(Trigger(source, "works", asked=asked)).plan_id)
    db.close()


def plan_until(url, trigger, statement, times):
    """Plan until a statement is sent for so many times, and die of SIGKILL right before it."""

    def is_reached(sent):
        counts[sent.startswith(statement)] += 1
        if counts[True] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    counts = Counter()
    db = open_db(url)
    with dying(db, is_reached):
        Planner(db, SystemClock()).plan(trigger)


def all_at_once(work, calls):
    """Run the calls in processes that begin together; return the answers, all must end well."""
    together, answers = SPAWN.Barrier(len(calls)), SPAWN.Queue()
    processes = [SPAWN.Process(target=work, args=(*call, together, answers)) for call in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(calls)
    return [answers.get(timeout=5) for _ in range(answers.qsize())]


def rows(db, query):
    with db.read() as tx:
        return tx.execute(text(query)).mappings().all()


def assert_planned_once(db, start, hours):
    """Insist on one READY plan whose slices tile its window, each with one task."""
    (plan,) = rows(db, "SELECT * FROM ing_plan")
    slices = rows(db, "SELECT * FROM ing_plan_slice ORDER BY slice_no")
    tasks = rows(db, "SELECT * FROM ing_task")
    edges = [read_instant(one["window_from"]) for one in slices]
    edges.append(read_instant(slices[-1]["window_to"]))
    assert plan["status_code"] == "READY"
    assert [one["slice_no"] for one in slices] == list(range(hours))
    assert edges == [start + number * HOUR for number in range(hours + 1)]
    assert all(
        read_instant(a["window_to"]) == read_instant(b["window_from"]) for a, b in pairwise(slices)
    )
    assert sorted(task["slice_id"] for task in tasks) == sorted(one["id"] for one in slices)
    assert len({task["idempotent_key"] for task in tasks}) == hours
    assert {one["status_code"] for one in slices} == {"READY"}
    assert {task["status_code"] for task in tasks} == {"QUEUED"}


def test_ten_planners_of_one_window_make_one_plan(db, db_url):
    register(db, a_pack(works=HOURLY))
    trigger = a_trigger(start=day(-5), end=day(15))

    plans = all_at_once(plan_once, [(db_url, trigger)] * 10)

    assert len(plans) == 10
    assert len(set(plans)) == 1
    assert_planned_once(db, day(-5), 480)
    assert len(rows(db, "SELECT id FROM ing_schedule_instance")) == 10


def test_a_tick_that_is_evaluated_ten_times_makes_one_plan(db, db_url):
    register(db, a_pack(works=HOURLY))

    plans = all_at_once(plan_once, [(db_url, a_trigger(at=NOON))] * 10)

    assert len(plans) == 10
    assert len(set(plans)) == 1
    assert_planned_once(db, START, 24 * 18 + 12)


def test_planners_of_windows_that_overlap_claim_every_hour_once(db, db_url):
    register(db, a_pack(works=HOURLY))
    triggers = [a_trigger(start=day(number - 5), end=day(number)) for number in range(10)]

    all_at_once(plan_once, [(db_url, trigger) for trigger in triggers])

    slices = rows(db, "SELECT window_from FROM ing_plan_slice")
    starts = sorted(read_instant(one["window_from"]) for one in slices)
    assert starts == [day(-5) + number * HOUR for number in range(14 * 24)]
    assert len(rows(db, "SELECT id FROM ing_task")) == len(starts)


@pytest.mark.parametrize(
    ("statement", "times"),
    [
        ("INSERT INTO ing_plan ", 1),
        ("INSERT INTO ing_plan_slice", 1),
        ("INSERT INTO ing_plan_slice", 2),
        ("UPDATE ing_plan SET slice_params", 1),
        ("INSERT INTO ing_task", 1),
        ("UPDATE ing_plan_slice SET status_code = 'READY'", 1),
        ("INSERT INTO ing_task", 3),
        ("UPDATE ing_plan SET status_code", 2),
    ],
    ids=[
        "before the plan",
        "before the slices",
        "between groups of slices",
        "after the last slice",
        "between slices and tasks",
        "inside a group of tasks",
        "between groups of tasks",
        "before it is READY",
    ],
)
def test_the_next_trigger_finishes_the_plan_of_a_killed_planner(db, db_url, statement, times):
    register(db, a_pack(works=HOURLY))
    trigger = a_trigger(start=day(-35), end=day(15))
    killed = SPAWN.Process(target=plan_until, args=(db_url, trigger, statement, times))
    killed.start()
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    left = rows(db, "SELECT status_code FROM ing_plan")
    assert [plan["status_code"] for plan in left] != ["READY"]

    planned = Planner(db, SystemClock()).plan(trigger)

    assert planned.plan_id == rows(db, "SELECT id FROM ing_plan")[0]["id"]
    assert_planned_once(db, day(-35), 1200)


def sharing(code):
    """Return the pack of a source that shares one daily quota with others."""
    written = pack_text(works=an_endpoint())
    written["provenance"]["code"] = code
    quotas = [{"limit": float(LIMIT), "per": "1d"}, {"limit": float(LIMIT) / 4, "per": "1h"}]
    written["rate"] = {**written["rate"], "key": "shared", "quotas": quotas}
    return parse_pack(PackText(f"the pack of {code}", written, {}))


def test_planners_of_two_sources_never_sell_the_same_quota_twice(db, db_url):
    register(db, sharing("one"), sharing("other"))
    calls = [(db_url, code, first) for code in ("one", "other") for first in (-40, -20)]

    plans = all_at_once(plan_days, calls)

    assert len(set(plans)) == 40
    assert len(rows(db, "SELECT id FROM ing_task")) == 80
    spoken = Counter()
    for one in rows(db, "SELECT * FROM ing_quota_reservation"):
        spoken[str(one["window_from"]), str(one["window_to"])] += Decimal(str(one["left_amount"]))
    assert sum(spoken.values()) == 2 * 80 * 10, "an hour and a day for ten requests of each slice"
    windows = rows(db, "SELECT * FROM ing_quota_window WHERE limit_amount > 0")
    for window in windows:
        limit, reserved = (Decimal(str(window[f"{name}_amount"])) for name in ("limit", "reserved"))
        assert reserved == spoken[str(window["window_from"]), str(window["window_to"])]
        assert reserved <= limit * Decimal("0.9")
