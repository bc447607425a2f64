"""A crash is a parameter: die before any statement, start again, and nothing shows it happened."""

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import pytest

from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import open_db
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.wiring import Ingest
from patra_ingest_tests.builders import a_pack, an_endpoint, day
from patra_ingest_tests.fakes import Died, FakeUpstream, dying, upstream
from patra_ingest_tests.pipeline.harness import EndState, Home, end_state, wipe

ITEMS = 15  # two pages of ten

STEPS = {
    "before the task is leased": (1, "UPDATE ing_task SET status_code = 'DISPATCHED'"),
    "before the run is opened": (1, "INSERT INTO ing_task_run ("),
    "while the run is opened": (1, "UPDATE ing_task SET status_code = 'EXECUTING'"),
    "before a batch is started": (2, "INSERT INTO ing_task_run_batch"),
    "after a batch was started": (2, "INSERT INTO ing_rate_permit"),
    "after the request was sent": (2, "DELETE FROM ing_rate_permit"),
    "before the commit": (2, "SELECT provider_id"),
    "before the records of a batch": (2, "INSERT INTO ing_record"),
    "between the records and their batch": (2, "UPDATE ing_task_run_batch"),
    "between the batch and the checkpoint": (2, "UPDATE ing_task_run SET checkpoint"),
    "after the commit of the first batch": (2, "INSERT INTO ing_task_run_batch"),
    "after the last commit, before the finish": (1, "UPDATE ing_task_run SET status_code"),
    "amid the finish": (3, "UPDATE ing_plan_slice SET status_code"),
    "before the plan is completed": (2, "UPDATE ing_plan SET status_code = 'COMPLETED'"),
    "between the finish and the cursor event": (1, "INSERT INTO ing_cursor_event"),
    "between the event and the first cursor": (1, "INSERT INTO ing_cursor ("),
    "between the finish and the next event": (2, "INSERT INTO ing_cursor_event"),
    "between the event and the next cursor": (1, "UPDATE ing_cursor SET"),
}


def works(asked):
    """Answer with the works of the slice that was asked for, by offset."""
    offset, start = int(asked["offset"]), asked["from"]
    numbers = range(offset, min(offset + 10, ITEMS))
    items = [{"id": f"{start}/{n}", "updated": start, "title": f"On {n}"} for n in numbers]
    return 200, {"items": items, "total": ITEMS}


@pytest.fixture(scope="module")
def source():
    with upstream(works) as server:
        yield server


@dataclass
class Twins:
    """Sources that differ in nothing but their name: one ledger serves any number of tries."""

    home: Home
    live: Ingest
    source: FakeUpstream
    expected: EndState | None = None

    def register(self, name: str) -> Trigger:
        pack = a_pack(self.source.url, works=an_endpoint(request={"path": f"/{name}"}))
        provenance = pack.provenance.model_copy(update={"code": name})
        rate = pack.rate.model_copy(update={"in_flight": 100})
        self.home.apply(pack.model_copy(update={"provenance": provenance, "rate": rate}))
        return Trigger(name, "works", asked=Asked(day(0), day(2)))

    def plan(self, name: str) -> None:
        self.live.planner.plan(self.register(name))

    def work(self, reason=lambda _: False) -> list[str]:
        with dying(self.live.db, reason) as seen:
            self.live.worker().work(Order(until_empty=True), threading.Event(), lambda _: None)
        return seen

    def die(self, name: str, reason) -> None:
        """Plan, work until death, and work again."""
        self.plan(name)
        with pytest.raises(Died):
            self.work(reason)
        self.home.pass_leases()
        self.work()

    def check(self, name: str) -> None:
        assert end_state(self.home, name) == self.expected
        mine = [asked for asked in self.source.asked if asked["path"] == f"/{name}"]
        pages = Counter((asked["from"], asked["offset"]) for asked in mine)
        assert len(pages) == 4
        assert pages.total() <= 5, "at most the page in flight is asked for again"


@contextmanager
def twins_on(db, url, folder, source, expected=None):
    source.asked.clear()
    home = Home(db, url, folder)
    with home.live() as live:
        yield Twins(home, live, source, expected)


@pytest.fixture(scope="module")
def expected(sqlite_template, tmp_path_factory, source):
    """What an undisturbed twin ends in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "ledger.db").write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{folder / 'ledger.db'}"
    db = open_db(url)
    with twins_on(db, url, folder, source) as twins:
        twins.plan("undisturbed")
        twins.work()
        ended = end_state(twins.home, "undisturbed")
    db.close()
    assert len(ended.records) == 2 * ITEMS
    return ended


@pytest.fixture(scope="module", params=["sqlite", "mysql"])
def twins(request, tmp_path_factory, source, expected):
    """One ledger for all tests of this module."""
    folder = tmp_path_factory.mktemp("twins")
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        (folder / "ledger.db").write_bytes(template.read_bytes())
        url = f"sqlite:///{folder / 'ledger.db'}"
    else:
        url = request.getfixturevalue("mysql_ledger")
    db = open_db(url)
    with twins_on(db, url, folder, source, expected) as twins:
        yield twins
    wipe(db)
    db.close()


def nth(number, start):
    """Return a reason to die at the n-th statement that begins like this."""
    numbers = count(1)
    return lambda statement: statement.startswith(start) and next(numbers) == number


WRITE = ("INSERT", "UPDATE", "DELETE")


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_leaves_no_trace(twins, step):
    name = step.replace(" ", "-").replace(",", "")

    twins.die(name, nth(*STEPS[step]))

    twins.check(name)


def test_a_crash_before_any_write_of_a_harvest_leaves_no_trace(
    sqlite_db, sqlite_url, tmp_path, source, expected
):
    with twins_on(sqlite_db, sqlite_url, tmp_path / "home", source, expected) as twins:
        for name in ("first", "counted"):  # the first makes the bucket that the others find
            twins.plan(name)
            writes = sum(statement.startswith(WRITE) for statement in twins.work())
        assert writes > 50
        for number in range(1, writes + 1, 2):  # the steps above stand on the others
            twins.die(f"victim-{number}", nth(number, WRITE))
            twins.check(f"victim-{number}")


def test_two_crashes_in_a_row_leave_no_trace(twins):
    twins.plan("victim-twice")
    for _ in range(2):
        with pytest.raises(Died):
            twins.work(nth(1, "UPDATE ing_task_run_batch SET status_code = 'SUCCEEDED'"))
        twins.home.pass_leases()
    twins.work()

    assert end_state(twins.home, "victim-twice") == twins.expected


def test_a_planner_that_dies_leaves_a_plan_that_the_same_trigger_completes(twins):
    def plan(trigger, reason):
        with dying(twins.live.db, reason) as seen:
            twins.live.planner.plan(trigger)
        return seen

    writes = sum(s.startswith(WRITE) for s in plan(twins.register("planned"), lambda _: False))
    for number in range(1, writes + 1):
        trigger = twins.register(f"unplanned-{number}")
        with pytest.raises(Died):
            plan(trigger, nth(number, WRITE))
        twins.live.planner.plan(trigger)
    twins.work()

    assert writes >= 6
    for number in range(1, writes + 1):
        twins.check(f"unplanned-{number}")
