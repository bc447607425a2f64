"""How long a queued task waits for its execution, with a real daemon and a real code location."""

import os
import random
import statistics
import sys
import time
from datetime import timedelta

import pytest

from patra_ingest.cli.setup import prepare
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.settings import Settings
from patra_ingest.wiring import open_ingest
from patra_ingest_tests.builders import day
from patra_ingest_tests.household import Household

TASKS = int(os.environ.get("PATRA_LATENCY_TASKS", "5"))
SPAN = timedelta(seconds=15)  # one slice
WAITS = """
    SELECT (JULIANDAY(MIN(r.started_at)) - JULIANDAY(t.created_at)) * 86400
      FROM ing_task t JOIN ing_task_run r ON r.task_id = t.id GROUP BY t.id
"""


@pytest.mark.timeout(600)
def test_a_task_is_executed_some_seconds_after_it_was_queued(tmp_path, monkeypatch, sandbox):
    house = Household(tmp_path)
    house.write_pack(sandbox.url, day(0))
    monkeypatch.setattr("patra_ingest.packs.FOLDER", house.packs)
    settings = Settings(home=house.patra, db_url="")
    prepare(settings)
    dice = random.Random(1)
    try:
        house.start_code()
        house.switch_on("queued_harvest", "queued_update", "queued_backfill", "reslice_requests")
        house.start_daemon()
        for number in range(TASKS):
            time.sleep(dice.uniform(1, 6))  # at any moment between two ticks
            asked = Asked(day(0) + number * SPAN, day(0) + (number + 1) * SPAN)
            with open_ingest(settings) as live:
                live.planner.plan(Trigger("sandbox", "works", asked=asked))
            house.wait_until(
                lambda: not house.rows("SELECT 1 FROM ing_task WHERE finished_at IS NULL"), 90
            )
            house.wait_until(lambda: not house.active_runs(), 90)
    finally:
        house.stop()

    waits = sorted(seconds for (seconds,) in house.rows(WAITS))
    figures = f"{[round(one, 1) for one in waits]} s, load {os.getloadavg()[0]:.1f}"
    sys.stdout.write(f"queued to executing: median {statistics.median(waits):.1f} of {figures}\n")
    assert len(waits) == TASKS
    assert statistics.median(waits) < 60, figures  # under ten where the machine is not busy
