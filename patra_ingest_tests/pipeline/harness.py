"""A ledger with its folder, workers in this process and in others, and the state they end in."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import inspect, text

from patra_ingest.clock import SystemClock
from patra_ingest.executor.work import Drained, Order
from patra_ingest.ledger.db import Db, find_instant, read_instant, read_json
from patra_ingest.ledger.tasks import count_open
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Planned, Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import Pack
from patra_ingest.sandbox.process import Sandbox
from patra_ingest.settings import Settings
from patra_ingest.spec.declaration import Overrides
from patra_ingest.wiring import Ingest, open_ingest
from patra_ingest_tests.fakes import wait_until

PATRA = [sys.executable, "-c", "from patra_ingest.cli import main; main()"]
FATES = ("inserted", "updated", "unchanged", "stale", "deleted", "quarantined", "outOfWindow")


@dataclass(frozen=True)
class Home:
    """One ledger and the folder beside it."""

    db: Db
    url: str
    folder: Path

    @contextmanager
    def live(self, name: str | None = None, lease_seconds: float = 60.0) -> Iterator[Ingest]:
        """Open everything in this process."""
        settings = Settings(home=self.folder, db_url=self.url, lease_seconds=lease_seconds)
        with open_ingest(settings, name) as live:
            yield live

    def apply(self, *packs: Pack) -> None:
        """Make the Registry say what the packs say."""
        with self.db.write() as tx:
            for pack in packs:
                apply_pack(tx, pack, self.db.now(tx))

    def plan(self, trigger: Trigger) -> Planned:
        """Plan in this process, at the machine's time."""
        return Planner(self.db, SystemClock()).plan(trigger)

    def work(self, lanes: int = 1, on_batch: Callable[[Any], None] = lambda _: None) -> Drained:
        """Work in this process until nothing is due; tasks due later stay in the queue."""
        with self.live() as live:
            return work_off(live, lanes, on_batch)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process that works on this ledger."""
        own = {"PATRA_HOME": str(self.folder), "PATRA_DB_URL": self.url}
        return {**os.environ, **own, **more}

    @contextmanager
    def worker(self, lanes: int = 1, **env: str) -> Iterator[subprocess.Popen[str]]:
        """Start a worker process that ends when the queue is empty."""
        command = [*PATRA, "work", "--until-empty", f"--lanes={lanes}"]
        process = subprocess.Popen(
            command,
            env=self.environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def rows(self, query: str, **values: Any) -> list[Any]:
        """Return what a query finds."""
        with self.db.read() as tx:
            return list(tx.execute(text(query), values).all())

    def one(self, query: str, **values: Any) -> Any:
        """Return the only value a query finds."""
        ((value,),) = self.rows(query, **values)
        return value

    def execute(self, statement: str, **values: Any) -> int:
        """Change the ledger behind everybody's back; return how many rows it was."""
        with self.db.write() as tx:
            return tx.execute(text(statement), values).rowcount

    def pages_done(self) -> int:
        """Count the pages committed so far."""
        return self.one("SELECT COUNT(*) FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'")

    def pass_leases(self) -> None:
        """Let the lease of every silent worker run out."""
        past = "'2000-01-01 00:00:00.000000'"
        self.execute(f"UPDATE ing_task SET leased_until = {past} WHERE lease_owner > ''")

    def pass_pauses(self) -> None:
        """Let everything that waits in the queue be due."""
        self.execute("UPDATE ing_task SET scheduled_at = NULL WHERE status_code = 'QUEUED'")


def work_off(
    live: Ingest, lanes: int = 1, on_batch: Callable[[Any], None] = lambda _: None
) -> Drained:
    """Run a real worker and stop it as soon as nothing is in work or due."""
    stop, ended = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.03):
            with live.db.read() as tx:
                if count_open(tx, live.db.now(tx)) == 0:
                    stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return live.worker().work(Order(lanes), stop, on_batch)
    finally:
        ended.set()
        watcher.join()


def wipe(db: Db) -> None:
    """Empty a ledger that several tests have shared."""
    with db.write() as tx:
        for table in inspect(tx).get_table_names():
            if "yoyo" not in table:
                forget = text(f"DELETE FROM {table}").execution_options(archiving=True)
                tx.execute(forget)


def end_well(process: subprocess.Popen[str], seconds: float = 60.0) -> str:
    """Wait for a process, insist on exit code 0 and return what it said."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    assert err == ""
    return out


def wait_for_pages(home: Home, pages: int) -> None:
    """Wait until so many pages are committed."""
    wait_until(lambda: home.pages_done() >= pages)


@dataclass(frozen=True)
class EndState:
    """Everything an undisturbed run leaves behind, and nothing that depends on who did it when."""

    records: list[tuple[Any, ...]]
    slices: list[tuple[datetime, datetime, str]]
    tasks: dict[str, int]
    plans: dict[str, int]
    pages: list[tuple[datetime, str, int]]
    fates: dict[str, int]
    cursor: datetime | None
    folded: datetime | None
    certificates: list[tuple[int | None, int, int, str]]


def end_state(home: Home, provenance: str = "sandbox") -> EndState:
    """Read the state a harvest has ended in; nothing may be left open."""
    mine = {"code": provenance}
    for table in ("ing_task_run", "ing_task_run_batch"):
        query = f"SELECT COUNT(*) FROM {table} WHERE provenance_code = :code"
        assert home.one(f"{query} AND status_code IN ('PLANNED', 'RUNNING')", **mine) == 0
    batches = home.rows(
        "SELECT s.window_from, b.before_token, b.stats FROM ing_task_run_batch b"
        " JOIN ing_plan_slice s ON s.id = b.slice_id"
        " WHERE b.status_code = 'SUCCEEDED' AND b.provenance_code = :code",
        **mine,
    )
    stats = [read_json(row.stats) for row in batches]
    proofs = home.rows(
        "SELECT certificate FROM ing_task_run"
        " WHERE status_code = 'SUCCEEDED' AND provenance_code = :code",
        **mine,
    )
    return EndState(
        sorted((row[0], find_instant(row[1]), *row[2:]) for row in home.rows(_RECORDS, **mine)),
        sorted(
            (read_instant(row[0]), read_instant(row[1]), row[2])
            for row in home.rows(_SLICES, **mine)
        ),
        dict(Counter(status for (status,) in home.rows(_TASKS, **mine))),
        dict(Counter(status for (status,) in home.rows(_PLANS, **mine))),
        sorted(
            (read_instant(row.window_from), row.before_token, one["itemsCount"])
            for row, one in zip(batches, stats, strict=True)
        ),
        {fate: sum(one[fate] for one in stats) for fate in FATES},
        find_instant(home.one(_CURSOR, **mine)),
        find_instant(home.one(_EVENTS, **mine)),
        sorted(
            (proof["promised"], proof["landed"], proof["pages"], proof["verdict"])
            for proof in (read_json(row.certificate) for row in proofs)
        ),
    )


_RECORDS = (
    "SELECT provider_id, source_updated_at, content_hash, is_deleted, version FROM ing_record"
    " WHERE provenance_code = :code"
)
_SLICES = (
    "SELECT window_from, window_to, status_code FROM ing_plan_slice WHERE provenance_code = :code"
)
_TASKS = "SELECT status_code FROM ing_task WHERE provenance_code = :code"
_PLANS = "SELECT status_code FROM ing_plan WHERE provenance_code = :code"
_CURSOR = "SELECT MAX(normalized_instant) FROM ing_cursor WHERE provenance_code = :code"
_EVENTS = (
    "SELECT MAX(new_instant) FROM ing_cursor_event"
    " WHERE provenance_code = :code AND reason = 'ADVANCE'"
)


def sandbox_trigger(
    box: Sandbox,
    start: datetime,
    end: datetime | None,
    endpoint: str = "works",
    page_size: int = 20,
) -> Trigger:
    """Return the trigger for a harvest of the sandbox."""
    values = {"request": {"base_url": box.url}, "paging": {"page_size": page_size}}
    return Trigger("sandbox", endpoint, asked=Asked(start, end), overrides=Overrides(values))


def records_of(home: Home, endpoint: str) -> dict[str, datetime]:
    """Return the update time of every record by its id."""
    query = "SELECT provider_id, source_updated_at FROM ing_record WHERE endpoint_name = :name"
    return {row[0]: read_instant(row[1]) for row in home.rows(query, name=endpoint)}


def truth_of(box: Sandbox, start: datetime, end: datetime) -> dict[str, datetime]:
    """Return what the sandbox really has for a window."""
    truth = box.truth(start, end)
    return {name: datetime.fromisoformat(at) for name, at in truth.updated_at.items()}


def asked_again(box: Sandbox) -> int:
    """Count the pages the sandbox had to send more than once; none more than twice."""
    repeated = box.stats()["pages"]["repeated"]
    assert all(times == 2 for times in repeated.values()), repeated
    return len(repeated)


HOUR = timedelta(hours=1)
