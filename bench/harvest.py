"""Records per second through the whole engine, and through a loop that does the least possible."""

import sqlite3
import statistics
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import orjson

from patra_ingest.cli.setup import prepare
from patra_ingest.executor.work import Order
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest.spec.declaration import Overrides
from patra_ingest.wiring import open_ingest

RECORDS = 10_000
DAYS = 8
START = datetime(2026, 1, 1, tzinfo=UTC)
REPEATS = 3


def bare_loop(url, folder):
    """Fetch, parse, upsert: no ledger, no proof, no resume."""
    db = sqlite3.connect(folder / f"bare-{uuid4().hex}.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("CREATE TABLE r (id TEXT PRIMARY KEY, updated TEXT, payload TEXT)")
    upsert = (
        "INSERT INTO r VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET payload = excluded.payload"
    )
    count = 0
    with httpx.Client(trust_env=False) as client:
        cursor = "*"
        while True:
            page = client.get(f"{url}/works", params={"rows": 100, "cursor": cursor})
            message = orjson.loads(page.content)["message"]
            items = message["items"]
            db.execute("BEGIN")
            db.executemany(
                upsert,
                [(i["DOI"], i["indexed"]["date-time"], orjson.dumps(i).decode()) for i in items],
            )
            db.execute("COMMIT")
            count += len(items)
            if len(items) < 100:
                return count
            cursor = message["next-cursor"]


def engine(url, folder, db_url, lanes):
    """Harvest the same works through plan, lease, gate, raw store, ledger and certificate."""
    settings = Settings(home=folder / uuid4().hex, db_url=db_url)
    prepare(settings)
    asked = Asked(START, START + timedelta(days=DAYS))
    fast = {"rate": {"per_second": 10_000, "burst": 1000}, "request": {"base_url": url}}
    with open_ingest(settings) as live:
        began = time.perf_counter()
        live.planner.plan(Trigger("sandbox", "works", asked=asked, overrides=Overrides(fast)))
        drained = live.worker().work(Order(lanes, True), threading.Event(), lambda _: None)
        taken = time.perf_counter() - began
    assert drained.batches["itemsCount"] == RECORDS, drained
    return taken


def compare_harvest(folder, mysql_url):
    """Print both speeds and their ratio."""
    with start_sandbox(World(RECORDS, START, DAYS, 1)) as box:
        bare_loop(box.url, folder)
        times = {"bare": [], "1 lane": [], "4 lanes": []}
        for _ in range(REPEATS):
            began = time.perf_counter()
            bare_loop(box.url, folder)
            times["bare"].append(time.perf_counter() - began)
            times["1 lane"].append(engine(box.url, folder, "", 1))
            times["4 lanes"].append(engine(box.url, folder, "", 4))
        base = statistics.median(times["bare"])
        for name, taken in times.items():
            seconds = statistics.median(taken)
            speed = RECORDS / seconds
            print(
                f"SQLite {name:<8} {speed:7.0f} records/s  {base / seconds:5.0%} of the bare loop"
            )
        if mysql_url:
            seconds = engine(box.url, folder, mysql_url, 4)
            print(f"MySQL  4 lanes  {RECORDS / seconds:7.0f} records/s (one run)")
