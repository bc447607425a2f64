"""A failed slice is a hole: the cursor waits before it, and a new plan fills only the hole."""

import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import read_instant
from patra_ingest.planner.plan import Planner
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, day, days
from patra_ingest_tests.fakes import FakeClock, upstream
from patra_ingest_tests.pipeline.harness import Home, end_state


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


class Source:
    """Three works a day; what is asked for on a bad day is refused."""

    def __init__(self, bad=()):
        self.bad = set(bad)

    def __call__(self, asked):
        number = int(asked["from"][8:10]) - 1
        if number in self.bad:
            return 400, {"message": "not today"}
        names = [f"{number}/{n}" for n in range(3)]
        items = [an_item(name, updated=asked["from"]) for name in names]
        return 200, {"items": items, "total": 3}


def cursor(home):
    return end_state(home, "example").cursor


def windows(home, plan_id):
    query = "SELECT window_from, window_to FROM ing_plan_slice WHERE plan_id = :id ORDER BY id"
    return [tuple(map(read_instant, row)) for row in home.rows(query, id=plan_id)]


def spans(*numbers):
    return [(days(n, n + 1).start, days(n, n + 1).end) for n in numbers]


def test_the_cursor_waits_before_a_hole_and_passes_when_it_is_filled(home):
    source = Source(bad={2})
    with upstream(source) as server:
        home.apply(a_pack(server.url))
        home.plan(a_trigger(start=day(0), end=day(5)))
        home.work()

        assert cursor(home) == day(2), "three later slices are done, and it still waits"

        source.bad.clear()
        server.asked.clear()
        refill = home.plan(a_trigger(end=day(6)))

        assert windows(home, refill.plan_id) == spans(2, 5)

        home.work()

    ended = end_state(home, "example")
    assert (ended.cursor, ended.folded) == (day(6), day(6))
    assert len(ended.records) == 6 * 3
    assert len(server.asked) == 2, "only the hole and the new day are asked for"


def test_a_hole_can_be_filled_by_asking_for_the_same_window_again(home):
    source = Source(bad={1})
    with upstream(source) as server:
        home.apply(a_pack(server.url))
        home.plan(a_trigger(start=day(0), end=day(3)))
        home.work()
        source.bad.clear()

        refill = home.plan(a_trigger(start=day(0), end=day(3)))

        assert refill.slices == 1
        assert windows(home, refill.plan_id) == spans(1)
        home.work()
    assert cursor(home) == day(3)


def test_a_hole_may_be_refilled_more_than_once(home):
    source = Source(bad={0})
    with upstream(source) as server:
        home.apply(a_pack(server.url))
        for last in (1, 2, 3):
            home.plan(a_trigger(start=day(0), end=day(last)))
            home.work()
            assert cursor(home) is None
        source.bad.clear()
        home.plan(a_trigger(start=day(0), end=day(4)))
        home.work()

    assert cursor(home) == day(4)


def test_a_change_of_the_registry_does_not_reach_a_running_plan(home):
    with upstream(Source()) as before, upstream(Source()) as after:
        home.apply(a_pack(before.url))
        home.plan(a_trigger(start=day(0), end=day(2)))
        renamed = an_endpoint(request={"path": "/elsewhere"}, fields={"name": "$.title"})
        home.apply(a_pack(after.url, works=renamed))

        home.work()

        assert (len(before.asked), len(after.asked)) == (2, 0)
        assert {asked["path"] for asked in before.asked} == {"/works"}
        first = home.rows("SELECT fields FROM ing_record")[0][0]
        assert '"title"' in first

        home.plan(a_trigger(start=day(2), end=day(3)))
        home.work()

        assert [asked["path"] for asked in after.asked] == ["/elsewhere"]


def test_a_source_removed_from_the_registry_still_finishes_its_plan(home):
    with upstream(Source()) as server:
        home.apply(a_pack(server.url))
        home.plan(a_trigger(start=day(0), end=day(2)))
        for table in ("reg_provenance", "reg_prov_endpoint_def", "reg_prov_pagination_cfg"):
            home.execute(f"DELETE FROM {table}")

        home.work()

    assert cursor(home) == day(2)


def test_the_next_harvest_begins_at_the_cursor_and_keeps_its_distance_from_now(home):
    clock = FakeClock(day(4))
    planner = Planner(home.db, clock)
    with upstream(Source()) as server:
        home.apply(a_pack(server.url))
        home.execute(
            "UPDATE reg_prov_endpoint_def SET effective_from = '2020-01-01 00:00:00.000000'"
        )
        for table in ("pagination", "window_offset", "http", "retry", "rate_limit"):
            home.execute(
                f"UPDATE reg_prov_{table}_cfg SET effective_from = '2020-01-01 00:00:00.000000'"
            )
        first = planner.plan(a_trigger(start=day(0)))
        home.work()
        clock.at = day(5)
        again = planner.plan(a_trigger())

    assert windows(home, first.plan_id) == spans(0, 1, 2), "one day of safety lag"
    assert windows(home, again.plan_id) == spans(3)
    assert SystemClock().now() > day(5)


def test_slices_in_work_are_not_planned_again(home):
    home.apply(a_pack())
    first = home.plan(a_trigger(start=day(0), end=day(3)))
    second = home.plan(a_trigger(start=day(1), end=day(5)))
    third = home.plan(a_trigger(start=day(0), end=day(5)))

    assert windows(home, first.plan_id) == spans(0, 1, 2)
    assert windows(home, second.plan_id) == spans(3, 4)
    assert (third.plan_id, third.slices) == (None, 0)
