"""What the tests of the sandbox's habits share: a world, harvests, and the ledger as one value."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import find_instant, read_instant, read_json
from patra_ingest.ledger.holds import list_holds, resume
from patra_ingest.ledger.tasks import count_open
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.pack import Pack
from patra_ingest.sandbox.process import Sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.fakes import Died, dying
from patra_ingest_tests.pipeline.harness import Home

# Six days of a hundred works each; New York puts its clocks back on the fourth of them.
START = datetime(2025, 10, 30, tzinfo=UTC)
WORLD = World(records=600, start=START, days=6, seed=7)
END = START + timedelta(days=6)


def at(days: float) -> datetime:
    """Return the instant so many days after the world begins."""
    return START + timedelta(days=days)


@dataclass(frozen=True)
class Held:
    """What somebody holds to be there: live ids, their versions and times, deleted ids."""

    versions: dict[str, Any]
    times: dict[str, datetime]
    titles: dict[str, str]
    deleted: frozenset[str]


@dataclass(frozen=True)
class Drill:
    """One pack against one sandbox, in one ledger."""

    home: Home
    box: Sandbox
    pack: Pack

    @property
    def code(self) -> str:
        """The source's name in the ledger."""
        return self.pack.provenance.code

    def plan(self, endpoint: str, start: datetime = START, end: datetime = END) -> None:
        """Plan what is not harvested yet of a window."""
        self.home.plan(Trigger(self.code, endpoint, asked=Asked(start, end)))

    def harvest(
        self,
        endpoint: str,
        start: datetime = START,
        end: datetime = END,
        lanes: int = 1,
        on_batch: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Plan a window and work until nothing is left but what failed for good."""
        self.plan(endpoint, start, end)
        self.work_on(lanes, on_batch)

    def work_on(self, lanes: int = 1, on_batch: Callable[[Any], None] = lambda _: None) -> None:
        """Work until nothing can be worked on: pauses pass, and re-slices are answered."""
        for _ in range(12):
            self.home.work(lanes, on_batch)
            with self.home.live() as live:
                live.planner.reslice(self.code)
            self.home.pass_pauses()
            with self.home.db.read() as tx:
                if count_open(tx, self.home.db.now(tx)) == 0:
                    return
        raise AssertionError(f"{self.code} does not come to an end: {self.errors()}")

    def ledger(self, endpoint: str) -> Held:
        """Return what the ledger holds."""
        rows = self.home.rows(_RECORDS, code=self.code, name=endpoint)
        live = {row.provider_id: row for row in rows if not row.is_deleted}
        fields = {name: read_json(row.fields) for name, row in live.items()}
        times = {name: find_instant(row.source_updated_at) for name, row in live.items()}
        return Held(
            {name: own.get("version", 1) for name, own in fields.items()},
            {name: time for name, time in times.items() if time is not None},
            {name: own["title"] for name, own in fields.items()},
            frozenset(row.provider_id for row in rows if row.is_deleted),
        )

    def truth(self, face: str, start: datetime = START, end: datetime = END) -> Held:
        """Return what the sandbox really has."""
        told = self.box.truth(start, end, face)
        if face == "works":
            told_times = {name: datetime.fromisoformat(t) for name, t in told.updated_at.items()}
            return Held(dict.fromkeys(told.ids, 1), told_times, {}, frozenset())
        return Held(
            dict(told.versions),
            {name: datetime.fromisoformat(time) for name, time in told.updated_at.items()},
            dict(told.titles),
            frozenset(told.deleted),
        )

    def ledger_up_to(self, endpoint: str, end: datetime) -> Held:
        """Return what the ledger holds of the records stamped before `end`."""
        rows = self.home.rows(_RECORDS, code=self.code, name=endpoint)
        early = {row.provider_id for row in rows if read_instant(row.source_updated_at) < end}
        whole = self.ledger(endpoint)
        return Held(
            {name: value for name, value in whole.versions.items() if name in early},
            {name: value for name, value in whole.times.items() if name in early},
            {name: value for name, value in whole.titles.items() if name in early},
            whole.deleted & early,
        )

    def proofs(self, endpoint: str) -> list[dict[str, Any]]:
        """Return the certificates of the runs that succeeded."""
        rows = self.home.rows(_RUNS, code=self.code, name=endpoint, status="SUCCEEDED")
        return [read_json(row.certificate) for row in rows]

    def failed_runs(self, endpoint: str) -> int:
        """Count the runs that failed."""
        return len(self.home.rows(_RUNS, code=self.code, name=endpoint, status="FAILED"))

    def was_cut(self, endpoint: str) -> bool:
        """Say whether a slice was cut again."""
        query = f"SELECT COUNT(*) FROM ing_plan_slice WHERE {_OF} AND parent_slice_id IS NOT NULL"
        return bool(self.home.one(query, code=self.code, name=endpoint))

    def tasks(self, endpoint: str) -> dict[str, int]:
        """Return how many tasks ended how."""
        return dict(Counter(row.status_code for row in self._tasks(endpoint)))

    def codes(self, endpoint: str) -> set[str]:
        """Return the codes of what failed."""
        failed = (row for row in self._tasks(endpoint) if row.status_code == "FAILED")
        return {row.last_error_code for row in failed}

    def due(self, endpoint: str) -> datetime:
        """Return when the only task is due again."""
        (task,) = self._tasks(endpoint)
        return read_instant(task.scheduled_at)

    def _tasks(self, endpoint: str) -> list[Any]:
        return self.home.rows(f"SELECT * FROM ing_task WHERE {_OF}", code=self.code, name=endpoint)

    def errors(self) -> list[str]:
        """Return what the tasks died of."""
        return [row[0] for row in self.home.rows(_ERRORS, code=self.code)]

    def cursor(self, endpoint: str) -> datetime | None:
        """Return how far the harvest is proved."""
        query = f"SELECT MAX(normalized_instant) FROM ing_cursor WHERE {_OF}"
        return find_instant(self.home.one(query, code=self.code, name=endpoint))

    def listed_ids(self) -> set[str]:
        """Return the ids that were put aside because nothing came of them."""
        query = "SELECT provider_id FROM ing_quarantine WHERE provenance_code = :code"
        return {row[0] for row in self.home.rows(query, code=self.code)}

    def holds(self) -> list[str]:
        """Return the reasons why the source is held."""
        with self.home.db.read() as tx:
            return [hold.reason for hold in list_holds(tx, self.code)]

    def resume(self) -> None:
        """Be the person who has looked."""
        with self.home.db.write() as tx:
            resume(tx, self.code, None, "a person", self.home.db.now(tx))

    def pass_silence(self) -> None:
        """Let the time pass that the source asked for."""
        self.home.execute("UPDATE ing_rate_bucket SET cool_down_until = NULL")
        self.home.pass_pauses()

    def crash_after(self, pages: int) -> None:
        """Work, and die after the page after these has come and before it is written."""
        seen = count(1)

        def reason(statement: str) -> bool:
            return statement.startswith("INSERT INTO ing_record") and next(seen) > pages

        with self.home.live() as live, dying(live.db, reason), pytest.raises(Died):
            live.worker().work(Order(until_empty=True), threading.Event(), lambda _: None)


def assert_same(found: Held, true: Held) -> None:
    """Insist that the ledger is the truth: ids, versions, deletes, and what else both tell."""
    assert found.versions == true.versions
    assert found.times == true.times
    assert found.deleted == true.deleted
    if true.titles:
        assert found.titles == true.titles


_OF = "provenance_code = :code AND endpoint_name = :name"
_RECORDS = f"SELECT * FROM ing_record WHERE {_OF}"
_RUNS = f"SELECT certificate FROM ing_task_run WHERE status_code = :status AND {_OF}"
_ERRORS = "SELECT last_error_msg FROM ing_task WHERE provenance_code = :code"
