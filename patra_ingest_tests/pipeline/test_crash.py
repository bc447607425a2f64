"""A crash is a parameter: die at any named step, start again, and nothing shows it happened."""

import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from patra_ingest.errors import PersonMustAct
from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import open_db
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.wiring import Ingest
from patra_ingest_tests.builders import day
from patra_ingest_tests.fakes import Died, FakeUpstream, upstream
from patra_ingest_tests.pipeline.crashes import (
    NO_DEATH,
    Call,
    Commit,
    Death,
    Statement,
    fated,
    library,
    library_pack,
    place_of,
    traces,
)
from patra_ingest_tests.pipeline.harness import Home, wipe

BATCH = "INSERT INTO ing_task_run_batch"
RUN = "patra_ingest.executor.run_batch"
GATE = "patra_ingest.rate.gate.RateGate"
SEND = "patra_ingest.transport.client.Transport.send"
PUT = "patra_ingest.rawstore.store.RawStore.put"

# In this order: found (a search, two details, a search, details with a second question), then two
# days of works, two pages each: nine batches, ten requests.
AROUND = {
    "before the task is leased": Statement(1, "UPDATE ing_task SET status_code = 'DISPATCHED'"),
    "before the run is opened": Statement(1, "INSERT INTO ing_task_run ("),
    "while the run is opened": Statement(1, "UPDATE ing_task SET status_code = 'EXECUTING'"),
    "before a batch is started": Statement(2, BATCH),
    "after a batch was started": Call(3, f"{RUN}.BatchRunner.start"),
    "before the permit": Call(7, f"{GATE}.acquire_all", after=False),
    "before the request leaves": Call(7, SEND, after=False),
    "when the response arrives": Call(7, SEND),
    "before the permit is given back": Call(7, f"{GATE}.release", after=False),
    "before the raw body is stored": Call(7, PUT, after=False),
    "after the raw body was stored": Call(7, PUT),
    "after the decoding": Call(7, "patra_ingest.executor.exchange.decode"),
    "after the mapping": Call(6, "patra_ingest.executor.turning.map_items"),
    "after the page decision": Call(3, "patra_ingest.executor.turning.next_page"),
    "before the commit": Call(6, f"{RUN}.BatchRunner.commit", after=False),
    "between a batch and the next": Call(6, f"{RUN}.BatchRunner.commit"),
    "between the search and its details": Call(1, f"{RUN}.BatchRunner.commit"),
    "while the first details are asked for": Call(2, SEND),
    "between two details": Call(2, f"{RUN}.BatchRunner.commit"),
    "after the ids were reconciled": Call(2, "patra_ingest.executor.ask_ids.reconcile"),
    "between the question for lost ids and its repetition": Call(5, SEND),
    "after the repeated question": Call(6, SEND),
    "after the details were turned": Call(3, f"{RUN}.turn_ids"),
    "between the details and the next search": Call(3, f"{RUN}.BatchRunner.commit"),
    "before the certificate": Call(2, "patra_ingest.executor.execute.certify", after=False),
    "after the certificate": Call(2, "patra_ingest.executor.execute.certify"),
    "before the finish": Statement(2, "UPDATE ing_task_run SET status_code"),
    "amid the finish": Statement(6, "UPDATE ing_plan_slice SET status_code"),
    "before the plan is completed": Statement(3, "UPDATE ing_plan SET status_code = 'COMPLETED'"),
    "between the finish and the cursor event": Statement(1, "INSERT INTO ing_cursor_event"),
    "between the event and the first cursor": Statement(1, "INSERT INTO ing_cursor ("),
    "between the finish and the next event": Statement(3, "INSERT INTO ing_cursor_event"),
    "between the event and the next cursor": Statement(1, "UPDATE ing_cursor SET"),
}

WITHIN = {
    "before the lease is required": Statement(12, "UPDATE ing_task SET last_heartbeat_at"),
    "before the records are compared": Statement(3, "SELECT provider_id"),
    "before the records of details": Statement(1, "INSERT INTO ing_record"),
    "before the records of a page": Statement(4, "INSERT INTO ing_record"),
    "before the changed records": Statement(7, "INSERT INTO ing_record"),
    "before the deleted record": Statement(9, "INSERT INTO ing_record"),
    "between the records and the outbox": Statement(3, "INSERT INTO ing_outbox_message"),
    "between the outbox and the quarantine": Statement(3, "INSERT INTO ing_quarantine"),
    "before the quarantine of a lost id": Statement(2, "INSERT INTO ing_quarantine"),
    "between the records and their batch": Statement(
        6, "UPDATE ing_task_run_batch SET status_code = 'SUCCEEDED'"
    ),
    "between the batch and the checkpoint": Statement(7, "UPDATE ing_task_run SET checkpoint"),
    "before the commit of a search is sent": Commit(1, "unsent"),
    "before the commit of a page is sent": Commit(9, "unsent"),
    "after the commit of a search": Commit(4, "died"),
    "after the commit of details": Commit(3, "died"),
    "after the commit of a page": Commit(6, "died"),
    "after the last commit": Commit(9, "died"),
}
STEPS = {**AROUND, **WITHIN}
LANES = [("sqlite", step) for step in STEPS] + [("mysql", step) for step in WITHIN]
WRITE = ("INSERT", "UPDATE", "DELETE")


@pytest.fixture(scope="module")
def source():
    with upstream(library) as server:
        yield server


@dataclass
class Twins:
    """Sources that differ in nothing but their name: one ledger serves any number of tries."""

    home: Home
    live: Ingest
    source: FakeUpstream
    expected: dict[str, Any] = field(default_factory=dict)
    usual: Counter[Any] = field(default_factory=Counter)

    def register(self, name: str) -> list[Trigger]:
        self.home.apply(library_pack(self.source.url, name))
        ends = {"found": day(1), "works": day(2)}
        return [Trigger(name, one, asked=Asked(day(0), end)) for one, end in ends.items()]

    def plan(self, name: str) -> None:
        for trigger in self.register(name):
            self.live.planner.plan(trigger)

    def work(self, death: Death = NO_DEATH) -> list[str]:
        with fated(self.live.db, death) as seen:
            self.live.worker().work(Order(until_empty=True), threading.Event(), lambda _: None)
        return seen

    def die(self, name: str, death: Death) -> None:
        """Plan, work until death, and work again."""
        self.plan(name)
        with pytest.raises(Died):
            self.work(death)
        self.home.pass_leases()
        self.work()

    def places(self, name: str) -> Counter[Any]:
        """Return how often each batch of a source was asked for."""
        mine = [asked for asked in self.source.asked if asked["path"].split("/")[1] == name]
        return Counter(place_of(asked) for asked in mine)

    def check(self, name: str, at_most: int = 1) -> None:
        assert traces(self.home, name) == self.expected
        places = self.places(name)
        assert places.keys() == self.usual.keys()
        again = {place for place, times in places.items() if times > self.usual[place]}
        assert len(again) <= at_most, f"asked for again: {again}"
        assert all(places[place] <= 2 * self.usual[place] for place in again)


@contextmanager
def twins_on(db, url, folder, source, undisturbed=None):
    source.asked.clear()
    home = Home(db, url, folder)
    with home.live() as live:
        yield Twins(home, live, source, *(undisturbed or ()))


@pytest.fixture(scope="module")
def undisturbed(sqlite_template, tmp_path_factory, source):
    """What an undisturbed twin ends in, and how often it asks for each batch."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "ledger.db").write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{folder / 'ledger.db'}"
    db = open_db(url)
    with twins_on(db, url, folder, source) as twins:
        twins.plan("undisturbed")
        twins.work()
        ended, places = traces(twins.home, "undisturbed"), twins.places("undisturbed")
    db.close()
    return ended, places


def test_the_harvest_that_is_disturbed_has_something_of_everything(undisturbed):
    ended, places = undisturbed
    fates = ended["state"].fates

    assert {fate for fate, times in fates.items() if times} == {
        "inserted",
        "updated",
        "deleted",
        "quarantined",
    }
    assert [one["phase"] for one in ended["batches"]] == [
        *("SEARCH", "DETAIL", "DETAIL", "SEARCH", "DETAIL"),
        *(None, None, None, None),
    ]
    assert len(ended["quarantine"]) == fates["quarantined"] + 1, "and the id that is not there"
    assert len(ended["outbox"]) == fates["inserted"] + fates["updated"] + fates["deleted"]
    assert places.total() == len(ended["batches"]) + 1, "the lost id is asked for twice"


@pytest.fixture(scope="module")
def twins(request, tmp_path_factory, source, undisturbed):
    """One ledger for all tests of this module."""
    folder = tmp_path_factory.mktemp("twins")
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        (folder / "ledger.db").write_bytes(template.read_bytes())
        url = f"sqlite:///{folder / 'ledger.db'}"
    else:
        url = request.getfixturevalue("mysql_ledger")
    db = open_db(url)
    with twins_on(db, url, folder, source, undisturbed) as twins:
        yield twins
    wipe(db)
    db.close()


both = pytest.mark.parametrize("twins", ["sqlite", "mysql"], indirect=True)


@pytest.mark.parametrize(("twins", "step"), LANES, indirect=["twins"])
def test_a_crash_leaves_no_trace(twins, step):
    name = step.replace(" ", "-").replace(",", "")[:40]

    twins.die(name, STEPS[step])

    twins.check(name)


@both
@pytest.mark.parametrize("number", [1, 3, 6, 9])
def test_a_commit_whose_answer_says_busy_is_not_repeated(twins, number):
    twins.plan(f"busy-{number}")

    twins.work(Commit(number, "busy"))

    twins.check(f"busy-{number}", at_most=0)


@both
@pytest.mark.parametrize("number", [1, 3, 6, 9])
def test_a_commit_whose_answer_is_lost_is_not_repeated(twins, number):
    twins.plan(f"lost-{number}")
    with suppress(PersonMustAct):  # whether the worker survives is not the point
        twins.work(Commit(number, "lost"))
    twins.home.pass_leases()
    twins.work()

    twins.check(f"lost-{number}", at_most=0)


def test_a_crash_before_any_write_of_a_harvest_leaves_no_trace(
    sqlite_db, sqlite_url, tmp_path, source, undisturbed
):
    with twins_on(sqlite_db, sqlite_url, tmp_path / "home", source, undisturbed) as twins:
        twins.plan("counted")
        writes = sum(statement.startswith(WRITE) for statement in twins.work())
        assert writes > 100
        for number in range(1, writes + 1, 7):  # the steps above stand on the others
            twins.die(f"victim-{number}", Statement(number, WRITE))
            twins.check(f"victim-{number}")


@both
def test_two_crashes_in_a_row_leave_no_trace(twins):
    twins.plan("victim-twice")
    for number in (2, 4):
        with pytest.raises(Died):
            twins.work(Statement(number, "UPDATE ing_task_run_batch SET status_code = 'SUCCEEDED'"))
        twins.home.pass_leases()
    twins.work()

    twins.check("victim-twice", at_most=2)


@both
def test_a_planner_that_dies_leaves_a_plan_that_the_same_trigger_completes(twins):
    def plan(trigger, death=NO_DEATH):
        with fated(twins.live.db, death) as seen:
            twins.live.planner.plan(trigger)
        return seen

    found, works = twins.register("planned")
    plan(found)
    writes = sum(statement.startswith(WRITE) for statement in plan(works))
    for number in range(1, writes + 1):
        found, works = twins.register(f"unplanned-{number}")
        plan(found)
        with pytest.raises(Died):
            plan(works, Statement(number, WRITE))
        plan(works)
    twins.work()

    assert writes >= 6
    for number in range(1, writes + 1):
        twins.check(f"unplanned-{number}")
