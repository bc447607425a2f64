"""What Dagster costs: its share of a drain, its events, the time to load, the time of a tick."""

import logging
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import dagster as dg
from sqlalchemy import text

from bench.figures import medians_in_turn, verdict
from bench.leasing import PARTITIONS, QUEUED, queue_tasks
from bench.ledgers import mysql_ledger, sqlite_ledger
from patra_ingest.cli.setup import prepare
from patra_ingest.ledger.db import Db
from patra_ingest.packs import FOLDER, TEMPLATES, builtin_packs
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest.spec.declaration import Overrides
from patra_ingest.wiring import open_ingest

TASKS, RECORDS_PER_TASK, HOUR = 1_000, 5, timedelta(hours=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
DRAINS, LOADS, TICKS = 7, 5, 21
SOURCES = 25
MAX_SHARE, MAX_LOAD_SECONDS, MAX_TICK_MS = 0.05, 3.0, 200.0
DAGSTER_YAML = Path(__file__).parents[1] / "dagster.yaml"
# Every slice gets its task, and no task waits for a permit.
FAST = {
    "window": {"max_span": "1h"},
    "planning": {"max_queued": 2 * TASKS},
    "rate": {"per_second": 10_000, "burst": 1_000, "in_flight": 64},
}

OpenLedger = Callable[[], AbstractContextManager[Db]]


def measure_dagster(folder: Path, mysql_server: str) -> None:
    """Print all of it; ticks on MySQL, too, when a server is given."""
    _measure_load(folder)
    _measure_drain(folder)
    _measure_ticks("SQLite", folder, lambda: sqlite_ledger(folder))
    if mysql_server:
        _measure_ticks("MySQL", folder, lambda: mysql_ledger(mysql_server))
    else:
        print("\nTicks on MySQL: not measured, PATRA_TEST_MYSQL_URL is not set")


def _measure_load(folder: Path) -> None:
    packs = folder / "packs"
    packs.mkdir()
    for number in range(SOURCES):
        _copy_pack(number, packs)
    for template in TEMPLATES:  # packs begin from them
        shutil.copy(FOLDER / f"{template}.yaml", packs)
    print(f"\nLoading the definitions in a fresh process, medians of {LOADS}")
    for named, place in (("the built-in packs", FOLDER), (f"{SOURCES} packs", packs)):
        sources = len(list(place.glob("*.yaml"))) - len(TEMPLATES)
        times = [tuple(map(float, _child("load", place).said)) for _ in range(LOADS)]
        dagster, ours = (statistics.median(column) for column in zip(*times, strict=True))
        judged = verdict(f"< {MAX_LOAD_SECONDS:.0f} s", dagster + ours < MAX_LOAD_SECONDS)
        print(
            f"  {named} ({sources} sources): {dagster + ours:.2f} s, of them {dagster:.2f} s"
            f" importing Dagster   {judged}"
        )


def _copy_pack(number: int, folder: Path) -> None:
    known = builtin_packs()
    pack = known[number % len(known)]
    code = pack.stem if number < len(known) else f"{pack.stem}-{number:02d}"
    written = re.sub(r"(?m)^  code: \S+", f"  code: {code}", pack.read_text(), count=1)
    (folder / f"{code}.yaml").write_text(written)


@dataclass(frozen=True)
class _Told:
    """What a child process printed, and how long it lived."""

    said: list[str]
    seconds: float


def _child(*words: object, home: Mapping[str, str] | None = None) -> _Told:
    command = [sys.executable, "-W", "ignore", "-m", "bench.face_child", *map(str, words)]
    began = time.perf_counter()
    done = subprocess.run(
        command,
        env={**os.environ, **(home or {})},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-5000:]}")
    return _Told(done.stdout.split(), time.perf_counter() - began)


def _measure_drain(folder: Path) -> None:
    """Drain copies of one queue, in turn by the loop and by the job, each in a fresh process."""
    world = World(TASKS * RECORDS_PER_TASK, START, TASKS / 24, 1)
    drains: dict[str, list[_Told]] = {"loop": [], "dagster": []}
    logs = []
    with start_sandbox(world) as box:
        ready = _ready(folder / "ready", box.url)
        for _ in range(DRAINS):
            for face, done in drains.items():
                home = _copied(ready, folder)
                done.append(_child("drain", face, home=home))
                _require_drained(Path(home["PATRA_HOME"]))
                if face == "dagster":
                    logs.append(_read_log(Path(home["DAGSTER_HOME"])))
    print(
        f"\nDraining {TASKS:,} tasks of {RECORDS_PER_TASK} records by `execute_job`, and by a"
        f" worker's own loop; medians of {DRAINS} in turn"
    )
    columns = (
        ("the drain", lambda one: float(one.said[0])),
        ("… its processor time", lambda one: float(one.said[1])),
        ("with start-up and imports", lambda one: one.seconds),
    )
    for what, figure in columns:
        _say_share(what, *([figure(one) for one in drains[face]] for face in ("dagster", "loop")))
    size = statistics.median(log.bytes for log in logs)
    print(
        f"  event log: {logs[0].events} events, {size / 1000:.0f} kB, {size / TASKS:.0f} bytes per"
        f" task; its file {logs[0].file_bytes / 1000:.0f} kB"
    )


def _say_share(what: str, with_dagster: list[float], without: list[float]) -> None:
    pairs = zip(with_dagster, without, strict=True)
    share = statistics.median(1 - less / more for more, less in pairs)
    more, less = statistics.median(with_dagster), statistics.median(without)
    judged = verdict(f"< {MAX_SHARE:.0%}", share < MAX_SHARE)
    print(f"  {what:<26}{more:6.2f} s and {less:6.2f} s: {share:6.1%} is Dagster's   {judged}")


def _ready(home: Path, url: str) -> Path:
    """Return a folder with a ledger, its tasks queued, and a storage of Dagster that was used."""
    settings = Settings(home=home / "patra", db_url="")
    prepare(settings)
    asked = Asked(START, START + TASKS * HOUR)
    overrides = Overrides({**FAST, "request": {"base_url": url}})
    with open_ingest(settings) as live:
        planned = live.planner.plan(Trigger("sandbox", "works", asked=asked, overrides=overrides))
    assert planned.queued == TASKS, planned
    with _dagster_home(home / "dagster") as instance:
        instance.get_runs_count()
    return home


@contextmanager
def _dagster_home(folder: Path) -> Iterator[dg.DagsterInstance]:
    folder.mkdir(parents=True)
    shutil.copy(DAGSTER_YAML, folder)
    os.environ["DAGSTER_HOME"] = str(folder)
    with dg.DagsterInstance.get() as instance:
        yield instance


def _copied(ready: Path, folder: Path) -> dict[str, str]:
    own = folder / uuid4().hex
    shutil.copytree(ready, own)
    homes = {"PATRA_HOME": str(own / "patra"), "DAGSTER_HOME": str(own / "dagster")}
    return {**homes, "PATRA_DB_URL": ""}


def _require_drained(home: Path) -> None:
    with sqlite3.connect(home / "ledger.db") as db:
        done = db.execute("SELECT status_code, COUNT(*) FROM ing_task GROUP BY 1").fetchall()
        (records,) = db.execute("SELECT COUNT(*) FROM ing_record").fetchone()
    assert done == [("SUCCEEDED", TASKS)], done
    assert records == TASKS * RECORDS_PER_TASK, records


@dataclass(frozen=True)
class _Log:
    """What a run left in Dagster's storage."""

    events: int
    bytes: int
    file_bytes: int


def _read_log(home: Path) -> _Log:
    (path,) = (path for path in home.glob("history/runs/*.db") if path.stem != "index")
    with sqlite3.connect(path) as db:
        rows, size = db.execute("SELECT COUNT(*), SUM(LENGTH(event)) FROM event_logs").fetchone()
    return _Log(rows, size, path.stat().st_size)


_PLANS = text("""
    INSERT INTO ing_plan (id, schedule_instance_id, plan_key, provenance_code, endpoint_name,
           operation_code, namespace_scope_code, namespace_key, cursor_key, direction_code,
           expr_proto_hash, spec_fingerprint, spec_snapshot, slice_strategy_code, status_code)
    SELECT DISTINCT plan_id, 1, plan_id, provenance_code, endpoint_name, operation_code, 'GLOBAL',
           :zeros, 'updated', 'FORWARD', :zeros, :zeros, '{"planning": {"max_queued": 1}}', 'TIME',
           'PARTIAL' FROM ing_task
""")
_WINDOWS = text("""
    UPDATE ing_plan_slice SET window_from = '2025-09-01 00:00:00.000000',
           window_to = '2025-09-01 01:00:00.000000'
""")
_TURNS = text("""
    INSERT INTO ing_lease_turn (provenance_code, endpoint_name, operation_code)
    SELECT DISTINCT provenance_code, endpoint_name, operation_code FROM ing_task
""")


def _measure_ticks(engine: str, folder: Path, open_ledger: OpenLedger) -> None:
    """Let every sensor look at a full queue, in this process: what a code server does."""
    from patra_ingest.definitions import defs

    with open_ledger() as db:
        queue_tasks(db)
        with db.write() as tx:
            tx.execute(_PLANS, {"zeros": "0" * 64})
            tx.execute(_WINDOWS)
            tx.execute(_TURNS)
        os.environ["PATRA_DB_URL"] = db.engine.url.render_as_string(hide_password=False)
        with _dagster_home(folder / uuid4().hex) as instance:
            ledger = {"ledger": defs.resources["ledger"]}

            def look(sensor: dg.SensorDefinition) -> None:
                with dg.build_sensor_context(instance, resources=ledger) as context:
                    sensor.evaluate_tick(context)

            sensors = {one.name: one for one in defs.sensors}
            ticks = {name: lambda one=one: look(one) for name, one in sensors.items()}
            logging.disable()  # it would tell of these cursors at every tick
            taken = medians_in_turn(ticks, TICKS)
            logging.disable(logging.NOTSET)
    print(
        f"\nTicks on {engine}: {QUEUED:,} queued, {PARTITIONS} plans that wait; medians of {TICKS}"
    )
    for name, ms in taken.items():
        judged = verdict(f"< {MAX_TICK_MS:.0f} ms", ms < MAX_TICK_MS)
        print(f"  {name:<17} {ms:7.1f} ms   {judged}")
