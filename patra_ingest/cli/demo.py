"""The demo: a fresh ledger, a sandbox, one HARVEST through Dagster's `ingest_job`, and the proof.

The sandbox's world is remembered beside the ledger, so a second demo meets the same world and
harvests only what is new since the first.
"""

import json
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import patra_ingest
from patra_ingest.cli.setup import prepare
from patra_ingest.cli.show import Bar, print_summary, progress_bar, say
from patra_ingest.clock import Clock, SystemClock
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.db import Db
from patra_ingest.model.window import instant_iso, parse_instant
from patra_ingest.sandbox.process import Sandbox, start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings, child_environment, dagster_home
from patra_ingest.views.overview import list_states
from patra_ingest.views.plan_summary import summarize_plan
from patra_ingest.views.queue import find_newest_plan, list_plans_of_run, plan_progress
from patra_ingest.views.records import list_ids
from patra_ingest.wiring import open_ingest, read_settings

_PORT = 8765
_DAYS = 10
_POLL_SECONDS = 0.25
_ENDPOINT = ("sandbox", "works")


def run_demo(records: int) -> bool:
    """Run the demo; True when the ledger holds exactly what the sandbox has."""
    settings = read_settings()
    say(prepare(settings))
    clock = SystemClock()
    world = _remembered_world(settings.home / "demo.json", records, clock)
    with start_sandbox(world, port=_free_port()) as box, open_ingest(settings) as live:
        say(f"Sandbox: {world.records} works over {world.days:g} days, at {box.url}")
        say("Harvesting through Dagster: ingest_job …")
        run_id = _run_ingest_job(settings, world, box, live.db, clock)
        with live.db.read() as tx:
            plan_id = next(iter(list_plans_of_run(tx, "ingest_job", run_id)), None)
            have = list_ids(tx, *_ENDPOINT)
            summary = summarize_plan(tx, plan_id) if plan_id else None
        truth = set(box.truth().ids)
    same = have == truth
    verdict = "equal, id by id" if same else f"{len(have ^ truth)} ids differ"
    compared = f"{len(have)} records in the ledger, {len(truth)} in the sandbox: {verdict}"
    say("")
    if summary is None:
        say(f"Nothing new to plan since the last demo. {compared}.")
    else:
        print_summary(summary, ("truth", compared))
    _say_what_next(settings)
    return same and (summary is None or summary.is_proved)


def _remembered_world(path: Path, records: int, clock: Clock) -> World:
    if path.exists():
        kept = json.loads(path.read_text())
        return World(kept["records"], parse_instant(kept["start"]), kept["days"], kept["seed"])
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    world = World(records, midnight - timedelta(days=_DAYS), _DAYS, 1)
    kept = {
        "records": world.records,
        "start": instant_iso(world.start),
        "days": world.days,
        "seed": world.seed,
    }
    path.write_text(json.dumps(kept))
    return world


def _free_port() -> int:
    """Return the port the pack names, or 0 (any) when somebody else has it."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", _PORT))
        except OSError:
            return 0
    return _PORT


def _run_ingest_job(settings: Settings, world: World, box: Sandbox, db: Db, clock: Clock) -> str:
    """Run the job in a process of its own, show its progress, and return its Dagster run id."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    with db.read() as tx:
        has_cursor = any(state.cursor for state in list_states(tx))
    shipped = Path(patra_ingest.__file__).parents[1] / "dagster.yaml"
    if shipped.exists() and not (home / "dagster.yaml").exists():
        shutil.copy(shipped, home / "dagster.yaml")
    config: dict[str, Any] = {
        "provenance": _ENDPOINT[0],
        "endpoint": _ENDPOINT[1],
        "window_from": "" if has_cursor else instant_iso(world.start),
        "base_url": box.url,
    }
    log = home / "demo.log"
    command = [sys.executable, "-m", "patra_ingest.defs.launch", json.dumps(config)]
    environment = child_environment(
        DAGSTER_HOME=str(home), PATRA_HOME=str(settings.home.absolute())
    )
    with log.open("w") as out, progress_bar() as bar:
        job = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=out, text=True, env=environment
        )
        try:
            while job.poll() is None:
                _show_progress(db, bar)
                clock.sleep(_POLL_SECONDS)
            _show_progress(db, bar)
        finally:
            job.terminate()
            run_id, _ = job.communicate()
    if job.returncode != 0:
        raise PersonMustAct("The Dagster run failed.", f"Its log is {log}.")
    return run_id.strip()


def _show_progress(db: Db, bar: Bar) -> None:
    with suppress(PersonMustAct), db.read() as tx:
        newest = find_newest_plan(tx)
        if newest is not None:
            bar.show(*plan_progress(tx, newest))


def _say_what_next(settings: Settings) -> None:
    say("")
    say("What to open next:")
    for command, shows in (
        ("make dev", "Dagster's UI on http://127.0.0.1:3000: the run, the graph, the asset"),
        (".venv/bin/patra status", "every endpoint: records, queue, cursor"),
        ("make demo", "again: harvests only what is new"),
        (f"{settings.home / 'ledger.db'}", "the ledger itself"),
    ):
        say(f"  {command:<24} {shows}")
