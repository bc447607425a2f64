"""Leases while a worker lives: a slow page costs nothing, and nobody waits for the living."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from patra_ingest.errors import PersonMustAct
from patra_ingest.executor.work import Order
from patra_ingest_tests.builders import a_pack, a_trigger, an_item, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, end_state


def slowly(asked):
    time.sleep(2.6)
    return 200, {"items": [an_item("a", updated=asked["from"])], "total": 1}


def test_a_page_slower_than_the_lease_does_not_cost_the_task(db, db_url, tmp_path):
    home = Home(db, db_url, tmp_path / "home")

    def work(name):
        with home.live(name, lease_seconds=1.2) as live:
            order = Order(until_empty=True)
            return live.worker().work(order, threading.Event(), lambda _: None).tasks

    with upstream(slowly) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(work, ["one", "other"]))

        assert len(source.asked) == 1
    assert sum(ends, start=ends[0] - ends[0]) == {"SUCCEEDED": 1}
    assert home.one("SELECT COUNT(*) FROM ing_task_run") == 1
    assert home.one("SELECT lease_count FROM ing_task") > 1, "the lease was renewed"
    assert end_state(home, "example").cursor == day(1)


def test_a_task_that_cannot_even_begin_does_not_stop_the_worker(db, db_url, tmp_path):
    """The plan of one task is gone; what the worker makes of it must not hurt the others."""
    home = Home(db, db_url, tmp_path / "home")
    with upstream(lambda a: (200, {"items": [an_item("a", a["from"])], "total": 1})) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.plan(a_trigger(start=day(1), end=day(2)))
        home.execute("UPDATE ing_plan SET spec_snapshot = '{}' WHERE id = 1")

        drained = home.work()

    assert drained.tasks == {"FAILED": 1, "SUCCEEDED": 1}
    assert home.one("SELECT status_code FROM ing_plan_slice WHERE plan_id = 1") == "FAILED"


def test_a_disk_in_trouble_is_no_fault_of_the_task(db, db_url, tmp_path):
    home = Home(db, db_url, tmp_path / "home")
    home.folder.mkdir()
    (home.folder / "raw").write_text("no folder")
    with upstream(lambda a: (200, {"items": [an_item("a", a["from"])], "total": 1})) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))

        with pytest.raises(PersonMustAct, match="A response body cannot be kept"):
            home.work()

        task = home.rows("SELECT status_code, retry_count, lease_owner FROM ing_task")[0]
        assert tuple(task) == ("QUEUED", 0, None)
        assert home.one("SELECT COUNT(*) FROM ing_record") == 0
        (home.folder / "raw").unlink()
        assert home.work().tasks == {"SUCCEEDED": 1}
