"""Planning one window of 10,000 and of 100,000 slices with their tasks: seconds and peak memory.

`python -m bench.planning URL SLICES` plans once, in a process of its own: nothing that was measured
before is in its peak.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.figures import verdict
from bench.ledgers import builtin, fill, mysql_ledger, sqlite_ledger
from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.planner.plan import Planner
from patra_ingest.planner.trigger import Planned, Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.spec.declaration import Overrides

SMALL, LARGE = 10_000, 100_000
MAX_RATIO = 1.3
SOURCE, ENDPOINT = "sandbox", "works"
END = datetime(2025, 9, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
# The queue takes all of them, so that every slice gets its task.
VALUES: Mapping[str, Mapping[str, Any]] = {
    "window": {"max_span": "1h"},
    "planning": {"max_queued": 2 * LARGE},
}
_STATUS = Path("/proc/self/status")

OpenLedger = Callable[[], AbstractContextManager[Db]]


@dataclass(frozen=True)
class Figure:
    """What planning one window took."""

    slices: int
    seconds: float
    start_mib: float
    peak_mib: float

    @property
    def grown_mib(self) -> float:
        """How far planning raised the peak; the interpreter and its modules are not in it."""
        return self.peak_mib - self.start_mib


def measure_planning(folder: Path, mysql_server: str) -> None:
    """Print time and memory on SQLite, and on MySQL when a server is given."""
    if not _STATUS.exists():
        print("\nPlanning: not measured, only Linux tells the peak memory of one process")
        return
    _measure("SQLite", lambda: sqlite_ledger(folder))
    if mysql_server:
        _measure("MySQL", lambda: mysql_ledger(mysql_server))
    else:
        print("\nPlanning on MySQL: not measured, PATRA_TEST_MYSQL_URL is not set")


def _measure(engine: str, open_ledger: OpenLedger) -> None:
    print(f"\nPlanning on {engine}: slices of one hour, each with its task")
    small, large = (_plan_apart(open_ledger, slices) for slices in (SMALL, LARGE))
    for one in (small, large):
        print(
            f"  {one.slices:>7,} slices {one.seconds:8.1f} s {one.slices / one.seconds:7,.0f}/s"
            f"   peak {one.peak_mib:6.1f} MiB, {one.grown_mib:.1f} of them by planning"
        )
    ratio = large.peak_mib / small.peak_mib
    judged = verdict(f"< {MAX_RATIO} ×", ratio < MAX_RATIO)
    print(f"  peak of {LARGE:,} against {SMALL:,}: {ratio:.2f} ×   {judged}")
    grown = large.grown_mib / max(small.grown_mib, 0.1)
    print(f"  planning's own part of it: {grown:.2f} ×")


def _plan_apart(open_ledger: OpenLedger, slices: int) -> Figure:
    """Plan on a fresh ledger in a process of its own."""
    with open_ledger() as db:
        fill(db, [builtin(SOURCE)])
        url = db.engine.url.render_as_string(hide_password=False)
        command = [sys.executable, "-m", "bench.planning", url, str(slices)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Figure(slices, *map(float, said.split()))


def main(url: str, slices: int) -> None:
    """Print the seconds that planning took, and the process's peak MiB before and after it."""
    db = open_db(url)
    planner = Planner(db, SystemClock(), lacking=lambda _spec: [])
    start_mib, began = _peak_mib(), time.perf_counter()
    planned = planner.plan(_trigger(slices))
    seconds = time.perf_counter() - began
    db.close()
    _require_all(planned, slices)
    print(seconds, start_mib, _peak_mib())


def _trigger(slices: int) -> Trigger:
    asked = Asked(END - slices * HOUR, END)
    return Trigger(SOURCE, ENDPOINT, asked=asked, overrides=Overrides(VALUES))


def _require_all(planned: Planned, slices: int) -> None:
    if (planned.slices, planned.queued) != (slices, slices):
        sys.exit(f"{planned.slices} slices and {planned.queued} tasks, not {slices} of each")


def _peak_mib() -> float:
    # Not ru_maxrss: Linux hands a new process the peak of the one that started it.
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next(int(line[1]) / 1024 for line in lines if line[0] == "VmHWM:")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m bench.planning URL SLICES")
    main(sys.argv[1], int(sys.argv[2]))
