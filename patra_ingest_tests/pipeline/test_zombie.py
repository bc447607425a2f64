"""A worker whose task was taken over writes nothing more: no batch, no record, no cursor."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.execute import TaskExecutor
from patra_ingest.executor.run_batch import BatchRunner
from patra_ingest.ledger.leases import lease_tasks
from patra_ingest.ledger.slices import follow_task
from patra_ingest.model.codes import SliceStatus
from patra_ingest_tests.builders import a_pack, a_trigger, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, end_state

TABLES = ("ing_record", "ing_task_run_batch", "ing_cursor", "ing_cursor_event", "ing_quarantine")
THEFT = "UPDATE ing_task SET lease_owner = 'thief/1#0', leased_until = leased_until"


class Thief:
    """Takes the task over at a moment of the test's choice, and remembers how things stood."""

    def __init__(self, home: Home, moment: str) -> None:
        self.home, self.moment, self.seen = home, moment, None

    def come(self, moment: str) -> None:
        if moment == self.moment and self.seen is None:
            self.home.execute(THEFT)
            self.seen = everything(self.home)


class WatchedTransport:
    """The real transport; the thief may come while the answer is on its way."""

    def __init__(self, transport, thief):
        self.transport, self.thief, self.sent = transport, thief, 0

    def prepare(self, request):
        self.transport.prepare(request)

    def send(self, request, permit):
        response = self.transport.send(request, permit)
        self.sent += 1
        self.thief.come(f"while request {self.sent} is answered")
        return response


def works(asked):
    offset = int(asked["offset"])
    items = [
        {"id": n, "updated": asked["from"], "title": None if n == 13 else f"On {n}"}
        for n in range(offset, min(offset + 10, 25))
    ]
    return 200, {"items": items, "total": 25}


def everything(home):
    counts = {table: home.one(f"SELECT COUNT(*) FROM {table}") for table in TABLES}
    done = home.one("SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'")
    owner = home.one("SELECT lease_owner FROM ing_task")
    return counts, done, owner, home.one("SELECT status_code FROM ing_task")


@pytest.mark.parametrize(
    ("moment", "pages"),
    [
        ("while request 1 is answered", 0),
        ("while request 2 is answered", 1),
        ("after batch 1", 1),
        ("while request 3 is answered", 2),
        ("after batch 3", 3),
    ],
)
def test_a_zombie_writes_nothing_more(db, db_url, tmp_path, moment, pages):
    home = Home(db, db_url, tmp_path / "home")
    thief = Thief(home, moment)
    batches = iter(range(1, 9))
    with upstream(works) as source, home.live() as live:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        transport = WatchedTransport(live.transport, thief)
        reached = replace(live.upstream(), transport=transport)
        runner = BatchRunner(live.db, live.clock, reached)
        executor = TaskExecutor(live.db, live.clock, runner, live.cursors)
        with live.db.write() as tx:
            now = live.db.now(tx)
            (lease,) = lease_tasks(tx, "zombie/1#0", 1, now, timedelta(minutes=1))
            follow_task(tx, lease.slice_id, SliceStatus.DISPATCHED, now)

        end = executor.execute(
            lease, threading.Event(), lambda _: thief.come(f"after batch {next(batches)}")
        )

        assert end == TaskEnd.LEASE_LOST
        assert everything(home) == thief.seen
        assert home.pages_done() == pages
        assert home.one("SELECT COUNT(*) FROM ing_record") == (0, 10, 19, 24)[pages]
        assert home.one("SELECT COUNT(*) FROM ing_cursor") == 0

        home.pass_leases()
        home.work()

        ended = end_state(home, "example")
        assert (ended.tasks, ended.cursor) == ({"SUCCEEDED": 1}, day(1))
        assert (len(ended.records), len(ended.pages)) == (24, 3)
        assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 1
