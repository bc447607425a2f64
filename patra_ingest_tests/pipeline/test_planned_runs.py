"""What the planner promises, kept by real workers: caps, partitions, the past, quotas, lookback."""

from datetime import datetime, timedelta

import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.model.codes import Operation
from patra_ingest.planner.plan import Planner
from patra_ingest.views.plan_summary import summarize_plan
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, end_state

HOUR = timedelta(hours=1)
CAP = 10


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


class Source:
    """One work an hour, 25 more in a crowded one; a cap cuts every answer off."""

    def __init__(self, crowded=(), cap=None):
        self.cap = cap
        self.works = [(day(0) + n * HOUR, f"w{n:03d}") for n in range(4 * 24)]
        self.works += [(at + timedelta(minutes=m), f"c{m}") for at in crowded for m in range(1, 26)]
        self.works.sort()

    def __call__(self, asked):
        start = datetime.fromisoformat(asked["from"])
        past = datetime.fromisoformat(asked["to"]) + timedelta(seconds=int(asked.get("until", 1)))
        low, high = (int(n) for n in asked.get("part", "0:59").split(":"))
        found = [
            an_item(f"{asked.get('set', '')}{name}", at.isoformat())
            for at, name in self.works
            if start <= at < past and low <= at.minute <= high
        ]
        offset, size = int(asked["offset"]), int(asked["rows"])
        page = found[: self.cap][offset : offset + size]
        return 200, {"items": page, "total": len(found)}


def a_capped(url, highest=59):
    query = {
        "from": "${window.from|iso}",
        "to": "${window.to|iso}",
        "until": "0",
        "offset": "${page.offset}",
        "part": "${split}",
    }
    then = [{"by": "NUMBER", "clause": "${from}:${to}", "lowest": 0, "highest": highest}]
    works = an_endpoint(
        request={"query": query},
        cap={"max": CAP, "then": then},
        window={"min_span": "1h", "granularity": "HOUR", "upper_bound": "EXCLUSIVE"},
        paging={"page_size": 5},
    )
    return a_pack(url, works=works)


def names(home):
    return {row[0] for row in home.rows("SELECT provider_id FROM ing_record")}


def run_to_the_end(home, plan_id):
    """Work, answer re-slice requests and go on until nothing is left; return the problems."""
    planner, problems = Planner(home.db, SystemClock()), []
    for _ in range(12):
        home.work(lanes=2)
        answers = planner.reslice(plan_id=plan_id)
        problems += [answer.problem for answer in answers if answer.problem]
        if not answers and not planner.go_on(plan_id).queued:
            return problems
    raise AssertionError("it never ends")


def test_slices_above_the_cap_are_cut_until_everything_is_here(home):
    source = Source([day(1) + 5 * HOUR], CAP)
    with upstream(source) as server:
        home.apply(a_capped(server.url))
        planned = home.plan(a_trigger(start=day(0), end=day(4)))

        assert run_to_the_end(home, planned.plan_id) == []

    assert names(home) == {name for _, name in source.works}
    assert end_state(home, "example").cursor == day(4)
    with home.db.read() as tx:
        summary = summarize_plan(tx, planned.plan_id)
    assert (summary.status, summary.is_proved) == ("COMPLETED", True)
    assert summary.slices["SUPERSEDED"] >= 5
    split = home.one(
        "SELECT COUNT(*) FROM ing_plan_slice WHERE slice_spec LIKE '%split%'"
        " AND status_code = 'SUCCEEDED'"
    )
    assert split >= 2, "the crowded hour is cut by its minutes"
    suggested = home.rows("SELECT stats FROM ing_task_run WHERE status_code = 'PARTIAL'")
    assert {read_json(row[0])["reSliceSuggested"]["reason"] for row in suggested} == {"RESULT_CAP"}


def test_an_hour_that_cannot_be_cut_any_finer_fails_loudly_and_the_rest_lands(home):
    source = Source([day(1) + 5 * HOUR], CAP)
    crowd = source.works.index((day(1) + 5 * HOUR, "w029"))
    minute = day(1) + 5 * HOUR + timedelta(minutes=7)
    source.works[crowd + 1 : crowd + 26] = [(minute, f"c{n}") for n in range(25)]
    with upstream(source) as server:
        home.apply(a_capped(server.url))
        planned = home.plan(a_trigger(start=day(0), end=day(4)))
        (problem,) = run_to_the_end(home, planned.plan_id)

    assert "holds 25 records (RESULT_CAP, the source gives 10 at most)" in problem
    assert {name for _, name in source.works} - names(home) == {f"c{n}" for n in range(25)}
    reached = end_state(home, "example").cursor
    assert reached == day(1) + 5 * HOUR, "the cursor waits at the hole"


def test_a_second_dimension_that_does_not_name_everything_is_found_out(home):
    source = Source([day(1) + 5 * HOUR], CAP)
    with upstream(source) as server:
        home.apply(a_capped(server.url, highest=19))
        planned = home.plan(a_trigger(start=day(0), end=day(4)))
        run_to_the_end(home, planned.plan_id)

    lost = {name for _, name in source.works} - names(home)
    assert lost == {f"c{minute}" for minute in range(20, 26)}
    (told,) = home.rows("SELECT last_error_msg FROM ing_task WHERE status_code = 'FAILED'")
    assert "hold 20 of its 26 records: cap.then does not name them all" in told[0]
    assert end_state(home, "example").cursor == day(1) + 5 * HOUR, "the cursor waits at the hole"


def test_every_partition_is_asked_for_what_is_its_own(home):
    source = Source()
    query = {
        "from": "${window.from|iso}",
        "to": "${window.last|iso}",
        "offset": "${page.offset}",
        "set": "${partition.set}",
    }
    works = an_endpoint(
        request={"query": query},
        partitions={"maths": {"set": "m"}, "physics": {"set": "p"}},
    )
    with upstream(source) as server:
        home.apply(a_pack(server.url, works=works))
        planned = home.plan(a_trigger(start=day(0), end=day(4)))
        home.work(lanes=2)

    assert len(planned.plan_ids) == 2
    assert names(home) == {f"{s}{name}" for s in "mp" for _, name in source.works}
    cursors = home.rows("SELECT namespace_key, normalized_instant FROM ing_cursor")
    assert [read_instant(at) for _, at in cursors] == [day(4), day(4)]


def test_the_past_is_filled_newest_first_and_harvest_goes_on_undisturbed(home):
    with upstream(Source()) as server:
        home.apply(a_pack(server.url))
        home.plan(a_trigger(start=day(3), end=day(4)))
        home.work()
        home.plan(a_trigger(start=day(0), end=day(4), operation=Operation.BACKFILL))
        home.work()

        asked = [one["from"][:10] for one in server.asked if one["offset"] == "0"]
    assert asked == ["2025-09-04", "2025-09-03", "2025-09-02", "2025-09-01"]
    cursors = dict(home.rows("SELECT operation_code, normalized_instant FROM ing_cursor"))
    assert {name: read_instant(at) for name, at in cursors.items()} == {
        "HARVEST": day(4),
        "BACKFILL": day(0),
    }
    directions = dict(home.rows("SELECT operation_code, direction_code FROM ing_cursor_event"))
    assert directions == {"HARVEST": "FORWARD", "BACKFILL": "BACKFILL"}


def test_a_quota_that_is_spent_sends_the_task_into_its_next_window(home):
    works = an_endpoint(paging={"page_size": 5}, rate={"key": "example", "per_second": 1000})
    works["rate"]["quotas"] = [{"limit": 30, "per": "1d"}]
    with upstream(Source()) as server:
        home.apply(a_pack(server.url, works=works))
        home.plan(a_trigger(start=day(0), end=day(2)))  # 2 × 24 works on pages of 5: 10 requests
        home.execute("UPDATE ing_quota_window SET spent_amount = 25 WHERE limit_amount > 0")
        home.work()

        assert len(server.asked) == 5
    spent = home.one("SELECT MAX(spent_amount) FROM ing_quota_window")
    due = [row[0] for row in home.rows("SELECT scheduled_at FROM ing_task ORDER BY id")]
    assert float(spent) == 30
    ends = home.one("SELECT window_to FROM ing_quota_window WHERE spent_amount > 0")
    assert read_instant(due[-1]) == read_instant(ends)
    codes = [row[0] for row in home.rows("SELECT status_code FROM ing_task")]
    assert codes.count("QUEUED") >= 1


def test_the_first_slice_of_a_plan_looks_back_and_owns_no_more_for_it(home):
    works = an_endpoint(window={"lookback": "6h", "overlap": "1h"})
    with upstream(Source()) as server:
        home.apply(a_pack(server.url, works=works))
        home.plan(a_trigger(start=day(1), end=day(3)))
        home.work()

        asked = [one["from"] for one in server.asked if one["offset"] == "0"]
    assert [datetime.fromisoformat(at) for at in asked] == [day(1) - 6 * HOUR, day(2) - HOUR]
    assert end_state(home, "example").cursor == day(3)
    first = home.rows("SELECT window_from FROM ing_plan_slice ORDER BY id")[0][0]
    assert read_instant(first) == day(1)
