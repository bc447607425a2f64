"""Records per second through the whole engine, and through a loop that does the least possible.

Each runs in a process of its own, as a worker and a script of somebody's do, and counts when warm:
the second of two harvests. `python -m bench.harvest URL FOLDER LANES DB_URL…` is the engine's.
"""

import os
import statistics
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from bench.bare import PAGE, run_bare
from bench.ledgers import fresh_mysql
from patra_ingest.cli.setup import prepare
from patra_ingest.executor.work import Order
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest.spec.declaration import Overrides
from patra_ingest.wiring import open_ingest

RECORDS = 20_000
DAYS = 8
START = datetime(2026, 1, 1, tzinfo=UTC)
REPEATS = 3
PAIRS = 7
LATENCY_MS = 50.0
MANY = int(os.environ.get("BENCH_RECORDS", "100000"))


def engine(url, folder, db_url, lanes, records=RECORDS, page_size=PAGE):
    """Harvest the same works through plan, lease, gate, raw store, ledger and certificate."""
    settings = Settings(home=folder / uuid4().hex, db_url=db_url)
    prepare(settings)
    asked = Asked(START, START + timedelta(days=DAYS))
    fast = {
        "rate": {"per_second": 10_000, "burst": 1000, "in_flight": 64},
        "request": {"base_url": url},
        "paging": {"page_size": page_size},
    }
    with open_ingest(settings) as live:
        began = time.perf_counter()
        live.planner.plan(Trigger("sandbox", "works", asked=asked, overrides=Overrides(fast)))
        drained = live.worker().work(Order(lanes, True), threading.Event(), lambda _: None)
        taken = time.perf_counter() - began
    assert drained.batches["itemsCount"] == records, drained
    return taken


def run_engine(url, folder, lanes, *ledgers):
    """Harvest into each of the ledgers, in one process; return the seconds of the last harvest."""
    command = [sys.executable, "-m", "bench.harvest", url, str(folder), str(lanes), *ledgers]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(run.stdout)


def compare_harvest(folder, mysql_url):
    """Print the speeds beside a bare loop's, each pair in one run, and the medians' ratio."""
    with start_sandbox(World(RECORDS, START, DAYS, 1)) as box:
        times = {"bare loop": [], "1 lane": [], "4 lanes": []}
        for _ in range(PAIRS):
            times["bare loop"].append(run_bare(box.url, folder)[0])
            times["1 lane"].append(run_engine(box.url, folder, 1, "", ""))
        for _ in range(REPEATS):
            times["4 lanes"].append(run_engine(box.url, folder, 4, "", ""))
        _print("SQLite", times)
        if mysql_url:
            times = {"bare loop": [], "1 lane": [], "4 lanes": []}
            for _ in range(REPEATS):
                with fresh_mysql(mysql_url) as url:
                    times["bare loop"].append(run_bare(box.url, url)[0])
                for lanes, name in ((1, "1 lane"), (4, "4 lanes")):
                    with fresh_mysql(mysql_url) as warm, fresh_mysql(mysql_url) as url:
                        times[name].append(run_engine(box.url, folder, lanes, warm, url))
            _print("MySQL", times)


def _print(ledger, times):
    base = statistics.median(times["bare loop"])
    for name, taken in times.items():
        seconds = statistics.median(taken)
        speed, share = RECORDS / seconds, base / seconds
        print(f"{ledger:<6} {name:<9} {speed:7.0f} records/s  {share:5.0%} of the bare loop")


def measure_latency(folder):
    """Print how lanes hide a slow source: 8 slices, 50 ms per answer, pages of 20."""
    records, size = 8_000, 20
    pages = records / size + DAYS  # the last page of a slice is seldom full
    times = {lanes: [] for lanes in (1, 2, 4, 8)}
    with start_sandbox(World(records, START, DAYS, 1), Behaviour(latency_ms=LATENCY_MS)) as box:
        for _ in range(REPEATS):  # in turns: a machine that slows down slows all of them
            for lanes, taken in times.items():
                taken.append(engine(box.url, folder, "", lanes, records, size))
    medians = {lanes: statistics.median(taken) for lanes, taken in times.items()}
    for lanes, seconds in medians.items():
        ideal = pages * LATENCY_MS / 1000 / lanes
        print(
            f"{lanes} lanes  {seconds:5.2f} s  {ideal / seconds:5.0%} of one answer per"
            f" {LATENCY_MS:.0f} ms and lane,"
            f" {medians[1] / seconds / lanes:5.0%} of lanes × one lane"
        )


def measure_memory(folder):
    """Print the peak memory of a worker that harvests few records, and many."""
    for size in (PAGE, 1000):
        peaks = [_peak(folder, records, size) for records in (10_000, MANY)]
        few, many = peaks
        print(
            f"pages of {size:>4}: {few} MB at most for 10,000 records, {many} MB for {MANY:,},"
            f" {many / few:.2f} ×"
        )


def _peak(folder, records, page_size):
    """Return the peak memory, in MB, of a process that harvests so many records."""
    with start_sandbox(World(records, START, DAYS, 1)) as box:
        code = (
            "import resource; from pathlib import Path; from bench.harvest import engine;"
            f"engine({box.url!r}, Path({str(folder)!r}), '', 1, {records}, {page_size});"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
        )
    return int(run.stdout)


def main(url, folder, lanes, *ledgers):
    """Harvest into one ledger after the other and print how long the last one took."""
    taken = [engine(url, Path(folder), db_url, int(lanes)) for db_url in ledgers]
    print(taken[-1])


if __name__ == "__main__":
    main(*sys.argv[1:])
